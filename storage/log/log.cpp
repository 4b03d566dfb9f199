#include "storage/log/log.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/record_writer.hpp"
#include "storage/log/stopwatch.hpp"

namespace semel::storage {
namespace {

[[nodiscard]] bool are_near(std::span<const Mutation> group, const DurableClock& durable_clock,
                            const MutationBase& base) noexcept {
  return std::all_of(group.begin(), group.end(), [&](const Mutation& mutation) {
    return is_near(mutation, durable_clock, base);
  });
}

[[nodiscard]] std::size_t bytes_of(std::span<const Mutation> group, Timestamp now,
                                   MutationForm form) noexcept {
  std::size_t bytes = 0;
  for (const Mutation& mutation : group) bytes += encoded_bytes(mutation, now, form);
  return bytes;
}

/// An exception, for want of memory, means that it is still there: a removal needs none.
bool is_removed(Disk& disk, const std::string& path) noexcept {
  try {
    return disk.remove(path).ok();
  } catch (...) {
    return false;
  }
}

}  // namespace

std::uint8_t Log::measure() const noexcept {
  const LogOffset at = tail() + state_step();
  const LogOffset end = room();
  const LogOffset kept = at + reserve_bytes();
  const bool frees = kept <= end;
  const bool accepts = kept + frees_bytes() <= end;
  const bool crowded = number_of(at) - oldest() >= segment_count * 3 / 4 ||
                       kept + frees_bytes() + setup_.segment_bytes / 2 > end;
  return static_cast<std::uint8_t>((frees ? state_frees : 0) | (accepts ? state_accepts : 0) |
                                   (crowded ? state_crowded : 0));
}

void Log::refresh_state() noexcept {
  // The last thread to store measures once more, so the value that stays is not older than its
  // inputs.
  std::uint8_t state = measure();
  do {
    state_.store(state, std::memory_order_seq_cst);  // mo: seq_cst [log.state]: then measured again
  } while (std::exchange(state, measure()) != state);
}

bool Log::wants_segment() const noexcept {
  const std::uint64_t next = number_of(room());
  const std::uint64_t first = oldest();
  if (first == 0) return true;
  // One segment is being written and others are ready, so that writers do not wait while the next
  // is made. Spare segments are prepared at once, for the time in which this thread is busy
  // draining and makes none.
  return next - first < segment_count && (next <= number_of(tail()) + ready_ || !spare_.empty());
}

void Log::expect(std::uint64_t segments) noexcept {
  // One more, as nothing new is taken into the last: it is the reserve of operations under way.
  ready_ = std::clamp(segments + 1, ready_min, ready_max);
}

Result<std::unique_ptr<Segment>> Log::make(std::uint64_t number, bool zeroed) {
  SegmentHeader header;
  header.number = number;
  header.bytes = setup_.segment_bytes;
  header.storage_id = setup_.storage_id;
  header.first = setup_.first_number;
  // mo: relaxed, both: hints
  header.base = {next_base_version_.load(std::memory_order_relaxed),
                 next_base_ms_.load(std::memory_order_relaxed)};
  if (spare_.empty()) return Segment::make(disk_, setup_.directory, header, zeroed, setup_.access);
  std::unique_ptr<Segment> old = std::move(spare_.back());
  spare_.pop_back();
  spare_count_.store(spare_.size(), std::memory_order_relaxed);  // mo: relaxed: a statistic
  return Segment::reuse(disk_, std::move(old), setup_.directory, header);
}

void Log::publish(std::unique_ptr<Segment> made) {
  const std::uint64_t number = made->number();
  SEMEL_ASSERT(!has_begun() || (number >= oldest() && number - oldest() < segments_.size()));
  std::unique_ptr<Segment>& slot = segments_[number % segments_.size()];
  SEMEL_ASSERT(slot == nullptr);
  slot = std::move(made);
  // mo: release [log.segment]
  ring_[number % ring_.size()].store(slot.get(), std::memory_order_release);
  // mo: relaxed: only this thread sets it. release [log.room]
  if (oldest_.load(std::memory_order_relaxed) == 0) {
    oldest_.store(number, std::memory_order_release);  // mo: release [log.room]
  }
  room_.store((number + 1) * setup_.segment_bytes, std::memory_order_release);  // mo: [log.room]
  refresh_state();
}

Status Log::prepare(bool zeroed) {
  const bool reuses = !spare_.empty();
  SEMEL_TRY(made, make(has_begun() ? number_of(room()) : setup_.first_number, zeroed));
  // The next sync writes every touched page, so do not touch where syncs shall be small.
  if (zeroed && !reuses) {
    made->map_pages();
  } else if ((reuses || keeps_spares_) && has_begun()) {
    made->touch();
  }
  publish(std::move(made));
  return Done{};
}

Status Log::begin() {
  SEMEL_ASSERT(!has_begun());
  SEMEL_TRY(first, make(setup_.first_number, false));
  // Without the second the first would be in the way of the next attempt.
  std::optional<Result<std::unique_ptr<Segment>>> second;
  try {
    second.emplace(make(setup_.first_number + 1, false));
  } catch (...) {
    static_cast<void>(is_removed(disk_, first->path()));
    throw;
  }
  if (!second->ok()) {
    static_cast<void>(is_removed(disk_, first->path()));
    return second->error();
  }
  publish(std::move(first));
  publish(*std::move(*second));
  return Done{};
}

Status Log::sync(LogOffset to) {
  const base::MutexLock lock{segments_mutex_};
  SEMEL_ASSERT(to > 0 && synced_ <= to && to <= tail());
  for (std::uint64_t number = number_of(synced_); number <= number_of(to - 1); ++number) {
    Segment* const found = segment(number);
    if (found == nullptr) continue;  // drained, so it is on disk
    // The first record syncs the header as well.
    SEMEL_CHECK(found->sync(disk_, std::max(synced_, found->begin()), std::min(to, found->end())));
  }
  synced_ = to;
  return Done{};
}

LogOffset Log::written(LogOffset from, LogOffset to) {
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
  SEMEL_ASSERT(from <= to && to <= tail());
  const base::MutexLock lock{segments_mutex_};
  while (from < to) {
    const std::uint64_t number = number_of(from);
    const LogOffset begin = begin_of(number);
    const LogOffset end = (number + 1) * setup_.segment_bytes;
    Segment* const found = segment(number);
    if (found == nullptr && number >= number_of(room())) return from;
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

LogOffset Log::whole() {
  const base::MutexLock lock{segments_mutex_};
  const std::uint64_t last = number_of(tail());
  for (std::uint64_t number = oldest(); number < last; ++number) {
    const Segment* const found = segment(number);
    if (found == nullptr || !found->is_complete()) return number * setup_.segment_bytes;
  }
  const Segment* const found = segment(last);
  if (found == nullptr) return last * setup_.segment_bytes;
  // Read before the tail: if everything reserved by then is written, nothing is missing.
  const LogOffset written = found->begin() + found->completed();
  const LogOffset taken = tail();
  return number_of(taken) == last && written >= taken ? taken : found->begin();
}

Status Log::release(std::uint64_t number) {
  const base::MutexLock lock{segments_mutex_};
  for (std::uint64_t each = oldest(); each <= number; ++each) {
    std::unique_ptr<Segment>& owned = segments_[each % segments_.size()];
    SEMEL_ASSERT(owned != nullptr && owned->number() == each && owned->is_complete());
    const bool keeps = owned->is_mapped() && keeps_spares_ && spare_.size() < spare_max;
    // Before anything is changed: there may be no memory for it.
    const std::string path = keeps ? std::string{} : owned->path();
    // mo: release [log.segment]: a complete segment has no writers, and no other readers.
    ring_[each % ring_.size()].store(nullptr, std::memory_order_release);
    std::unique_ptr<Segment> old = std::move(owned);
    oldest_.store(each + 1, std::memory_order_release);  // mo: release [log.room]
    refresh_state();
    if (keeps) {
      spare_.push_back(std::move(old));
      spare_count_.store(spare_.size(), std::memory_order_relaxed);  // mo: relaxed: a statistic
      continue;
    }
    old.reset();
    SEMEL_CHECK(disk_.remove(path));
  }
  return Done{};
}

void Log::remove_spares() {
  // A file that cannot be removed now is removed by the next open.
  for (const std::unique_ptr<Segment>& old : spare_) {
    static_cast<void>(is_removed(disk_, old->path()));
  }
  spare_.clear();
  spare_count_.store(0, std::memory_order_relaxed);  // mo: relaxed: a statistic
}

void Log::take_back() {
  if (oldest() == 0) return;  // none was made
  for (std::uint64_t number = number_of(room()) - 1; number > number_of(tail()) + ready_;
       --number) {
    // For one segment at a time: removing a file takes a while, and syncs wait for the mutex.
    const base::MutexLock lock{segments_mutex_};
    std::atomic<Segment*>& slot = ring_[number % ring_.size()];
    std::unique_ptr<Segment>& owned = segments_[number % segments_.size()];
    SEMEL_ASSERT(owned != nullptr && owned->number() == number);
    // mo: seq_cst [log.take_back], and so is the load of the tail
    slot.store(nullptr, std::memory_order_seq_cst);
    const bool is_far = number_of(tail_.load(std::memory_order_seq_cst)) + ready_min <= number;
    // A file that stays would be in the way of the segment's next one.
    if (!is_far || !is_removed(disk_, owned->path())) {
      slot.store(owned.get(), std::memory_order_release);  // mo: release [log.segment]
      return;
    }
    SEMEL_ASSERT(owned->completed() == segment_header_bytes);
    owned.reset();
    room_.store(number * setup_.segment_bytes, std::memory_order_release);  // mo: [log.room]
    refresh_state();
  }
}

void Log::remove_unused() {
  if (oldest() == 0) return;  // none was made
  remove_spares();
  // Newest first, so that a file that stays leaves no gap before it. The offset before the first
  // record is in a header.
  const std::uint64_t used =
      tail() == begin_of(setup_.first_number) ? setup_.first_number - 1 : number_of(tail() - 1);
  for (std::uint64_t number = number_of(room()) - 1; number > used && number >= oldest();
       --number) {
    static_cast<void>(is_removed(disk_, segments_[number % segments_.size()]->path()));  // as above
  }
}

Segment* Log::wait_for_segment(std::uint64_t number) noexcept {
  for (unsigned spins = 0; spins < 1'000; ++spins) {
    if (Segment* const found = segment(number); found != nullptr) return found;
  }
  const Stopwatch time;
  for (;;) {
    if (Segment* const found = segment(number); found != nullptr) return found;
    // mo: acquire [log.segment]
    if (stopped_.load(std::memory_order_acquire)) return nullptr;
    // A group larger than the reserve met a full disk: the waiting thread holds locks of others, so
    // stop the journal.
    if (time.passed() >= setup_.wait_at_most) stop();
    std::this_thread::yield();
  }
}

void Log::fill(LogOffset from, LogOffset to) {
  if (from == to) return;
  Segment* const segment = wait_for_segment(number_of(from));
  if (segment == nullptr) return;
  SEMEL_ASSERT(from < to && to <= segment->end());
  if (to - from < record_bytes_min) {  // four bytes, which stay zero
    segment->complete(to - from);
    return;
  }
  const RecordShape shape = RecordShape::filler_of(to - from);
  if (!RecordWriter{*segment, from, RecordType::filler, shape}.seal()) stop();
}

Segment* Log::allocate(std::size_t payload, LogOffset& offset) {
  const std::size_t bytes = record_bytes(payload);
  SEMEL_ASSERT(segment_header_bytes + bytes <= setup_.segment_bytes);
  for (;;) {
    // mo: seq_cst [log.tail]: a thread that reads the tail afterwards also sees earlier appends,
    //     and a sync up to it covers that. [log.take_back]: the slot is read after it.
    offset = tail_.fetch_add(bytes, std::memory_order_seq_cst);
    if ((offset ^ (offset + bytes)) >= state_step()) refresh_state();
    const std::uint64_t number = number_of(offset);
    const LogOffset end = (number + 1) * setup_.segment_bytes;
    if (offset_in_segment(offset) >= segment_header_bytes && offset + bytes <= end) [[likely]] {
      return wait_for_segment(number);
    }
    // The range crosses into the next segment, or begins in a header: fill both ends and try again.
    drain_signal_.raise();
    const LogOffset first = std::max(offset, begin_of(number));
    fill(std::min(first, offset + bytes), std::min(end, offset + bytes));
    if (offset + bytes > end)
      fill(begin_of(number + 1), std::max(begin_of(number + 1), offset + bytes));
    // mo: acquire [log.segment]
    if (stopped_.load(std::memory_order_acquire)) return nullptr;
  }
}

/// After a crash, records behind this one would be lost with it.
LogOffset Log::fail_write() noexcept {
  stop();
  return 0;
}

void Log::enter(const Segment& segment, const MutationBase& newest) noexcept {
  // mo: relaxed, all: hints. Some that do not belong together cost bytes, or a group that is
  // encoded again.
  entered_.store(segment.number(), std::memory_order_relaxed);
  base_version_.store(segment.header().base.version, std::memory_order_relaxed);
  base_ms_.store(segment.header().base.ms, std::memory_order_relaxed);
  // Versions and times grow; a restored mutation may be far behind.
  const auto raise = [](std::atomic<std::uint64_t>& to, std::uint64_t found) {
    // mo: relaxed, both: as above
    to.store(std::max(to.load(std::memory_order_relaxed), found), std::memory_order_relaxed);
  };
  raise(next_base_version_, newest.version);
  raise(next_base_ms_, newest.ms);
}

LogOffset Log::append(std::span<const Mutation> group, const DurableClock& durable_clock,
                      Timestamp now) {
  // mo: relaxed, both: hints
  const MutationBase base{base_version_.load(std::memory_order_relaxed),
                          base_ms_.load(std::memory_order_relaxed)};
  MutationForm form =
      are_near(group, durable_clock, base) ? MutationForm::near : MutationForm::full;
  for (;;) {  // twice at most: every segment takes the full form
    const std::size_t bytes = bytes_of(group, now, form);
    if (bytes > setup_.segment_bytes / 4) [[unlikely]] {
      std::string all(bytes_of(group, now, MutationForm::full), '\0');
      char* to = all.data();
      for (const Mutation& mutation : group) to = encode(mutation, durable_clock, now, to);
      SEMEL_ASSERT(to == all.data() + all.size());
      return append_parts(all);
    }
    LogOffset offset = 0;
    Segment* const segment = allocate(bytes, offset);
    if (segment == nullptr) [[unlikely]]
      return 0;
    // mo: relaxed: a hint
    if (segment->number() != entered_.load(std::memory_order_relaxed)) [[unlikely]] {
      const Version version = group.empty() ? 0 : group.front().version;
      enter(*segment, {version, durable_clock.to_durable_ms(now)});
    }
    const MutationBase& found = segment->header().base;
    if (form == MutationForm::near && found != base && !are_near(group, durable_clock, found))
        [[unlikely]] {
      fill(offset, offset + record_bytes(bytes));
      form = MutationForm::full;
      // mo: acquire [log.segment]
      if (stopped_.load(std::memory_order_acquire)) return 0;
      continue;
    }
    return write_group(*segment, offset, bytes, group, durable_clock, now, form);
  }
}

LogOffset Log::write_group(Segment& segment, LogOffset offset, std::size_t bytes,
                           std::span<const Mutation> group, const DurableClock& durable_clock,
                           Timestamp now, MutationForm form) {
  const MutationBase* const base = form == MutationForm::near ? &segment.header().base : nullptr;
  const RecordType type = form == MutationForm::near ? RecordType::near : RecordType::whole;
  const RecordShape shape = RecordShape::of(bytes);
  const auto encode_group = [&](char* to) {
    for (const Mutation& mutation : group) to = encode(mutation, durable_clock, now, to, base);
    return to;
  };
  constexpr std::size_t small = 1024;
  constexpr std::size_t cache_line = 64;
  if (bytes > small) {
    RecordWriter record{segment, offset, type, shape};
    const char* const end = encode_group(record.payload());  // zeros follow
    SEMEL_ASSERT(end == record.payload() + bytes);
    return record.seal() ? offset + shape.bytes() : fail_write();
  }
  // Prefetch the lines, which are in memory or in another processor, while the payload is encoded.
  for (std::size_t at = 0; at < shape.bytes(); at += cache_line) {
    __builtin_prefetch(segment.at(offset + at), 1);
  }
  std::array<char, small + record_unit> payload;
  char* const end = encode_group(payload.data());
  SEMEL_ASSERT(end == payload.data() + bytes);
  std::memset(end, 0, record_unit);
  RecordWriter record{segment, offset, type, shape};
  return record.copy_and_seal(payload.data()) ? offset + shape.bytes() : fail_write();
}

LogOffset Log::append_parts(std::string_view group) {
  const std::size_t piece = setup_.segment_bytes / 8;
  const auto count = static_cast<std::uint32_t>((group.size() + piece - 1) / piece);
  LogOffset first = 0;
  LogOffset offset = 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    const std::string_view part = group.substr(index * piece, piece);
    Segment* const segment = allocate(part_header_bytes + part.size(), offset);
    if (segment == nullptr) return 0;
    if (index == 0) first = offset;
    const RecordShape shape = RecordShape::of(part_header_bytes + part.size());
    RecordWriter record{*segment, offset, RecordType::part, shape};
    std::memcpy(record.payload(), &first, sizeof first);
    std::memcpy(record.payload() + 8, &index, sizeof index);
    std::memcpy(record.payload() + 12, &count, sizeof count);
    std::memcpy(record.payload() + part_header_bytes, part.data(), part.size());
    if (!record.seal()) return fail_write();
    offset += shape.bytes();
  }
  return offset;
}

LogOffset Log::reserve() {
  LogOffset offset = 0;
  Segment* const segment = allocate(0, offset);
  if (segment == nullptr) return 0;
  const RecordShape shape = RecordShape::of(0);
  return RecordWriter{*segment, offset, RecordType::filler, shape}.seal() ? offset + shape.bytes()
                                                                          : fail_write();
}

void Log::close_segment() {
  // Writers may concurrently reserve parts of the rest; the loop ends when the tail has left the
  // segment.
  const std::uint64_t number = number_of(tail());
  for (;;) {
    LogOffset offset = tail();
    if (number_of(offset) != number || offset <= begin_of(number)) return;
    const LogOffset end = (number + 1) * setup_.segment_bytes;
    // mo: seq_cst [log.tail] [log.take_back]: as in allocate()
    if (!tail_.compare_exchange_weak(offset, begin_of(number + 1), std::memory_order_seq_cst,
                                     std::memory_order_relaxed)) {
      continue;
    }
    refresh_state();
    fill(offset, end);
    drain_signal_.raise();
    return;
  }
}

}  // namespace semel::storage
