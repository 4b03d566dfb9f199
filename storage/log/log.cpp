#include "storage/log/log.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/stopwatch.hpp"

namespace semel::storage {
namespace {

void put_word(char* to, std::uint64_t word, std::memory_order order) noexcept {
  // mo: the caller's order: the word lies in a mapped file and is read by the draining thread.
  std::atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(to)}.store(word, order);
}

/// An exception, for want of memory, means that it is still there: a removal needs none.
bool is_removed(Disk& disk, const std::string& path) noexcept {
  try {
    return disk.remove(path).ok();
  } catch (...) {
    return false;
  }
}

/// Writes a record in three steps; a killed process leaves the first ones (log_format.hpp).
class RecordWriter {
 public:
  RecordWriter(Segment& segment, LogOffset offset, RecordType type, std::size_t payload) noexcept
      : segment_(segment),
        offset_(offset),
        at_(segment.at(offset)),
        payload_(payload),
        head_(head_of(segment.salt(), offset, type, static_cast<std::uint32_t>(payload))) {
    SEMEL_ASSERT(offset % 8 == 0);
    SEMEL_ASSERT(offset >= segment.begin() + segment_header_bytes);
    SEMEL_ASSERT(offset + record_bytes(payload) <= segment.end());
    put_word(at_, head_, std::memory_order_relaxed);  // mo: relaxed: the seal publishes it
  }
  [[nodiscard]] char* payload() const noexcept { return at_ + record_header_bytes; }
  /// False: the file cannot be written, and the record stays without a seal.
  [[nodiscard]] bool seal() noexcept { return seal_as(payload()); }
  /// For a payload encoded elsewhere: computing the seal from the log's memory would wait for cache
  /// lines that are still being fetched.
  [[nodiscard]] bool copy_and_seal(const char* payload_bytes) noexcept {
    std::memcpy(payload(), payload_bytes, payload_);
    return seal_as(payload_bytes);
  }

 private:
  bool seal_as(const char* payload_bytes) noexcept {
    const Bytes sealed = sealed_part(head_, payload_bytes);
    const std::uint64_t seal = seal_of(segment_.salt(), head_, sealed);
    // Before the seal is in memory: the syncing thread takes what it finds sealed for written.
    const std::size_t bytes = record_header_bytes + sealed.size();
    if (!segment_.write_record(offset_, bytes, seal)) return false;
    // mo: release [log.seal]: the draining thread and the next process treat a sealed record as
    // complete.
    put_word(at_ + 8, seal, std::memory_order_release);
    segment_.complete(record_bytes(payload_));
    return true;
  }

  Segment& segment_;
  const LogOffset offset_;
  char* const at_;
  const std::size_t payload_;
  const std::uint64_t head_;
};

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

Status Log::prepare(bool zeroed) {
  const std::uint64_t number = oldest() == 0 ? setup_.first_number : number_of(room());
  SegmentHeader header;
  header.number = number;
  header.bytes = setup_.segment_bytes;
  header.storage_id = setup_.storage_id;
  header.first = setup_.first_number;
  const bool reuses = !spare_.empty();
  auto segment = [&] {
    if (!reuses) return Segment::make(disk_, setup_.directory, header, zeroed, setup_.access);
    std::unique_ptr<Segment> old = std::move(spare_.back());
    spare_.pop_back();
    spare_count_.store(spare_.size(), std::memory_order_relaxed);  // mo: relaxed: a statistic
    return Segment::reuse(disk_, std::move(old), setup_.directory, header);
  }();
  SEMEL_TRY(made, std::move(segment));
  // The next sync writes every touched page, so do not touch where syncs shall be small.
  if (zeroed && !reuses) {
    made->map_pages();
  } else if ((reuses || keeps_spares_) && oldest() != 0) {
    made->touch();
  }
  SEMEL_ASSERT(oldest() == 0 || (number >= oldest() && number - oldest() < segments_.size()));
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
    // mo: acquire [log.seal]: a sealed record is complete
    return std::atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(at)}.load(
        std::memory_order_acquire);
  };
  SEMEL_ASSERT(from <= to && to <= tail());
  const base::MutexLock lock{segments_mutex_};
  while (from < to) {
    const std::uint64_t number = number_of(from);
    const LogOffset begin = begin_of(number);
    const LogOffset end = (number + 1) * setup_.segment_bytes;
    Segment* const found = segment(number);
    if (found == nullptr && number >= number_of(room())) return from;
    if (found == nullptr || found->is_complete() || end - from < record_header_bytes) {
      from = end;  // drained, or complete, or eight bytes that stay zero
      continue;
    }
    from = std::max(from, begin);
    if (from >= to) return to;
    const std::uint64_t head = word_at(found->at(from));
    if (head == 0) {
      // Eight bytes that stay zero may also begin a segment; a head follows them, or nothing.
      const bool gap =
          from == begin && (to - from < record_header_bytes ||
                            is_head(found->salt(), from + 8, word_at(found->at(from + 8))));
      if (!gap) return from;
      from += 8;
      continue;
    }
    if (word_at(found->at(from) + 8) == 0) return from;
    from += record_bytes(payload_of(head));
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
    // stop the log.
    if (time.passed() >= setup_.wait_at_most) stop();
    std::this_thread::yield();
  }
}

