#include "engine/time/ttl_wheel.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "engine/memory/region.hpp"

namespace semel::engine {

TtlWheel::TtlWheel(Region& region, Timestamp start) noexcept
    : region_(region), now_(start.time_since_epoch().count()) {}

TtlWheel::~TtlWheel() {
  for (std::size_t i = 0; i < slab_count_; ++i) {
    if (slabs_[i].chunks != nullptr) drop_slab(slabs_[i]);
  }
  region_.release(slabs_room_ * sizeof(Slab));
}

bool TtlWheel::grow_slabs() noexcept {
  const std::size_t room = std::max<std::size_t>(16, slabs_room_ * 2);
  std::unique_ptr<Slab[]> larger{new (std::nothrow) Slab[room]};
  if (larger == nullptr) return false;
  std::copy_n(slabs_.get(), slab_count_, larger.get());
  slabs_ = std::move(larger);
  region_.charge(static_cast<std::ptrdiff_t>((room - slabs_room_) * sizeof(Slab)));
  slabs_room_ = room;
  return true;
}

bool TtlWheel::add_slab() noexcept {
  std::size_t number = 0;
  while (number < slab_count_ && slabs_[number].chunks != nullptr) ++number;
  if (number == slabs_room_ && !grow_slabs()) return false;
  // A timer of a live record must not be lost: when even the reserve is gone the heap serves.
  const auto span = region_.take(1, Region::Use::timer);
  void* const memory =
      span ? region_.span(*span) : ::operator new (slab_bytes, std::align_val_t{64}, std::nothrow);
  if (memory == nullptr) return false;
  if (!span) region_.charge(slab_bytes);
  slab_count_ = std::max(slab_count_, number + 1);
  ++slabs_held_;
  Slab& slab = slabs_[number] = {static_cast<Chunk*>(memory), span.value_or(0), 0, 0};
  for (std::uint32_t i = 0; i < chunks_per_slab; ++i) slab.chunks[i].next = i + 1;
  first_with_free_ = std::min(first_with_free_, number);
  return true;
}

void TtlWheel::drop_slab(Slab& slab) noexcept {
  if (slab.span != 0) {
    region_.give(slab.span, 1);
  } else {
    ::operator delete (slab.chunks, std::align_val_t{64});
    region_.release(slab_bytes);
  }
  slab = {};
  --slabs_held_;
  room_ = 0;
}

std::uint32_t TtlWheel::take_chunk() noexcept {
  // From the lowest, so that those above become free as a whole. schedule() saw to it that there is
  // one.
  while (slabs_[first_with_free_].chunks == nullptr ||
         slabs_[first_with_free_].used == chunks_per_slab) {
    ++first_with_free_;
    SEMEL_ASSERT(first_with_free_ < slab_count_);
  }
  Slab& slab = slabs_[first_with_free_];
  const std::uint32_t taken = slab.free;
  slab.free = slab.chunks[taken].next;
  ++slab.used;
  ++chunks_used_;
  return static_cast<std::uint32_t>(first_with_free_ * chunks_per_slab) + taken;
}

void TtlWheel::give_chunk(std::uint32_t index) noexcept {
  const std::size_t number = index / chunks_per_slab;
  Slab& slab = slabs_[number];
  slab.chunks[index % chunks_per_slab].next = slab.free;
  slab.free = index % chunks_per_slab;
  SEMEL_ASSERT(slab.used != 0 && chunks_used_ != 0);
  --slab.used;
  --chunks_used_;
  first_with_free_ = std::min(first_with_free_, number);
  // One more than is needed stays, or a wheel at the edge would take and give it all the time.
  // Those that are being moved may all go far away again.
  const std::size_t far = std::max<std::size_t>(far_.size, far_moving_);
  const std::size_t needed = std::max(chunks_used_, chunks_for(size_, far));
  if (slab.used == 0 && slabs_held_ > 2 && (slabs_held_ - 2) * chunks_per_slab >= needed) {
    drop_slab(slab);
  }
}

TtlWheel::Chunk& TtlWheel::head_with_room(List& list, std::uint32_t words) noexcept {
  if (list.head == no_chunk || chunk(list.head).count + words > Chunk::capacity) {
    const std::uint32_t fresh = take_chunk();
    chunk(fresh).next = list.head;
    chunk(fresh).count = 0;
    list.head = fresh;
  }
  ++list.size;
  return chunk(list.head);
}

void TtlWheel::append_far(TimerEntry timer) noexcept {
  Chunk& head = head_with_room(far_, 2);
  head.items[head.count++] = timer.hash_bits;
  head.items[head.count++] = static_cast<std::uint64_t>(timer.wake.time_since_epoch().count());
}

bool TtlWheel::make_room() noexcept {
  // As if it went far away, which takes most.
  while (slabs_held_ * chunks_per_slab < chunks_for(size_ + 1, far_.size + 1)) {
    if (!add_slab()) return false;
  }
  // And as many more as surely find room, so that few timers ask.
  constexpr std::size_t for_lists = list_count + 4;
  const std::size_t chunks = slabs_held_ * chunks_per_slab;
  const std::size_t items = chunks > for_lists ? (chunks - for_lists) * Chunk::capacity : 0;
  const std::size_t held = size_ + far_.size;
  room_ = items > held ? std::max<std::size_t>((items - held) / 2, 1) : 1;
  SEMEL_ASSERT(chunks_for(size_ + room_, far_.size + room_) <= chunks);
  return true;
}

[[gnu::noinline]] void TtlWheel::insert(std::uint64_t hash_bits, std::int64_t wake) noexcept {
  const std::int64_t due = std::max(wake, now_);
  // From the first level that may reach so far: those below do not.
  const auto width = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(due - now_)));
  static_assert(slots[0] == 1U << 8 && slots[1] == 1U << 6 && shift[1] == 8 && shift[2] == 14);
  for (unsigned level = width <= 8 ? 0 : (width - 3) / 6; level < level_count; ++level) {
    // In slots of this level, so that an item never lands in the slot the hand is in.
    const std::int64_t slots_ahead = (due >> shift[level]) - (now_ >> shift[level]);
    if (slots_ahead >= static_cast<std::int64_t>(slots[level])) continue;
    const auto slot = static_cast<unsigned>((due >> shift[level]) & (slots[level] - 1));
    const auto into = static_cast<std::uint64_t>(due & ((std::int64_t{1} << shift[level]) - 1));
    SEMEL_ASSERT_SLOW(slots_ahead >= 0 && (hash_bits & ~HashBits::mask) == 0);
    append(lists_[list_index(level, slot)], (into << 38) | hash_bits);
    ++level_size_[level];
    // Of a time to come: in the slot that the hand is in, a late timer stands for another time.
    if (due > now_) {
      const auto at = due - static_cast<std::int64_t>(into);
      last_ = {at, std::uint64_t{1} << shift[level], now_, list_index(level, slot), level};
    }
    return;
  }
  far_first_ = far_.size == 0 ? due : std::min(far_first_, due);
  append_far({hash_bits, Timestamp{Millis{due}}});
}

