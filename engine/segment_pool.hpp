// Memory for the segments of one shard's table: all of one size, carved from runs of spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "engine/region.hpp"
#include "engine/threads.hpp"

namespace semel::engine {

/// The Source of a Table (table.hpp). Progress: takes a short mutex, once per growth step.
class SegmentPool {
 public:
  SegmentPool(Region& region, Threads& threads, std::size_t segment_bytes) noexcept
      : region_(region), threads_(threads), bytes_(segment_bytes) {}

  void* allocate_segment(std::size_t bytes) {
    void* memory = nullptr;
    {
      const std::lock_guard lock{mutex_};
      if (free_.empty()) add_run();
      if (free_.empty()) return nullptr;
      memory = free_.back();
      free_.pop_back();
    }
    std::memset(memory, 0, bytes);
    return memory;
  }
  void release_segment(void* segment) noexcept {
    const std::lock_guard lock{mutex_};
    free_.push_back(segment);
  }
  void retire_segment(void* segment) {
    ThreadContext& context = threads_.context();
    context.bump(Count::growth_steps);
    threads_.retire_segment(context, segment, bytes_);
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    const std::lock_guard lock{mutex_};
    return std::size_t{spans_} * Region::span_bytes;
  }

 private:
  static constexpr std::uint32_t small_run = 1;
  static constexpr std::uint32_t large_run = 16;  // 1 MiB: the loss at its end is under 3 %

  void add_run() {
    const std::uint32_t wanted = spans_ < 4 ? small_run : large_run;
    std::uint32_t count = wanted;
    auto first = region_.take(count, Region::Use::structure);
    if (!first && wanted != small_run)
      first = region_.take(count = small_run, Region::Use::structure);
    if (!first) return;
    spans_ += count;
    auto* const memory = static_cast<std::byte*>(region_.span(*first));
    const std::size_t segments = std::size_t{count} * Region::span_bytes / bytes_;
    for (std::size_t i = segments; i-- > 0;) free_.push_back(memory + i * bytes_);
  }

  Region& region_;
  Threads& threads_;
  const std::size_t bytes_;  // of one segment
  mutable std::mutex mutex_;
  std::uint32_t spans_ = 0;
  std::vector<void*> free_;
};

}  // namespace semel::engine
