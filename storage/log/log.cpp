#include "storage/log/log.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "storage/log/mutation_codec.hpp"
#include "storage/log/stopwatch.hpp"

namespace semel::storage {
namespace {

void put_word(char* to, std::uint64_t word, std::memory_order order) noexcept {
  // mo: as the caller says: the word lies in a mapped file and is read by the drainer.
  std::atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(to)}.store(word, order);
}

/// A record in three steps, of which a killed process leaves a beginning (log_format.hpp).
class RecordWriter {
 public:
  RecordWriter(Segment& segment, Place place, RecordType type, std::size_t payload) noexcept
      : segment_(segment),
        at_(segment.at(place)),
        payload_(payload),
        head_(head_of(segment.salt(), place, type, static_cast<std::uint32_t>(payload))) {
    put_word(at_, head_, std::memory_order_relaxed);  // mo: relaxed: the seal is what counts
  }
  [[nodiscard]] char* payload() const noexcept { return at_ + record_header_bytes; }
  void seal() noexcept { seal_as(payload()); }
  /// Of a payload made elsewhere: what was just written to the log would have to come back from a
  /// line that is not there yet.
  void copy_and_seal(const char* payload_bytes) noexcept {
    std::memcpy(payload(), payload_bytes, payload_);
    seal_as(payload_bytes);
  }

 private:
  void seal_as(const char* payload_bytes) noexcept {
    const std::uint64_t seal = seal_of(segment_.salt(), head_, sealed_part(head_, payload_bytes));
    // mo: release [log.seal]: the drainer and the next process take what is sealed for whole.
    put_word(at_ + 8, seal, std::memory_order_release);
    segment_.complete(record_bytes(payload_));
  }

  Segment& segment_;
  char* const at_;
  const std::size_t payload_;
  const std::uint64_t head_;
};

}  // namespace

namespace {

SegmentHeader with_salt(SegmentHeader header) {
  while (getrandom(&header.salt, sizeof header.salt, 0) != sizeof header.salt) {
  }
  header.digest = header.right_digest();
  return header;
}

}  // namespace