void TtlWheel::cascade(unsigned level) noexcept {
  if (level == level_count - 1) {
    // Once in 18.6 hours: timers now within the horizon move into the wheel.
    take_far([this](const TimerEntry& timer) {
      insert(timer.hash_bits, timer.wake.time_since_epoch().count());
    });
  }
  const auto slot = static_cast<unsigned>((now_ >> shift[level]) & (slots[level] - 1));
  List& list = lists_[list_index(level, slot)];
  const List old = list;
  list = {};
  SEMEL_ASSERT(level_size_[level] >= old.size);
  level_size_[level] -= old.size;
  for (std::uint32_t at = old.head; at != no_chunk;) {
    Chunk& from = chunk(at);
    if (level == 1) {
      // Its slots are as long as the whole of the level below: all go there.
      for (std::uint32_t i = 0; i < from.count; ++i) {
        const auto into = static_cast<std::int64_t>(from.items[i] >> 38);
        append(lists_[static_cast<unsigned>((now_ + into) & (slots[0] - 1))],
               from.items[i] & HashBits::mask);
      }
      level_size_[0] += from.count;
    } else {
      for (std::uint32_t i = 0; i < from.count; ++i) {
        insert(from.items[i] & HashBits::mask,
               now_ + static_cast<std::int64_t>(from.items[i] >> 38));
      }
    }
    const std::uint32_t next = from.next;
    give_chunk(at);
    at = next;
  }
}

std::int64_t TtlWheel::next_stop(std::int64_t limit) const noexcept {
  // With nothing on the lower levels the hand may jump to where the next level is looked at.
  unsigned level = 0;
  while (level < level_count && level_size_[level] == 0) ++level;
  if (level == 0) return now_ + 1;
  if (level == level_count && far_.size == 0) return limit;
  const unsigned step = shift[std::min(level, level_count - 1)];
  std::int64_t stop = ((now_ >> step) + 1) << step;
  if (level == level_count) stop = std::max(stop, ((far_first_ >> step) - 63) << step);
  return std::min(limit, stop);
}

void TtlWheel::check(std::vector<std::string>& broken) const {
  std::size_t total = far_.size;
  std::size_t chunks = 0;
  for (std::uint32_t at = far_.head; at != no_chunk; at = chunk(at).next) ++chunks;
  for (unsigned index = 0; index < list_count; ++index) {
    std::size_t counted = 0;
    for (std::uint32_t at = lists_[index].head; at != no_chunk; at = chunk(at).next) {
      counted += chunk(at).count;
      ++chunks;
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
  if (size_ != 0 && slabs_held_ * chunks_per_slab < chunks_for(size_, far_.size)) {
    broken.push_back("wheel holds " + std::to_string(slabs_held_ * chunks_per_slab) +
                     " chunks, and its items may need " +
                     std::to_string(chunks_for(size_, far_.size)));
  }
  if (chunks != chunks_used_ || chunks > chunks_for(size_, far_.size)) {
    broken.push_back("wheel lists have " + std::to_string(chunks) + " chunks, counted " +
                     std::to_string(chunks_used_) + ", bound " +
                     std::to_string(chunks_for(size_, far_.size)));
  }
}

}  // namespace semel::engine
