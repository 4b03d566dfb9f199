// A hierarchical timing wheel of 8-byte items. Not thread-safe: the engine advances it under a
// lock, and operations hand their timers over in per-thread lists.
//
// An item does not point to a record. It names a position in the table by 38 hash bits and carries
// the time left within its slot; when it is due, whatever lies there is checked. So a record may be
// replaced, moved or freed at any time without notice to the wheel, and an item that finds nothing
// costs one check.
//
//   level 0   256 slots of      1 ms     level 3   64 slots of 17.5 min
//   level 1    64 slots of    256 ms     level 4   64 slots of 18.6 h
//   level 2    64 slots of   16.4 s      far       everything beyond 49.7 days
//
//   item      bits 0..37 hash bits, bits 38..63 milliseconds into the slot (26 bits: 18.6 h)
//
// Cost: O(1) to schedule, at most one move per level until due (Varghese and Lauck, 1987).
//
// Memory: chunks of 512 bytes from slabs of 64 KiB, which come from the region and go back to it.
// schedule() makes sure that there are chunks for every way the items may come to lie later, so
// that moving them takes no memory and cannot fail.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "engine/memory/timer_queue.hpp"
#include "engine/table/slot.hpp"
#include "semel/types.hpp"

namespace semel::engine {

class Region;

class TtlWheel {
 public:
  TtlWheel(Region& region, Timestamp start) noexcept;
  ~TtlWheel();
  TtlWheel(const TtlWheel&) = delete;
  TtlWheel& operator=(const TtlWheel&) = delete;

  /// Adds a timer. A wake that has passed is due at the next advance. False: there is no memory,
  /// not even outside of the region, and nothing has changed.
  [[nodiscard]] bool schedule(TimerEntry timer) noexcept {
    if (room_ == 0 && !make_room()) [[unlikely]]
      return false;
    --room_;
    ++size_;
    // Most timers go where the one before went: their records have the same ttl.
    const std::int64_t wake = timer.wake.time_since_epoch().count();
    const auto into = static_cast<std::uint64_t>(wake - last_.begin);
    if (into < last_.length && now_ == last_.now) [[likely]] {
      append(lists_[last_.list], (into << 38) | timer.hash_bits);
      ++level_size_[last_.level];
    } else {
      insert(timer.hash_bits, wake);
    }
    return true;
  }

  /// Moves time towards `now` and calls `fire(std::span<const std::uint64_t> hash_bits)` with those
  /// that have come due, in parts of at most fire_max, until about `budget` items were handled.
  /// Returns the budget left; 0: there may be more. `fire` may not call the wheel.
  template <class Fire>
  std::size_t advance(Timestamp now, std::size_t budget, Fire&& fire);

  /// Drops items for which `alive(hash_bits, wake)` is false, a few lists per call, going on where
  /// the last call stopped. Returns true when it has been through all of them.
  template <class Alive>
  bool compact(std::size_t budget, Alive&& alive);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return slabs_held_ * slab_bytes; }
  /// Everything due at or before this time has been fired.
  [[nodiscard]] Timestamp time() const noexcept { return Timestamp{Millis{now_}}; }
  /// Sentences for broken rules.
  [[gnu::cold]] void check(std::vector<std::string>& broken) const;

  static constexpr std::size_t fire_max = 32;

 private:
  static constexpr unsigned level_count = 5;
  static constexpr std::array<unsigned, level_count> shift{0, 8, 14, 20, 26};
  static constexpr std::array<unsigned, level_count> slots{256, 64, 64, 64, 64};
  static constexpr unsigned list_count = 256 + 4 * 64;
  static constexpr std::size_t slab_bytes = 64 * 1024;
  static constexpr std::uint32_t no_chunk = 0xffff'ffff;

