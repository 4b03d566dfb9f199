// One shard's hash table: lock-free, grows a segment at a time, never rehashes as a whole.
//
// Goals      one cache miss to a key's slots and one to its record; no shared counter on any path;
//            growth and cleaning in steps of one segment (some 10 us); readers never wait.
// Non-goals  shrinking; ordered iteration.
//
// Shape: a directory (directory.hpp) names the segment of a hash. A segment is an array of lines of
// eight slots (slot.hpp). A key's probe sequence is its home line, then up to seven more at a step
// of its own. A segment that is full is frozen (frozen_segment.hpp), and one or two take its place.
//
// Concurrency
//   states    slot.hpp for a slot, directory.hpp for a directory word
//   writers   any thread inside an operation, by compare-and-set only. readers likewise.
//   [table.publish]    a slot's release CAS pairs with the acquire loads of find() and visit():
//                      the record's bytes are complete before anyone can reach it.
//   [table.freeze]     a word's frozen bit is set before it is copied; a writer whose CAS fails
//                      looks for that bit and, if it is set, helps to grow before it tries again.
//   stale     A reader that located a segment before its successor was published answers from the
//             frozen words: they were the truth at the moment it located the segment, which lies
//             inside its operation. A writer of the same slot fails its CAS and finds again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "engine/table/directory.hpp"
#include "engine/table/frozen_segment.hpp"
#include "engine/table/line.hpp"
#include "engine/table/slot.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// What find() saw.
template <class Atomic>
struct Probe {
  enum class State : std::uint8_t { found, vacant, full };
  State state = State::full;
  Atomic* slot = nullptr;         ///< found: the record's; vacant: the first empty one
  SlotWord seen = 0;              ///< the word read there
  SlotWord prefix = 0;            ///< tag and distance a record at this slot must carry
  Version floor = 0;              ///< a new record must have a larger version
  const void* segment = nullptr;  ///< where it looked
};

/// `Sync::template atomic<T>` is std::atomic, or a test's atomics over a cooperative scheduler;
/// `Sync::vector_lines` says whether a line may be read by vector loads (line.hpp).
/// `Source` hands out and takes back segment memory:
///   void* allocate_segment(bytes)            zeroed, 64-byte aligned; null: none to be had
///   void release_segment(void*)              was never visible to anyone
///   void retire_segment(void*)               others may still be reading it
template <class Sync, class Source>
class Table {
 public:
  using Word = typename Sync::template atomic<SlotWord>;
  using Probe = engine::Probe<Word>;

  /// Header of a segment; its lines follow it.
  struct alignas(64) Segment {
    Version floor;        ///< versions of tombstones that were dropped on the way here
    std::uint64_t birth;  ///< names this segment; never reused in one table
    std::uint32_t depth;
    std::uint32_t index;  ///< in the directory
    Source* source;       ///< where its memory goes back to
    [[nodiscard]] Word* slots() noexcept { return reinterpret_cast<Word*>(this + 1); }
  };
  static_assert(sizeof(Segment) == 64, "lines must be cache lines");

  /// `line_count`: a prime above 255, so that every step visits every line before it comes round.
  /// `directory` points to 2^depth_max zero words that outlive the table.
  Table(Source& source, std::uint32_t line_count, Word* directory) noexcept
      : source_(source), line_count_(line_count), directory_(directory) {}

  /// Makes the first segment. False: no memory.
  [[nodiscard]] bool start() {
    Segment* first = make_segment(0, 0, 0);
    if (first == nullptr) return false;
    directory_.start(*first);
    count_segments(1);
    return true;
  }

  [[nodiscard]] static constexpr std::size_t segment_bytes(std::uint32_t line_count) noexcept {
    return sizeof(Segment) + std::size_t{line_count} * slots_per_line * sizeof(Word);
  }

  /// What the home line says of a key: its record, or the first empty slot (`seen` is 0), or
  /// nothing conclusive (no slot). Tombstones never become anything else, so the floor of a key
  /// that is absent can be read from them later.
  struct HomeLook {
    Segment* segment = nullptr;
    Word* slot = nullptr;
    SlotWord seen = 0;