void Log::fill(LogOffset from, LogOffset to) {
  if (from == to) return;
  Segment* const segment = wait_for_segment(number_of(from));
  if (segment == nullptr) return;
  SEMEL_ASSERT(from < to && to <= segment->end());
  if (to - from < record_header_bytes) {  // eight bytes, which stay zero
    segment->complete(to - from);
    return;
  }
  const std::size_t payload = to - from - record_header_bytes;
  if (!RecordWriter{*segment, from, RecordType::filler, payload}.seal()) stop();
}

Segment* Log::allocate(std::size_t payload, LogOffset& offset) {
  const std::size_t bytes = record_bytes(payload);
  SEMEL_ASSERT(segment_header_bytes + bytes <= setup_.segment_bytes);
  for (;;) {
    // mo: seq_cst [log.tail]: a thread that reads the tail afterwards also sees what was appended
    //     before, and a sync up to it covers that. [log.take_back]: the slot is read after it.
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

/// What is behind the record would be lost with it after a crash.
LogOffset Log::fail_write() noexcept {
  stop();
  return 0;
}

LogOffset Log::append(std::span<const Mutation> group, const DurableClock& durable_clock,
                      Timestamp now) {
  std::size_t bytes = 0;
  for (const Mutation& mutation : group) bytes += encoded_bytes(mutation, now);
  if (bytes > setup_.segment_bytes / 4) [[unlikely]] {
    std::string all(bytes, '\0');
    char* to = all.data();
    for (const Mutation& mutation : group) to = encode(mutation, durable_clock, now, to);
    SEMEL_ASSERT(to == all.data() + bytes);
    return append_parts(all);
  }
  LogOffset offset = 0;
  Segment* const segment = allocate(bytes, offset);
  if (segment == nullptr) [[unlikely]]
    return 0;
  constexpr std::size_t small = 1024;
  constexpr std::size_t cache_line = 64;
  if (bytes > small) {
    RecordWriter record{*segment, offset, RecordType::whole, bytes};
    char* to = record.payload();
    for (const Mutation& mutation : group) to = encode(mutation, durable_clock, now, to);
    SEMEL_ASSERT(to == record.payload() + bytes);
    return record.seal() ? offset + record_bytes(bytes) : fail_write();
  }
  // Prefetch the lines, which are in memory or in another processor, while the payload is encoded.
  for (std::size_t at = 0; at < record_bytes(bytes); at += cache_line) {
    __builtin_prefetch(segment->at(offset + at), 1);
  }
  std::array<char, small> payload;
  char* to = payload.data();
  for (const Mutation& mutation : group) to = encode(mutation, durable_clock, now, to);
  SEMEL_ASSERT(to == payload.data() + bytes);
  RecordWriter record{*segment, offset, RecordType::whole, bytes};
  return record.copy_and_seal(payload.data()) ? offset + record_bytes(bytes) : fail_write();
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
    RecordWriter record{*segment, offset, RecordType::part, part_header_bytes + part.size()};
    std::memcpy(record.payload(), &first, sizeof first);
    std::memcpy(record.payload() + 8, &index, sizeof index);
    std::memcpy(record.payload() + 12, &count, sizeof count);
    std::memcpy(record.payload() + part_header_bytes, part.data(), part.size());
    if (!record.seal()) return fail_write();
    offset += record_bytes(part_header_bytes + part.size());
  }
  return offset;
}

LogOffset Log::reserve() {
  LogOffset offset = 0;
  Segment* const segment = allocate(0, offset);
  if (segment == nullptr) return 0;
  return RecordWriter{*segment, offset, RecordType::filler, 0}.seal() ? offset + record_header_bytes
                                                                      : fail_write();
}

void Log::close_segment() {
  // Writers may take some of the rest meanwhile; the loop ends when the tail has left the segment.
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
