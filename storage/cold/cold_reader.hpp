// Lookups of a cold store, and how often they found something.
//
// Concurrency
//   [cold_store.reveal]   release store that makes a part visible, acquire load by lookups.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "semel/cold.hpp"
#include "storage/cold/catalogs.hpp"
#include "storage/cold/cold_clock.hpp"
#include "storage/cold/cold_files.hpp"
#include "storage/cold/cold_parts.hpp"
#include "storage/cold/flush_marks.hpp"

namespace semel::storage {

/// Thread-safe, but for attach(). The functions are those of ColdStore.
class ColdReader {
 public:
  /// All must outlive this.
  ColdReader(const Catalogs& catalogs, const ColdFiles& files, const ColdClock& clock,
             const FlushMarks& flushes) noexcept
      : catalogs_(catalogs), files_(files), clock_(clock), flushes_(flushes) {}
  ColdReader(const ColdReader&) = delete;
  ColdReader& operator=(const ColdReader&) = delete;

  /// Once, before scan().
  void attach(ColdStore::RankOf rank_of) { rank_of_ = std::move(rank_of); }
  [[nodiscard]] Timestamp may_hold_until(std::uint64_t rank) const noexcept;
  [[nodiscard]] Result<bool> find(std::uint64_t rank, std::uint8_t db, Bytes key,
                                  ColdRecord& found);
  void superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                  Timestamp due) noexcept;
  [[nodiscard]] std::uint64_t size(std::uint8_t db, Timestamp now) const;
  [[nodiscard]] Result<std::uint64_t> scan(
      const Catalog& catalog, std::uint64_t rank, std::size_t count,
      const std::function<void(std::uint64_t, const ColdRecord&)>& visit);
  /// Counts of lookups.
  void add_to(ColdStats& stats) const noexcept;

 private:
  [[nodiscard]] rocksdb::Status read_bucket(const ColdPart& part, std::uint64_t bucket,
                                            std::string& bytes);
  /// The part's copy of a key. False: none. Errors: storage_damaged, storage_failed.
  [[nodiscard]] Result<bool> find_in(const ColdPart& part, std::uint64_t rank, std::uint8_t db,
                                     Bytes key, ColdRecord& found);

  struct Lookups {
    std::atomic<std::uint64_t> all{0};
    std::atomic<std::uint64_t> found{0};
    std::atomic<std::uint64_t> buckets_read{0};
    std::atomic<std::uint64_t> errors{0};
  };

  const Catalogs& catalogs_;
  const ColdFiles& files_;
  const ColdClock& clock_;
  const FlushMarks& flushes_;
  ColdStore::RankOf rank_of_;
  Lookups lookups_;
};

}  // namespace semel::storage
