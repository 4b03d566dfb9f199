// Timers on their way from one operating thread to the wheel: an unbounded queue with one producer
// (the thread) and one consumer at a time (whoever holds the wheel).
//
//   [timers.filled]  release store by the producer pairs with the acquire load of the consumer.
//   [timers.next]    likewise, for the link to the next chunk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "semel/types.hpp"

namespace semel::engine {

/// A record (or what took its place) must be looked at when its time has come.
struct TimerEntry {
  std::uint64_t hash_bits;
  Timestamp wake;
};

class TimerQueue {
 public:
  TimerQueue() : write_(new Chunk), read_(write_) {}
  ~TimerQueue() {
    while (read_ != nullptr) {
      // mo: acquire [timers.next]
      Chunk* const next = read_->next.load(std::memory_order_acquire);
      delete read_;
      read_ = next;
    }
  }
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  /// Producer. True once per chunk: a good moment to empty the queue into the wheel.
  bool push(TimerEntry timer) {
    write_->items[write_count_] = timer;
    // mo: release [timers.filled]: the item is complete.
    write_->filled.store(++write_count_, std::memory_order_release);
    if (write_count_ < Chunk::capacity) return false;
    auto* const fresh = new Chunk;
    // mo: release [timers.next]
    write_->next.store(fresh, std::memory_order_release);
    write_ = fresh;
    write_count_ = 0;
    return true;
  }

  /// Consumer: calls `take(TimerEntry)` for everything pushed so far. Returns how many.
  template <class Take>
  std::size_t drain(Take&& take) {
    std::size_t taken = 0;
    for (;;) {
      // mo: acquire [timers.filled]
      const std::uint32_t filled = read_->filled.load(std::memory_order_acquire);
      for (; read_count_ < filled; ++read_count_, ++taken) take(read_->items[read_count_]);
      if (filled < Chunk::capacity) return taken;
      // mo: acquire [timers.next]
      Chunk* const next = read_->next.load(std::memory_order_acquire);
      if (next == nullptr) return taken;
      delete read_;
      read_ = next;
      read_count_ = 0;
    }
  }

 private:
  struct Chunk {
    // Emptying a chunk into the wheel is one operation's burden: 0.7 us for 62 timers, 10 for 1020,
    // which would be the p99.9 of every claim.
    static constexpr std::uint32_t capacity = 62;
    std::atomic<std::uint32_t> filled{0};
    std::atomic<Chunk*> next{nullptr};
    TimerEntry items[capacity];
  };
  Chunk* write_;                   // producer
  std::uint32_t write_count_ = 0;  // producer
  alignas(64) Chunk* read_;        // consumer
  std::uint32_t read_count_ = 0;   // consumer
};

}  // namespace semel::engine
