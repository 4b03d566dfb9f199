#include "storage/journal/written_log.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/assert.hpp"
#include "storage/log/log_record.hpp"
#include "storage/log/segment.hpp"

namespace semel::storage {

Status WrittenLog::sync(LogOffset to) {
  const base::MutexLock lock{ring_.mutex()};
  SEMEL_ASSERT(to > 0 && synced_ <= to && to <= extent_.tail());
  for (std::uint64_t number = extent_.number_of(synced_); number <= extent_.number_of(to - 1);
       ++number) {
    Segment* const found = ring_.segment(number);
    if (found == nullptr) continue;  // drained, so it is on disk
    // The first record syncs the header as well.
    SEMEL_CHECK(found->sync(disk_, std::max(synced_, found->begin()), std::min(to, found->end())));
  }
  synced_ = to;
  return Done{};
}

LogOffset WrittenLog::written(LogOffset from, LogOffset to) {
  const auto word_at = [](char* at) {
    // mo: acquire [log.seal]: a sealed record is complete, and a second word has a first one
    return std::atomic_ref<std::uint32_t>{*reinterpret_cast<std::uint32_t*>(at)}.load(
        std::memory_order_acquire);
  };
  // The second word is read of a long head alone: else it may be of a payload that is being
  // written.
  const auto is_head_at = [&](const Segment& segment, LogOffset offset) {
    const std::uint32_t first = word_at(segment.at(offset));
    if (first == 0) return false;
    const std::uint32_t second = first < RecordHead::top ? word_at(segment.at(offset) + 4) : 0;
    return RecordHead::read(segment.salt(), offset, first, second).is_head(first, second);
  };
  SEMEL_ASSERT(from <= to && to <= extent_.tail());
  const base::MutexLock lock{ring_.mutex()};
  while (from < to) {
    const std::uint64_t number = extent_.number_of(from);
    const LogOffset begin = extent_.begin_of(number);
    const LogOffset end = extent_.end_of(number);
    Segment* const found = ring_.segment(number);
    if (found == nullptr && number >= extent_.number_of(extent_.room())) return from;
    if (found == nullptr || found->is_complete() || end - from < record_bytes_min) {
      from = end;  // drained, or complete, or four bytes that stay zero
      continue;
    }
    from = std::max(from, begin);
    if (from >= to) return to;
    char* const at = found->at(from);
    const std::uint32_t first = word_at(at);
    if (first == 0) {
      // Four bytes that stay zero may also begin a segment; a head follows them, or nothing. The
      // head may have been written just now: then the first word is written by now as well.
      const bool gap = from == begin && (to - from < record_bytes_min ||
                                         (is_head_at(*found, from + 4) && word_at(at) == 0));
      if (!gap) return from;
      from += record_unit;
      continue;
    }
    const bool is_long = first < RecordHead::top;
    if (word_at(at + RecordShape{is_long}.seal_end_at()) == 0) return from;
    const std::uint32_t second = word_at(at + 4);
    from += RecordHead::read(found->salt(), from, first, second).shape.bytes();
  }
  return to;
}

LogOffset WrittenLog::whole() {
  const base::MutexLock lock{ring_.mutex()};
  const std::uint64_t last = extent_.number_of(extent_.tail());
  for (std::uint64_t number = extent_.oldest(); number < last; ++number) {
    const Segment* const found = ring_.segment(number);
    if (found == nullptr || !found->is_complete()) return number * extent_.segment_bytes();
  }
  const Segment* const found = ring_.segment(last);
  if (found == nullptr) return last * extent_.segment_bytes();
  // Read before the tail: if everything reserved by then is written, nothing is missing.
  const LogOffset written = found->begin() + found->completed();
  const LogOffset taken = extent_.tail();
  return extent_.number_of(taken) == last && written >= taken ? taken : found->begin();
}

void WrittenLog::check_invariants() {
  const base::MutexLock lock{ring_.mutex()};
  SEMEL_ASSERT(synced_ <= extent_.tail());
}

}  // namespace semel::storage
