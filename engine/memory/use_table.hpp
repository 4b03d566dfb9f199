// When keys of caches were used last, or how often: what an eviction chooses by.
//
// A record has no room for it: its header is full, and records of other databases shall not pay.
// So it is beside the table, in cells of 32 bits: 8 of the key's hash and 24 of its use
// (eviction_rules.hpp). A key belongs to a set of four cells, one half of a cache line. A key that
// is used and has no cell takes the one of its set that was used the longest time ago, or the least
// often. So a key without a cell was used before all four of its set, and goes before them; two
// keys of a set with the same 8 bits, one pair in 256, are taken for one.
//
// The table has 1/64 of the engine's memory: a cell for each 256 bytes. Smaller records share them,
// and the table knows the use of those that were used last.
//
// A use that changes nothing writes nothing: a key that is read all the time is written once a
// second, or once a minute and when its counter grows.
//
// Concurrency
//   cells         relaxed: a cell stands for itself; of two uses at the same moment one may be
//   lost. [use_table.cells]  the pointer to them: released when they were made, acquired by each
//   use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "engine/rules/eviction_rules.hpp"
#include "engine/table/slot.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// Thread-safe, but for start() and follow(): one thread at a time.
class UseTable {
 public:
  /// The use of a key. Without a cell: a bound.
  struct Use {
    std::uint32_t idle_seconds = 0;
    std::uint32_t frequency = 0;
    bool is_exact = false;
  };

  UseTable() = default;
  UseTable(const UseTable&) = delete;
  UseTable& operator=(const UseTable&) = delete;

  /// Makes the cells, once. False: the heap has no room.
  [[nodiscard]] bool start(std::size_t bytes, Timestamp now) noexcept;
  [[nodiscard]] bool is_started() const noexcept { return cells_made_ != nullptr; }
  /// From now on notes uses in these databases. After start(), if there are any.
  void follow(const EvictionTerms& terms) noexcept;

  /// Whether uses of keys of this database, as clients name it, are noted. Costs a load.
  [[nodiscard, gnu::always_inline]] inline bool is_of(std::uint8_t db) const noexcept {
    // mo: relaxed: a setting; note() looks for the cells itself
    return (databases_.load(std::memory_order_relaxed) >> db & 1) != 0;
  }
  /// Whether there is such a database.
  [[nodiscard]] bool any() const noexcept {
    return databases_.load(std::memory_order_relaxed) != 0;  // mo: relaxed: as in is_of()
  }
  /// A key was used: made, changed or read. `is_new`: it was made.
  void note(HashBits hash, Timestamp now, bool is_new) noexcept;
  /// A call has read the record of a key of this database. Costs a load where that is no cache.
  [[gnu::always_inline]] void note_read(bool only_looks, std::uint8_t db, HashBits hash,
                                        Timestamp now) noexcept {
    if (!is_of(db)) [[likely]]
      return;
    if (!only_looks) note(hash, now, false);
  }
  /// As note(), with a use that is known from elsewhere.
  void set(HashBits hash, Timestamp now, Use use) noexcept;
  [[nodiscard]] Use use_of(HashBits hash, Timestamp now) const noexcept;

 private:
  using Cell = std::atomic<std::uint32_t>;
  static constexpr std::size_t cells_per_set = 4;
  static constexpr unsigned tag_shift = 24;
  struct Place {
    Cell* set;
    std::uint32_t tag;
  };
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  /// Of a key; set is null before start().
  [[nodiscard]] Place place_of(HashBits hash) const noexcept;
  /// The key's cell, or the one that it takes.
  [[nodiscard]] Cell& cell_of(const Place& place, Timestamp now) const noexcept;
  [[nodiscard]] std::uint32_t after_use(std::uint32_t use, Timestamp now, bool is_new) noexcept;
  /// The larger, the earlier it goes.
  [[nodiscard]] std::uint32_t age_of(std::uint32_t use, Timestamp now) const noexcept;

  std::atomic<std::uint16_t> databases_{0};
  std::atomic<bool> by_frequency_{false};
  std::atomic<std::uint64_t> log_factor_{10};
  std::atomic<std::uint64_t> decay_minutes_{1};
  std::atomic<Cell*> cells_{nullptr};  // [use_table.cells]
  std::uint64_t sets_ = 0;             // complete before cells_ is published, as the next
  Timestamp began_{};
  std::unique_ptr<Cell, Free> cells_made_;
};

}  // namespace semel::engine