    /// What find() would have said at that moment; where it is not conclusive State::full.
    [[nodiscard]] Probe probe(HashBits hash) const noexcept {
      if (slot == nullptr) return {};
      const SlotWord prefix = engine::slot::make(hash.tag(), 0, 0);
      if (seen != 0) return {Probe::State::found, slot, seen, prefix, 0, segment};
      return {Probe::State::vacant, slot, 0, prefix, floor_of(*segment, slot), segment};
    }
  };
  /// Most records that exist are found so, in half of find()'s instructions, and most that do not
  /// are seen to be absent. Progress: wait-free.
  template <class Match>
  [[nodiscard, gnu::always_inline]] HomeLook look_home(HashBits hash,
                                                       Match&& match) const noexcept {
    Segment* const segment = locate(hash);
    Word* const slots = &segment->slots()[hash.line(line_count_) * slots_per_line];
    const SlotWord prefix = slot::make(hash.tag(), 0, 0);
    const Line line{slots, prefix};
    const unsigned candidates = line.candidates();
    if (candidates == 0) [[unlikely]] {
      const unsigned empties = line.empties();
      if (empties == 0) return {};
      return {segment, &slots[static_cast<unsigned>(__builtin_ctz(empties))], 0};
    }
    Word& word = slots[static_cast<unsigned>(__builtin_ctz(candidates))];
    // mo: acquire [table.publish]: match reads the record's bytes.
    const SlotWord now = word.load(std::memory_order_acquire);
    // A slot never changes its key: since the line was read, its record may only have ended.
    if (slot::is_tombstone(now) || !match(slot::handle(now))) [[unlikely]]
      return {};
    return {segment, &word, now};
  }
  /// Looks for the record for which `match(handle)` is true among those with these hash bits.
  /// Progress: wait-free.
  template <class Match>
  [[nodiscard]] Probe find(HashBits hash, Match&& match) const noexcept {
    Segment* segment = locate(hash);
    const std::uint64_t tag = hash.tag();
    const std::uint32_t step = slot::step(tag);
    std::uint32_t line = hash.line(line_count_);
    Probe probe;
    for (unsigned distance = 0; distance < probe_lines_max; ++distance) {
      Word* const slots = &segment->slots()[line * slots_per_line];
      const SlotWord prefix = slot::make(tag, distance, 0);
      const Line seen{slots, prefix};
      for (unsigned candidates = seen.candidates(); candidates != 0; candidates &= candidates - 1) {
        Word& word = slots[static_cast<unsigned>(__builtin_ctz(candidates))];
        // mo: acquire [table.publish]: match reads the record's bytes.
        const SlotWord now = word.load(std::memory_order_acquire);
        if (((now ^ prefix) & slot::match_mask) == 0) [[likely]] {
          if (match(slot::handle(now))) [[likely]] {
            return Probe{Probe::State::found, &word, now, prefix, 0, segment};
          }
        } else if (slot::is_tombstone(now)) {
          // It ended after the line was read, which therefore does not know of the tombstone.
          probe.floor = std::max(probe.floor, slot::version(now));
        }
      }
      if (seen.has_tombstones()) [[unlikely]]
        probe.floor = tombstone_floor(slots, probe.floor);
      if (const unsigned empties = seen.empties(); empties != 0) [[likely]] {
        Word& word = slots[static_cast<unsigned>(__builtin_ctz(empties))];
        const Version floor = std::max(probe.floor, segment->floor);
        return Probe{Probe::State::vacant, &word, 0, prefix, floor, segment};
      }
      line = next_line(line, step);
    }
    probe.floor = std::max(probe.floor, segment->floor);
    probe.segment = segment;
    return probe;
  }

  /// Puts `handle` into the slot that `probe` found. False: the slot has changed; find and decide
  /// again.
  /// Progress: wait-free.
  [[nodiscard]] bool publish(const Probe& probe, Handle handle) noexcept {
    SEMEL_ASSERT_SLOW(probe.slot != nullptr);
    SEMEL_ASSERT_SLOW(handle != 0 && (handle & ~slot::handle_mask) == 0);
    return swap(probe, probe.prefix | handle);
  }
  /// Ends the record that `probe` found, at `version`.
  [[nodiscard]] bool bury(const Probe& probe, Version version) noexcept {
    SEMEL_ASSERT_SLOW(slot::is_record(probe.seen));
    return swap(probe, slot::make_tombstone(version));
  }
  /// True if a change failed, or will fail, because the segment is being replaced.
  [[nodiscard]] static bool is_frozen(const Probe& probe) noexcept {
    // mo: acquire [table.freeze]: a thread that sees frozen words copies them.
    return probe.slot != nullptr && slot::is_frozen(probe.slot->load(std::memory_order_acquire));
  }

