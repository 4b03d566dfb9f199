#include "engine/arena.hpp"

#include <algorithm>

namespace semel::engine {

Arena::Arena(Region& region)
    : region_(region), spans_(std::make_unique<SpanInfo[]>(region.span_count())) {}

std::size_t Arena::pull(unsigned size_class, Handle* to, std::size_t count, bool may_wait) {
  Pool& pool = pools_[size_class];
  std::unique_lock lock{pool.mutex, std::defer_lock};
  // A thread that lost the processor inside must not stop the others while there is fresh memory.
  if (may_wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return 0;
  }
  const std::size_t taken = std::min(count, pool.free.size());
  for (std::size_t i = 0; i < taken; ++i) {
    to[i] = pool.free.back();
    pool.free.pop_back();
    SpanInfo& span = spans_[Region::span_of(to[i])];
    if (span.pooled-- == capacity(size_class)) --pool.full_spans;
  }
  if (taken != 0) region_.charge(-static_cast<std::ptrdiff_t>(taken * sizeof(Handle)));
  return taken;
}

void Arena::push(unsigned size_class, const Handle* from, std::size_t count) {
  Pool& pool = pools_[size_class];
  const std::lock_guard lock{pool.mutex};
  for (std::size_t i = 0; i < count; ++i) {
    SpanInfo& span = spans_[Region::span_of(from[i])];
    if (++span.pooled == capacity(size_class)) ++pool.full_spans;
    pool.free.push_back(from[i]);
  }
  region_.charge(static_cast<std::ptrdiff_t>(count * sizeof(Handle)));
  // Purging looks at every free handle, so it waits until half of them belong to full spans:
  // then each look gives at least half a record back.
  const std::size_t reclaimable = std::size_t{pool.full_spans} * capacity(size_class);
  if (pool.full_spans >= 4 && reclaimable * 2 >= pool.free.size()) purge(pool, size_class);
}

void Arena::purge(Pool& pool, unsigned size_class) {
  const std::uint16_t full = capacity(size_class);
  const std::size_t before = pool.free.size();
  std::vector<std::uint32_t> emptied;
  const auto kept = std::remove_if(pool.free.begin(), pool.free.end(), [&](Handle handle) {
    const std::uint32_t span = Region::span_of(handle);
    if (spans_[span].pooled != full) return false;
    // The first record of a span stands for the span.
    if (handle == Region::handles_per_span * span) emptied.push_back(span);
    return true;
  });
  pool.free.erase(kept, pool.free.end());
  pool.free.shrink_to_fit();
  pool.full_spans = 0;
  for (const std::uint32_t span : emptied) {
    spans_[span] = {};
    region_.give(span, 1);
  }
  region_.charge(-static_cast<std::ptrdiff_t>((before - pool.free.size()) * sizeof(Handle)));
}

bool Arena::purge_all() {
  bool any = false;
  for (unsigned size_class = 1; size_class < class_count; ++size_class) {
    Pool& pool = pools_[size_class];
    const std::lock_guard lock{pool.mutex};
    if (pool.full_spans == 0) continue;
    purge(pool, size_class);
    any = true;
  }
  return any;
}

Arena::Cache::~Cache() {
  flush();
}

Arena::Cache::Stack& Arena::Cache::stack(unsigned size_class) {
  std::unique_ptr<Stack>& stack = stacks_[size_class];
  if (!stack) stack = std::make_unique<Stack>();
  return *stack;
}

Handle Arena::Cache::allocate(std::size_t bytes, Region::Use use) {
  if (bytes > large_bytes) [[unlikely]]
    return allocate_large(bytes, use);
  const unsigned size_class = class_of(bytes);
  Stack* const stack = stacks_[size_class].get();
  if (stack != nullptr && stack->count != 0) return stack->items[--stack->count];
  Fresh& fresh = fresh_[size_class];
  if (fresh.left == 0) return refill(size_class, use);
  const Handle handle = fresh.next;
  fresh.next += class_bytes(size_class) / 8;
  --fresh.left;
  return handle;
}

Handle Arena::Cache::refill(unsigned size_class, Region::Use use) {
  Stack& own = stack(size_class);
  own.count = arena_.pull(size_class, own.items.data(), stack_max / 2, false);
  if (own.count != 0) return own.items[--own.count];
  auto span = arena_.region_.take(1, use);
  if (!span) {
    // The limit: wait for the pool if need be, then try what other classes can give back.
    own.count = arena_.pull(size_class, own.items.data(), stack_max / 2, true);
    if (own.count != 0) return own.items[--own.count];
    if (!arena_.purge_all()) return 0;
    span = arena_.region_.take(1, use);
    if (!span) return 0;
  }
  arena_.spans_[*span].size_class = static_cast<std::uint8_t>(size_class);
  Fresh& fresh = fresh_[size_class];
  fresh.next = Region::handles_per_span * *span;
  fresh.left = capacity(size_class);
  return allocate(class_bytes(size_class), use);
}

Handle Arena::Cache::allocate_large(std::size_t bytes, Region::Use use) {
  const auto count =
      static_cast<std::uint32_t>((bytes + Region::span_bytes - 1) / Region::span_bytes);
  auto first = arena_.region_.take(count, use);
  if (!first && arena_.purge_all()) first = arena_.region_.take(count, use);
  if (!first) return 0;
  arena_.spans_[*first].run = count;
  return Region::handles_per_span * *first;
}

void Arena::Cache::free(Handle handle) noexcept {
  const std::uint32_t index = Region::span_of(handle);
  SpanInfo& span = arena_.spans_[index];
  if (span.run != 0) [[unlikely]] {
    const std::uint32_t count = span.run;
    span = {};
    arena_.region_.give(index, count);
    return;
  }
  Stack& own = stack(span.size_class);
  if (own.count == stack_max) {
    own.count = stack_max / 2;
    arena_.push(span.size_class, own.items.data() + own.count, stack_max / 2);
  }
  own.items[own.count++] = handle;
}

void Arena::Cache::flush() noexcept {
  for (unsigned size_class = 1; size_class < class_count; ++size_class) {
    Stack* const own = stacks_[size_class].get();
    if (own != nullptr && own->count != 0) {
      arena_.push(size_class, own->items.data(), own->count);
      own->count = 0;
    }
    // The rest of a fresh span counts as free records, or its span could never come back.
    Fresh& fresh = fresh_[size_class];
    for (; fresh.left != 0; --fresh.left) {
      arena_.push(size_class, &fresh.next, 1);
      fresh.next += class_bytes(size_class) / 8;
    }
  }
}

}  // namespace semel::engine
