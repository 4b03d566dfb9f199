# RocksDB, from the oldest version that is tested on. Its own version file would only accept that
# version's major number.
macro(semel_find_rocksdb)
  find_package(RocksDB REQUIRED)
  if(RocksDB_VERSION VERSION_LESS 7.8)
    message(FATAL_ERROR "Semel needs RocksDB 7.8 or later, found ${RocksDB_VERSION}")
  endif()
endmacro()
