// Memory for records: size classes of 8-byte steps, so that a 56-byte record costs 56 bytes.
//
// A Cache belongs to one thread and serves nearly every call without touching shared memory: it
// keeps a short stack of free handles per class and a piece of a fresh span. Caches trade stacks
// with the shared pool in halves, under a short mutex. The pool keeps a bit for each free record,
// at the beginning of the record's span: freeing takes no memory, so the limit holds however many
// records are free, and giving one back does not touch its cache line.
//
// A span whose records are all in the pool goes back to the region, so that memory of one class can
// serve another. Where records ended here and there, spans are chosen to leave: their free records
// are not handed out any more, and the compactor, which can find the slot of a live record, moves
// those (compactor.hpp). Records larger than large_bytes take spans of their own.
//
// Nodes of large objects come from classes of their own, of the same sizes: nothing leads from a
// node to its object, so the compactor could not move it, and it would hold records' spans.
//
// Concurrency
//   leaving       of a span: written under its pool's mutex; after a stale read one record less is
//                 moved, or one is freed the long way: relaxed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/mutex.hpp"
#include "engine/memory/region.hpp"
#include "engine/table/slot.hpp"

namespace semel::engine {

class Arena {
 public:
  static constexpr unsigned class_count = 61;
  /// Those of nodes follow.
  static constexpr unsigned all_classes = class_count * 2;
  static constexpr std::size_t large_bytes = 32 * 1024;

  class Cache;

  explicit Arena(Region& region);
  [[nodiscard]] Region& region() const noexcept { return region_; }
  /// False: there was no address space for the table of spans.
  [[nodiscard]] bool is_ready() const noexcept { return spans_ != nullptr; }

  /// The class that serves `bytes` (1..large_bytes).
  [[nodiscard]] static constexpr unsigned class_of(std::size_t bytes) noexcept;
  [[nodiscard]] static constexpr std::size_t class_bytes(unsigned size_class) noexcept;
  /// What a record of `bytes` takes from the limit.
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept;

  // --- for the compactor, one thread at a time ----------------------------------------------
  /// Chooses spans to leave, the emptiest first, as long as what lives in them finds room among the
  /// free records of those that stay, and less than `sixteenths` of a span lives. Those that are
  /// empty go at once. Returns how many were chosen or went.
  std::size_t choose_leaving(unsigned sixteenths);
  /// Whether this record lies in a span that is to be left.
  [[nodiscard]] bool is_leaving(Handle handle) const noexcept {
    // mo: relaxed: see the head of the file.
    return spans_[Region::span_of(handle)].leaving.load(std::memory_order_relaxed) != 0;
  }
  /// A free record of a span that stays; 0: there is none. Never takes a fresh span.
  [[nodiscard]] Handle allocate_staying(std::size_t bytes);
  /// Spans that still hold records are used again.
  void end_leaving();
  /// Gives spans that hold nothing back to the region. True: there were some.
  bool purge_all();

  /// What a record or node takes from the limit.
  [[nodiscard]] std::size_t bytes_at(Handle handle) const noexcept {
    const SpanInfo& span = spans_[Region::span_of(handle)];
    return span.run != 0 ? span.run * Region::span_bytes : class_bytes(span.size_class);
  }

 private:
  friend class Cache;

  enum class In : std::uint8_t { no_list, free_list, leaving_list };
  /// Per span of 64 KiB: what it serves and how much of it is in the pool. All zero: nothing.
  struct SpanInfo {
    std::uint8_t size_class;
    In in;                 // this and the next are under the pool's mutex
    std::uint16_t pooled;  // records in the pool
    std::uint16_t run;     // spans of a large record
    std::atomic<std::uint8_t> leaving;
    std::uint32_t next;  // in its list; 0: none
    std::uint32_t before;
    std::uint64_t bits;  // of the pooled records, where 64 are enough
  };
  static_assert(sizeof(SpanInfo) == 24);
  struct Pool {
    base::Mutex mutex;
    // Lists of spans: those with records in the pool, and those that are to be left.
    std::uint32_t spans SEMEL_GUARDED_BY(mutex) = 0;
    std::uint32_t leaving SEMEL_GUARDED_BY(mutex) = 0;
    // In the first list, and of them those with all of their records in the pool.
    std::uint32_t span_count SEMEL_GUARDED_BY(mutex) = 0;
    std::uint32_t full_spans SEMEL_GUARDED_BY(mutex) = 0;
  };
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  /// Words of a span's bits; 0: they are in its SpanInfo.
  [[nodiscard]] static constexpr std::size_t bit_words(unsigned size_class) noexcept {
    const std::size_t records = Region::span_bytes / class_bytes(size_class);
    return records <= 64 ? 0 : (records + 63) / 64;
  }
  [[nodiscard]] static constexpr std::uint16_t capacity(unsigned size_class) noexcept {
    return static_cast<std::uint16_t>((Region::span_bytes - bit_words(size_class) * 8) /
                                      class_bytes(size_class));
  }
  [[nodiscard]] static constexpr Handle first_handle(std::uint32_t span,
                                                     unsigned size_class) noexcept {
    return Region::handles_per_span * span + bit_words(size_class);
  }
  [[nodiscard]] std::uint64_t* bits_of(std::uint32_t span, unsigned size_class) const noexcept {
    return bit_words(size_class) == 0 ? &spans_[span].bits
                                      : static_cast<std::uint64_t*>(region_.span(span));
  }
  /// Takes a span for records of a class; 0: there is none.
  [[nodiscard]] std::uint32_t take_span(unsigned size_class, Region::Use use);
  /// Moves up to `count` handles out of the pool.
  std::size_t pull(unsigned size_class, Handle* to, std::size_t count, bool may_wait);
  void push(unsigned size_class, const Handle* from, std::size_t count);
  void push_part(unsigned size_class, std::span<const Handle> handles);
  void purge(Pool& pool, unsigned size_class) SEMEL_REQUIRES(pool.mutex);
  void link(Pool& pool, In list, std::uint32_t index) noexcept SEMEL_REQUIRES(pool.mutex);
  void unlink(Pool& pool, std::uint32_t index) noexcept SEMEL_REQUIRES(pool.mutex);
  void give_back(std::uint32_t index) noexcept;
  std::size_t choose_leaving(Pool& pool, unsigned size_class, unsigned sixteenths)
      SEMEL_REQUIRES(pool.mutex);

