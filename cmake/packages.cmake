# cpack's Debian packages, as tools/package makes them: libsemel0, libsemel-dev, semel-tools,
# semel-node. What goes where is said by cmake/install.cmake; here is what only packages have. Needs
# CMAKE_INSTALL_PREFIX /usr; the preset `package` says so.
if(NOT SEMEL_PACKAGES)
  return()
endif()
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr" OR NOT TARGET semel OR NOT SEMEL_INSTALL)
  message(FATAL_ERROR "SEMEL_PACKAGES is for the preset `package`")
endif()
if(NOT TARGET semel_documents)
  message(FATAL_ERROR "SEMEL_PACKAGES needs python3, for manual pages and shell completion")
endif()

set(SEMEL_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "Semel maintainers <maintainers@semel.example>")
set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(packaged "${PROJECT_BINARY_DIR}/packaging")

# Debian wants its manual pages compressed.
install(CODE "
  file(GLOB pages
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/semel*.1\")
  foreach(page IN LISTS pages)
    execute_process(COMMAND gzip -9nf \"\${page}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT tools)

# Archives without the line numbers, which name the place they were built at.
install(CODE "
  file(GLOB archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/*.a\")
  foreach(archive IN LISTS archives)
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug --enable-deterministic-archives
                            \"\${archive}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT development)

string(TIMESTAMP semel_package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file("${packaging}/changelog.in" "${packaged}/changelog.Debian" @ONLY)
file(COPY "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${packaged}")
file(RENAME "${packaged}/CHANGELOG.md" "${packaged}/changelog")
foreach(log IN ITEMS changelog changelog.Debian)
  execute_process(COMMAND gzip -9nc "${packaged}/${log}" OUTPUT_FILE "${packaged}/${log}.gz"
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# semel_package(COMPONENT NAME SECTION SUMMARY TEXT)
macro(semel_package component name section summary text)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
  install(FILES "${packaging}/copyright" "${packaged}/changelog.gz"
                "${packaged}/changelog.Debian.gz"
          DESTINATION "share/doc/${name}" COMPONENT ${component} EXCLUDE_FROM_ALL)
endmacro()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME semel)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_VENDOR "Semel maintainers")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_SET_DESTDIR ON)  # for what goes to /etc and /lib
# cpack strips the programs and keeps what it takes out as NAME-dbgsym. With CPACK_STRIP_FILES they
# would be stripped before that, and the packages of symbols empty.
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL "")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${SEMEL_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(semel_debian_version "${PROJECT_VERSION}-${SEMEL_PACKAGE_RELEASE}")

set(semel_about "Semel remembers what has been done, so that the same work is done once:
a table of records with a time to live, and on top of it claims, records of
one piece of work that are fenced by their owner.

This package")
# The program has libraft in it, as it has RocksDB: Debian 12 has 0.22 only among its backports, and
# a service needs none of them that way. Who builds with the archives needs libraft-dev; a second
# recommendation, of (<< 0.23), would be met by Debian 12's 0.15, and apt would install that.
set(semel_tools_replication "
It was built without replication.")
set(semel_dev_replication "")
set(semel_dev_raft "")
if(TARGET semel_replica)
  if(NOT SEMEL_RAFT_ARCHIVE)
    message(FATAL_ERROR "SEMEL_PACKAGES needs libraft.a, or SEMEL_REPLICATION=OFF")
  endif()
  set(semel_tools_replication "
Nodes form groups; replication needs no further package.")
  set(semel_dev_replication "; replication needs libraft-dev 0.22, which
Debian 12 has in bookworm-backports")
  set(semel_dev_raft "libraft-dev (>= 0.22.1), ")
endif()
set(semel_dev_depends "libc6-dev, libstdc++-12-dev | libstdc++-dev")
if(TARGET semel_c)
  semel_package(runtime libsemel0 libs "dedup and idempotency in process (library for C)"
    "${semel_about} has the shared library with an interface for C.")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
  # Programs that link it need at least this version: functions are added within libsemel.so.0.
  file(WRITE "${packaged}/shlibs" "libsemel 0 libsemel0 (>= ${PROJECT_VERSION})\n")
  file(WRITE "${packaged}/triggers" "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${packaged}/shlibs;${packaged}/triggers")
  string(PREPEND semel_dev_depends "libsemel0 (= ${semel_debian_version}), ")
endif()
semel_package(development libsemel-dev libdevel "dedup and idempotency in process (to build with)"
  "${semel_about} has headers, archives and what cmake and pkg-config
ask for. What only the storage, replication and the commands of Redis need is
recommended${semel_dev_replication}.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${semel_dev_depends}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS
  "librocksdb-dev (>= 7.8), libssl-dev, ${semel_dev_raft}libluajit-5.1-dev, \
libboost-context1.81-dev")

semel_package(tools semel-tools utils "removes duplicates from streams; a dedup node"
  "${semel_about} has the program: it writes the first occurrence of each
line of a stream, serves Redis' protocol, and looks after storages.${semel_tools_replication}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)

semel_package(node semel-node database "dedup and idempotency node (service)"
  "${semel_about} runs a node that speaks Redis' protocol, as a service.")
set(CPACK_DEBIAN_NODE_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_NODE_PACKAGE_DEPENDS "semel-tools (>= ${semel_debian_version}), adduser")
set(CPACK_DEBIAN_NODE_PACKAGE_CONTROL_EXTRA conffiles postinst prerm postrm)
list(TRANSFORM CPACK_DEBIAN_NODE_PACKAGE_CONTROL_EXTRA PREPEND "${packaging}/node/")
install(FILES tools/systemd/semel.service DESTINATION /lib/systemd/system
  COMPONENT node EXCLUDE_FROM_ALL)
install(FILES packaging/node/semel.toml DESTINATION /etc/semel COMPONENT node EXCLUDE_FROM_ALL)
install(FILES docs/operations.md DESTINATION share/doc/semel COMPONENT node EXCLUDE_FROM_ALL)
install(FILES packaging/monitoring/alerts.yml packaging/monitoring/grafana-dashboard.json
        DESTINATION share/doc/semel/monitoring COMPONENT node EXCLUDE_FROM_ALL)

include(CPack)
