// What a segment of a table holds once all change in it is stopped, and how that gets into the
// segments that replace it. Any number of threads may freeze one segment at once; each fills
// segments of its own from the same words.
//
// Concurrency
//   [table.freeze]     fetch_or of the frozen bit pairs with the failing CAS of a writer: after it
//                      no writer changes the word, so every copy made of a frozen segment is the
//                      same.
//   [table.directory]  no thread reads a segment filled here until it is in the directory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "base/assert.hpp"
#include "engine/table/slot.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// `Segment` is that of table.hpp: a floor, and lines of slots.
template <class Segment>
class FrozenSegment {
 public:
  explicit FrozenSegment(std::uint32_t line_count) noexcept : line_count_(line_count) {}

  /// Stops all change in `old` and collects what it holds. False: no memory for that, and no change
  /// was stopped.
  [[nodiscard]] bool freeze(Segment& old) noexcept {
    const std::uint32_t count = line_count_ * slots_per_line;
    try {
      records_.reserve(count);
    } catch (const std::bad_alloc&) {
      return false;
    }
    floor_ = old.floor;
    for (std::uint32_t i = 0; i < count; ++i) {
      // mo: acq_rel [table.freeze]: no writer changes the word after this; and the record behind
      //     it was published before.
      const SlotWord word =
          old.slots()[i].fetch_or(slot::frozen, std::memory_order_acq_rel) & ~slot::frozen;
      if (slot::is_tombstone(word)) {
        floor_ = std::max(floor_, slot::version(word));
        ++tombstones_;
      } else if (!slot::is_empty(word)) {
        records_.push_back({word, home_line(i / slots_per_line, word)});
      }
    }
    return true;
  }

  [[nodiscard]] std::size_t records() const noexcept { return records_.size(); }
  [[nodiscard]] std::size_t tombstones() const noexcept { return tombstones_; }
  /// That of the segment and of its tombstones.
  [[nodiscard]] Version floor() const noexcept { return floor_; }

  /// Puts the records with `bit` of the directory bits equal to `side` into `fresh`, which is empty
  /// and, if that fails, empty again. Tries several orders, for a record that finds eight full
  /// lines in one order finds room in another.
  [[nodiscard]] bool fill(Segment& fresh, std::uint32_t bit, std::uint32_t side) const noexcept {
    const std::size_t count = records_.size();
    for (std::size_t attempt = 0; attempt < attempts_max; ++attempt) {
      bool placed = true;
      for (std::size_t i = 0; i < count && placed; ++i) {
        const Moving& record = records_[(i + attempt * (count / attempts_max)) % count];
        if ((slot::tag(record.word) & bit) != side) continue;
        placed = insert(fresh, record);
      }
      if (placed) return true;
      clear(fresh);
    }
    return false;
  }

  /// Empties what fill() has filled.
  void clear(Segment& fresh) const noexcept {
    for (std::uint32_t i = 0; i < line_count_ * slots_per_line; ++i) {
      fresh.slots()[i].store(0, std::memory_order_relaxed);  // mo: relaxed: not yet published
    }
  }

 private:
  /// A record's slot word on its way to a new segment.
  struct Moving {
    SlotWord word;
    std::uint32_t home;
  };

  [[nodiscard]] std::uint32_t home_line(std::uint32_t line, SlotWord word) const noexcept {
    const std::uint32_t back = slot::step(slot::tag(word)) % line_count_ * slot::distance(word);
    return (line + line_count_ * probe_lines_max - back) % line_count_;
  }

  [[nodiscard]] bool insert(Segment& fresh, const Moving& record) const noexcept {
    const std::uint64_t tag = slot::tag(record.word);
    SEMEL_ASSERT_SLOW(record.home < line_count_);
    std::uint32_t line = record.home;
    for (unsigned distance = 0; distance < probe_lines_max; ++distance) {
      auto* const slots = &fresh.slots()[line * slots_per_line];
      for (unsigned i = 0; i < slots_per_line; ++i) {
        // mo: relaxed: the segment is ours until it is published by [table.directory].
        if (slots[i].load(std::memory_order_relaxed) != 0) continue;
        // mo: relaxed: likewise.
        slots[i].store(slot::make(tag, distance, slot::handle(record.word)),
                       std::memory_order_relaxed);
        return true;
      }
      line = slot::next_line(line, slot::step(tag), line_count_);
    }
    return false;
  }

  static constexpr std::size_t attempts_max = 16;

  const std::uint32_t line_count_;
  std::vector<Moving> records_;
  std::size_t tombstones_ = 0;
  Version floor_ = 0;
};

}  // namespace semel::engine
