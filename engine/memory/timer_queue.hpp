// Timers on their way from one operating thread to the wheel: an unbounded queue with one producer
// (the thread) and one consumer at a time (the holder of the wheel's mutex).
//
//   [timers.filled]  release store by the producer pairs with the acquire load of the consumer.
//   [timers.next]    likewise, for the link to the next chunk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "engine/memory/region.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// A record (or what took its place) must be looked at when its time has come.
struct TimerEntry {
  std::uint64_t hash_bits;
  Timestamp wake;
};

class TimerQueue {
 public:
  explicit TimerQueue(Region& region) : region_(region), write_(new Chunk), read_(write_) {
    region_.charge(sizeof(Chunk));
  }
  ~TimerQueue() {
    while (read_ != nullptr) {
      // mo: acquire [timers.next]
      Chunk* const next = read_->next.load(std::memory_order_acquire);
      drop(read_);
      read_ = next;
    }
    if (spare_ != nullptr) drop(spare_);
  }
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  /// Producer: whether what it is about to do may need a timer. False: there is no memory for more
  /// chunks. Producers that cannot refuse can push a few timers all the same.
  [[nodiscard]] bool is_ready() noexcept {
    if (spare_ == nullptr) [[unlikely]]
      spare_ = make();
    return spare_ != nullptr;
  }

  /// Producer. True once per chunk: a good moment to empty the queue into the wheel. Without memory
  /// a timer is dropped at last, which has_dropped() reports.
  bool push(TimerEntry timer) noexcept {
    if (write_count_ == Chunk::capacity && !begin_chunk()) [[unlikely]] {
      // mo: relaxed: only that it was is asked.
      dropped_.store(true, std::memory_order_relaxed);
      return true;
    }
    SEMEL_ASSERT_SLOW(write_count_ < Chunk::capacity);
    write_->items[write_count_] = timer;
    // mo: release [timers.filled]: the item is complete.
    write_->filled.store(++write_count_, std::memory_order_release);
    if (write_count_ < Chunk::capacity) return false;
    static_cast<void>(begin_chunk());  // the next push tries again
    return true;
  }

  /// Consumer: whether timers were dropped since this was asked.
  [[nodiscard]] bool has_dropped() noexcept {
    // mo: relaxed: a load first, as it is nearly never so.
    return dropped_.load(std::memory_order_relaxed) &&
           dropped_.exchange(false, std::memory_order_relaxed);  // mo: relaxed: as above
  }

  /// Consumer: calls `take(TimerEntry) -> bool` for each timer pushed so far, until it is false;
  /// that one stays. Returns how many were taken.
  template <class Take>
  std::size_t drain(Take&& take) {
    std::size_t taken = 0;
    for (;;) {
      // mo: acquire [timers.filled]
      const std::uint32_t filled = read_->filled.load(std::memory_order_acquire);
      SEMEL_ASSERT(read_count_ <= filled && filled <= Chunk::capacity);
      for (; read_count_ < filled; ++read_count_, ++taken) {
        if (!take(read_->items[read_count_])) return taken;
      }
      if (filled < Chunk::capacity) return taken;
      // mo: acquire [timers.next]
      Chunk* const next = read_->next.load(std::memory_order_acquire);
      if (next == nullptr) return taken;
      drop(read_);
      read_ = next;
      read_count_ = 0;
    }
  }

 private:
  struct Chunk {
    // One operation empties a whole chunk into the wheel: 0.7 us for 62 timers. 1020 would take
    // 10 us, and become the p99.9 of a claim.
    static constexpr std::uint32_t capacity = 62;
    std::atomic<std::uint32_t> filled{0};
    std::atomic<Chunk*> next{nullptr};
    TimerEntry items[capacity];
  };

  [[nodiscard]] Chunk* make() noexcept {
    auto* const made = new (std::nothrow) Chunk;
    if (made != nullptr) region_.charge(sizeof(Chunk));
    return made;
  }
  void drop(Chunk* chunk) noexcept {
    delete chunk;
    region_.release(sizeof(Chunk));
  }
  /// Producer, of a full chunk: goes on in the next. False: there is no memory for one.
  [[nodiscard]] bool begin_chunk() noexcept {
    Chunk* fresh = make();
    if (fresh == nullptr) fresh = std::exchange(spare_, nullptr);
    if (fresh == nullptr) return false;
    // mo: release [timers.next]
    write_->next.store(fresh, std::memory_order_release);
    write_ = fresh;
    write_count_ = 0;
    return true;
  }

  Region& region_;
  Chunk* write_;                   // producer
  Chunk* spare_ = nullptr;         // producer
  std::uint32_t write_count_ = 0;  // producer
  std::atomic<bool> dropped_{false};
  alignas(64) Chunk* read_;       // consumer
  std::uint32_t read_count_ = 0;  // consumer
};

}  // namespace semel::engine
