// A ColdStore in a column family of RocksDB: docs/decisions/0007-window-larger-than-memory.md,
// docs/disk-format.md.
//
// A part is one file, made by SstFileWriter and ingested, synced. Nothing is compacted.
//
// Concurrency
//   [cold_store.reveal]   release store that makes a part visible, acquire load by find().
//   [cold_store.stamp]    release add after a part is revealed and before its records leave the
//                         table, acquire load by lookups.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "semel/cold.hpp"
#include "storage/cold/catalogs.hpp"
#include "storage/cold/cold_clock.hpp"
#include "storage/cold/cold_files.hpp"
#include "storage/cold/cold_format.hpp"
#include "storage/cold/cold_parts.hpp"
#include "storage/cold/cold_settings.hpp"
#include "storage/cold/collected_records.hpp"
#include "storage/cold/flush_marks.hpp"

namespace semel::storage {

class RocksColdStore final : public ColdStore {
 public:
  /// Opens the store and reads its filters. Errors: storage_damaged, storage_newer, storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<RocksColdStore>> open(const ColdSettings& settings);

  [[nodiscard]] std::uint64_t hash_seed() const noexcept override { return seed_; }
  [[nodiscard]] ColdMark mark() const noexcept override;
  [[nodiscard]] Status attach(unsigned shard_count, RankOf rank_of) override;
  [[nodiscard]] Version first_version() const noexcept override { return first_version_; }
  [[nodiscard]] ColdBond bond() const override;
  [[nodiscard]] Status bind(const ColdBond& bond) override;
  [[nodiscard]] Status follow_clock(const StorageClock& clock) override;
  [[nodiscard]] Status backup(const std::string& directory,
                              const std::function<Status()>& first) override;

  [[nodiscard]] Timestamp may_hold_until(std::uint64_t rank) const noexcept override;
  [[nodiscard]] Result<bool> find(std::uint64_t rank, std::uint8_t db, Bytes key,
                                  ColdRecord& found) override;
  [[nodiscard]] std::uint64_t stamp() const noexcept override {
    return stamp_.load(std::memory_order_acquire);  // mo: acquire [cold_store.stamp]
  }
  void superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                  Timestamp due) noexcept override;

  [[nodiscard]] Status begin_generation() override;
  void collect(std::uint64_t rank, const Mutation& record) override;
  [[nodiscard]] std::size_t collected_bytes() const noexcept override {
    return collected_.memory_bytes();
  }
  [[nodiscard]] std::span<const ColdPlace> collected() const noexcept override {
    return collected_.places();
  }
  [[nodiscard]] Mutation collected_record(std::size_t index) const override {
    return collected_.record(index);
  }
  [[nodiscard]] Status write_part(std::uint64_t first, std::uint64_t last) override;
  void reveal() override;
  void end_part() noexcept override;
  void abandon() noexcept override;
  void reclaim() noexcept override { catalogs_.reclaim(); }
  [[nodiscard]] Status drop_ended(Timestamp now) override;

  void flush(std::uint8_t db, Version below) noexcept override;
  [[nodiscard]] Status keep_flushes() override;
  [[nodiscard]] std::uint64_t size(std::uint8_t db, Timestamp now) const override;

  [[nodiscard]] std::shared_ptr<const View> view() const override { return catalogs_.now(); }
  [[nodiscard]] Result<std::uint64_t> scan(
      const View& view, std::uint64_t rank, std::size_t count,
      const std::function<void(std::uint64_t, const ColdRecord&)>& visit) override;
  [[nodiscard]] std::size_t memory_bytes() const override;
  [[nodiscard]] ColdStats stats() const override;

 private:
  /// How often records were looked up.
  struct Lookups {
    std::atomic<std::uint64_t> all{0};
    std::atomic<std::uint64_t> found{0};
    std::atomic<std::uint64_t> buckets_read{0};
    std::atomic<std::uint64_t> errors{0};
  };

  explicit RocksColdStore(const ColdSettings& settings)
      : settings_(settings),
        clock_(settings.durable_clock),
        files_(settings_, catalogs_),
        collected_(clock_) {}

  [[nodiscard]] Status load_parts();
  [[nodiscard]] Status read_store_facts();
  [[nodiscard]] Result<std::shared_ptr<ColdPart>> read_part(rocksdb::Iterator& at,
                                                            std::uint64_t number);
  [[nodiscard]] Status write_file(ColdPart& part, const std::string& path)
      SEMEL_REQUIRES(files_.writes);
  [[nodiscard]] Status delete_part(std::uint64_t number) SEMEL_EXCLUDES(files_.writes);
  [[nodiscard]] Status delete_dropped();
  [[nodiscard]] rocksdb::Status read_bucket(const ColdPart& part, std::uint64_t bucket,
                                            std::string& bytes);
  /// The part's copy of a key. False: none. Errors: storage_damaged, storage_failed.
  [[nodiscard]] Result<bool> find_in(const ColdPart& part, std::uint64_t rank, std::uint8_t db,
                                     Bytes key, ColdRecord& found);

  const ColdSettings settings_;
  ColdClock clock_;
  Catalogs catalogs_;
  ColdFiles files_;
  FlushMarks flushes_;
  RankOf rank_of_;
  std::uint64_t seed_ = 0;
  std::uint32_t shard_count_ = 0;  // 0: never attached
  std::uint64_t format_ = 0;       // format on disk
  Version first_version_ = 1;
  mutable base::Mutex mutex_;
  ColdBond bond_ SEMEL_GUARDED_BY(mutex_);
  std::uint64_t generation_ SEMEL_GUARDED_BY(mutex_) = 0;  // the newest that was begun
  std::atomic<std::uint64_t> stamp_{1};                    // [cold_store.stamp]

  // Used by the spiller only.
  CollectedRecords collected_;
  std::uint64_t next_part_ = 1;
  std::shared_ptr<ColdPart> fresh_;  // written, not yet revealed
  std::shared_ptr<const Catalog> before_fresh_;
  /// Dropped generations whose files could not be deleted yet, oldest first: parts by generation.
  std::map<std::uint64_t, std::vector<std::uint64_t>> undeleted_;

  Lookups lookups_;
};

}  // namespace semel::storage
