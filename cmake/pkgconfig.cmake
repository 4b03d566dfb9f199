# pkg-config's files. The libraries but for C are archives, so what they link is needed by every
# program and stands in Libs; Libs.private is what a program with `-static` needs beyond that.
# A prefix that is found from the file itself lets the whole tree be moved.
set(semel_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# semel_pkgconfig(NAME DESCRIPTION ...)
function(semel_pkgconfig name description)
  cmake_parse_arguments(PARSE_ARGV 2 pc "" "" "REQUIRES;LIBS;LIBS_PRIVATE;CFLAGS")
  string(REGEX REPLACE "[^/]+" ".." up "${semel_pc_dir}")
  list(JOIN pc_REQUIRES ", " requires)
  list(JOIN pc_LIBS " " libs)
  list(JOIN pc_LIBS_PRIVATE " " libs_private)
  set(text "prefix=\${pcfiledir}/${up}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}

Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
")
  if(requires)
    string(APPEND text "Requires: ${requires}\n")
  endif()
  string(APPEND text "Cflags: -I\${includedir}\nLibs: -L\${libdir} ${libs}\n")
  if(libs_private)
    string(APPEND text "Libs.private: ${libs_private}\n")
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.pc" CONTENT "${text}" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${semel_pc_dir}"
    COMPONENT development)
endfunction()

# semel_link_name(LIBRARY RESULT): as -l says what was found.
function(semel_link_name library result)
  cmake_path(GET library FILENAME file)
  cmake_path(GET library EXTENSION LAST_ONLY extension)
  if(extension STREQUAL ".a")
    set(${result} "-l:${file}" PARENT_SCOPE)
  else()
    cmake_path(GET library STEM stem)
    string(REGEX REPLACE "^lib" "-l" stem "${stem}")
    set(${result} "${stem}" PARENT_SCOPE)
  endif()
endfunction()

set(semel_pc_core -lsemel_engine)
if(TARGET semel_patterns)
  list(PREPEND semel_pc_core -lsemel_patterns)
endif()
semel_pkgconfig(semel-core "Dedup and idempotency in process: engine, claims, patterns"
  LIBS ${semel_pc_core} -pthread)
if(TARGET semel_signed)
  semel_pkgconfig(semel-signed "What of Semel needs OpenSSL beside the core"
    REQUIRES semel-core libcrypto LIBS -lsemel_signed)
endif()
if(TARGET semel_json)
  semel_pkgconfig(semel-json "What of Semel needs JSON beside the core"
    REQUIRES semel-core LIBS -lsemel_json)
endif()
if(TARGET semel_storage)
  # Debian's rocksdb.pc does not say what its archive needs, so RocksDB is named here.
  semel_pkgconfig(semel-storage "Semel's storage on RocksDB"
    REQUIRES semel-core
    LIBS -lsemel_storage -lsemel_objects -lrocksdb
    LIBS_PRIVATE -lgflags -lsnappy -lz -lbz2 -llz4 -lzstd)
endif()
if(TARGET semel_replica)
  semel_pkgconfig(semel-replication "Services that link Semel form a group"
    REQUIRES semel-storage libssl libcrypto "raft >= 0.22.1" "raft < 0.23"
    LIBS -lsemel_replica -lsemel_peers -lsemel_consensus -lsemel_raft_shim -lsemel_entry_log
         -lsemel_state -lsemel_objects)
endif()
if(TARGET semel_command)
  semel_link_name("${SEMEL_LUAJIT}" semel_pc_luajit)
  semel_link_name("${SEMEL_BOOST_CONTEXT}" semel_pc_context)
  semel_pkgconfig(semel-net "Redis' commands in process, on Semel"
    REQUIRES semel-core libcrypto
    LIBS -lsemel_command -lsemel_lua -lsemel_resp -lsemel_objects
         ${semel_pc_luajit} ${semel_pc_context} -lm -ldl)
endif()
if(TARGET semel_command AND TARGET semel_replica)
  semel_pkgconfig(semel-group "A node of a group in process: engine and Redis' commands"
    REQUIRES semel-net semel-replication
    LIBS -lsemel_group)
endif()
if(TARGET semel_c)
  semel_pkgconfig(semel "Semel for C and for whatever calls C" LIBS -lsemel)
endif()