  /// A piece of a list: 62 items and a link.
  struct Chunk {
    static constexpr unsigned capacity = 62;
    std::uint32_t next;
    std::uint32_t count;
    std::uint64_t unused;
    std::array<std::uint64_t, capacity> items;
  };
  static_assert(sizeof(Chunk) == 512);
  struct List {
    std::uint32_t head = no_chunk;
    std::uint32_t size = 0;
  };
  static constexpr std::size_t chunks_per_slab = slab_bytes / sizeof(Chunk);

  [[nodiscard]] static constexpr unsigned list_index(unsigned level, unsigned slot) noexcept {
    return level == 0 ? slot : 256 + (level - 1) * 64 + slot;
  }
  /// Chunks of one piece of memory. Those that are free name each other by their index in it.
  struct Slab {
    Chunk* chunks = nullptr;  // null: gone, its number serves the next
    std::uint32_t span = 0;   // 0: from the heap
    std::uint32_t used = 0;   // chunks
    std::uint32_t free = 0;   // the first
  };

  [[nodiscard]] Chunk& chunk(std::uint32_t index) const noexcept {
    return slabs_[index / chunks_per_slab].chunks[index % chunks_per_slab];
  }
  /// Chunks that `items`, `far` of them far away, may need however they lie.
  [[nodiscard]] static constexpr std::size_t chunks_for(std::size_t items,
                                                        std::size_t far) noexcept {
    return (items + far) / Chunk::capacity + std::min<std::size_t>(items, list_count) + 4;
  }
  /// Room for one more timer, or more. False: there is no memory.
  [[nodiscard]] bool make_room() noexcept;
  [[nodiscard]] bool add_slab() noexcept;
  [[nodiscard]] bool grow_slabs() noexcept;
  void drop_slab(Slab& slab) noexcept;
  [[nodiscard]] std::uint32_t take_chunk() noexcept;
  void give_chunk(std::uint32_t index) noexcept;
  void insert(std::uint64_t hash_bits, std::int64_t wake) noexcept;
  void append(List& list, std::uint64_t item) noexcept;
  void append_far(TimerEntry timer) noexcept;
  [[nodiscard]] Chunk& head_with_room(List& list, std::uint32_t words) noexcept;
  void cascade(unsigned level) noexcept;
  /// Empties the list of those far away: `each(TimerEntry)` may put some there again.
  template <class Each>
  void take_far(Each&& each);
  [[nodiscard]] std::int64_t next_stop(std::int64_t limit) const noexcept;

  Region& region_;
  std::int64_t now_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;  // so many more there are chunks for, however they lie
  /// The slot that insert() chose last: of the level of its timer, or perhaps of a higher
  /// one than another timer would get, which is right as long as the hand stands where it stood.
  struct LastSlot {
    std::int64_t begin = 0;
    std::uint64_t length = 0;  ///< in milliseconds; 0: none
    std::int64_t now = 0;      ///< where the hand stood
    unsigned list = 0;
    unsigned level = 0;
  };

  LastSlot last_;
  std::array<List, list_count> lists_;
  std::array<std::size_t, level_count> level_size_{};
  List far_;                    // items of two words: hash bits, and the wake
  std::size_t far_moving_ = 0;  // while take_far() moves them: how many they were
  std::int64_t far_first_ = 0;  // no timer in far_ is due before
  std::unique_ptr<Slab[]> slabs_;
  std::size_t slabs_room_ = 0;       // of the array
  std::size_t slab_count_ = 0;       // numbers in use, those that are gone included
  std::size_t slabs_held_ = 0;       // with memory
  std::size_t first_with_free_ = 0;  // no slab below has a free chunk
  std::size_t chunks_used_ = 0;
  unsigned compact_next_ = 0;
};

inline void TtlWheel::append(List& list, std::uint64_t item) noexcept {
  if (list.head != no_chunk) [[likely]] {
    Chunk& head = chunk(list.head);
    if (head.count < Chunk::capacity) [[likely]] {
      ++list.size;
      head.items[head.count++] = item;
      return;
    }
  }
  Chunk& head = head_with_room(list, 1);
  head.items[head.count++] = item;
}

