// Whether anything waits, and whether for a key: read without a lock.
//
// Concurrency
//   [wait_queue.waiting]  a waiter marks itself (seq_cst), then reads the record; an owner changes
//                         the record (the table's seq_cst compare-and-set), then reads the mark
//                         (seq_cst). One of the two sees the other. If both missed, the waiter
//                         would sleep until the lease it saw is over.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/assert.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// The key of a line.
struct LineName {
  std::uint8_t db;
  Bytes key;
  friend bool operator==(const LineName&, const LineName&) = default;
};
struct HashLineName {
  std::size_t operator()(const LineName& name) const noexcept {
    return std::hash<Bytes>{}(name.key) ^ (std::size_t{name.db} * 0x9E37'79B9U);
  }
};

/// Changed under the queue's mutex.
class WaitMarks {
 public:
  void add_waiter() noexcept {
    waiting_.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst [wait_queue.waiting]
  }
  void remove_waiter() noexcept {
    // mo: relaxed: an owner that still sees the old count looks up a line in vain.
    const std::size_t before = waiting_.fetch_sub(1, std::memory_order_relaxed);
    SEMEL_ASSERT(before != 0);
  }
  void add_place(const LineName& name) noexcept {
    mark_of(name).fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst [wait_queue.waiting]
  }
  void remove_place(const LineName& name) noexcept {
    // mo: relaxed: as in remove_waiter()
    const std::uint32_t before = mark_of(name).fetch_sub(1, std::memory_order_relaxed);
    SEMEL_ASSERT(before != 0);
  }

  /// To be asked after a change was made visible, as the next.
  [[nodiscard]] bool any() const noexcept {
    return waiting_.load(std::memory_order_seq_cst) != 0;  // mo: seq_cst [wait_queue.waiting]
  }
  /// True may be wrong: keys share marks.
  [[nodiscard]] bool may_have(const LineName& name) const noexcept {
    const std::size_t at = HashLineName{}(name) % marks_.size();
    return marks_[at].load(std::memory_order_seq_cst) != 0;  // mo: seq_cst [wait_queue.waiting]
  }
  [[nodiscard]] std::size_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  [[nodiscard]] std::atomic<std::uint32_t>& mark_of(const LineName& name) noexcept {
    return marks_[HashLineName{}(name) % marks_.size()];
  }

  std::atomic<std::size_t> waiting_{0};
  std::array<std::atomic<std::uint32_t>, 256> marks_{};
};

}  // namespace semel::engine
