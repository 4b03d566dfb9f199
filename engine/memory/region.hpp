// The memory of one engine: one reserved address range, handed out in spans of 64 KiB.
//
// Everything an engine holds for records, table and wheel comes from here, so the limit is one
// number. Reserved address space costs nothing until it is touched; the range beyond the first
// 4 MiB is advised to use huge pages, because fresh 4 KiB pages cost as much as a cache miss per
// record. A whole huge page goes back to the system when it is free. Free spans beside used ones
// are kept for reuse, but only up to a fraction of the used ones: resident memory stays near used
// memory. trim() gives them back when they are no longer needed.
//
// Free spans are kept in bits, made with the region: giving back takes no memory and cannot fail.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "engine/table/slot.hpp"

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

  /// `room_bytes`: up to where set_limit() can raise the limit later. False: the address space
  /// cannot be reserved.
  [[nodiscard]] bool reserve(std::size_t limit_bytes, std::size_t room_bytes = 0);
  /// Changes the limit. If it is below the used memory, records are refused at once, while table
  /// and timers of live records may use as much as was used before; that ceiling falls with the
  /// used memory. False: it is more than the room. Thread-safe.
  [[nodiscard]] bool set_limit(std::size_t limit_bytes) noexcept;

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

  /// Touches the memory that will be taken next, a few megabytes ahead, so that no operation waits
  /// for the system: a fresh huge page takes 0.1 ms, and several where the system has to find
  /// one first. For a thread that has the time. Progress: blocks in the kernel, holds no lock.
  void touch_ahead() noexcept;

  /// Gives free memory back to the system, some runs of spans at a time. False: there is more.
  /// Progress: takes the mutex, and blocks in the kernel for some microseconds each.
  bool trim(std::size_t runs_max = 64) noexcept;
  /// The same where nothing was taken for a while, for a thread that comes by now and then.
  void trim_idle() noexcept;

  /// Counts heap memory that is to belong to the engine against the limit, before it is allocated.
  /// False: the limit for this use is reached, and nothing is counted. Thread-safe; wait-free.
  [[nodiscard]] bool try_charge(std::size_t bytes, Use use = Use::record) noexcept {
    charge(static_cast<std::ptrdiff_t>(bytes));
    if (used_bytes() <= limit_bytes(use)) return true;
    release(bytes);
    return false;
  }
  /// The other half of try_charge() and charge().
  void release(std::size_t bytes) noexcept { charge(-static_cast<std::ptrdiff_t>(bytes)); }
  /// Counts heap memory that belongs to the engine against the limit. Never fails: the memory is
  /// allocated already.
  void charge(std::ptrdiff_t bytes) noexcept {
    // mo: relaxed: a limit that is a few operations late is still held by the reserve.
    charged_.fetch_add(bytes, std::memory_order_relaxed);
  }

  [[nodiscard]] std::size_t charged_bytes() const noexcept {
    // mo: relaxed: a statistic.
    const auto charged = charged_.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(charged, 0));
  }
  [[nodiscard]] std::size_t used_bytes() const noexcept;
  [[nodiscard]] std::size_t limit_bytes() const noexcept {
    return limit_bytes_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  /// Up to where used_bytes() may grow for this use.
  [[nodiscard]] std::size_t limit_bytes(Use use) const noexcept {
    const std::size_t limit = limit_bytes();
    if (use == Use::record) return limit - record_reserve(limit);
    const std::size_t most = ceiling_bytes();
    return use == Use::timer ? most : most - timer_reserve(limit);
  }
  /// The limit was lowered below the used memory, and too much is used still: no new records.
  [[nodiscard]] bool is_over() const noexcept {
    return ceiling_bytes_.load(std::memory_order_relaxed) != 0;  // mo: relaxed: a setting
  }
  /// The most that may be used: the limit, or more after it was lowered below the used memory.
  [[nodiscard]] std::size_t ceiling_bytes() const noexcept {
    // mo: relaxed: a setting
    return std::max(limit_bytes(), ceiling_bytes_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] std::size_t span_count() const noexcept { return span_count_; }

 private:
  static constexpr std::uint32_t spans_per_page = huge_page_bytes / span_bytes;
  static_assert(spans_per_page == 32, "half a word of bits");
  /// Spans that may be free and resident regardless of use: 8 MiB.
  static constexpr std::size_t dirty_min = 128;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  using Bits = std::unique_ptr<std::uint64_t[], Free>;

  /// Of the limit, not for structure.
  [[nodiscard]] static std::size_t timer_reserve(std::size_t limit_bytes) noexcept {
    return std::max(limit_bytes / 128, std::size_t{4} * span_bytes);
  }
  /// Of the limit, not for records.
  [[nodiscard]] static std::size_t record_reserve(std::size_t limit_bytes) noexcept {
    return timer_reserve(limit_bytes) + std::max(limit_bytes / 64, std::size_t{8} * span_bytes);
  }
  void lower_ceiling() noexcept SEMEL_REQUIRES(mutex_);

  [[nodiscard]] std::optional<std::uint32_t> try_take(std::uint32_t count, Use use);
  [[nodiscard]] std::uint32_t find_run(std::uint32_t count) noexcept SEMEL_REQUIRES(mutex_);
  void mark_taken(std::uint32_t first, std::uint32_t count) noexcept SEMEL_REQUIRES(mutex_);
  [[nodiscard]] std::uint32_t page_bits(const Bits& bits, std::uint32_t page) const noexcept {
    return static_cast<std::uint32_t>(bits[page / 2] >> (page % 2 * spans_per_page));
  }
  void give_page_back(std::uint32_t page) noexcept SEMEL_REQUIRES(mutex_);
  [[nodiscard]] std::size_t trim_runs(std::size_t runs_max) noexcept SEMEL_REQUIRES(mutex_);

  std::function<bool()> reclaim_;
  std::byte* base_ = nullptr;
  std::size_t span_count_ = 0;
  std::size_t room_bytes_ = 0;
  std::atomic<std::size_t> limit_bytes_{0};
  std::atomic<std::size_t> ceiling_bytes_{0};  // 0: the limit
  std::atomic<std::ptrdiff_t> charged_{0};
  std::atomic<std::size_t> used_spans_{0};
  base::Mutex mutex_;
  std::uint32_t top_ SEMEL_GUARDED_BY(mutex_) = 1;  // spans above were never used; no handle is 0
  Bits free_ SEMEL_GUARDED_BY(mutex_);              // a bit for each span below top_
  Bits dirty_ SEMEL_GUARDED_BY(mutex_);             // of the free ones: may be resident
  std::size_t dirty_spans_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint32_t free_from_ SEMEL_GUARDED_BY(mutex_) = 0;  // nothing below is free
  std::uint64_t takes_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t takes_seen_ SEMEL_GUARDED_BY(mutex_) = 0;  // by trim_idle()
  unsigned idle_ SEMEL_GUARDED_BY(mutex_) = 0;  // calls of trim_idle() since the last take
  std::size_t touched_ = 0;                     // bytes; touch_ahead()'s caller alone
};

}  // namespace semel::engine
