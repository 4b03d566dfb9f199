// See claim_codec.hpp for the format.
#include "engine/rules/claim_codec.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/rules/bytes.hpp"
#include "engine/rules/memo_list.hpp"

namespace semel::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is copied, not swapped");
static_assert(std::all_of(claim_labels.begin(), claim_labels.end(),
                          [](const ClaimLabel& label) { return label.bytes_max <= 255; }),
              "the length of a label is one byte");

/// Bits of `head` above the state.
enum Flag : std::uint16_t {
  flag_result_expired = 1 << 3,  // a row of claim_flags; then the digest of the result is there
  flag_lease_until = 1 << 4,
  flag_result_until = 1 << 5,
  flag_unique_until = 1 << 6,
  flag_session = 1 << 7,
  flag_claim_id = 1 << 8,
  flag_details = 1 << 9,
  flag_one_end = 1 << 10,  // result_until is unique_until, stored once
  flag_memos = 1 << 12,
};
constexpr unsigned state_bits = 7;
static_assert(claim_flags.front().field == &ClaimRecord::result_expired &&
              claim_flags.front().memory == flag_result_expired);
/// The rows that a claim keeps when it becomes done.
constexpr unsigned flag_rows_kept = stored_bits([](const auto& row) -> unsigned {
                                      if constexpr (requires { row.memory; }) return row.memory;
                                      return 0;
                                    }) &
                                    ~unsigned{flag_result_expired};
static_assert((claim_number_bits & ~flag_rows_kept) == 0);
static_assert((flag_rows_kept & (state_bits | 0x17f8)) == 0);
static_assert(static_cast<unsigned>(ClaimState::vacant) <= state_bits);
// What claim_wake_of() and is_leased() ask.
static_assert((state_bits | flag_result_expired | flag_result_until | flag_memos) == 0x102f);
static_assert((static_cast<unsigned>(ClaimState::done) | flag_result_until) == 0x22);

static_assert((static_cast<unsigned>(ClaimState::done) | flag_unique_until | flag_one_end) ==
              plain_done_head);
static_assert((static_cast<unsigned>(ClaimState::held) | flag_lease_until | flag_session) ==
              plain_held_head);

static_assert((state_bits | flag_lease_until) == 0x17 && flag_details == 0x200);
static_assert((static_cast<unsigned>(ClaimState::held) | flag_lease_until) == 0x11);

struct Header {
  std::uint16_t head;
  std::uint64_t epoch;
};
constexpr std::size_t header_bytes = 10;
constexpr std::size_t time_bytes = 6;
constexpr std::size_t memo_size_bytes = 4;
static_assert(header_bytes + time_bytes == 16, "where plain records have result and session");

/// What the common record does not have: it is the first attempt and carries no labels.
struct Details {
  std::uint32_t attempts = 1;
  LabelBytes label_bytes{};
  std::uint8_t algorithm = 0;
  std::uint8_t unused[3 - claim_labels.size()] = {};
};
static_assert(sizeof(Details) == 8);

using Digest = std::array<std::uint8_t, 16>;

/// Bytes between header and fingerprint or labels for each combination of flags. A table, because
/// counting bits is a function call where the compiler may not assume the instruction.
constexpr auto flagged_bytes = [] {
  std::array<std::uint8_t, 256> bytes{};
  for (unsigned i = 0; i < bytes.size(); ++i) {
    const unsigned head = i << 3;
    const unsigned times = head & (flag_lease_until | flag_result_until | flag_unique_until);
    const unsigned words = head & (flag_session | flag_details);
    const unsigned digests = head & (flag_result_expired | flag_claim_id);
    bytes[i] = static_cast<std::uint8_t>(std::popcount(times) * int{time_bytes} +
                                         std::popcount(words) * 8 + std::popcount(digests) * 16);
  }
  return bytes;
}();
[[nodiscard]] std::size_t bytes_for(unsigned head) noexcept {
  return flagged_bytes[(head >> 3) & 0xff];
}

/// Bytes of fingerprint, numbers and labels.
[[nodiscard]] std::size_t identity_bytes(unsigned head, const Details& details) noexcept {
  std::size_t bytes = details.algorithm != 0 ? sizeof(Digest) : 0;
  each_row<claim_numbers>([&](auto number) {
    if ((head & number.row.memory) != 0) bytes += sizeof(std::uint32_t);
  });
  return bytes + sum_of(details.label_bytes);
}

