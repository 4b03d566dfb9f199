// Up to which version the records of each database were flushed.
//
// Concurrency
//   [cold_store.flushed]  release store of a version that only grows, acquire load for each record.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "base/coding.hpp"
#include "semel/journal.hpp"
#include "semel/limits.hpp"
#include "storage/cold/cold_parts.hpp"

namespace semel::storage {

/// Thread-safe, but decode().
class FlushMarks {
 public:
  /// All of `db` before this version.
  void raise(std::uint8_t db, Version below) noexcept {
    std::atomic<Version>& mark = below_[db & 15];
    Version seen = mark.load(std::memory_order_relaxed);  // mo: relaxed: the exchange decides
    // mo: release [cold_store.flushed]
    while (seen < below && !mark.compare_exchange_weak(seen, below, std::memory_order_release,
                                                       std::memory_order_relaxed)) {
    }
  }
  [[nodiscard]] bool is_flushed(const Mutation& record) const noexcept {
    return record.version < below(record.db);
  }
  /// All records of a part are dead because their databases were flushed.
  [[nodiscard]] bool is_flushed(const PartFacts& part) const noexcept {
    for (unsigned db = 0; db < limits::db_count; ++db) {
      if ((part.databases >> db & 1) != 0 && part.largest_version >= below(db)) return false;
    }
    return true;
  }

  [[nodiscard]] std::string encode() const {
    std::string bytes;
    for (unsigned db = 0; db < limits::db_count; ++db) base::put_fixed(bytes, below(db));
    return bytes;
  }
  /// Of a new object, which no other thread uses yet. False: `bytes` are not complete.
  [[nodiscard]] bool decode(Bytes bytes) noexcept {
    base::ByteReader marks{bytes};
    for (auto& mark : below_) {
      const auto version = marks.fixed<std::uint64_t>();
      mark.store(version, std::memory_order_relaxed);  // mo: relaxed: not shared yet
    }
    return marks.is_good();
  }
  [[nodiscard]] Version largest() const noexcept {
    Version largest = 0;
    for (unsigned db = 0; db < limits::db_count; ++db) largest = std::max(largest, below(db));
    return largest;
  }

 private:
  [[nodiscard]] Version below(unsigned db) const noexcept {
    return below_[db].load(std::memory_order_acquire);  // mo: acquire [cold_store.flushed]
  }
  std::array<std::atomic<Version>, limits::db_count> below_{};
};

}  // namespace semel::storage
