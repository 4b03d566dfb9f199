#include "engine/memory/arena.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"

namespace semel::engine {

Arena::Arena(Region& region) : region_(region) {
  // Zeroed by the system when it is touched: the range of a large limit costs nothing.
  spans_.reset(static_cast<SpanInfo*>(std::calloc(region.span_count(), sizeof(SpanInfo))));
  // Table and wheel need spans as well; what the pools hold must not stand in their way.
  region_.when_full([this] { return purge_all(); });
}

namespace {

/// 2^32 by the units of a record, rounded up: the product with a number of units, of which a span
/// has few, has the record's number in its upper half.
constexpr std::array<std::uint64_t, Arena::all_classes> unit_inverse = [] {
  std::array<std::uint64_t, Arena::all_classes> inverse{};
  for (unsigned each = 1; each < Arena::all_classes; ++each) {
    if (each == Arena::class_count) continue;
    const std::uint64_t units = Arena::class_bytes(each) / 8;
    inverse[each] = ((std::uint64_t{1} << 32) + units - 1) / units;
  }
  return inverse;
}();
static_assert(Arena::large_bytes / 8 * Region::handles_per_span <= std::size_t{1} << 32,
              "what the rounding adds stays below one record");

}  // namespace

std::uint32_t Arena::take_span(unsigned size_class, Region::Use use) {
  const auto span = region_.take(1, use);
  if (!span) return 0;
  spans_[*span].size_class = static_cast<std::uint8_t>(size_class);
  std::memset(region_.span(*span), 0, bit_words(size_class) * 8);
  return *span;
}

std::size_t Arena::pull(unsigned size_class, Handle* to, std::size_t count, bool may_wait) {
  Pool& pool = pools_[size_class];
  base::MutexLock lock{pool.mutex, std::defer_lock};
  // A thread that lost the processor inside must not stop the others while there is fresh memory.
  if (may_wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return 0;
  }
  std::size_t taken = 0;
  while (taken < count && pool.spans != 0) {
    const std::uint32_t index = pool.spans;
    SpanInfo& span = spans_[index];
    if (span.pooled == capacity(size_class)) --pool.full_spans;
    std::uint64_t* word = bits_of(index, size_class);
    for (std::size_t base = 0; taken < count && span.pooled != 0; base += 64, ++word) {
      for (; taken < count && *word != 0; *word &= *word - 1, --span.pooled) {
        const std::size_t record = base + static_cast<std::size_t>(std::countr_zero(*word));
        to[taken++] = first_handle(index, size_class) + record * (class_bytes(size_class) / 8);
      }
    }
    if (span.pooled != 0) break;
    unlink(pool, index);
  }
  return taken;
}

void Arena::push(unsigned size_class, const Handle* from, std::size_t count) {
  // In parts, so that the mutex is never held for long: a thread that needs a record and finds it
  // locked takes fresh memory instead, and pays for its first touch.
  constexpr std::size_t part_max = 64;
  for (std::size_t at = 0; at < count; at += part_max) {
    push_part(size_class, {from + at, std::min(part_max, count - at)});
  }
}

void Arena::push_part(unsigned size_class, std::span<const Handle> handles) {
  Pool& pool = pools_[size_class];
  const std::uint64_t inverse = unit_inverse[size_class];
  // Spans whose records end in no order are a cache miss each; they are waited for together.
  for (std::uint32_t last = 0; const Handle handle : handles) {
    const std::uint32_t index = Region::span_of(handle);
    if (index == last) continue;
    last = index;
    const std::uint64_t record = (handle - first_handle(index, size_class)) * inverse >> 32;
    __builtin_prefetch(bits_of(index, size_class) + record / 64, 1);
  }
  const base::MutexLock lock{pool.mutex};
  for (const Handle *at = handles.data(), *const end = at + handles.size(); at != end;) {
    const std::uint32_t index = Region::span_of(*at);
    const Handle first = first_handle(index, size_class);
    std::uint64_t* const bits = bits_of(index, size_class);
    const Handle* const begin = at;
    do {
      const std::uint64_t record = (*at - first) * inverse >> 32;
      bits[record / 64] |= std::uint64_t{1} << (record % 64);
    } while (++at != end && Region::span_of(*at) == index);
    SpanInfo& span = spans_[index];
    span.pooled = static_cast<std::uint16_t>(span.pooled + (at - begin));
    const bool is_full = span.pooled == capacity(size_class);
    if (span.in == In::leaving_list) {
      if (!is_full) continue;
      unlink(pool, index);
      give_back(index);
      continue;
    }
    if (is_full) ++pool.full_spans;
    if (span.in == In::no_list) link(pool, In::free_list, index);
  }
  // Purging looks at every span of the list, so it waits until half of them are full.
  if (pool.full_spans >= 4 && pool.full_spans >= pool.span_count - pool.full_spans) {
    purge(pool, size_class);
  }
}

void Arena::link(Pool& pool, In list, std::uint32_t index) noexcept {
  std::uint32_t& head = list == In::free_list ? pool.spans : pool.leaving;
  SpanInfo& span = spans_[index];
  SEMEL_ASSERT(index != 0 && span.in == In::no_list);
  span.in = list;
  span.before = 0;
  span.next = head;
  if (head != 0) spans_[head].before = index;
  head = index;
  if (list == In::free_list) ++pool.span_count;
}

void Arena::unlink(Pool& pool, std::uint32_t index) noexcept {
  SpanInfo& span = spans_[index];
  SEMEL_ASSERT(index != 0 && span.in != In::no_list);
  std::uint32_t& head = span.in == In::free_list ? pool.spans : pool.leaving;
  (span.before != 0 ? spans_[span.before].next : head) = span.next;
  if (span.next != 0) spans_[span.next].before = span.before;
  if (span.in == In::free_list) --pool.span_count;
  span.in = In::no_list;
}

void Arena::give_back(std::uint32_t index) noexcept {
  SpanInfo& span = spans_[index];
  SEMEL_ASSERT(span.in == In::no_list);
  span.size_class = 0;
  span.pooled = span.run = 0;
  span.bits = 0;
  span.leaving.store(0, std::memory_order_relaxed);  // mo: relaxed: no record of it is reachable
  region_.give(index, 1);
}

void Arena::purge(Pool& pool, unsigned size_class) {
  for (std::uint32_t index = pool.spans; index != 0;) {
    const std::uint32_t next = spans_[index].next;
    if (spans_[index].pooled == capacity(size_class)) {
      unlink(pool, index);
      give_back(index);
    }
    index = next;
  }
  pool.full_spans = 0;
}

std::size_t Arena::choose_leaving(unsigned sixteenths) {
  std::size_t chosen = 0;
  for (unsigned size_class = 1; size_class < class_count; ++size_class) {
    Pool& pool = pools_[size_class];
    const base::MutexLock lock{pool.mutex};
    if (pool.span_count != 0) chosen += choose_leaving(pool, size_class, sixteenths);
  }
  return chosen;
}

std::size_t Arena::choose_leaving(Pool& pool, unsigned size_class, unsigned sixteenths) {
  std::size_t chosen = pool.full_spans;
  purge(pool, size_class);
  const std::size_t records = capacity(size_class);
  const auto sixteenth_of = [&](const SpanInfo& span) {
    return static_cast<unsigned>((records - span.pooled) * 16 / records);
  };
  std::array<std::uint32_t, 16> counts{};
  std::size_t room = 0;
  for (std::uint32_t index = pool.spans; index != 0; index = spans_[index].next) {
    room += spans_[index].pooled;
    ++counts[sixteenth_of(spans_[index])];
  }
  std::size_t moving = 0;
  for (unsigned sixteenth = 0; sixteenth < sixteenths; ++sixteenth) {
    if (counts[sixteenth] == 0) continue;
    for (std::uint32_t index = pool.spans; index != 0;) {
      SpanInfo& span = spans_[index];
      const std::uint32_t next = span.next;
      const std::size_t lives = records - span.pooled;
      if (sixteenth_of(span) == sixteenth) {
        if (moving + lives + span.pooled > room) return chosen;
        moving += lives;
        room -= span.pooled;
        ++chosen;
        unlink(pool, index);
        link(pool, In::leaving_list, index);
        span.leaving.store(1, std::memory_order_relaxed);  // mo: relaxed: see the head of arena.hpp
      }
      index = next;
    }
  }
  return chosen;
}

Handle Arena::allocate_staying(std::size_t bytes) {
  Handle handle = 0;
  static_cast<void>(pull(class_of(bytes), &handle, 1, true));
  return handle;
}

void Arena::end_leaving() {
  for (unsigned size_class = 1; size_class < class_count; ++size_class) {
    Pool& pool = pools_[size_class];
    const base::MutexLock lock{pool.mutex};
    while (pool.leaving != 0) {
      const std::uint32_t index = pool.leaving;
      unlink(pool, index);
      // mo: relaxed: see the head of arena.hpp.
      spans_[index].leaving.store(0, std::memory_order_relaxed);
      if (spans_[index].pooled != 0) link(pool, In::free_list, index);
    }
  }
}

bool Arena::purge_all() {
  bool any = false;
  for (unsigned size_class = 1; size_class < all_classes; ++size_class) {
    Pool& pool = pools_[size_class];
    const base::MutexLock lock{pool.mutex};
    if (pool.full_spans == 0) continue;
    purge(pool, size_class);
    any = true;
  }
  return any;
}

constexpr std::array<std::uint16_t, Arena::all_classes> Arena::Cache::stack_max = [] {
  std::array<std::uint16_t, all_classes> most{};
  for (unsigned each = 1; each < all_classes; ++each) {
    if (each == class_count) continue;
    most[each] = static_cast<std::uint16_t>(
        std::clamp<std::size_t>(Region::span_bytes / class_bytes(each), 8, 1024));
  }
  return most;
}();

Arena::Cache::~Cache() {
  flush();
  for (unsigned size_class = 1; size_class < all_classes; ++size_class) {
    if (stacks_[size_class]) arena_.region_.release(stack_bytes(size_class));
  }
  arena_.region_.release(sizeof(Cache));
}

std::size_t Arena::Cache::stack_bytes(unsigned size_class) noexcept {
  return sizeof(Stack) + stack_max[size_class] * sizeof(Handle);
}

Arena::Cache::Stack* Arena::Cache::make_stack(unsigned size_class) noexcept {
  std::unique_ptr<Stack> made{new (std::nothrow) Stack};
  if (made != nullptr) made->items.reset(new (std::nothrow) Handle[stack_max[size_class]]);
  if (made == nullptr || made->items == nullptr) return nullptr;
  stacks_[size_class] = std::move(made);
  arena_.region_.charge(static_cast<std::ptrdiff_t>(stack_bytes(size_class)));
  return stacks_[size_class].get();
}

Handle Arena::Cache::allocate_node(std::size_t bytes, Region::Use use) {
  if (bytes > large_bytes) [[unlikely]]
    return allocate_large(bytes, use);
  return allocate_of(class_count + class_of(bytes), use);
}

Handle Arena::Cache::refill(unsigned size_class, Region::Use use) {
  // Without memory for a stack there is still the pool.
  Stack* const found = stack(size_class);
  Handle single = 0;
  if (found == nullptr) {
    return arena_.pull(size_class, &single, 1, true) != 0 ? single : larger(size_class, use);
  }
  Stack& own = *found;
  const std::size_t half = stack_max[size_class] / 2;
  own.count = arena_.pull(size_class, own.items.get(), half, false);
  if (own.count != 0) return own.items[--own.count];
  std::uint32_t span = arena_.take_span(size_class, use);
  if (span == 0) {
    // The limit: wait for the pool if need be, then try what other classes can give back.
    own.count = arena_.pull(size_class, own.items.get(), half, true);
    if (own.count != 0) return own.items[--own.count];
    // A free record in our hands may be all that keeps its span.
    flush();
    span = arena_.take_span(size_class, use);
    if (span == 0) return larger(size_class, use);
  }
  Fresh& fresh = fresh_[size_class];
  fresh.next = first_handle(span, size_class);
  fresh.left = capacity(size_class);
  return allocate_of(size_class, use);
}

Handle Arena::Cache::larger(unsigned size_class, Region::Use use) {
  const std::size_t bytes = class_bytes(size_class);
  const std::size_t most = use == Region::Use::record ? bytes + bytes / 4 : bytes * 4;
  const unsigned end = size_class < class_count ? class_count : all_classes;
  for (unsigned other = size_class + 1; other < end; ++other) {
    if (class_bytes(other) > most) break;
    Handle handle = 0;
    if (arena_.pull(other, &handle, 1, true) != 0) return handle;
  }
  return 0;
}

Handle Arena::Cache::allocate_large(std::size_t bytes, Region::Use use) {
  const auto count =
      static_cast<std::uint32_t>((bytes + Region::span_bytes - 1) / Region::span_bytes);
  auto first = arena_.region_.take(count, use);
  if (!first) {
    flush();
    first = arena_.region_.take(count, use);
  }
  if (!first) return 0;
  arena_.spans_[*first].run = static_cast<std::uint16_t>(count);
  return Region::handles_per_span * *first;
}

void Arena::Cache::free(Handle handle) noexcept {
  const std::uint32_t index = Region::span_of(handle);
  SpanInfo& span = arena_.spans_[index];
  if (span.run != 0) [[unlikely]] {
    const std::uint32_t count = span.run;
    span.run = 0;
    arena_.region_.give(index, count);
    return;
  }
  Stack* const found = stack(span.size_class);
  if (found == nullptr || arena_.is_leaving(handle)) [[unlikely]]
    return arena_.push(span.size_class, &handle, 1);
  Stack& own = *found;
  const std::size_t most = stack_max[span.size_class];
  if (own.count == most) {
    own.count = most / 2;
    arena_.push(span.size_class, own.items.get() + own.count, most - own.count);
  }
  own.items[own.count++] = handle;
}

std::size_t Arena::Cache::alike_in_front(std::span<const Handle> handles) const noexcept {
  std::uint32_t last = Region::span_of(handles.front());
  const unsigned size_class = arena_.spans_[last].size_class;
  // mo: relaxed: see the head of arena.hpp.
  const auto may_be_kept = [](const SpanInfo& span) {
    return span.run == 0 && span.leaving.load(std::memory_order_relaxed) == 0;
  };
  if (!may_be_kept(arena_.spans_[last])) return 0;
  std::size_t count = 1;
  for (; count < handles.size(); ++count) {
    const std::uint32_t index = Region::span_of(handles[count]);
    if (index == last) continue;
    const SpanInfo& span = arena_.spans_[index];
    if (span.size_class != size_class || !may_be_kept(span)) break;
    last = index;
  }
  return count;
}

void Arena::Cache::free(std::span<const Handle> handles) noexcept {
  while (!handles.empty()) {
    const std::size_t count = alike_in_front(handles);
    const unsigned size_class = arena_.spans_[Region::span_of(handles.front())].size_class;
    Stack* const own = count == 0 ? nullptr : stack(size_class);
    if (own == nullptr) {
      free(handles.front());
      handles = handles.subspan(1);
      continue;
    }
    const std::size_t kept = std::min(count, stack_max[size_class] - own->count);
    std::copy_n(handles.data(), kept, own->items.get() + own->count);
    own->count += kept;
    if (kept != count) arena_.push(size_class, handles.data() + kept, count - kept);
    handles = handles.subspan(count);
  }
}

void Arena::Cache::flush() noexcept {
  for (unsigned size_class = 1; size_class < all_classes; ++size_class) {
    Stack* const own = stacks_[size_class].get();
    if (own != nullptr && own->count != 0) {
      arena_.push(size_class, own->items.get(), own->count);
      own->count = 0;
    }
    // The rest of a fresh span counts as free records, or its span could never come back.
    Fresh& fresh = fresh_[size_class];
    while (fresh.left != 0) {
      std::array<Handle, 64> part;
      const std::size_t count = std::min<std::size_t>(fresh.left, part.size());
      for (std::size_t i = 0; i < count; ++i, fresh.next += class_bytes(size_class) / 8) {
        part[i] = fresh.next;
      }
      fresh.left -= static_cast<std::uint32_t>(count);
      arena_.push(size_class, part.data(), count);
    }
  }
}

}  // namespace semel::engine
