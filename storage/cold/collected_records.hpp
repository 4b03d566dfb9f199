// Records that a spill takes from the table, as bytes, until they are a part on disk.
//
// Invariant: places_.size() == collected_.size(), and their bytes fill bytes_ in order.
#pragma once

#include <rocksdb/sst_file_writer.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "semel/cold.hpp"
#include "semel/journal.hpp"
#include "storage/cold/cold_bucket.hpp"
#include "storage/cold/cold_clock.hpp"
#include "storage/cold/cold_parts.hpp"

namespace semel::storage {

/// Of the spiller.
class CollectedRecords {
 public:
  explicit CollectedRecords(const ColdClock& clock) noexcept : clock_(clock) {}

  void add(std::uint64_t rank, const Mutation& record);
  void clear() noexcept;
  [[nodiscard]] std::span<const ColdPlace> places() const noexcept { return places_; }
  [[nodiscard]] Mutation record(std::size_t index) const;
  /// In memory.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  /// On disk, about.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }

  /// Facts of a part with all of them, for ranks first..last; its number and generation are still
  /// to be set. Not of nothing.
  [[nodiscard]] PartFacts facts_of(std::uint64_t first, std::uint64_t last,
                                   unsigned filter_bits) const;
  /// Fills the filter and the counts of such a part.
  void fill(ColdPart& part) const;
  [[nodiscard]] rocksdb::Status write_buckets(rocksdb::SstFileWriter& file,
                                              const ColdPart& part) const;

 private:
  struct Collected {
    std::size_t at;  // of its bytes
    std::uint64_t due;
    std::uint32_t key_bytes;
    std::uint32_t value_bytes;
    std::uint8_t head;
  };
  [[nodiscard]] BucketRecord record_at(std::size_t index) const noexcept;
  /// By bucket, then version.
  [[nodiscard]] std::vector<std::uint32_t> order_of(const ColdPart& part) const;
  void check_invariants() const noexcept;

  const ColdClock& clock_;
  std::vector<ColdPlace> places_;
  std::vector<Collected> collected_;
  std::string bytes_;
};

}  // namespace semel::storage
