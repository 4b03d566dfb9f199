# Which libraries of others become part of our programs. A shared library costs each start of a
# program: finding it, relocating it, and what it links in turn; libsnappy alone brings libstdc++.

# semel_use_archives(TARGET NAME...): where TARGET, of another project, links a library of these
# names, users of it link the archive that the system has beside it.
function(semel_use_archives target)
  get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
  set(chosen)
  foreach(item IN LISTS linked)
    foreach(name IN LISTS ARGN)
      if(item MATCHES "(::|/lib)${name}(_shared|[.]so[.0-9]*)?>?$")
        find_library(SEMEL_ARCHIVE_${name} lib${name}.a)
        mark_as_advanced(SEMEL_ARCHIVE_${name})
        if(SEMEL_ARCHIVE_${name})
          set(item "${SEMEL_ARCHIVE_${name}}")
        endif()
      endif()
    endforeach()
    list(APPEND chosen "${item}")
  endforeach()
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${chosen}")
endfunction()

if(NOT SEMEL_STATIC_PROGRAM)
  return()
endif()
# A program without any shared library, which runs on every Linux of its processor. What is found
# below are archives.
if(NOT PROJECT_IS_TOP_LEVEL OR SEMEL_C OR NOT SEMEL_STATIC_ROCKSDB)
  message(FATAL_ERROR "SEMEL_STATIC_PROGRAM is for the program: see the preset static")
endif()
set(OPENSSL_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)
# Relative relocations are most of a program that may be loaded anywhere. Packed they are 14 KB
# instead of 1.2 MB; the C library reads that form from 2.36 on.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("
#include <features.h>
static_assert(__GLIBC_PREREQ(2, 36));
int main() {}" SEMEL_PACKS_RELOCATIONS)
