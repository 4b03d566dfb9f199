#include "storage/archive/database_options.hpp"

#include "storage/archive/file_checksum.hpp"
#include "storage/archive/rocks_guard.hpp"

namespace semel::storage {

/// Packaged RocksDB 7.8.3; why each is set: docs/decisions/0005-storage-layout.md.
rocksdb::Options database_options(Disk& disk) {
  rocksdb::Options options;
  options.env = disk.env();
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  options.max_bgerror_resume_count = 0;
  options.listeners.push_back(no_recovery());
  // A key that a user deletes in both ways is a warning, and not the failure of the next open.
  options.enforce_single_del_contracts = false;
  options.max_background_jobs = 2;
  options.max_open_files = tables_open_max;
  options.keep_log_file_num = 4;
  // Files are ingested, so all that is ever written is the description, some hundred bytes. RocksDB
  // reserves on disk what a full write buffer needs: 70 MiB by its defaults.
  options.write_buffer_size = description_buffer_bytes;
  options.manifest_preallocation_size = description_buffer_bytes;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.file_checksum_gen_factory = file_checksums();
  return options;
}

rocksdb::ColumnFamilyOptions journal_options() {
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::CompressionType::kNoCompression;
  options.write_buffer_size = description_buffer_bytes;
  return options;
}

}  // namespace semel::storage
