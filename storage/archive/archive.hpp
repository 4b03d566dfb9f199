// The database of a storage: the mutations drained from the journal, in RocksDB's files.
// Functions that change files: one thread at a time.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "semel/result.hpp"
#include "semel/storage.hpp"
#include "semel/types.hpp"
#include "storage/archive/blob_set.hpp"
#include "storage/archive/database_options.hpp"
#include "storage/archive/description.hpp"
#include "storage/archive/ingestion.hpp"
#include "storage/archive/kept_tables.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/archive/rocks_log.hpp"
#include "storage/archive/storage_keys.hpp"
#include "storage/log/disk.hpp"

namespace semel::storage {

class Archive {
 public:
  struct Setup {
    std::string directory;  ///< of the storage; the database is in rocksdb/, new files in drain/
    bool may_create = true;
    std::vector<rocksdb::ColumnFamilyDescriptor> families{};  ///< of the user
  };
  /// Errors: storage_in_use, storage_damaged, storage_newer, storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Archive>> open(Disk& disk, const Setup& setup);
  ~Archive();

  [[nodiscard]] rocksdb::DB& database() noexcept { return *database_; }
  [[nodiscard]] const std::vector<rocksdb::ColumnFamilyHandle*>& families() const noexcept {
    return families_;
  }
  /// Null: no such family.
  [[nodiscard]] rocksdb::ColumnFamilyHandle* family(const std::string& name) const noexcept;

  [[nodiscard]] const Description& description() const noexcept { return description_; }
  /// Synced. Errors: storage_failed.
  [[nodiscard]] Status describe(const Description& description);

  /// The log offset up to which everything was drained; 0: nothing was.
  [[nodiscard]] Result<LogOffset> drained() const;
  /// Adds `blobs`, and the offset `drained` up to which the journal is drained now (0: unchanged),
  /// in one atomic step; returns when they have reached the disk. Errors: storage_failed; nothing
  /// was added, unless RocksDB failed during the step: then this is unknown until the next open,
  /// and further calls are refused.
  [[nodiscard]] Status add(const BlobSet& blobs, LogOffset drained);
  /// Visits the blobs of `first` and later spans in these families, except those before the floor,
  /// until `visit` returns false. Errors: storage_damaged (names the file), storage_failed.
  [[nodiscard]] Status read_blobs(std::initializer_list<std::string_view> families,
                                  SpanNumber first, const std::function<bool(std::string)>& visit);
  /// Whether a file of the journal has ended spans. Errors: storage_failed.
  [[nodiscard]] Result<bool> has_ended(SpanNumber running);
  /// Removes the files of ended spans. Errors: storage_failed.
  [[nodiscard]] Status forget(SpanNumber running);
  /// Removes the files that only hold data from before `floor`.
  [[nodiscard]] Status forget_before(LogOffset floor);
  /// Rewrites files that ended spans share with others. Progress: blocks for that.
  [[nodiscard]] Status compact(SpanNumber running);

  /// Whether RocksDB's memtables can be written to tables: it stops permanently if it finds no
  /// space for them. Errors: storage_failed.
  [[nodiscard]] Status check_room_for_flush() const;

  /// Bytes of the journal's files; 0: not known.
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] DatabaseStats stats() const;
  /// For what else is done with the database. Errors: those of `call`, see RocksGuard::run().
  template <class Call>
  [[nodiscard]] Status guarded(Call&& call) const {
    return guard_.run(std::forward<Call>(call));
  }
  /// RocksDB accepts no more writes after an error or an exception, or an ingestion failed.
  /// Thread-safe.
  [[nodiscard]] bool is_stuck() const;
  /// RocksDB has reported an error, of a write to its log for example. Thread-safe.
  [[nodiscard]] bool has_error() const noexcept { return errors_->has_seen(); }
  /// An exception left RocksDB, which is not called any more. Thread-safe.
  [[nodiscard]] bool is_broken() const noexcept { return guard_.is_broken(); }
  /// An error: an ingestion failed, and no more files are ingested until the next open.
  /// Thread-safe.
  [[nodiscard]] Status ingest_status() const { return ingestion_.status(); }

 private:
  Archive(Disk& disk, std::string directory)
      : disk_(disk),
        directory_(std::move(directory)),
        environment_(std::make_unique<KeptTablesEnv>(disk.env())) {}
  [[nodiscard]] Status open_database(const Setup& setup);
  [[nodiscard]] Status delete_files(const BlobKey& first, const BlobKey& last);

  Disk& disk_;
  const std::string directory_;
  std::unique_ptr<KeptTablesEnv> environment_;  // outlives the database
  std::shared_ptr<rocksdb::Statistics> statistics_;
  std::unique_ptr<LogCheck> log_check_;  // outlives the database
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  mutable RocksGuard guard_;
  const std::shared_ptr<ErrorListener> errors_ = std::make_shared<ErrorListener>();
  Description description_;
  bool keeps_log_ = false;  // opened on a full disk: data of RocksDB's log is in memory alone
  Ingestion ingestion_{disk_, directory_, guard_, environment_->tables()};
};

}  // namespace semel::storage
