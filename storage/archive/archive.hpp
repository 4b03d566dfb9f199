// What has left the log: RocksDB's files, and the description of the storage.
//
//   column family "default"
//     format       u64: 4. A larger number was written by a later release
//     storage      u64: random, the same in the log and the mark
//     versions     u64: no version above this was handed out
//     floor        u64: what lies before this place in the log has been written anew, and is void
//     anchor       u64 time line, u64 engine's clock, u64 wall clock, then the boot id as text
//
// Concurrency
//   add() and what changes files: one thread at a time.
//   [archive.ingest]  that files were not taken in: release store when the text about it is
//                     complete, acquire loads of whoever asks.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "semel/result.hpp"
#include "semel/types.hpp"
#include "storage/archive/kept_tables.hpp"
#include "storage/archive/storage_keys.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/time_line.hpp"

namespace semel::storage {

inline constexpr std::uint64_t format_version = 4;
/// The oldest that is still read. What is opened is of the present format from then on.
inline constexpr std::uint64_t format_oldest = 2;

struct Description {
  std::uint64_t format = 0;  ///< 0: the storage is new
  std::uint64_t storage_id = 0;
  Version versions = 0;
  Place floor = 0;
  Anchor anchor;
  /// Number of the first segment of the log that was written in the boot of `anchor`.
  std::uint64_t boot_first = 0;
};

/// Mutations by span, on their way into files.
class BlobSet {
 public:
  static constexpr std::size_t blob_bytes = std::size_t{64} << 10;

  /// `place`: grows from call to call, or stays; also over clear().
  void add(SpanNumber span, Place place, std::string_view mutation);
  [[nodiscard]] bool empty() const noexcept { return spans_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void clear() noexcept {
    spans_.clear();
    bytes_ = 0;
  }

  struct Blob {
    BlobKey key;
    std::string bytes;
  };
  [[nodiscard]] const std::map<SpanNumber, std::vector<Blob>>& spans() const noexcept {
    return spans_;
  }

 private:
  std::map<SpanNumber, std::vector<Blob>> spans_;
  std::map<SpanNumber, BlobKey> last_;  // given to each span
  std::size_t bytes_ = 0;
};

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
  [[nodiscard]] rocksdb::ColumnFamilyHandle* journal() const noexcept { return families_[1]; }
  [[nodiscard]] const std::vector<rocksdb::ColumnFamilyHandle*>& families() const noexcept {
    return families_;
  }
  /// Null: no such family.
  [[nodiscard]] rocksdb::ColumnFamilyHandle* family(const std::string& name) const noexcept;

  [[nodiscard]] const Description& description() const noexcept { return description_; }
  /// Synced. Errors: storage_failed.
  [[nodiscard]] Status describe(const Description& description);

  /// Up to where the log has been drained; 0: never.
  [[nodiscard]] Result<Place> drained() const;
  /// Takes in all of `blobs`, and that the log was drained up to `drained` (0: it was not), in one
  /// step; returns when that has reached the disk. Errors: storage_failed; nothing was taken in,
  /// unless RocksDB failed with it: then nobody knows until the next open, and nothing more is.
  [[nodiscard]] Status add(const BlobSet& blobs, Place drained);
  /// Visits the blobs of `first` and later spans in these families, those before the floor left
  /// out, until `visit` says false. Errors: storage_damaged (names the file), storage_failed.
  [[nodiscard]] Status read_blobs(std::initializer_list<std::string_view> families,
                                  SpanNumber first, const std::function<bool(std::string)>& visit);
  /// Removes the files of what is over. Errors: storage_failed.
  [[nodiscard]] Status forget(SpanNumber running);
  /// Removes the files that hold nothing but what lies before `floor`.
  [[nodiscard]] Status forget_before(Place floor);
  /// Rewrites what shares files with what is over. Progress: blocks for that.
  [[nodiscard]] Status compact(SpanNumber running);

  /// Bytes of the journal's files.
  [[nodiscard]] std::uint64_t bytes() const;
  /// RocksDB has met an error after which it takes no more writes, or no more files are taken in.
  /// From any thread.
  [[nodiscard]] bool is_stuck() const;
  /// Why no more files are taken in until the next open; empty: they are. From any thread.
  [[nodiscard]] std::string_view ingest_failure() const noexcept {
    // mo: acquire [archive.ingest]
    return ingest_failed_.load(std::memory_order_acquire) ? ingest_failure_ : std::string_view{};
  }

 private:
  Archive(Disk& disk, std::string directory)
      : disk_(disk), directory_(std::move(directory)), environment_(disk.env()) {}
  [[nodiscard]] Status open_database(const Setup& setup);
  [[nodiscard]] Status read_description();
  [[nodiscard]] Status read_blobs_of(const std::string& path, SpanNumber first,
                                     const std::function<bool(std::string)>& visit, bool& more);
  [[nodiscard]] Result<std::string> write_file(const std::vector<BlobSet::Blob>& blobs);
  [[nodiscard]] Status ingest(const std::vector<std::string>& files);
  [[nodiscard]] Status delete_files(const BlobKey& first, const BlobKey& last);

  Disk& disk_;
  const std::string directory_;
  KeptTablesEnv environment_;  // the database ends before it
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  Description description_;
  std::uint64_t file_number_ = 0;
  std::string ingest_failure_;              // written once, before [archive.ingest]
  std::atomic<bool> ingest_failed_{false};  // [archive.ingest]
};

/// Ends the text about trouble that does not go away by itself.
inline constexpr std::string_view reopen_remedy = "; open the storage again";

/// How the database and the journal's family are opened; for the tools, too.
[[nodiscard]] rocksdb::Options database_options(Disk& disk);
[[nodiscard]] rocksdb::ColumnFamilyOptions journal_options();

}  // namespace semel::storage