  /// Replaces the segment of `hash`, if it is still `seen`, by one without tombstones or by two.
  /// Any number of threads may do this at once: each makes its own copy of the same frozen words,
  /// the first to publish wins. False: no memory, or the directory is at its deepest; what the
  /// segment held can still be changed. Progress: lock-free.
  [[nodiscard]] bool grow(HashBits hash, const void* seen) {
    Segment* const old = locate(hash);
    if (old != seen) return true;  // another thread did it
    Segment* low = make_segment(old->depth, old->index, old->floor);
    Segment* high = low == nullptr ? nullptr : make_segment(old->depth, old->index, old->floor);
    if (high == nullptr) {
      if (low != nullptr) source_.release_segment(low);
      return false;
    }
    Frozen frozen{line_count_};
    if (!frozen.freeze(*old)) {
      source_.release_segment(low);
      source_.release_segment(high);
      return false;
    }
    low->floor = high->floor = frozen.floor();

    // Without tombstones to drop, a rebuild would make no room and the next insert would be back.
    const std::size_t slots = std::size_t{line_count_} * slots_per_line;
    if (frozen.records() * 2 <= slots && frozen.tombstones() != 0 && rebuild(*old, frozen, *low)) {
      source_.release_segment(high);
      return true;
    }
    if (old->depth < depth_max && split(*old, frozen, *low, *high)) return true;
    // No room can be made. A frozen segment cannot be changed ever again, so a copy, as full as it
    // was, takes its place.
    frozen.clear(*low);
    if (!rebuild(*old, frozen, *low)) source_.release_segment(low);
    source_.release_segment(high);
    return false;
  }

  /// The segment that holds `hash` now. Progress: lock-free (loops only while a split is
  /// published).
  [[nodiscard, gnu::always_inline]] Segment* locate(HashBits hash) const noexcept {
    return directory_.locate(hash);
  }

  /// Address of the line `find` reads first, or second, for prefetching.
  [[nodiscard]] Word* line_at(HashBits hash, unsigned distance) const noexcept {
    std::uint32_t line = hash.line(line_count_);
    if (distance != 0) line = next_line(line, slot::step(hash.tag()));
    return &locate(hash)->slots()[line * slots_per_line];
  }
  /// What such a line says of a hash at a look.
  struct Candidate {
    Word* slot = nullptr;  ///< of the first record that the hash may be of; null: none
    SlotWord seen = 0;     ///< the word read there
    bool is_last = false;  ///< the lines behind have none either
  };
  [[nodiscard]] static Candidate candidate_in(Word* slots, HashBits hash,
                                              unsigned distance) noexcept {
    const Line line{slots, slot::make(hash.tag(), distance, 0)};
    const unsigned candidates = line.candidates();
    if (candidates == 0) return {.is_last = line.empties() != 0};
    Word& word = slots[static_cast<unsigned>(__builtin_ctz(candidates))];
    // mo: acquire [table.publish]: the record may be read next.
    const SlotWord seen = word.load(std::memory_order_acquire);
    // It may have ended since the line was read.
    return {slot::is_record(seen) ? &word : nullptr, seen, false};
  }

  /// Whether no other record than that of `word`, last seen as `seen`, may have its hash bits.
  /// False also where that takes another line to know.
  [[nodiscard]] static bool is_only_candidate(const Word& word, SlotWord seen) noexcept {
    if (slot::distance(seen) != 0) return false;
    const Line line{line_of(&word), seen & ~slot::handle_mask};
    const unsigned candidates = line.candidates();
    return (candidates & (candidates - 1)) == 0 && line.empties() != 0;
  }

  /// Calls `visit(Word&, SlotWord)` for each slot that may hold a record with these hash bits,
  /// until it returns false: the next line is another cache miss.
  template <class Visit>
  void for_each_candidate(HashBits hash, Visit&& visit) const {
    Segment* segment = locate(hash);
    const std::uint64_t tag = hash.tag();
    std::uint32_t line = hash.line(line_count_);
    for (unsigned distance = 0; distance < probe_lines_max; ++distance) {
      Word* const slots = &segment->slots()[line * slots_per_line];
      const SlotWord prefix = slot::make(tag, distance, 0);
      const Line seen{slots, prefix};
      for (unsigned candidates = seen.candidates(); candidates != 0; candidates &= candidates - 1) {
        Word& word = slots[static_cast<unsigned>(__builtin_ctz(candidates))];
        // mo: acquire [table.publish]: visit reads the record's bytes.
        const SlotWord now = word.load(std::memory_order_acquire);
        if (((now ^ prefix) & slot::match_mask) == 0 && !visit(word, now)) return;
      }
      if (seen.empties() != 0) return;
      line = next_line(line, slot::step(tag));
    }
  }

  /// Ends the record in `word`, last seen as `seen`. False: it has changed or is frozen.
  [[nodiscard]] static bool bury(Word& word, SlotWord seen, Version version) noexcept {
    if (slot::is_frozen(seen)) return false;
    // mo: release [table.publish]: a reader of the tombstone sees all that was done before;
    //     failure relaxed: nothing is read through the word.
    return word.compare_exchange_strong(seen, slot::make_tombstone(version),
                                        std::memory_order_release, std::memory_order_relaxed);
  }

