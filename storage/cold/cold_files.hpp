// The database of a cold store: its readers, its writers, and how it goes on after an error.
//
// A change that has failed leaves RocksDB unable to take another, and the disk may have it all the
// same. The next change opens the database again first, and deletes parts that no catalog knows.
//
// Invariant, with `writes` held: there is a database, unless a change has failed.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "semel/result.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/cold/catalogs.hpp"
#include "storage/cold/cold_settings.hpp"

namespace semel::storage {

class ColdFiles {
 public:
  /// `catalogs`: the parts that are known.
  ColdFiles(const ColdSettings& settings, const Catalogs& catalogs)
      : settings_(settings),
        catalogs_(catalogs),
        guard_(settings.guard != nullptr ? *settings.guard : own_guard_),
        database_(settings.database),
        family_(settings.family) {}

  mutable base::Mutex writes;  // of the disk: a backup keeps them off

  /// Thread-safe.
  [[nodiscard]] rocksdb::Status get(const std::string& key, std::string& bytes) const;
  /// Of open files; 0: not known. Thread-safe.
  [[nodiscard]] std::uint64_t readers_bytes() const;

  // --- changes -----------------------------------------------------------------------------------
  /// So many bytes are free (0: it is not asked), and after a change that failed the database is
  /// open again. Each change begins with it. Errors: storage_failed.
  [[nodiscard]] Status be_writable(std::size_t bytes_free) SEMEL_REQUIRES(writes);
  /// Synced. Errors: storage_failed.
  [[nodiscard]] Status put(const std::string& key, const std::string& bytes) SEMEL_REQUIRES(writes);
  /// `call(database)` changes it. Errors: those of `call`.
  template <class Call>
  [[nodiscard]] Status change(Call&& call) SEMEL_REQUIRES(writes) {
    Status status = guard_.run([&] { return call(*database_); });
    if (!status) has_stopped_ = true;
    return status;
  }
  /// Writes a file of `fill(file)` at `path`, and takes it into the database, synced. Returns its
  /// size. The file at `path` is gone at the end; if it stays, the next open removes it. Errors:
  /// storage_failed.
  [[nodiscard]] Result<std::uint64_t> write_part(
      const std::string& path, const std::function<rocksdb::Status(rocksdb::SstFileWriter&)>& fill)
      SEMEL_REQUIRES(writes);
  /// Errors: storage_failed.
  [[nodiscard]] Status delete_part(std::uint64_t number) SEMEL_REQUIRES(writes);
  /// As in cold_bond.hpp. Errors: storage_damaged, storage_failed.
  [[nodiscard]] Result<DurableClock> follow_clock(const StorageClock& clock,
                                                  const DurableClock& own) SEMEL_REQUIRES(writes);
  /// A copy of the database as of now. Errors: storage_failed.
  [[nodiscard]] Status copy_to(const std::string& directory) SEMEL_REQUIRES(writes);

  // --- opening: no other thread has access yet
  [[nodiscard]] rocksdb::DB& database() const noexcept { return *database_; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle* family() const noexcept { return family_; }
  /// Files of a process that ended in the middle of write_part().
  void remove_leftovers() const;
  /// Each life leaves a small file with the facts of the store as a whole, and nothing is compacted
  /// by itself. Files of parts are not touched.
  void compact_facts() const;

 private:
  [[nodiscard]] Status ingest(const std::string& path, const rocksdb::ExternalSstFileInfo& info)
      SEMEL_REQUIRES(writes);
  [[nodiscard]] Status reopen() SEMEL_REQUIRES(writes);
  /// Parts that are in the database, by a change that failed, and not in the catalog.
  [[nodiscard]] Status delete_strangers() SEMEL_REQUIRES(writes);
  void check_invariants() const noexcept SEMEL_REQUIRES(writes);
  [[nodiscard]] rocksdb::Status delete_file_of(std::uint64_t number);

  const ColdSettings& settings_;
  const Catalogs& catalogs_;
  RocksGuard own_guard_;
  RocksGuard& guard_;
  /// Held shared by readers of the database, exclusively while it is opened again. Writers hold
  /// `writes`.
  mutable base::SharedMutex opening_;
  rocksdb::DB* database_;  // null: it could not be opened again yet
  rocksdb::ColumnFamilyHandle* family_;
  bool has_stopped_ SEMEL_GUARDED_BY(writes) = false;  // a change has failed
};

}  // namespace semel::storage
