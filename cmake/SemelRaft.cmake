# Semel::raft, imported, for the build and for an installed package: libraft of the release whose
# defects replication guards against, 0.22.1 up to 0.23. Older ones lose what was committed. Where
# there is none, SemelRaft_FOUND says what was found. SEMEL_RAFT_LIBRARY may name the archive: it is
# for programs alone, since Debian's is not position independent.
find_path(SEMEL_RAFT_INCLUDE raft.h)
find_library(SEMEL_RAFT_LIBRARY raft)
mark_as_advanced(SEMEL_RAFT_INCLUDE SEMEL_RAFT_LIBRARY)
set(SemelRaft_FOUND "none")
if(SEMEL_RAFT_INCLUDE AND SEMEL_RAFT_LIBRARY)
  file(STRINGS "${SEMEL_RAFT_INCLUDE}/raft.h" semel_raft_lines
       REGEX "^#define RAFT_VERSION_(MAJOR|MINOR|RELEASE) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" semel_raft_version "${semel_raft_lines}")
  string(REPLACE ";" "." semel_raft_version "${semel_raft_version}")
  if(semel_raft_version STREQUAL "")
    set(SemelRaft_FOUND "an old release")
  else()
    set(SemelRaft_FOUND "${semel_raft_version}")
  endif()
  if(semel_raft_version VERSION_GREATER_EQUAL 0.22.1 AND semel_raft_version VERSION_LESS 0.23 AND
     NOT TARGET Semel::raft)
    add_library(Semel::raft UNKNOWN IMPORTED)
    set_target_properties(Semel::raft PROPERTIES
      IMPORTED_LOCATION "${SEMEL_RAFT_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${SEMEL_RAFT_INCLUDE}")
  endif()
  unset(semel_raft_lines)
  unset(semel_raft_version)
endif()
