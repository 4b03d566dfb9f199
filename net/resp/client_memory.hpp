// The bytes that all connections of a node hold: input that is not executed yet, replies that are
// not read, queued messages, transactions and names. Each holder counts its own bytes here, so that
// one limit bounds the sum.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"

namespace semel::net {

class ClientMemory {
 public:
  /// Enough for one connection to send and to receive one value of the largest size.
  static constexpr std::size_t limit_min = std::size_t{48} << 20;

  ClientMemory() = default;
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  void add(std::size_t bytes) noexcept {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);  // mo: relaxed: a sum, not an order
  }
  void remove(std::size_t bytes) noexcept {
    // mo: relaxed: a sum, not an order
    [[maybe_unused]] const std::size_t before = bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    SEMEL_ASSERT(before >= bytes);  // else the sum wraps, and every client looks too large
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);  // mo: relaxed: a sum, not an order
  }
  void set_limit(std::size_t bytes) noexcept {
    limit_.store(bytes, std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] std::size_t limit() const noexcept {
    return limit_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] bool is_over() const noexcept { return bytes() > limit(); }
  /// Above three quarters of the limit: connections read only small pieces from now on.
  [[nodiscard]] bool is_tight() const noexcept { return bytes() > limit() - limit() / 4; }
  /// The most bytes that the reply to one request may hold.
  [[nodiscard]] std::size_t reply_bytes_max() const noexcept { return limit() / 2; }

  void evicted() noexcept {
    evictions_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t evictions() const noexcept {
    return evictions_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> limit_{limit_min};
  std::atomic<std::uint64_t> evictions_{0};
};

}  // namespace semel::net