  /// Replaces the record by `handle`, a record of the same key. False: as bury().
  [[nodiscard]] static bool replace(Word& word, SlotWord seen, Handle handle) noexcept {
    SEMEL_ASSERT_SLOW(slot::is_record(seen) && handle != 0);
    if (slot::is_frozen(seen)) return false;
    // mo: release [table.publish]: the record's bytes are complete; failure relaxed: as above.
    return word.compare_exchange_strong(seen, (seen & ~slot::handle_mask) | handle,
                                        std::memory_order_release, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint32_t line_count() const noexcept { return line_count_; }
  [[nodiscard]] std::uint64_t segment_count() const noexcept {
    // mo: relaxed: a statistic.
    return segment_count_.load(std::memory_order_relaxed);
  }

  /// Calls `visit(Segment&)` for each segment, in the order of the directory. Segments that split
  /// during the walk may be met as a whole or in parts.
  template <class Visit>
  void for_each_segment(Visit&& visit) const {
    directory_.for_each(visit);
  }

 private:
  using Line = engine::Line<Word, Sync::vector_lines>;
  using Frozen = FrozenSegment<Segment>;

  [[nodiscard]] std::uint32_t next_line(std::uint32_t line, std::uint32_t step) const noexcept {
    return slot::next_line(line, step, line_count_);
  }

  [[nodiscard]] static const Word* line_of(const Word* slot) noexcept {
    constexpr std::uintptr_t line_mask = slots_per_line * sizeof(Word) - 1;
    return reinterpret_cast<const Word*>(reinterpret_cast<std::uintptr_t>(slot) & ~line_mask);
  }
  /// Of a key that is absent, by its home line, of which `slot` is one.
  [[nodiscard, gnu::noinline]] static Version floor_of(const Segment& segment,
                                                       const Word* slot) noexcept {
    const Word* const slots = line_of(slot);
    const Version floor = segment.floor;
    if (!Line{slots, 0}.has_tombstones()) [[likely]]
      return floor;
    return tombstone_floor(slots, floor);
  }
  [[nodiscard]] static Version tombstone_floor(const Word* slots, Version floor) noexcept {
    for (unsigned i = 0; i < slots_per_line; ++i) {
      // mo: acquire [table.publish]: the version of a record that ended here.
      const SlotWord word = slots[i].load(std::memory_order_acquire);
      if (slot::is_tombstone(word)) floor = std::max(floor, slot::version(word));
    }
    return floor;
  }

  [[nodiscard]] bool swap(const Probe& probe, SlotWord desired) noexcept {
    SlotWord expected = probe.seen;
    if (slot::is_frozen(expected)) return false;
    // mo: seq_cst [table.publish] [wait_queue.waiting]: a finishing owner's change comes before
    //     its look at the number of waiters; failure relaxed: the caller looks again.
    return probe.slot->compare_exchange_strong(expected, desired, std::memory_order_seq_cst,
                                               std::memory_order_relaxed);
  }

  [[nodiscard]] Segment* make_segment(std::uint32_t depth, std::uint32_t index, Version floor) {
    SEMEL_ASSERT(depth <= depth_max && index < (1U << depth));
    auto* segment = static_cast<Segment*>(source_.allocate_segment(segment_bytes(line_count_)));
    if (segment == nullptr) return nullptr;
    segment->floor = floor;
    // mo: relaxed: only uniqueness matters.
    segment->birth = births_.fetch_add(1, std::memory_order_relaxed) + 1;
    segment->depth = depth;
    segment->index = index;
    segment->source = &source_;
    return segment;
  }

  /// Replaces `old` by one segment without its tombstones.
  [[nodiscard]] bool rebuild(Segment& old, const Frozen& frozen, Segment& fresh) {
    if (!frozen.fill(fresh, 0, 0)) return false;
    replace(old, fresh);
    return true;
  }

  /// Replaces `old` by two segments, one directory bit deeper.
  [[nodiscard]] bool split(Segment& old, const Frozen& frozen, Segment& low, Segment& high) {
    SEMEL_ASSERT(old.depth < depth_max);
    const std::uint32_t bit = 1U << old.depth;
    if (!frozen.fill(low, bit, 0) || !frozen.fill(high, bit, bit)) return false;
    low.depth = high.depth = old.depth + 1;
    high.index = old.index | bit;
    if (directory_.add(high)) {
      count_segments(1);
    } else {
      source_.release_segment(&high);  // another thread's copy of the same words is there
    }
    replace(old, low);
    return true;
  }

  void replace(Segment& old, Segment& fresh) noexcept {
    if (directory_.replace(old, fresh)) {
      source_.retire_segment(&old);
    } else {
      source_.release_segment(&fresh);
    }
  }

  void count_segments(std::uint64_t more) noexcept {
    segment_count_.fetch_add(more, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

  Source& source_;
  const std::uint32_t line_count_;
  Directory<Sync, Segment> directory_;
  typename Sync::template atomic<std::uint64_t> births_{0};
  typename Sync::template atomic<std::uint64_t> segment_count_{0};
};

}  // namespace semel::engine