/// Bytes before memos and result.
[[nodiscard]] std::size_t fixed_bytes(unsigned head, const Details& details) noexcept {
  return header_bytes + bytes_for(head) + identity_bytes(head, details);
}

/// State and flags alone; none if there is not even that.
[[nodiscard]] unsigned head_of(Bytes bytes) noexcept {
  std::uint16_t head = 0;
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

/// Reads header and details. False: the bytes are too few for what they say follows.
[[nodiscard]] bool read_fixed(Bytes bytes, Header& header, Details& details) noexcept {
  if (bytes.size() < header_bytes) return false;
  std::memcpy(&header.head, bytes.data(), 2);
  std::memcpy(&header.epoch, bytes.data() + 2, 8);
  if (header.head & flag_details) {
    if (bytes.size() < header_bytes + sizeof details) return false;
    std::memcpy(&details, bytes.data() + header_bytes, sizeof details);
  }
  return bytes.size() >= fixed_bytes(header.head, details);
}

[[nodiscard]] LabelBytes label_bytes_of(const ClaimRecord& record) noexcept {
  LabelBytes bytes{};
  each_row<claim_labels>([&](auto label) {
    bytes[label.index] = static_cast<std::uint8_t>((record.*label.row.kept).size());
  });
  return bytes;
}

[[nodiscard]] std::uint16_t head_of(const ClaimRecord& record) noexcept {
  const bool one_end =
      record.result_until == record.unique_until && record.unique_until != Timestamp{};
  const bool details =
      record.attempts != 1 || has_labels(record) || record.fingerprint.algorithm != 0;
  unsigned head = static_cast<unsigned>(record.state);
  each_row<claim_flags>([&](auto flag) {
    if (record.*flag.row.field) head |= flag.row.memory;
  });
  each_row<claim_numbers>([&](auto number) {
    if (record.*number.row.kept != number.row.usual) head |= number.row.memory;
  });
  if (record.lease_until != Timestamp{}) head |= flag_lease_until;
  if (record.result_until != Timestamp{} && !one_end) head |= flag_result_until;
  if (record.unique_until != Timestamp{}) head |= flag_unique_until;
  if (record.session != 0) head |= flag_session;
  if (record.claim_id) head |= flag_claim_id;
  if (details) head |= flag_details;
  if (one_end) head |= flag_one_end;
  if (!record.memos.empty()) head |= flag_memos;
  return static_cast<std::uint16_t>(head);
}

/// Appends to a buffer that is known to be large enough.
class Writer {
 public:
  explicit Writer(char* at) noexcept : at_(at) {}
  void bytes(const void* from, std::size_t count) noexcept {
    copy_bytes(at_, static_cast<const char*>(from), count);
    at_ += count;
  }
  void word(std::uint64_t value) noexcept { bytes(&value, sizeof value); }
  void time(Timestamp when) noexcept {
    const std::uint64_t stored = stored_time(when);
    bytes(&stored, time_bytes);
  }

 private:
  char* at_;
};

/// Reads from bytes whose length was checked against the header.
class Reader {
 public:
  explicit Reader(const char* at) noexcept : at_(at) {}
  [[nodiscard]] std::uint64_t word() noexcept { return number(8); }
  [[nodiscard]] std::uint32_t half_word() noexcept { return static_cast<std::uint32_t>(number(4)); }
  [[nodiscard]] std::size_t size() noexcept { return number(memo_size_bytes); }
  [[nodiscard]] Timestamp time() noexcept { return time_of(number(time_bytes)); }
  [[nodiscard]] Digest digest() noexcept {
    Digest value;
    std::memcpy(value.data(), at_, value.size());
    at_ += value.size();
    return value;
  }
  [[nodiscard]] Bytes bytes(std::size_t count) noexcept {
    const Bytes view{at_, count};
    at_ += count;
    return view;
  }
  [[nodiscard]] const char* at() const noexcept { return at_; }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t count) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, at_, count);
    at_ += count;
    return value;
  }
  const char* at_;
};

}  // namespace

