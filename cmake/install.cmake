# `cmake --install`: what find_package(Semel) and pkg-config need, the libraries, the headers and
# the program, its manual pages and shell completion. Components: runtime (the shared library for
# C), development, tools; with SEMEL_PACKAGES also node.
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

# Parts that need the objects name them; Semel::core does not.
semel_install_part(core semel_api semel_engine semel_objects semel_patterns semel_core)
semel_install_part(signed semel_signed)
semel_install_part(json semel_json)
semel_install_part(storage semel_storage)
if(TARGET semel_replica)
  semel_install_part(replication semel_state semel_entry_log semel_raft_shim semel_consensus
    semel_peers semel_replica)
endif()
semel_install_part(net semel_resp semel_lua semel_command semel_local_redis)
if(TARGET semel_replica)
  semel_install_part(group semel_group)
endif()
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
              cmake/SemelRaft.cmake
        DESTINATION "${semel_package_dir}" COMPONENT development)

include(pkgconfig)

if(NOT TARGET semel)
  return()
endif()
install(TARGETS semel RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)

# Manual pages and shell completion are made by running the program, one of another processor by an
# emulator. A sanitized one may not run outside of its tests.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND OR SEMEL_SANITIZE OR
   (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
  message(STATUS "Semel: no manual pages and shell completion are made in this build")
  return()
endif()
set(semel_runs "$<TARGET_FILE:semel>")
if(CMAKE_CROSSCOMPILING)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR "' '" emulator)
  set(semel_runs "${PROJECT_BINARY_DIR}/emulated/semel")
  file(GENERATE OUTPUT "${semel_runs}"
    CONTENT "#!/bin/sh\nexec '${emulator}' '$<TARGET_FILE:semel>' \"$@\"\n"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()
set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(documents "${PROJECT_BINARY_DIR}/documents")
add_custom_command(
  OUTPUT "${documents}/stamp"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${documents}"
  COMMAND "${Python3_EXECUTABLE}" "${packaging}/manual.py" "${semel_runs}"
          "${documents}/man"
  COMMAND "${Python3_EXECUTABLE}" "${packaging}/completion.py" "${semel_runs}"
          "${documents}/completion"
  COMMAND "${CMAKE_COMMAND}" -E touch "${documents}/stamp"
  DEPENDS semel "${packaging}/manual.py" "${packaging}/completion.py"
  COMMENT "Making manual pages and shell completion" VERBATIM)
add_custom_target(semel_documents ALL DEPENDS "${documents}/stamp")

# Debian has a place of its own for what zsh finds in packages.
set(zsh_folder "${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions")
if(SEMEL_PACKAGES)
  set(zsh_folder "${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions")
endif()
install(DIRECTORY "${documents}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
install(FILES "${documents}/completion/semel.bash" RENAME semel COMPONENT tools
        DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions")
install(FILES "${documents}/completion/_semel" DESTINATION "${zsh_folder}" COMPONENT tools)
install(FILES "${documents}/completion/semel.fish" COMPONENT tools
        DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d")
