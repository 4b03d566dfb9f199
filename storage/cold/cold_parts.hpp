// The parts of a cold store in memory, and their generations.
//
// A part is written by one step of a spill: a range of ranks, one file of RocksDB, one filter. The
// parts of a generation do not overlap. Lookups use a Catalog of generations, which is immutable: a
// change makes another one (storage/cold/cold_store.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "semel/cold.hpp"
#include "semel/limits.hpp"
#include "storage/cold/cold_filter.hpp"

namespace semel::storage {

/// Counts records by their end, in 32 steps: estimates the live ones without reading them.
class DueCounts {
 public:
  static constexpr unsigned steps = 32;  // the last one: no end

  DueCounts(Timestamp earliest, Timestamp latest) noexcept
      : first_(earliest.time_since_epoch().count()),
        width_((latest.time_since_epoch().count() - first_) / (steps - 1) + 1) {}

  void add(std::uint8_t db, Timestamp due) {
    if (!counts_[db]) counts_[db] = std::make_unique<Steps>();
    // mo: relaxed: a count, as below.
    (*counts_[db])[step_of(due)].fetch_add(1, std::memory_order_relaxed);
  }
  void take(std::uint8_t db, Timestamp due) noexcept {
    if (!counts_[db]) return;
    std::atomic<std::uint32_t>& count = (*counts_[db])[step_of(due)];
    // mo: relaxed: a count; it never goes below zero.
    std::uint32_t seen = count.load(std::memory_order_relaxed);
    while (seen != 0 && !count.compare_exchange_weak(seen, seen - 1, std::memory_order_relaxed,
                                                     std::memory_order_relaxed)) {
    }
  }
  /// Records that are live at `now`, and those that ended within the current step.
  [[nodiscard]] std::uint64_t living(std::uint8_t db, Timestamp now) const noexcept {
    if (!counts_[db]) return 0;
    std::uint64_t total = 0;
    for (unsigned step = 0; step < steps; ++step) {
      const std::int64_t last = first_ + static_cast<std::int64_t>(step + 1) * width_ - 1;
      if (step + 1 < steps && last <= now.time_since_epoch().count()) continue;
      total += (*counts_[db])[step].load(std::memory_order_relaxed);  // mo: relaxed: a count
    }
    return total;
  }
  void copy(const DueCounts& other) {
    for (std::size_t db = 0; db < counts_.size(); ++db) {
      for (unsigned step = 0; other.counts_[db] && step < steps; ++step) {
        set(static_cast<std::uint8_t>(db), step, other.at(static_cast<std::uint8_t>(db), step));
      }
    }
  }
  /// For the disk: the count of one database and step.
  [[nodiscard]] std::uint32_t at(std::uint8_t db, unsigned step) const noexcept {
    // mo: relaxed: a count.
    return counts_[db] ? (*counts_[db])[step].load(std::memory_order_relaxed) : 0;
  }
  void set(std::uint8_t db, unsigned step, std::uint32_t count) {
    if (!counts_[db]) counts_[db] = std::make_unique<Steps>();
    (*counts_[db])[step].store(count, std::memory_order_relaxed);  // mo: relaxed: a count
  }

 private:
  using Steps = std::array<std::atomic<std::uint32_t>, steps>;
  [[nodiscard]] unsigned step_of(Timestamp due) const noexcept {
    if (due == no_end) return steps - 1;
    const std::int64_t step = (due.time_since_epoch().count() - first_) / width_;
    return static_cast<unsigned>(std::clamp<std::int64_t>(step, 0, steps - 2));
  }