Bytes encode(const ClaimRecord& record, Scratch& scratch) {
  const std::uint16_t head = head_of(record);
  Details details;
  details.attempts = record.attempts;
  details.label_bytes = label_bytes_of(record);
  details.algorithm = record.fingerprint.algorithm;
  const std::size_t memos = head & flag_memos ? memo_size_bytes + record.memos.size() : 0;
  const std::size_t total = fixed_bytes(head, details) + memos + record.result.size();
  char* const start = scratch.reserve(total);
  Writer writer{start};
  writer.bytes(&head, sizeof head);
  writer.word(record.epoch);
  if (head & flag_details) writer.bytes(&details, sizeof details);
  if (head & flag_lease_until) writer.time(record.lease_until);
  if (head & flag_result_until) writer.time(record.result_until);
  if (head & flag_unique_until) writer.time(record.unique_until);
  if (head & flag_session) writer.word(record.session);
  if (head & flag_claim_id) writer.bytes(record.claim_id->data(), sizeof(Digest));
  if (head & flag_result_expired) writer.bytes(record.result_digest.data(), sizeof(Digest));
  if (details.algorithm != 0) writer.bytes(record.fingerprint.digest.data(), sizeof(Digest));
  each_row<claim_numbers>([&](auto number) {
    if (head & number.row.memory) writer.bytes(&(record.*number.row.kept), sizeof(std::uint32_t));
  });
  each_row<claim_labels>([&](auto label) {
    writer.bytes((record.*label.row.kept).data(), details.label_bytes[label.index]);
  });
  if (head & flag_memos) {
    const auto size = static_cast<std::uint32_t>(record.memos.size());
    writer.bytes(&size, sizeof size);
    writer.bytes(record.memos.data(), record.memos.size());
  }
  writer.bytes(record.result.data(), record.result.size());
  return {start, total};
}

bool decode(Bytes bytes, ClaimRecord& record) noexcept {
  Header header;
  Details details;
  if (!read_fixed(bytes, header, details)) return false;
  const unsigned head = header.head;
  if ((head & state_bits) > static_cast<unsigned>(ClaimState::vacant)) return false;

  // Each field once, instead of clearing the record first: this is on the path of every claim.
  record.state = static_cast<ClaimState>(head & state_bits);
  each_row<claim_flags>([&](auto flag) { record.*flag.row.field = (head & flag.row.memory) != 0; });
  record.attempts = details.attempts;
  record.epoch = header.epoch;
  Reader reader{bytes.data() + header_bytes + (head & flag_details ? sizeof details : 0)};
  record.lease_until = head & flag_lease_until ? reader.time() : Timestamp{};
  record.result_until = head & flag_result_until ? reader.time() : Timestamp{};
  record.unique_until = head & flag_unique_until ? reader.time() : Timestamp{};
  if (head & flag_one_end) record.result_until = record.unique_until;
  record.session = head & flag_session ? reader.word() : 0;
  if (head & flag_claim_id) {
    record.claim_id = reader.digest();
  } else {
    record.claim_id.reset();
  }
  record.result_digest = record.result_expired ? reader.digest() : Digest{};
  record.fingerprint.algorithm = details.algorithm;
  record.fingerprint.digest = details.algorithm != 0 ? reader.digest() : Digest{};
  each_row<claim_numbers>([&](auto number) {
    if constexpr (number.row.memory != 0) {
      record.*number.row.kept = head & number.row.memory ? reader.half_word() : number.row.usual;
    }
  });
  each_row<claim_labels>(
      [&](auto label) { record.*label.row.kept = reader.bytes(details.label_bytes[label.index]); });
  record.memos = {};
  std::size_t left = bytes.size() - fixed_bytes(head, details);
  if (head & flag_memos) [[unlikely]] {
    if (left < memo_size_bytes) return false;
    const std::size_t size = reader.size();
    if (size > left - memo_size_bytes) return false;
    record.memos = reader.bytes(size);
    left -= memo_size_bytes + size;
  }
  record.result = {reader.at(), left};
  return true;
}

bool read_replay(Bytes bytes, Timestamp now, Replay& replay) noexcept {
  Header header;
  Details details;
  if (!read_fixed(bytes, header, details)) return false;
  const unsigned head = header.head;
  constexpr unsigned asked = state_bits | flag_result_expired | flag_memos | claim_number_bits;
  if ((head & asked) != static_cast<unsigned>(ClaimState::done)) return false;
  // A restored record may have neither end.
  if ((head & (flag_one_end | flag_result_until)) == 0) return false;
  // The end of the result follows that of the lease, or is that of the key.
  const unsigned before = head & flag_one_end ? flag_details | flag_lease_until | flag_result_until
                                              : flag_details | flag_lease_until;
  const Timestamp until = Reader{bytes.data() + header_bytes + bytes_for(head & before)}.time();
  if (now >= until) return false;
  const std::size_t at = fixed_bytes(head, details);
  replay = {.attempts = details.attempts, .result = bytes.substr(at)};
  return true;
}

