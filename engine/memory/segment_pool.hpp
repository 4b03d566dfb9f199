// Memory for the segments of one shard's table: all of one size, carved from runs of spans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/mutex.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/threads.hpp"

namespace semel::engine {

/// The Source of a Table (table.hpp). Progress: takes a short mutex, once per growth step.
class SegmentPool {
 public:
  SegmentPool(Region& region, Threads& threads, std::size_t segment_bytes) noexcept
      : region_(region), threads_(threads), bytes_(segment_bytes) {}
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  ~SegmentPool() { region_.release(room_ * sizeof(Run)); }

  void* allocate_segment(std::size_t bytes) {
    void* memory = nullptr;
    {
      const base::MutexLock lock{mutex_};
      Run* run = with_free();
      if (run == nullptr && add_run()) run = with_free();
      if (run == nullptr) return nullptr;
      memory = run->free;
      std::memcpy(&run->free, memory, sizeof run->free);
      --run->free_count;
    }
    std::memset(memory, 0, bytes);
    return memory;
  }
  void release_segment(void* segment) noexcept {
    const base::MutexLock lock{mutex_};
    for (std::uint32_t i = 0; i < run_count_; ++i) {
      if (!is_of(runs_[i], segment)) continue;
      push(runs_[i], segment);
      return;
    }
  }
  /// Gives runs back that hold no segment, but for what the next growth step takes.
  void trim() noexcept {
    const base::MutexLock lock{mutex_};
    std::size_t free = 0;
    for (std::uint32_t i = 0; i < run_count_; ++i) free += runs_[i].free_count;
    for (std::uint32_t i = run_count_; i-- > 0;) {
      const std::size_t all = segments_of(runs_[i]);
      if (runs_[i].free_count != all || free < all + 2) continue;
      free -= all;
      spans_ -= runs_[i].spans;
      region_.give(runs_[i].first, runs_[i].spans);
      runs_[i] = runs_[--run_count_];
    }
  }
  void retire_segment(void* segment) {
    ThreadContext& context = threads_.context();
    context.bump(Count::growth_steps);
    threads_.retire_segment(context, segment, bytes_);
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    const base::MutexLock lock{mutex_};
    return std::size_t{spans_} * Region::span_bytes;
  }

 private:
  static constexpr std::uint32_t small_run = 1;
  static constexpr std::uint32_t large_run = 16;  // 1 MiB: the loss at its end is under 3 %
  /// Of a small table a part, or the runs of all shards would be most of a small limit.
  [[nodiscard]] std::uint32_t next_run() const noexcept SEMEL_REQUIRES(mutex_) {
    return spans_ < 4 ? small_run : std::clamp<std::uint32_t>(spans_ / 2, 2, large_run);
  }

  /// Adjacent spans and the segments in them, of which those that are free name each other.
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t spans = 0;
    std::size_t free_count = 0;
    void* free = nullptr;
  };

  [[nodiscard]] std::size_t segments_of(const Run& run) const noexcept {
    return std::size_t{run.spans} * Region::span_bytes / bytes_;
  }
  [[nodiscard]] bool is_of(const Run& run, const void* segment) const noexcept {
    const auto* const begin = static_cast<const std::byte*>(region_.span(run.first));
    const auto* const at = static_cast<const std::byte*>(segment);
    return at >= begin && at < begin + std::size_t{run.spans} * Region::span_bytes;
  }
  [[nodiscard]] Run* with_free() noexcept SEMEL_REQUIRES(mutex_) {
    for (std::uint32_t i = 0; i < run_count_; ++i) {
      if (runs_[i].free_count != 0) return &runs_[i];
    }
    return nullptr;
  }
  static void push(Run& run, void* segment) noexcept {
    std::memcpy(segment, &run.free, sizeof run.free);
    run.free = segment;
    ++run.free_count;
  }

  [[nodiscard]] bool add_run() noexcept SEMEL_REQUIRES(mutex_) {
    if (run_count_ == room_ && !make_room()) return false;
    const std::uint32_t wanted = next_run();
    std::uint32_t count = wanted;
    auto first = region_.take(count, Region::Use::structure);
    if (!first && wanted != small_run)
      first = region_.take(count = small_run, Region::Use::structure);
    if (!first) return false;
    spans_ += count;
    Run& run = runs_[run_count_++] = {*first, count, 0, nullptr};
    auto* const memory = static_cast<std::byte*>(region_.span(*first));
    for (std::size_t i = segments_of(run); i-- > 0;) push(run, memory + i * bytes_);
    return true;
  }
  [[nodiscard]] bool make_room() noexcept SEMEL_REQUIRES(mutex_) {
    const std::uint32_t room = room_ == 0 ? 8 : room_ * 2;
    std::unique_ptr<Run[]> larger{new (std::nothrow) Run[room]};
    if (larger == nullptr) return false;
    std::copy_n(runs_.get(), run_count_, larger.get());
    runs_ = std::move(larger);
    region_.charge(static_cast<std::ptrdiff_t>((room - room_) * sizeof(Run)));
    room_ = room;
    return true;
  }

  Region& region_;
  Threads& threads_;
  const std::size_t bytes_;  // of one segment
  mutable base::Mutex mutex_;
  std::uint32_t spans_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint32_t run_count_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint32_t room_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Run[]> runs_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::engine