  std::int64_t first_;
  std::int64_t width_;  // of a step, milliseconds
  std::array<std::unique_ptr<Steps>, limits::db_count> counts_;
};

struct PartFacts {
  std::uint64_t number = 0;
  std::uint64_t generation = 0;
  std::uint64_t first = 0;  ///< ranks, both inclusive
  std::uint64_t last = 0;
  std::uint64_t records = 0;
  std::uint64_t buckets = 0;
  std::uint64_t filter_lines = 0;
  std::uint64_t databases = 0;  ///< bit i: some are of database i, as stored
  Version largest_version = 0;
  Timestamp earliest_end = no_end;  ///< of the records that end; no_end: none does
  Timestamp latest_end{};           ///< no_end: some do not end
  Timestamp latest_finite_end{};
};

/// Their ends on a clock of the engine that is `by` behind.
[[nodiscard]] inline PartFacts moved_by(PartFacts facts, Millis by) noexcept {
  for (Timestamp* const end : {&facts.earliest_end, &facts.latest_end, &facts.latest_finite_end}) {
    if (*end != no_end) *end -= by;
  }
  return facts;
}

struct ColdPart {
  explicit ColdPart(const PartFacts& known)
      : facts(known),
        buckets(known.first, known.last, known.buckets),
        filter(known.filter_lines),
        living(known.earliest_end == no_end ? Timestamp{} : known.earliest_end,
               known.latest_finite_end) {}

  /// `other` with other ends. The filter is shared.
  ColdPart(const ColdPart& other, const PartFacts& known)
      : facts(known),
        buckets(other.buckets),
        filter(other.filter),
        living(known.earliest_end == no_end ? Timestamp{} : known.earliest_end,
               known.latest_finite_end),
        disk_bytes(other.disk_bytes),
        // mo: relaxed: not shared yet
        revealed(other.revealed.load(std::memory_order_relaxed)) {
    living.copy(other.living);
  }

  PartFacts facts;
  Stretch buckets;
  ColdFilter filter;
  DueCounts living;
  std::uint64_t disk_bytes = 0;
  std::atomic<bool> revealed{false};  // [cold_store.reveal]
};

/// Parts that do not overlap, by rank.
class Generation {
 public:
  explicit Generation(std::uint64_t number) noexcept : number_(number) {}
  /// The ranks of `part` are larger than those of all others.
  void add(std::shared_ptr<ColdPart> part) {
    parts_.push_back(std::move(part));
    for (std::size_t i = 0; i < index_.size(); ++i) {
      const std::uint64_t rank = std::uint64_t{i} << 56;
      std::size_t at = 0;
      while (at + 1 < parts_.size() && parts_[at]->facts.last < rank) ++at;
      index_[i] = static_cast<std::uint32_t>(at);
    }
  }
  [[nodiscard]] ColdPart* part_of(std::uint64_t rank) const noexcept {
    if (parts_.empty()) return nullptr;
    std::size_t at = index_[rank >> 56];
    while (at + 1 < parts_.size() && parts_[at]->facts.last < rank) ++at;
    const PartFacts& facts = parts_[at]->facts;
    return facts.first <= rank && rank <= facts.last ? parts_[at].get() : nullptr;
  }
  [[nodiscard]] const std::vector<std::shared_ptr<ColdPart>>& parts() const noexcept {
    return parts_;
  }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint64_t number_;
  std::vector<std::shared_ptr<ColdPart>> parts_;
  std::array<std::uint32_t, 256> index_{};  // where to start a search, by the first byte of a rank
};

/// All generations, newest first.
class Catalog final : public ColdStore::View {
 public:
  std::vector<Generation> generations;

  /// To its generation, which is there.
  void add(std::shared_ptr<ColdPart> part) {
    for (Generation& generation : generations) {
      if (generation.number() != part->facts.generation) continue;
      SEMEL_ASSERT(generation.parts().empty() ||
                   generation.parts().back()->facts.last < part->facts.first);
      return generation.add(std::move(part));
    }
    SEMEL_ASSERT(false);  // begin_generation() has added it
  }
};

/// Parts know their ends on the engine's clock, so each is made anew, with the same filter.
[[nodiscard]] inline std::shared_ptr<const Catalog> moved_by(const Catalog& catalog, Millis by) {
  auto moved = std::make_shared<Catalog>();
  for (const Generation& generation : catalog.generations) {
    Generation& same = moved->generations.emplace_back(generation.number());
    for (const auto& part : generation.parts()) {
      same.add(std::make_shared<ColdPart>(*part, moved_by(part->facts, by)));
    }
  }
  return moved;
}

}  // namespace semel::storage
