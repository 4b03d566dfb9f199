// What a cold store knows of itself as a whole: its seed, its shards, its generations, and the
// storage that it belongs to. In memory and on the disk.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mutex.hpp"
#include "semel/cold.hpp"
#include "storage/cold/cold_files.hpp"
#include "storage/cold/flush_marks.hpp"

namespace semel::storage {

/// Changed by the spiller, and before operations; mark() and bond() are thread-safe.
class ColdIdentity {
 public:
  explicit ColdIdentity(ColdFiles& files) noexcept : files_(files) {}
  ColdIdentity(const ColdIdentity&) = delete;
  ColdIdentity& operator=(const ColdIdentity&) = delete;

  /// Once: what the disk has, and the flushed versions into `flushes`. A new store draws its seed.
  /// Errors: storage_damaged, storage_newer, storage_failed.
  [[nodiscard]] Status read(rocksdb::DB& database, FlushMarks& flushes);
  /// See ColdStore::attach().
  [[nodiscard]] Status attach(unsigned shard_count);

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] ColdMark mark() const noexcept;
  /// The first version that no record of the store has.
  [[nodiscard]] Version first_version() const noexcept { return first_version_; }
  /// A record of this version is in the store, or was flushed from it.
  void note_version(Version version) noexcept {
    first_version_ = std::max(first_version_, version + 1);
  }
  /// A part of this generation is in the store.
  void note_generation(std::uint64_t number) noexcept;
  /// Its number: the next. Errors: storage_failed.
  [[nodiscard]] Result<std::uint64_t> begin_generation();

  [[nodiscard]] ColdBond bond() const;
  [[nodiscard]] Status bind(const ColdBond& bond);

 private:
  ColdFiles& files_;
  std::uint64_t seed_ = 0;
  std::uint32_t shard_count_ = 0;  // 0: never attached
  std::uint64_t format_ = 0;       // format on disk
  Version first_version_ = 1;
  mutable base::Mutex mutex_;
  ColdBond bond_ SEMEL_GUARDED_BY(mutex_);
  std::uint64_t generation_ SEMEL_GUARDED_BY(mutex_) = 0;  // the newest that was begun
};

}  // namespace semel::storage