template <class Each>
void TtlWheel::take_far(Each&& each) {
  List old = far_;
  far_ = {};
  far_moving_ = old.size;
  for (std::uint32_t at = old.head; at != no_chunk;) {
    Chunk& from = chunk(at);
    for (std::uint32_t i = 0; i < from.count; i += 2) {
      each(TimerEntry{from.items[i],
                      Timestamp{Millis{static_cast<std::int64_t>(from.items[i + 1])}}});
    }
    const std::uint32_t next = from.next;
    give_chunk(at);
    at = next;
  }
  far_moving_ = 0;
}

template <class Fire>
std::size_t TtlWheel::advance(Timestamp now, std::size_t budget, Fire&& fire) {
  const std::int64_t target = now.time_since_epoch().count();
  for (;;) {
    // The slot of now_ itself may hold items that were scheduled late.
    List& due = lists_[static_cast<unsigned>(now_ & 255)];
    while (due.size != 0) {
      if (budget == 0) return 0;
      Chunk& head = chunk(due.head);
      const auto part =
          static_cast<std::uint32_t>(std::min({std::size_t{head.count}, fire_max, budget}));
      std::array<std::uint64_t, fire_max> batch;
      head.count -= part;
      for (std::uint32_t i = 0; i < part; ++i) {
        batch[i] = head.items[head.count + i] & HashBits::mask;
      }
      SEMEL_ASSERT(part != 0 && due.size >= part);
      SEMEL_ASSERT(level_size_[0] >= part && size_ >= part);
      due.size -= part;
      level_size_[0] -= part;
      size_ -= part;
      budget -= part;
      if (head.count == 0) {
        const std::uint32_t empty = due.head;
        due.head = head.next;
        give_chunk(empty);
      }
      fire(std::span<const std::uint64_t>{batch.data(), part});
    }
    if (now_ >= target) return budget;
    const std::int64_t stop = next_stop(target);
    SEMEL_ASSERT(stop > now_ && stop <= target);
    now_ = stop;
    if ((now_ & 255) == 0) {
      for (unsigned level = level_count - 1; level > 0; --level) {
        if ((now_ & ((std::int64_t{1} << shift[level]) - 1)) == 0) cascade(level);
      }
    }
  }
}

template <class Alive>
bool TtlWheel::compact(std::size_t budget, Alive&& alive) {
  while (compact_next_ < list_count) {
    if (budget == 0) return false;
    const unsigned index = compact_next_++;
    const unsigned level = index < 256 ? 0 : 1 + (index - 256) / 64;
    List old = lists_[index];
    // The slot under the hand holds timers that were late; their time is no longer known.
    if (old.size == 0 || (level == 0 && index == static_cast<unsigned>(now_ & 255))) continue;
    budget -= std::min<std::size_t>(budget, old.size);
    lists_[index] = {};
    // The slot's first millisecond: the next time the wheel's hand points to it.
    const auto slot = static_cast<std::int64_t>(level == 0 ? index : (index - 256) % 64);
    const std::int64_t hand = now_ >> shift[level];
    const std::int64_t ahead = (slot - hand) & (slots[level] - 1);
    const std::int64_t begin = (hand + ahead) << shift[level];
    for (std::uint32_t at = old.head; at != no_chunk;) {
      Chunk& from = chunk(at);
      for (std::uint32_t i = 0; i < from.count; ++i) {
        const std::uint64_t item = from.items[i];
        const Timestamp wake{Millis{begin + static_cast<std::int64_t>(item >> 38)}};
        if (alive(item & HashBits::mask, wake)) {
          append(lists_[index], item);
        } else {
          --size_;
          --level_size_[level];
        }
      }
      const std::uint32_t next = from.next;
      give_chunk(at);
      at = next;
    }
  }
  take_far([&](const TimerEntry& timer) {
    alive(timer.hash_bits, timer.wake) ? append_far(timer) : static_cast<void>(--size_);
  });
  compact_next_ = 0;
  return true;
}

}  // namespace semel::engine
