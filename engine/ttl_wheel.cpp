#include "engine/ttl_wheel.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "engine/region.hpp"

namespace semel::engine {

TtlWheel::TtlWheel(Region& region, Timestamp start) noexcept
    : region_(region), now_(start.time_since_epoch().count()) {}

TtlWheel::~TtlWheel() {
  for (std::size_t i = 0; i < slabs_.size(); ++i) {
    if (slab_spans_[i] != 0) {
      region_.give(slab_spans_[i], 1);
    } else {
      ::operator delete (slabs_[i], std::align_val_t{64});
    }
  }
}

std::uint32_t TtlWheel::take_chunk() {
  if (free_chunks_ == no_chunk) {
    // A timer of a live record must never be lost: when even the reserve is gone the heap serves.
    const auto span = region_.take(1, Region::Use::timer);
    void* memory = span ? region_.span(*span) : ::operator new (slab_bytes, std::align_val_t{64});
    if (!span) region_.charge(slab_bytes);
    slabs_.push_back(static_cast<Chunk*>(memory));
    slab_spans_.push_back(span.value_or(0));
    const auto first = static_cast<std::uint32_t>(slab_count_++ * chunks_per_slab);
    for (std::size_t i = chunks_per_slab; i-- > 0;) {
      give_chunk(first + static_cast<std::uint32_t>(i));
    }
  }
  const std::uint32_t taken = free_chunks_;
  free_chunks_ = chunk(taken).next;
  return taken;
}

void TtlWheel::give_chunk(std::uint32_t index) noexcept {
  chunk(index).next = free_chunks_;
  free_chunks_ = index;
}

void TtlWheel::append(List& list, std::uint64_t item) {
  if (list.head == no_chunk || chunk(list.head).count == Chunk::capacity) {
    const std::uint32_t fresh = take_chunk();
    chunk(fresh).next = list.head;
    chunk(fresh).count = 0;
    list.head = fresh;
  }
  Chunk& head = chunk(list.head);
  head.items[head.count++] = item;
  ++list.size;
}

void TtlWheel::schedule(TimerEntry timer) {
  ++size_;
  place(timer.hash_bits, timer.wake.time_since_epoch().count());
}

void TtlWheel::place(std::uint64_t hash_bits, std::int64_t wake) {
  const std::int64_t due = std::max(wake, now_);
  for (unsigned level = 0; level < level_count; ++level) {
    // In slots of this level, so that an item never lands in the slot the hand is in.
    const std::int64_t slots_ahead = (due >> shift[level]) - (now_ >> shift[level]);
    if (slots_ahead >= static_cast<std::int64_t>(slots[level])) continue;
    const auto slot = static_cast<unsigned>((due >> shift[level]) & (slots[level] - 1));
    const auto into = static_cast<std::uint64_t>(due & ((std::int64_t{1} << shift[level]) - 1));
    append(lists_[list_index(level, slot)], (into << 38) | hash_bits);
    ++level_size_[level];
    return;
  }
  far_first_ = far_.empty() ? due : std::min(far_first_, due);
  far_.push_back({hash_bits, Timestamp{Millis{due}}});
}

void TtlWheel::cascade(unsigned level) {
  if (level == level_count - 1) rescan_far();
  const auto slot = static_cast<unsigned>((now_ >> shift[level]) & (slots[level] - 1));
  List& list = lists_[list_index(level, slot)];
  const List old = list;
  list = {};
  level_size_[level] -= old.size;
  for (std::uint32_t at = old.head; at != no_chunk;) {
    Chunk& from = chunk(at);
    for (std::uint32_t i = 0; i < from.count; ++i) {
      place(from.items[i] & HashBits::mask, now_ + static_cast<std::int64_t>(from.items[i] >> 38));
    }
    const std::uint32_t next = from.next;
    give_chunk(at);
    at = next;
  }
}

void TtlWheel::rescan_far() {
  // Once in 18.6 hours: what has come within the horizon moves into the wheel.
  std::vector<TimerEntry> old;
  old.swap(far_);
  for (const TimerEntry& timer : old) {
    place(timer.hash_bits, timer.wake.time_since_epoch().count());
  }
}

std::int64_t TtlWheel::next_stop(std::int64_t limit) const noexcept {
  // With nothing on the lower levels the hand may jump to where the next level is looked at.
  unsigned level = 0;
  while (level < level_count && level_size_[level] == 0) ++level;
  if (level == 0) return now_ + 1;
  if (level == level_count && far_.empty()) return limit;
  const unsigned step = shift[std::min(level, level_count - 1)];
  std::int64_t stop = ((now_ >> step) + 1) << step;
  if (level == level_count) stop = std::max(stop, ((far_first_ >> step) - 63) << step);
  return std::min(limit, stop);
}

void TtlWheel::check(std::vector<std::string>& broken) const {
  std::size_t total = far_.size();
  for (unsigned index = 0; index < list_count; ++index) {
    std::size_t counted = 0;
    for (std::uint32_t at = lists_[index].head; at != no_chunk; at = chunk(at).next) {
      counted += chunk(at).count;
    }
    if (counted != lists_[index].size) {
      broken.push_back("wheel list " + std::to_string(index) + " counts " +
                       std::to_string(lists_[index].size) + " items and holds " +
                       std::to_string(counted));
    }
    total += counted;
  }
  if (total != size_) {
    broken.push_back("wheel counts " + std::to_string(size_) + " items and holds " +
                     std::to_string(total));
  }
}

}  // namespace semel::engine