Result<std::unique_ptr<Segment>> Segment::make(Disk& disk, const std::string& directory,
                                               const SegmentHeader& wanted, bool zeroed) {
  const SegmentHeader header = with_salt(wanted);
  std::string path = directory + "/" + segment_name(header.number * header.bytes);
  SEMEL_TRY(descriptor, disk.create(path, header.bytes));
  const Status written = zeroed ? disk.write_zeros(descriptor, path, header.bytes) : Status{Done{}};
  void* const memory =
      written ? mmap(nullptr, header.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
              : MAP_FAILED;
  if (memory == MAP_FAILED) {
    const Error error = written ? system_error("mapping " + path) : written.error();
    close(descriptor);
    static_cast<void>(disk.remove(path));
    return error;
  }
  std::memcpy(memory, &header, sizeof header);
  return std::unique_ptr<Segment>{
      new Segment{header, std::move(path), descriptor, static_cast<char*>(memory)}};
}

Result<std::unique_ptr<Segment>> Segment::reuse(Disk& disk, std::unique_ptr<Segment> old,
                                                const std::string& directory,
                                                const SegmentHeader& wanted) {
  const SegmentHeader header = with_salt(wanted);
  std::string path = directory + "/" + segment_name(header.number * header.bytes);
  // What a killed process leaves must be zeros, or of this segment, by the time it has this name.
  std::memset(old->bytes_, 0, header.bytes);
  std::memcpy(old->bytes_, &header, sizeof header);
  if (const Status status = disk.rename(old->path(), path); !status) {
    static_cast<void>(disk.remove(old->path()));
    static_cast<void>(disk.remove(path));
    return status.error();
  }
  return std::unique_ptr<Segment>{
      new Segment{header, std::move(path), old->descriptor_, std::exchange(old->bytes_, nullptr)}};
}

Segment::~Segment() {
  if (bytes_ == nullptr) return;
  // Bit by bit: unmapping all at once keeps every thread out that meets a page fault meanwhile.
  constexpr std::size_t piece = std::size_t{256} << 10;
  for (std::size_t at = 0; at < header_.bytes; at += piece) {
    static_cast<void>(
        madvise(bytes_ + at, std::min(piece, header_.bytes - at), MADV_DONTNEED));  // advice only
  }
  munmap(bytes_, header_.bytes);
  close(descriptor_);
}

Status Segment::sync(Disk& disk, Place from, Place to) {
  // What is written need not stay mapped. Else the system would take the right to write away page
  // by page, and interrupt every processor for each: a tail of all who claim meanwhile. Bit by bit,
  // as above.
  constexpr std::size_t page = 4096;  // a larger one makes this advice that is not taken
  constexpr std::size_t piece = std::size_t{256} << 10;
  constexpr std::size_t worth_it = std::size_t{64} << 10;
  const std::size_t end = (to - begin()) / page * page;
  std::size_t at = (from - begin()) / page * page;
  while (to - from >= worth_it && at < end) {
    const std::size_t bytes = std::min(piece, end - at);
    static_cast<void>(madvise(bytes_ + at, bytes, MADV_DONTNEED));  // advice only
    at += bytes;
  }
  return disk.sync_part(bytes_, path_, from - begin(), to - begin());
}

void Segment::touch() noexcept {
  // Best effort: on an older kernel callers meet the faults themselves.
  static_cast<void>(madvise(bytes_, header_.bytes, MADV_POPULATE_WRITE));
}

std::uint8_t Log::measure() const noexcept {
  const Place at = tail() + state_step();
  const Place end = room();
  const bool accepts = at + reserve_bytes() <= end;
  const bool crowded = number_of(at) - oldest() >= segment_count * 3 / 4 ||
                       at + reserve_bytes() + setup_.segment_bytes / 2 > end;
  return static_cast<std::uint8_t>((accepts ? state_accepts : 0) | (crowded ? state_crowded : 0));
}

void Log::refresh_state() noexcept {
  // Whoever stores last looks again, so what stays is not older than what it rests on.
  std::uint8_t state = measure();
  do {
    state_.store(state, std::memory_order_seq_cst);  // mo: seq_cst: before the look that follows
  } while (std::exchange(state, measure()) != state);
}

bool Log::wants_segment() const noexcept {
  const std::uint64_t next = number_of(room());
  const std::uint64_t first = oldest();
  if (first == 0) return true;
  // One is being written, three are ready, so that nobody waits while the next is made. With what
  // has been drained there are more: a while in which nothing is made because much is drained.
  return next - first < segment_count && (next <= number_of(tail()) + 3 || !spare_.empty());
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
    if (!reuses) return Segment::make(disk_, setup_.directory, header, zeroed);
    std::unique_ptr<Segment> old = std::move(spare_.back());
    spare_.pop_back();
    spare_count_.store(spare_.size(), std::memory_order_relaxed);  // mo: relaxed: a statistic
    return Segment::reuse(disk_, std::move(old), setup_.directory, header);
  }();
  SEMEL_TRY(made, std::move(segment));
  // What is touched is written by the next sync: not where syncs are to be small.
  if (!reuses && !zeroed && oldest() != 0) made->touch();
  std::unique_ptr<Segment>& slot = segments_[number % segments_.size()];
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

Status Log::sync(Place to) {
  const std::lock_guard lock{segments_mutex_};
  for (std::uint64_t number = number_of(synced_); number <= number_of(to - 1); ++number) {
    Segment* const found = segment(number);
    if (found == nullptr) continue;  // drained, and so on the disk
    // All of its header with its first record.
    SEMEL_TRY(done,
              found->sync(disk_, std::max(synced_, found->begin()), std::min(to, found->end())));
    static_cast<void>(done);
  }
  synced_ = to;
  return Done{};
}

Place Log::written(Place from, Place to) {
  const auto word_at = [](char* at) {
    // mo: acquire [log.seal]: what is sealed was written before
    return std::atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(at)}.load(
        std::memory_order_acquire);
  };
  const std::lock_guard lock{segments_mutex_};
  while (from < to) {
    const std::uint64_t number = number_of(from);
    const Place begin = begin_of(number);
    const Place end = (number + 1) * setup_.segment_bytes;
    Segment* const found = segment(number);
    if (found == nullptr && number >= number_of(room())) return from;
    if (found == nullptr || found->is_complete() || end - from < record_header_bytes) {
      from = end;  // drained, or all of it is written, or eight bytes that stay zero
      continue;
    }
    from = std::max(from, begin);
    if (from >= to) return to;
    const std::uint64_t head = word_at(found->at(from));
    if (head == 0) {
      // Eight bytes that stay zero may also begin a segment; then a head follows them, or nothing.
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

Place Log::whole() {
  const std::lock_guard lock{segments_mutex_};
  const std::uint64_t last = number_of(tail());
  for (std::uint64_t number = oldest(); number < last; ++number) {
    const Segment* const found = segment(number);
    if (found == nullptr || !found->is_complete()) return number * setup_.segment_bytes;
  }
  const Segment* const found = segment(last);
  if (found == nullptr) return last * setup_.segment_bytes;
  // Read before the tail: if all that was taken until after it is written, nothing is missing.
  const Place written = found->begin() + found->completed();
  const Place taken = tail();
  return number_of(taken) == last && written >= taken ? taken : found->begin();
}

Status Log::release(std::uint64_t number) {
  const std::lock_guard lock{segments_mutex_};
  for (std::uint64_t each = oldest(); each <= number; ++each) {
    // mo: release [log.segment]: nobody writes a complete segment, and nobody else reads it.
    ring_[each % ring_.size()].store(nullptr, std::memory_order_release);
    std::unique_ptr<Segment> old = std::move(segments_[each % segments_.size()]);
    oldest_.store(each + 1, std::memory_order_release);  // mo: release [log.room]
    refresh_state();
    if (spare_.size() < spare_max) {
      spare_.push_back(std::move(old));
      spare_count_.store(spare_.size(), std::memory_order_relaxed);  // mo: relaxed: a statistic
      continue;
    }
    const std::string path = old->path();
    old.reset();
    SEMEL_TRY(removed, disk_.remove(path));
    static_cast<void>(removed);
  }
  return Done{};
}

void Log::remove_unused() {
  if (oldest() == 0) return;  // none was made
  for (const std::unique_ptr<Segment>& old : spare_) static_cast<void>(disk_.remove(old->path()));
  // Newest first: one that stays must not leave a gap before it. The place before the first is in
  // a header.
  const std::uint64_t used =
      tail() == begin_of(setup_.first_number) ? setup_.first_number - 1 : number_of(tail() - 1);
  for (std::uint64_t number = number_of(room()) - 1; number > used && number >= oldest();
       --number) {
    static_cast<void>(disk_.remove(segments_[number % segments_.size()]->path()));
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
    // A group that was larger than the reserve, and a disk that is full: whoever waits holds what
    // others wait for.
    if (time.passed() >= setup_.wait_at_most) stop();
    std::this_thread::yield();
  }
}

void Log::fill(Place from, Place to) {
  if (from == to) return;
  Segment* const segment = wait_for_segment(number_of(from));
  if (segment == nullptr) return;
  if (to - from < record_header_bytes) {  // eight bytes, which stay zero
    segment->complete(to - from);
    return;
  }
  RecordWriter{*segment, from, RecordType::filler, to - from - record_header_bytes}.seal();
}

Segment* Log::take(std::size_t payload, Place& place) {
  const std::size_t bytes = record_bytes(payload);
  for (;;) {
    // mo: acq_rel: whoever reads the tail afterwards also sees what was appended before, and a sync
    //     up to it covers that.
    place = tail_.fetch_add(bytes, std::memory_order_acq_rel);
    if ((place ^ (place + bytes)) >= state_step()) refresh_state();
    const std::uint64_t number = number_of(place);
    const Place end = (number + 1) * setup_.segment_bytes;
    if (offset_of(place) >= segment_header_bytes && place + bytes <= end) [[likely]] {
      return wait_for_segment(number);
    }
    // It would lie across two segments, or in a header: both ends become fillers, and we try again.
    crossed_.raise();
    const Place first = std::max(place, begin_of(number));
    fill(std::min(first, place + bytes), std::min(end, place + bytes));
    if (place + bytes > end)
      fill(begin_of(number + 1), std::max(begin_of(number + 1), place + bytes));
    // mo: acquire [log.segment]
    if (stopped_.load(std::memory_order_acquire)) return nullptr;
  }
}

Place Log::append(std::span<const Mutation> group, const TimeLine& line, Timestamp now) {
  std::size_t bytes = 0;
  for (const Mutation& mutation : group) bytes += encoded_bytes(mutation, now);
  if (bytes > setup_.segment_bytes / 4) [[unlikely]] {
    std::string all(bytes, '\0');
    char* to = all.data();
    for (const Mutation& mutation : group) to = encode(mutation, line, now, to);
    return append_parts(all);
  }
  Place place = 0;
  Segment* const segment = take(bytes, place);
  if (segment == nullptr) [[unlikely]]
    return 0;
  constexpr std::size_t small = 1024;
  constexpr std::size_t cache_line = 64;
  if (bytes > small) {
    RecordWriter record{*segment, place, RecordType::whole, bytes};
    char* to = record.payload();
    for (const Mutation& mutation : group) to = encode(mutation, line, now, to);
    record.seal();
    return place + record_bytes(bytes);
  }
  // The lines come from another processor, or from memory: asked for while the payload is made.
  for (std::size_t at = 0; at < record_bytes(bytes); at += cache_line) {
    __builtin_prefetch(segment->at(place + at), 1);
  }
  std::array<char, small> payload;
  char* to = payload.data();
  for (const Mutation& mutation : group) to = encode(mutation, line, now, to);
  RecordWriter{*segment, place, RecordType::whole, bytes}.copy_and_seal(payload.data());
  return place + record_bytes(bytes);
}

Place Log::append_parts(std::string_view group) {
  const std::size_t piece = setup_.segment_bytes / 8;
  const auto count = static_cast<std::uint32_t>((group.size() + piece - 1) / piece);
  Place first = 0;
  Place place = 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    const std::string_view part = group.substr(index * piece, piece);
    Segment* const segment = take(part_header_bytes + part.size(), place);
    if (segment == nullptr) return 0;
    if (index == 0) first = place;
    RecordWriter record{*segment, place, RecordType::part, part_header_bytes + part.size()};
    std::memcpy(record.payload(), &first, sizeof first);
    std::memcpy(record.payload() + 8, &index, sizeof index);
    std::memcpy(record.payload() + 12, &count, sizeof count);
    std::memcpy(record.payload() + part_header_bytes, part.data(), part.size());
    record.seal();
    place += record_bytes(part_header_bytes + part.size());
  }
  return place;
}

Place Log::reserve() {
  Place place = 0;
  Segment* const segment = take(0, place);
  if (segment == nullptr) return 0;
  RecordWriter{*segment, place, RecordType::filler, 0}.seal();
  return place + record_header_bytes;
}

void Log::close_segment() {
  // Whoever appends meanwhile takes some of the rest; the loop ends when the tail has left it.
  const std::uint64_t number = number_of(tail());
  for (;;) {
    Place place = tail();
    if (number_of(place) != number || place <= begin_of(number)) return;
    const Place end = (number + 1) * setup_.segment_bytes;
    // mo: acq_rel: as in take().
    if (!tail_.compare_exchange_weak(place, begin_of(number + 1), std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
      continue;
    }
    refresh_state();
    fill(place, end);
    crossed_.raise();
    return;
  }
}

}  // namespace semel::storage
