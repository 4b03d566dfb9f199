# Toolchain: arm64 with all libraries, out of the root that packaging/cross/root.py makes in
# build/arm64-root. Nothing of this machine but programs is found.
include("${CMAKE_CURRENT_LIST_DIR}/arm64.cmake")
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH semel_root)
string(APPEND semel_root "/build/arm64-root")
set(CMAKE_SYSROOT "${semel_root}")
set(CMAKE_FIND_ROOT_PATH "${semel_root}")
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;${semel_root}")