bool read_met(Bytes bytes, MetClaim& met) noexcept {
  Header header;
  Details details;
  if (!read_fixed(bytes, header, details)) return false;
  const unsigned head = header.head;
  if ((head & state_bits) > static_cast<unsigned>(ClaimState::vacant)) return false;
  met.state = static_cast<ClaimState>(head & state_bits);
  met.epoch = header.epoch;
  const char* const lease = bytes.data() + header_bytes + bytes_for(head & flag_details);
  met.lease_until = head & flag_lease_until ? Reader{lease}.time() : Timestamp{};
  met.owner = owner_at_end(bytes.substr(0, fixed_bytes(head, details)), details.label_bytes);
  return true;
}

bool read_any_held(Bytes bytes, HeldClaim& held) noexcept {
  Header header;
  Details details;
  if (!read_fixed(bytes, header, details)) return false;
  const unsigned head = header.head;
  constexpr unsigned asked = state_bits | flag_lease_until | flag_result_expired;
  constexpr unsigned wanted = static_cast<unsigned>(ClaimState::held) | flag_lease_until;
  if ((head & asked) != wanted) return false;
  held.head = header.head;
  held.label_bytes = details.label_bytes;
  held.algorithm = details.algorithm;
  held.attempts = details.attempts;
  held.epoch = header.epoch;
  const char* const optional = bytes.data() + header_bytes;
  held.lease_until = Reader{optional + bytes_for(head & flag_details)}.time();
  constexpr unsigned before =
      flag_details | flag_lease_until | flag_result_until | flag_unique_until;
  held.session = head & flag_session ? Reader{optional + bytes_for(head & before)}.word() : 0;
  held.identity = {optional + bytes_for(head), identity_bytes(head, details)};
  return true;
}

namespace {

[[nodiscard]] unsigned done_head(const HeldClaim& held, const DoneEnds& ends) noexcept {
  const bool one_end = ends.result_until == ends.unique_until;
  return static_cast<unsigned>(ClaimState::done) | (held.head & (flag_details | flag_rows_kept)) |
         flag_unique_until | (one_end ? flag_one_end : flag_result_until);
}

}  // namespace

std::size_t any_done_bytes(const HeldClaim& held, const DoneEnds& ends) noexcept {
  return header_bytes + bytes_for(done_head(held, ends)) + held.identity.size();
}

void write_any_done(char* to, const HeldClaim& held, const DoneEnds& ends, Bytes result) noexcept {
  const auto head = static_cast<std::uint16_t>(done_head(held, ends));
  Details details;
  details.attempts = held.attempts;
  details.label_bytes = held.label_bytes;
  details.algorithm = held.algorithm;
  Writer writer{to};
  writer.bytes(&head, sizeof head);
  writer.word(held.epoch);
  if (head & flag_details) writer.bytes(&details, sizeof details);
  if (head & flag_result_until) writer.time(ends.result_until);
  writer.time(ends.unique_until);
  writer.bytes(held.identity.data(), held.identity.size());
  writer.bytes(result.data(), result.size());
}

bool has_sound_memos(Bytes bytes) noexcept {
  if ((head_of(bytes) & flag_memos) == 0) [[likely]]
    return true;
  ClaimRecord record;
  return decode(bytes, record) && is_sound_memos(record.memos);
}

SessionId session_of(Bytes bytes) noexcept {
  const unsigned head = head_of(bytes);
  if ((head & flag_session) == 0) return 0;
  constexpr unsigned before =
      flag_details | flag_lease_until | flag_result_until | flag_unique_until;
  const std::size_t at = header_bytes + bytes_for(head & before);
  return bytes.size() < at + 8 ? 0 : Reader{bytes.data() + at}.word();
}

Timestamp early_claim_wake_of(Bytes bytes, Timestamp due) noexcept {
  Header header;
  Details details;
  if (!read_fixed(bytes, header, details)) return due;
  // Without a result there is nothing to give back.
  if (bytes.size() == fixed_bytes(header.head, details)) return due;
  const std::size_t before = bytes_for(header.head & (flag_details | flag_lease_until));
  return std::min(due, Reader{bytes.data() + header_bytes + before}.time());
}

}  // namespace semel::engine
