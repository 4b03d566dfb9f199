#include "engine/memory/region.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace semel::engine {

bool Region::reserve(std::size_t limit_bytes, std::size_t room_bytes) {
  const base::MutexLock lock{mutex_};
  limit_bytes_.store(limit_bytes, std::memory_order_relaxed);  // mo: relaxed: a setting
  room_bytes_ = std::max(limit_bytes, room_bytes);
  // Holes between runs of several spans may keep the limit from being reached within exactly its
  // own range, so the range is larger; it is only address space.
  span_count_ = room_bytes_ / span_bytes * 5 / 4 + 64;
  // Zeroed by the system when it is touched: the range of a large limit costs nothing.
  const std::size_t words = span_count_ / 64 + 2;
  free_.reset(static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t))));
  dirty_.reset(static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t))));
  if (free_ == nullptr || dirty_ == nullptr) return false;
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

bool Region::set_limit(std::size_t limit_bytes) noexcept {
  if (limit_bytes > room_bytes_) return false;
  const base::MutexLock lock{mutex_};
  limit_bytes_.store(limit_bytes, std::memory_order_relaxed);        // mo: relaxed: a setting
  ceiling_bytes_.store(~std::size_t{0}, std::memory_order_relaxed);  // mo: relaxed: see below
  lower_ceiling();
  return true;
}

