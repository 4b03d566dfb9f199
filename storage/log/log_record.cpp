#include "storage/log/log_record.hpp"

#include <cstring>

namespace semel::storage {
namespace {

template <class Word>
[[nodiscard]] Word word_at(std::string_view segment, std::size_t at) noexcept {
  Word word{};
  std::memcpy(&word, segment.data() + at, sizeof word);
  return word;
}

// Of formats 2 to 5: u64 head: u32 payload bytes, u8 type, u24 check | u64 seal | payload | zeros
// up to a multiple of 8. Only read: such segments are drained, and never written again.
constexpr std::size_t old_header_bytes = 16;

[[nodiscard]] std::uint64_t old_head(std::uint64_t salt, LogOffset offset,
                                     std::uint64_t low) noexcept {
  const std::uint64_t check = mix(mix(salt ^ low) + offset) >> 40;
  return low | (check << 40) | (std::uint64_t{1} << 63);
}

[[nodiscard]] std::uint64_t old_seal(std::uint64_t salt, std::uint64_t head,
                                     Bytes payload) noexcept {
  const std::uint64_t seal = XXH3_64bits_withSeed(payload.data(), payload.size(), salt ^ mix(head));
  return seal != 0 ? seal : 1;
}

[[nodiscard]] FoundRecord old_record_at(std::string_view segment, const SegmentHeader& header,
                                        std::size_t at) noexcept {
  using Is = FoundRecord::Is;
  FoundRecord found;
  if (at + old_header_bytes > segment.size()) return found;
  const auto head = word_at<std::uint64_t>(segment, at);
  const LogOffset offset = header.number * header.bytes + at;
  constexpr std::uint64_t low_bits = (std::uint64_t{1} << 40) - 1;
  if (head == 0) {
    found.is = Is::zeros;
    return found;
  }
  const auto payload_bytes = static_cast<std::uint32_t>(head);
  found.bytes = old_header_bytes + round_up(payload_bytes, 8);
  found.type = static_cast<RecordType>(head >> 32 & 0xff);
  if (head != old_head(header.salt, offset, head & low_bits) || at + found.bytes > segment.size() ||
      found.type == RecordType::near) {
    return found;
  }
  Bytes payload = segment.substr(at + old_header_bytes, payload_bytes);
  if (found.type == RecordType::filler) payload = {};
  const auto seal = word_at<std::uint64_t>(segment, at + 8);
  found.is = seal == 0                                      ? Is::begun
             : seal == old_seal(header.salt, head, payload) ? Is::whole
                                                            : Is::wrong;
  if (found.is == Is::whole) found.payload = payload;
  return found;
}

}  // namespace

FoundRecord record_at(std::string_view segment, const SegmentHeader& header,
                      std::size_t at) noexcept {
  if (header.is_old()) return old_record_at(segment, header, at);
  return at < segment.size() ? record_of(segment.substr(at), header, at) : FoundRecord{};
}

FoundRecord record_of(std::string_view bytes, const SegmentHeader& header,
                      std::size_t at) noexcept {
  using Is = FoundRecord::Is;
  FoundRecord found;
  if (record_bytes_min > bytes.size()) return found;
  const auto first = word_at<std::uint32_t>(bytes, 0);
  const auto second = word_at<std::uint32_t>(bytes, 4);
  if (first == 0) {
    found.is = Is::zeros;
    return found;
  }
  const LogOffset offset = header.number * header.bytes + at;
  const RecordHead head = RecordHead::read(header.salt, offset, first, second);
  found.type = head.type;
  found.bytes = head.shape.bytes();
  if (!head.is_head(first, second)) {
    // A process was killed between the two words: nothing else of the record was written.
    const bool is_first_word =
        head.shape.is_long && second == 0 &&
        (first & RecordHead::offset_check) == RecordHead::offset_check_of(header.salt, offset);
    if (is_first_word) found = {Is::begun, RecordType::filler, record_bytes_min, {}};
    return found;
  }
  if (found.bytes > bytes.size()) return found;
  const char* const payload = bytes.data() + head.shape.header_bytes();
  const std::uint64_t seal = head.seal_of(head.sealed_part(payload));
  const bool is_right = head.shape.is_long ? word_at<std::uint64_t>(bytes, 8) == seal
                                           : word_at<std::uint32_t>(bytes, 4) == seal >> 32;
  if (word_at<std::uint32_t>(bytes, head.shape.seal_end_at()) == 0) {
    found.is = Is::begun;
  } else if (!is_right) {
    found.is = Is::wrong;
  } else {
    found.is = Is::whole;
    if (found.type != RecordType::filler) found.payload = {payload, head.shape.payload};
  }
  return found;
}

}  // namespace semel::storage
