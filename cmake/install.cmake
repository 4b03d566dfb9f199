# `cmake --install`: library, headers and what find_package(Semel) needs.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(semel_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Semel")
install(TARGETS semel_api semel_engine EXPORT SemelTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
install(DIRECTORY include/semel DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library)
install(EXPORT SemelTargets NAMESPACE Semel:: DESTINATION "${semel_package_dir}"
        COMPONENT library)

configure_package_config_file(
  cmake/SemelConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/SemelConfig.cmake"
  INSTALL_DESTINATION "${semel_package_dir}")
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/SemelConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/SemelConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/SemelConfigVersion.cmake"
        DESTINATION "${semel_package_dir}" COMPONENT library)

if(TARGET semel)
  install(TARGETS semel RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
endif()