/// What lives must be able to end: a claim is completed, a segment replaced, a timer kept.
void Region::lower_ceiling() noexcept {
  // mo: relaxed: written under mutex_; a reader that sees the one before is a moment early
  const std::size_t present = ceiling_bytes_.load(std::memory_order_relaxed);
  if (present == 0) return;
  const std::size_t limit = limit_bytes();
  const std::size_t wanted = std::min(present, used_bytes() + record_reserve(limit));
  // mo: relaxed: as above
  ceiling_bytes_.store(wanted > limit ? wanted : 0, std::memory_order_relaxed);
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

std::optional<std::uint32_t> Region::try_take(std::uint32_t count, Use use) {
  const base::MutexLock lock{mutex_};
  if (used_bytes() + std::size_t{count} * span_bytes > limit_bytes(use)) return std::nullopt;
  std::uint32_t first = find_run(count);
  if (first == 0) {
    if (top_ + std::size_t{count} > span_count_) return std::nullopt;
    first = top_;
    top_ += count;
  }
  mark_taken(first, count);
  used_spans_.fetch_add(count, std::memory_order_relaxed);  // mo: relaxed: written under mutex_
  return first;
}

std::uint32_t Region::find_run(std::uint32_t count) noexcept {
  /// The first span from `at` on whose bit is not `skipped`, or top_.
  const auto next = [this](std::uint32_t at, bool skipped) {
    mutex_.assume_held();
    while (at < top_) {
      const std::uint64_t word = skipped ? ~free_[at / 64] : free_[at / 64];
      const std::uint64_t rest = word >> (at % 64);
      if (rest != 0) return std::min(at + static_cast<std::uint32_t>(std::countr_zero(rest)), top_);
      at = (at / 64 + 1) * 64;
    }
    return top_;
  };
  std::uint32_t first = free_from_ = next(free_from_, false);
  while (first < top_) {
    const std::uint32_t end = next(first, true);
    if (end - first >= count) return first;
    first = next(end, false);
  }
  return 0;
}

void Region::mark_taken(std::uint32_t first, std::uint32_t count) noexcept {
  ++takes_;
  // The touch of a page that is free as a whole makes all of it resident.
  for (std::uint32_t page = first / spans_per_page; page <= (first + count - 1) / spans_per_page;
       ++page) {
    if (page_bits(free_, page) != ~std::uint32_t{0}) continue;
    dirty_spans_ += spans_per_page - static_cast<unsigned>(std::popcount(page_bits(dirty_, page)));
    dirty_[page / 2] |= std::uint64_t{~std::uint32_t{0}} << (page % 2 * spans_per_page);
  }
  for (std::uint32_t span = first; span < first + count; ++span) {
    const std::uint64_t bit = std::uint64_t{1} << (span % 64);
    if ((dirty_[span / 64] & bit) != 0) --dirty_spans_;
    dirty_[span / 64] &= ~bit;
    free_[span / 64] &= ~bit;
  }
}

void Region::touch_ahead() noexcept {
  constexpr std::size_t ahead = 2 * huge_page_bytes;
  std::size_t used = 0;
  {
    const base::MutexLock lock{mutex_};
    used = std::size_t{top_} * span_bytes;
  }
  // An engine of a few records must not cost megabytes.
  if (used < 2 * huge_page_bytes) return;
  const std::size_t limit =
      std::min(limit_bytes(), span_count_ * span_bytes) & ~(huge_page_bytes - 1);
  const std::size_t wanted = std::min(limit, (used + ahead) & ~(huge_page_bytes - 1));
  touched_ = std::max(touched_, used & ~(huge_page_bytes - 1));
  for (; touched_ < wanted; touched_ += huge_page_bytes) {
    // Failure only costs speed.
    static_cast<void>(madvise(base_ + touched_, huge_page_bytes, MADV_POPULATE_WRITE));
  }
}

void Region::give(std::uint32_t first, std::uint32_t count) noexcept {
  const base::MutexLock lock{mutex_};
  // mo: relaxed: written under mutex_
  const std::size_t used = used_spans_.fetch_sub(count, std::memory_order_relaxed) - count;
  free_from_ = std::min(free_from_, first);
  for (std::uint32_t span = first; span < first + count; ++span) {
    free_[span / 64] |= std::uint64_t{1} << (span % 64);
    dirty_[span / 64] |= std::uint64_t{1} << (span % 64);
  }
  dirty_spans_ += count;
  lower_ceiling();
  for (std::uint32_t page = first / spans_per_page; page <= (first + count - 1) / spans_per_page;
       ++page) {
    if (page_bits(free_, page) == ~std::uint32_t{0}) give_page_back(page);
  }
  // A few at a time: the caller is in the middle of an operation.
  if (dirty_spans_ > std::max(dirty_min, used / 16)) static_cast<void>(trim_runs(8));
}

void Region::give_page_back(std::uint32_t page) noexcept {
  dirty_spans_ -= static_cast<unsigned>(std::popcount(page_bits(dirty_, page)));
  dirty_[page / 2] &= ~(std::uint64_t{~std::uint32_t{0}} << (page % 2 * spans_per_page));
  madvise(base_ + page * huge_page_bytes, huge_page_bytes, MADV_DONTNEED);
}

std::size_t Region::trim_runs(std::size_t runs_max) noexcept {
  // From the top down, since the next spans are taken from below.
  std::size_t runs = 0;
  for (std::size_t word = top_ / 64 + 1; word-- > 0 && runs < runs_max && dirty_spans_ != 0;) {
    for (; dirty_[word] != 0 && runs < runs_max; ++runs) {
      const auto from = static_cast<unsigned>(std::countr_zero(dirty_[word]));
      const auto length = static_cast<unsigned>(std::countr_one(dirty_[word] >> from));
      const std::uint64_t ones =
          length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1;
      dirty_[word] &= ~(ones << from);
      dirty_spans_ -= length;
      madvise(base_ + (word * 64 + from) * span_bytes, length * span_bytes, MADV_DONTNEED);
    }
  }
  return runs;
}

bool Region::trim(std::size_t runs_max) noexcept {
  const base::MutexLock lock{mutex_};
  return trim_runs(runs_max) < runs_max;
}

void Region::trim_idle() noexcept {
  constexpr unsigned calls = 8;
  const base::MutexLock lock{mutex_};
  idle_ = takes_ == takes_seen_ ? idle_ + 1 : 0;
  takes_seen_ = takes_;
  lower_ceiling();
  if (idle_ >= calls) static_cast<void>(trim_runs(64));
}

}  // namespace semel::engine
