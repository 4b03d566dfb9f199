// The numbered databases: the number under which each is stored, and the version below which its
// records were flushed.
//
// Both change only inside a section over everything, and [core.section] orders that: relaxed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/table/entry.hpp"
#include "semel/limits.hpp"

namespace semel::engine {

/// What changes it runs inside a section over everything.
class DatabaseMap {
 public:
  /// What flushed_below() is for each database, as stored.
  using Floors = std::array<Version, limits::db_count>;

  [[nodiscard]] std::uint8_t stored(std::uint8_t db) const noexcept {
    // mo: relaxed: changes only inside a section over everything; [core.section] orders it.
    return stored_by(map_.load(std::memory_order_relaxed), db);
  }
  [[nodiscard]] static std::uint8_t stored_by(std::uint64_t map, std::uint8_t db) noexcept {
    return static_cast<std::uint8_t>((map >> (db * 4)) & 15);
  }
  [[nodiscard]] std::uint8_t shown(std::uint8_t stored_db) const noexcept {
    for (std::uint8_t db = 0; db < limits::db_count; ++db) {
      if (stored(db) == stored_db) return db;
    }
    return stored_db;
  }
  /// Four bits for each database: the number under which it is stored.
  [[nodiscard]] std::uint64_t map() const noexcept {
    return map_.load(std::memory_order_relaxed);  // mo: relaxed: as in stored()
  }
  void set_map(std::uint64_t map) noexcept {
    map_.store(map, std::memory_order_relaxed);  // mo: relaxed: as in stored()
  }

  // A flush is a floor: records of the database with a smaller version have ended, for every thread
  // and at once. They are removed later, beside operations.
  [[nodiscard, gnu::always_inline]] inline Version flushed_below(
      std::uint8_t stored_db) const noexcept {
    // mo: relaxed: changes only inside a section over everything; [core.section] orders it.
    return floors_[stored_db].load(std::memory_order_relaxed);
  }
  /// Whether a flush has ended the record.
  [[nodiscard, gnu::always_inline]] inline bool is_flushed(
      const Entry::Head& record) const noexcept {
    const Version below = flushed_below(record.db());
    return below != 0 && is_older(record.version(), below);
  }
  /// Neither its ttl nor a flush has ended it.
  [[nodiscard, gnu::always_inline]] inline bool lives(const Entry::Head& record,
                                                      Timestamp now) const noexcept {
    return record.lives_at(now) && !is_flushed(record);
  }
  [[nodiscard]] Floors floors() const noexcept {
    Floors floors{};
    for (std::uint8_t db = 0; db < limits::db_count; ++db) floors[db] = flushed_below(db);
    return floors;
  }
  void raise_floor(std::uint8_t stored_db, Version below) noexcept {
    if (below <= flushed_below(stored_db)) return;
    // mo: relaxed: as in flushed_below()
    floors_[stored_db].store(below, std::memory_order_relaxed);
  }

 private:
  /// Out of line: most databases were never flushed, and a version is made of two words.
  [[nodiscard, gnu::noinline]] static bool is_older(Version version, Version below) noexcept {
    return version < below;
  }

  std::atomic<std::uint64_t> map_{0xfedc'ba98'7654'3210};
  std::array<std::atomic<Version>, limits::db_count> floors_{};
};

}  // namespace semel::engine
