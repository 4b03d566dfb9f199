// What the connections of a node hold together: input that is not carried out, replies that are not
// read, messages that lie about, transactions, names. Counted where it is held, so that one figure
// bounds all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace semel::net {

class ClientMemory {
 public:
  /// A connection must be able to bring and to be sent one value of the largest size.
  static constexpr std::size_t limit_min = std::size_t{48} << 20;

  ClientMemory() = default;
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  void add(std::size_t bytes) noexcept {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);  // mo: relaxed: a sum, not an order
  }
  void remove(std::size_t bytes) noexcept {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);  // mo: relaxed: a sum, not an order
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
  /// From here on nobody reads more than a little at a time.
  [[nodiscard]] bool is_tight() const noexcept { return bytes() > limit() - limit() / 4; }
  /// What the reply to one request may hold.
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