  Region& region_;
  std::unique_ptr<SpanInfo[], Free> spans_;
  std::array<Pool, all_classes> pools_;
};

/// One thread's share. Not thread-safe; may be handed from thread to thread.
class Arena::Cache {
 public:
  explicit Cache(Arena& arena) noexcept : arena_(arena) { arena_.region_.charge(sizeof(Cache)); }
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// 0: the memory limit is reached. A replacement may use the region's reserve.
  [[nodiscard]] Handle allocate(std::size_t bytes, Region::Use use);
  /// The same for a node.
  [[nodiscard]] Handle allocate_node(std::size_t bytes, Region::Use use);
  void free(Handle handle) noexcept;
  void free(std::span<const Handle> handles) noexcept;
  /// Gives all free handles to the pool.
  void flush() noexcept;

 private:
  /// Free records a thread keeps to itself: about a span of each class. What the epochs give back
  /// at one time (threads.hpp) finds room, or every record would go through the pool.
  static const std::array<std::uint16_t, all_classes> stack_max;
  struct Stack {
    std::size_t count = 0;
    std::unique_ptr<Handle[]> items;
  };
  struct Fresh {  // the part of a span that was never handed out
    Handle next = 0;
    std::uint32_t left = 0;
  };

  [[nodiscard]] Handle allocate_of(unsigned size_class, Region::Use use);
  // Out of line: allocate() is a few instructions, and saves no registers for them.
  [[nodiscard, gnu::noinline]] Handle refill(unsigned size_class, Region::Use use);
  /// A free record of a larger class, when nothing else is left: records freed one here and one
  /// there never make a whole span. For the replacement of a live record more waste is right.
  [[nodiscard]] Handle larger(unsigned size_class, Region::Use use);
  [[nodiscard, gnu::noinline]] Handle allocate_large(std::size_t bytes, Region::Use use);
  /// How many in front are of one class and may be kept by this thread; 0: the first may not.
  [[nodiscard]] std::size_t alike_in_front(std::span<const Handle> handles) const noexcept;
  /// Null: no memory for one.
  [[nodiscard]] Stack* stack(unsigned size_class) noexcept {
    Stack* const found = stacks_[size_class].get();
    return found != nullptr ? found : make_stack(size_class);
  }
  [[nodiscard, gnu::noinline]] Stack* make_stack(unsigned size_class) noexcept;
  [[nodiscard]] static std::size_t stack_bytes(unsigned size_class) noexcept;

  Arena& arena_;
  std::array<std::unique_ptr<Stack>, all_classes> stacks_;
  std::array<Fresh, all_classes> fresh_;
};

constexpr unsigned Arena::class_of(std::size_t bytes) noexcept {
  if (bytes <= 256) return static_cast<unsigned>((bytes + 7) / 8);  // 1..32
  // Four classes for each doubling: 320, 384, 448, 512, 640, ..
  const unsigned power = 63U - static_cast<unsigned>(__builtin_clzll(bytes - 1));
  const auto quarter = static_cast<unsigned>((bytes - 1) >> (power - 2)) & 3U;
  return 33 + (power - 8) * 4 + quarter;
}

constexpr std::size_t Arena::class_bytes(unsigned size_class) noexcept {
  if (size_class >= class_count) size_class -= class_count;
  if (size_class <= 32) return std::size_t{size_class} * 8;
  const unsigned power = (size_class - 33) / 4 + 8;
  const unsigned quarter = (size_class - 33) % 4;
  return (std::size_t{5} + quarter) << (power - 2);
}

constexpr std::size_t Arena::rounded(std::size_t bytes) noexcept {
  if (bytes <= 256) return (bytes + 7) / 8 * 8;
  if (bytes <= large_bytes) return class_bytes(class_of(bytes));
  return (bytes + Region::span_bytes - 1) / Region::span_bytes * Region::span_bytes;
}

inline Handle Arena::Cache::allocate(std::size_t bytes, Region::Use use) {
  if (bytes > large_bytes) [[unlikely]]
    return allocate_large(bytes, use);
  return allocate_of(class_of(bytes), use);
}

inline Handle Arena::Cache::allocate_of(unsigned size_class, Region::Use use) {
  Stack* const stack = stacks_[size_class].get();
  if (stack != nullptr && stack->count != 0) [[likely]]
    return stack->items[--stack->count];
  Fresh& fresh = fresh_[size_class];
  if (fresh.left == 0) return refill(size_class, use);
  const Handle handle = fresh.next;
  fresh.next += class_bytes(size_class) / 8;
  --fresh.left;
  return handle;
}

static_assert(Arena::class_of(256) == 32 && Arena::class_bytes(32) == 256);
static_assert(Arena::class_of(257) == 33 && Arena::class_bytes(33) == 320);
static_assert(Arena::class_of(320) == 33 && Arena::class_of(321) == 34);
static_assert(Arena::class_of(512) == 36 && Arena::class_bytes(36) == 512);
static_assert(Arena::class_of(Arena::large_bytes) == Arena::class_count - 1);
static_assert(Arena::class_bytes(Arena::class_count - 1) == Arena::large_bytes);

}  // namespace semel::engine
