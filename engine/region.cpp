#include "engine/region.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace semel::engine {

bool Region::reserve(std::size_t limit_bytes) {
  limit_bytes_ = limit_bytes;
  timer_reserve_bytes_ = std::max(limit_bytes / 128, std::size_t{4} * span_bytes);
  reserve_bytes_ = timer_reserve_bytes_ + std::max(limit_bytes / 64, std::size_t{8} * span_bytes);
  // Holes between runs of several spans may keep the limit from being reached within exactly its
  // own range, so the range is larger; it is only address space.
  span_count_ = limit_bytes / span_bytes * 5 / 4 + 64;
  const std::size_t bytes = span_count_ * span_bytes + huge_page_bytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (address + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
  if (aligned > address) munmap(memory, aligned - address);
  const std::uintptr_t end = address + bytes;
  const std::uintptr_t wanted = aligned + span_count_ * span_bytes;
  if (end > wanted) munmap(reinterpret_cast<void*>(wanted), end - wanted);
  base_ = reinterpret_cast<std::byte*>(aligned);
  // The first pages stay small: an engine of a few records must not cost megabytes. Failure of
  // the advice only costs speed.
  const std::size_t small = 2 * huge_page_bytes;
  if (span_count_ * span_bytes > small) {
    madvise(base_ + small, span_count_ * span_bytes - small, MADV_HUGEPAGE);
  }
  return true;
}

Region::~Region() {
  if (base_ != nullptr) munmap(base_, span_count_ * span_bytes);
}

std::size_t Region::used_bytes() const noexcept {
  // mo: relaxed: statistics.
  const auto charged = charged_.load(std::memory_order_relaxed);
  return used_spans_.load(std::memory_order_relaxed) * span_bytes +
         static_cast<std::size_t>(std::max<std::ptrdiff_t>(charged, 0));
}

std::optional<std::uint32_t> Region::take(std::uint32_t count, Use use) {
  auto first = try_take(count, use);
  if (!first && reclaim_ && reclaim_()) first = try_take(count, use);
  return first;
}

bool Region::try_charge(std::size_t bytes) {
  const auto fits = [&] {
    const std::lock_guard lock{mutex_};
    if (used_bytes() + bytes > limit_bytes(Use::record)) return false;
    charge(static_cast<std::ptrdiff_t>(bytes));
    return true;
  };
  return fits() || (reclaim_ && reclaim_() && fits());
}

std::optional<std::uint32_t> Region::try_take(std::uint32_t count, Use use) {
  const std::lock_guard lock{mutex_};
  if (used_bytes() + std::size_t{count} * span_bytes > limit_bytes(use)) return std::nullopt;
  std::optional<std::uint32_t> first;
  for (auto run = free_.begin(); run != free_.end(); ++run) {
    if (run->second < count) continue;
    first = run->first;
    const std::uint32_t rest = run->second - count;
    free_.erase(run);
    if (rest != 0) free_.emplace(*first + count, rest);
    break;
  }
  if (!first) {
    if (top_ + std::size_t{count} > span_count_) return std::nullopt;
    first = top_;
    top_ += count;
  }
  used_spans_.fetch_add(count, std::memory_order_relaxed);  // mo: relaxed: written under mutex_
  return first;
}

void Region::touch_ahead() noexcept {
  constexpr std::size_t ahead = 2 * huge_page_bytes;
  std::size_t used = 0;
  {
    const std::lock_guard lock{mutex_};
    used = std::size_t{top_} * span_bytes;
  }
  // An engine of a few records must not cost megabytes.
  if (used < 2 * huge_page_bytes) return;
  const std::size_t limit =
      std::min(limit_bytes_, span_count_ * span_bytes) & ~(huge_page_bytes - 1);
  const std::size_t wanted = std::min(limit, (used + ahead) & ~(huge_page_bytes - 1));
  touched_ = std::max(touched_, used & ~(huge_page_bytes - 1));
  for (; touched_ < wanted; touched_ += huge_page_bytes) {
    // Failure only costs speed.
    static_cast<void>(madvise(base_ + touched_, huge_page_bytes, MADV_POPULATE_WRITE));
  }
}

void Region::give(std::uint32_t first, std::uint32_t count) noexcept {
  const std::uint32_t given_first = first;
  const std::uint32_t given_count = count;
  const std::lock_guard lock{mutex_};
  used_spans_.fetch_sub(count, std::memory_order_relaxed);  // mo: relaxed: written under mutex_
  auto next = free_.lower_bound(first);
  if (next != free_.end() && first + count == next->first) {
    count += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(first, count);
  // Give back the huge pages that this call completed, and no other: they are free already.
  const std::size_t page_mask = ~(huge_page_bytes - 1);
  const std::size_t run_begin = std::size_t{first} * span_bytes;
  const std::size_t run_end = run_begin + std::size_t{count} * span_bytes;
  const std::size_t begin = std::max((run_begin + huge_page_bytes - 1) & page_mask,
                                     std::size_t{given_first} * span_bytes & page_mask);
  const std::size_t given_end = (std::size_t{given_first} + given_count) * span_bytes;
  const std::size_t end =
      std::min(run_end & page_mask, (given_end + huge_page_bytes - 1) & page_mask);
  if (end > begin) madvise(base_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace semel::engine
