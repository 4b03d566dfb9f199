# libraft, of the release whose defects replication guards against: 0.22.1 up to 0.23. Sets
# semel_libraft to ON or OFF, and makes Semel::raft. Older ones lose what was committed.
set(SEMEL_REPLICATION "AUTO" CACHE STRING
    "Replication, with libraft 0.22: AUTO (if it is there), ON (it must be), OFF")
set_property(CACHE SEMEL_REPLICATION PROPERTY STRINGS AUTO ON OFF)

set(semel_libraft OFF)
if(SEMEL_REPLICATION AND SEMEL_STORAGE)
  find_path(semel_raft_include raft.h)
  find_library(semel_raft_library raft)
  set(semel_raft_version "none")
  if(semel_raft_include AND semel_raft_library)
    file(STRINGS "${semel_raft_include}/raft.h" lines
         REGEX "^#define RAFT_VERSION_(MAJOR|MINOR|RELEASE) [0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
    string(REPLACE ";" "." semel_raft_version "${numbers}")
    if(semel_raft_version STREQUAL "")
      set(semel_raft_version "of an old release")
    elseif(semel_raft_version VERSION_GREATER_EQUAL 0.22.1 AND
           semel_raft_version VERSION_LESS 0.23)
      set(semel_libraft ON)
    endif()
  endif()
  if(semel_libraft)
    enable_language(C)
    add_library(semel_raft INTERFACE)
    target_include_directories(semel_raft SYSTEM INTERFACE "${semel_raft_include}")
    target_link_libraries(semel_raft INTERFACE "${semel_raft_library}")
  elseif(SEMEL_REPLICATION STREQUAL "AUTO")
    message(STATUS "replication: left out; libraft 0.22.1 to 0.22.x is needed, found: "
                   "${semel_raft_version}")
  else()
    message(FATAL_ERROR "SEMEL_REPLICATION needs libraft 0.22.1 to 0.22.x, found: "
                        "${semel_raft_version}")
  endif()
endif()
