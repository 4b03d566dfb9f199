// A ColdStore in a column family of RocksDB: docs/decisions/0007-window-larger-than-memory.md,
// docs/disk-format.md.
//
// A part is one file, made by SstFileWriter and ingested, synced. Nothing is compacted.
//
//   ColdIdentity   seed, shards, generations, the storage that it belongs to
//   Catalogs       its parts in memory
//   ColdReader     lookups
//   ColdSpill      makes parts, and drops ended ones
//   ColdFiles      the database
//
// Concurrency
//   [cold_store.stamp]    release add after a part is revealed and before its records leave the
//                         table, acquire load by lookups.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "semel/cold.hpp"
#include "storage/cold/catalogs.hpp"
#include "storage/cold/cold_clock.hpp"
#include "storage/cold/cold_files.hpp"
#include "storage/cold/cold_identity.hpp"
#include "storage/cold/cold_reader.hpp"
#include "storage/cold/cold_settings.hpp"
#include "storage/cold/cold_spill.hpp"
#include "storage/cold/flush_marks.hpp"

namespace semel::storage {

class RocksColdStore final : public ColdStore {
 public:
  /// Opens the store and reads its filters. Errors: storage_damaged, storage_newer, storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<RocksColdStore>> open(const ColdSettings& settings);

  [[nodiscard]] std::uint64_t hash_seed() const noexcept override { return identity_.seed(); }
  [[nodiscard]] ColdMark mark() const noexcept override { return identity_.mark(); }
  [[nodiscard]] Status attach(unsigned shard_count, RankOf rank_of) override;
  [[nodiscard]] Version first_version() const noexcept override {
    return identity_.first_version();
  }
  [[nodiscard]] ColdBond bond() const override { return identity_.bond(); }
  [[nodiscard]] Status bind(const ColdBond& bond) override { return identity_.bind(bond); }
  [[nodiscard]] Status follow_clock(const StorageClock& clock) override;
  [[nodiscard]] Status backup(const std::string& directory,
                              const std::function<Status()>& first) override;

  [[nodiscard]] Timestamp may_hold_until(std::uint64_t rank) const noexcept override {
    return reader_.may_hold_until(rank);
  }
  [[nodiscard]] Result<bool> find(std::uint64_t rank, std::uint8_t db, Bytes key,
                                  ColdRecord& found) override {
    return reader_.find(rank, db, key, found);
  }
  [[nodiscard]] std::uint64_t stamp() const noexcept override {
    return stamp_.load(std::memory_order_acquire);  // mo: acquire [cold_store.stamp]
  }
  void superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                  Timestamp due) noexcept override {
    reader_.superseded(rank, number, db, due);
  }

  [[nodiscard]] Status begin_generation() override { return spill_.begin_generation(); }
  void collect(std::uint64_t rank, const Mutation& record) override {
    spill_.collected().add(rank, record);
  }
  [[nodiscard]] std::size_t collected_bytes() const noexcept override {
    return spill_.collected().memory_bytes();
  }
  [[nodiscard]] std::span<const ColdPlace> collected() const noexcept override {
    return spill_.collected().places();
  }
  [[nodiscard]] Mutation collected_record(std::size_t index) const override {
    return spill_.collected().record(index);
  }
  [[nodiscard]] Status write_part(std::uint64_t first, std::uint64_t last) override {
    return spill_.write_part(first, last);
  }
  void reveal() override;
  void end_part() noexcept override { spill_.end_part(); }
  void abandon() noexcept override { spill_.abandon(); }
  void reclaim() noexcept override { catalogs_.reclaim(); }
  [[nodiscard]] Status drop_ended(Timestamp now) override { return spill_.drop_ended(now); }

  void flush(std::uint8_t db, Version below) noexcept override;
  [[nodiscard]] Status keep_flushes() override;
  [[nodiscard]] std::uint64_t size(std::uint8_t db, Timestamp now) const override {
    return reader_.size(db, now);
  }

  [[nodiscard]] std::shared_ptr<const View> view() const override { return catalogs_.now(); }
  [[nodiscard]] Result<std::uint64_t> scan(
      const View& view, std::uint64_t rank, std::size_t count,
      const std::function<void(std::uint64_t, const ColdRecord&)>& visit) override {
    return reader_.scan(static_cast<const Catalog&>(view), rank, count, visit);
  }
  [[nodiscard]] std::size_t memory_bytes() const override;
  [[nodiscard]] ColdStats stats() const override;

 private:
  explicit RocksColdStore(const ColdSettings& settings)
      : settings_(settings),
        clock_(settings.durable_clock),
        files_(settings_, catalogs_),
        identity_(files_),
        reader_(catalogs_, files_, clock_, flushes_),
        spill_({settings_, clock_, flushes_, catalogs_, files_, identity_}) {}

  const ColdSettings settings_;
  ColdClock clock_;
  Catalogs catalogs_;
  FlushMarks flushes_;
  ColdFiles files_;
  ColdIdentity identity_;
  ColdReader reader_;
  ColdSpill spill_;
  std::atomic<std::uint64_t> stamp_{1};  // [cold_store.stamp]
};

}  // namespace semel::storage
