// The memory of one engine: one reserved address range, handed out in spans of 64 KiB.
//
// Everything an engine holds for records, table and wheel comes from here, so the limit is one
// number. Reserved address space costs nothing until it is touched; the range beyond the first
// 4 MiB is advised to use huge pages, because fresh 4 KiB pages cost as much as a cache miss per
// record. A run of spans that covers a whole huge page goes back to the system when it is free.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/slot.hpp"

namespace semel::engine {

class Region {
 public:
  static constexpr std::size_t span_bytes = 64 * 1024;
  static constexpr std::size_t handles_per_span = span_bytes / 8;
  static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

  enum class Use : std::uint8_t {
    /// Refused when only the reserve is left.
    record,
    /// Table segments and replacements: may use the reserve, so that growth never fails half-way
    /// and a live record can be completed.
    structure,
    /// The wheel: may use all, for the timer of a live record must not be lost.
    timer,
  };

  Region() = default;
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// False: the address space is not to be had.
  [[nodiscard]] bool reserve(std::size_t limit_bytes);

  /// First of `count` adjacent spans. Their content is undefined, unless `zeroed`.
  /// Progress: takes a short mutex.
  [[nodiscard]] std::optional<std::uint32_t> take(std::uint32_t count, Use use);
  /// Asked when a take would fail: gives spans back that hold nothing. True: try again. Set once,
  /// before other threads come.
  void when_full(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }
  void give(std::uint32_t first, std::uint32_t count) noexcept;

  [[nodiscard]] void* span(std::uint32_t index) const noexcept {
    return base_ + std::size_t{index} * span_bytes;
  }
  [[nodiscard]] void* at(Handle handle) const noexcept { return base_ + handle * 8; }
  [[nodiscard]] Handle handle_of(const void* address) const noexcept {
    return static_cast<Handle>(static_cast<const std::byte*>(address) - base_) / 8;
  }
  [[nodiscard]] static std::uint32_t span_of(Handle handle) noexcept {
    return static_cast<std::uint32_t>(handle / handles_per_span);
  }

  /// Touches the memory that will be taken next, a few megabytes ahead, so that nobody who needs it
  /// waits for the system: a fresh huge page takes 0.1 ms, and several where the system has to find
  /// one first. For a thread that has the time. Progress: blocks in the kernel, holds no lock.
  void touch_ahead() noexcept;

  /// Counts heap memory that belongs to the engine against the limit. Never fails: what is
  /// charged exists already.
  void charge(std::ptrdiff_t bytes) noexcept {
    // mo: relaxed: a limit that is a few operations late is still held by the reserve.
    charged_.fetch_add(bytes, std::memory_order_relaxed);
  }

  /// Charges what is about to be allocated, if the limit of a record leaves room for it.
  /// Progress: takes a short mutex.
  [[nodiscard]] bool try_charge(std::size_t bytes);

  [[nodiscard]] std::size_t charged_bytes() const noexcept {
    // mo: relaxed: a statistic.
    const auto charged = charged_.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(charged, 0));
  }
  [[nodiscard]] std::size_t used_bytes() const noexcept;
  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_bytes_; }
  /// Up to where used_bytes() may grow for this use.
  [[nodiscard]] std::size_t limit_bytes(Use use) const noexcept {
    if (use == Use::timer) return limit_bytes_;
    return limit_bytes_ - (use == Use::record ? reserve_bytes_ : timer_reserve_bytes_);
  }
  [[nodiscard]] std::size_t span_count() const noexcept { return span_count_; }

 private:
  [[nodiscard]] std::optional<std::uint32_t> try_take(std::uint32_t count, Use use);

  std::function<bool()> reclaim_;
  std::byte* base_ = nullptr;
  std::size_t span_count_ = 0;
  std::size_t limit_bytes_ = 0;
  std::size_t reserve_bytes_ = 0;        // not for records
  std::size_t timer_reserve_bytes_ = 0;  // not for structure either
  std::atomic<std::ptrdiff_t> charged_{0};
  std::atomic<std::size_t> used_spans_{0};
  std::mutex mutex_;
  std::uint32_t top_ = 1;                        // spans above were never used; 0 is no handle
  std::map<std::uint32_t, std::uint32_t> free_;  // first span -> count, coalesced
  std::size_t touched_ = 0;                      // bytes; touch_ahead()'s caller alone
};

}  // namespace semel::engine
