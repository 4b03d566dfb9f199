# What a build of this project alone wants; a project that embeds Semel decides for itself.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(SEMEL_CCACHE ccache)
if(SEMEL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source tree are hashed as relative ones, so that two checkouts share a cache.
  # The preset `package` maps them to what the compiler would write without a ccache.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${SEMEL_CCACHE}")
endif()
