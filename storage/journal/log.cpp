#include "storage/journal/log.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

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

}  // namespace

Segment* Log::wait_for_segment(std::uint64_t number) noexcept {
  for (unsigned spins = 0; spins < 1'000; ++spins) {
    if (Segment* const found = ring_.segment(number); found != nullptr) return found;
  }
  const Stopwatch time;
  for (;;) {
    if (Segment* const found = ring_.segment(number); found != nullptr) return found;
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
  Segment* const segment = wait_for_segment(extent_.number_of(from));
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
    offset = extent_.reserve(bytes);
    const std::uint64_t number = extent_.number_of(offset);
    const LogOffset end = extent_.end_of(number);
    if (extent_.offset_in_segment(offset) >= segment_header_bytes && offset + bytes <= end)
        [[likely]] {
      return wait_for_segment(number);
    }
    // The range crosses into the next segment, or begins in a header: fill both ends and try again.
    drain_signal_.raise();
    const LogOffset first = std::max(offset, extent_.begin_of(number));
    fill(std::min(first, offset + bytes), std::min(end, offset + bytes));
    if (offset + bytes > end)
      fill(extent_.begin_of(number + 1), std::max(extent_.begin_of(number + 1), offset + bytes));
    // mo: acquire [log.segment]
    if (stopped_.load(std::memory_order_acquire)) return nullptr;
  }
}

/// After a crash, records behind this one would be lost with it.
LogOffset Log::fail_write() noexcept {
  stop();
  return 0;
}

LogOffset Log::append(std::span<const Mutation> group, const DurableClock& durable_clock,
                      Timestamp now) {
  const MutationBase base = bases_.expected();
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
    if (!bases_.is_entered(*segment)) [[unlikely]] {
      const Version version = group.empty() ? 0 : group.front().version;
      bases_.enter(*segment, {version, durable_clock.to_durable_ms(now)});
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
  const std::uint64_t number = extent_.number_of(extent_.tail());
  for (;;) {
    const LogOffset offset = extent_.tail();
    if (extent_.number_of(offset) != number || offset <= extent_.begin_of(number)) return;
    const LogOffset end = extent_.end_of(number);
    if (!extent_.reserve_to(offset, extent_.begin_of(number + 1))) continue;
    fill(offset, end);
    drain_signal_.raise();
    return;
  }
}

}  // namespace semel::storage
