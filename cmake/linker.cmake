# Builds for tests are linked by mold where it is there, in a quarter of ld's time. What users get
# is linked by the compiler's own linker. -DSEMEL_MOLD= leaves tests to that as well.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT CMAKE_BUILD_TYPE STREQUAL "Debug" OR CMAKE_CROSSCOMPILING)
  return()
endif()
find_program(SEMEL_MOLD mold)
mark_as_advanced(SEMEL_MOLD)
if(SEMEL_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold SEMEL_LINKS_WITH_MOLD)
  if(SEMEL_LINKS_WITH_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
