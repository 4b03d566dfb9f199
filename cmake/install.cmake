# `cmake --install`: what find_package(Semel) and pkg-config need, the libraries, the headers and
# the program. Components: runtime (the shared library for C), development, tools; with
# SEMEL_PACKAGES also node.
if(NOT SEMEL_INSTALL)
  return()
endif()

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(semel_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Semel")

# semel_install_part(PART TARGET...): those of the targets that were built are the component PART of
# find_package(Semel).
function(semel_install_part part)
  set(targets "")
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      list(APPEND targets ${target})
    endif()
  endforeach()
  if(NOT targets)
    return()
  endif()
  set_target_properties(${targets} PROPERTIES EXCLUDE_FROM_ALL FALSE)
  install(TARGETS ${targets} EXPORT semel_${part}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime
            NAMELINK_COMPONENT development)
  install(EXPORT semel_${part} NAMESPACE Semel:: FILE "Semel-${part}-targets.cmake"
    DESTINATION "${semel_package_dir}" COMPONENT development)
endfunction()

semel_install_part(core semel_api semel_engine semel_patterns semel_core)
semel_install_part(signed semel_signed)
semel_install_part(json semel_json)
semel_install_part(storage semel_storage)
semel_install_part(net semel_resp semel_lua semel_command semel_local_redis)
semel_install_part(c semel_c)

install(DIRECTORY include/semel DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
if(TARGET semel_c)
  install(FILES include/semel.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
endif()

configure_package_config_file(
  cmake/SemelConfig.cmake.in "${PROJECT_BINARY_DIR}/SemelConfig.cmake"
  INSTALL_DESTINATION "${semel_package_dir}"
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/SemelConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/SemelConfig.cmake"
              "${PROJECT_BINARY_DIR}/SemelConfigVersion.cmake"
              cmake/SemelNetDependencies.cmake
        DESTINATION "${semel_package_dir}" COMPONENT development)

include(pkgconfig)

if(TARGET semel)
  install(TARGETS semel RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
endif()
