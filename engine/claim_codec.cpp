// See claim_codec.hpp for the format.
#include "engine/claim_codec.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace semel::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is copied, not swapped");
static_assert(limits::owner_label_max <= 255, "the length of the owner label is one byte");

enum Flag : std::uint8_t {
  flag_result_expired = 1,  // and then the digest of the result is there
  flag_poison = 2,
  flag_lease_until = 4,
  flag_result_until = 8,
  flag_unique_until = 16,
  flag_session = 32,
  flag_claim_id = 64,
  flag_one_end = 128,  // result_until is unique_until, stored once
};

struct Header {
  std::uint8_t state;
  std::uint8_t flags;
  std::uint8_t owner_bytes;
  std::uint8_t algorithm;
  std::uint32_t attempts;
  std::uint64_t epoch;
};
static_assert(sizeof(Header) == 16);

using Digest = std::array<std::uint8_t, 16>;

/// Bytes that follow the header for each combination of flags. A table, because counting bits is a
/// function call where the compiler may not assume the instruction.
constexpr auto flagged_bytes = [] {
  std::array<std::uint8_t, 256> bytes{};
  for (unsigned flags = 0; flags < bytes.size(); ++flags) {
    const unsigned words =
        flags & (flag_lease_until | flag_result_until | flag_unique_until | flag_session);
    const unsigned digests = flags & (flag_result_expired | flag_claim_id);
    bytes[flags] =
        static_cast<std::uint8_t>(std::popcount(words) * 8 + std::popcount(digests) * 16);
  }
  return bytes;
}();

/// Bytes before the result.
[[nodiscard]] std::size_t fixed_bytes(const Header& header) noexcept {
  return sizeof header + flagged_bytes[header.flags] +
         (header.algorithm != 0 ? sizeof(Digest) : 0) + header.owner_bytes;
}

[[nodiscard]] std::uint8_t flags_of(const ClaimRecord& record) noexcept {
  const bool one_end =
      record.result_until == record.unique_until && record.unique_until != Timestamp{};
  unsigned flags = 0;
  if (record.result_expired) flags |= flag_result_expired;
  if (record.poison) flags |= flag_poison;
  if (record.lease_until != Timestamp{}) flags |= flag_lease_until;
  if (record.result_until != Timestamp{} && !one_end) flags |= flag_result_until;
  if (record.unique_until != Timestamp{}) flags |= flag_unique_until;
  if (record.session != 0) flags |= flag_session;
  if (record.claim_id) flags |= flag_claim_id;
  if (one_end) flags |= flag_one_end;
  return static_cast<std::uint8_t>(flags);
}

/// Appends to a buffer that is known to be large enough.
class Writer {
 public:
  explicit Writer(char* at) noexcept : at_(at) {}
  void bytes(const void* from, std::size_t count) noexcept {
    if (count == 0) return;
    std::memcpy(at_, from, count);
    at_ += count;
  }
  void word(std::uint64_t value) noexcept { bytes(&value, sizeof value); }
  void time(Timestamp when) noexcept {
    word(static_cast<std::uint64_t>(when.time_since_epoch().count()));
  }

 private:
  char* at_;
};

/// Reads from bytes whose length was checked against the header.
class Reader {
 public:
  explicit Reader(const char* at) noexcept : at_(at) {}
  [[nodiscard]] std::uint64_t word() noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  [[nodiscard]] Timestamp time() noexcept {
    return Timestamp{Millis{static_cast<std::int64_t>(word())}};
  }
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
  const char* at_;
};

}  // namespace

Bytes encode(const ClaimRecord& record, Scratch& scratch) {
  const Header header{.state = static_cast<std::uint8_t>(record.state),
                      .flags = flags_of(record),
                      .owner_bytes = static_cast<std::uint8_t>(record.owner.size()),
                      .algorithm = record.fingerprint.algorithm,
                      .attempts = record.attempts,
                      .epoch = record.epoch};
  const std::size_t total = fixed_bytes(header) + record.result.size();
  char* const start = scratch.reserve(total);
  Writer writer{start};
  writer.bytes(&header, sizeof header);
  if (header.flags & flag_lease_until) writer.time(record.lease_until);
  if (header.flags & flag_result_until) writer.time(record.result_until);
  if (header.flags & flag_unique_until) writer.time(record.unique_until);
  if (header.flags & flag_session) writer.word(record.session);
  if (header.algorithm != 0) writer.bytes(record.fingerprint.digest.data(), sizeof(Digest));
  if (record.claim_id) writer.bytes(record.claim_id->data(), sizeof(Digest));
  if (record.result_expired) writer.bytes(record.result_digest.data(), sizeof(Digest));
  writer.bytes(record.owner.data(), header.owner_bytes);
  writer.bytes(record.result.data(), record.result.size());
  return {start, total};
}

bool decode(Bytes bytes, ClaimRecord& record) noexcept {
  Header header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t fixed = fixed_bytes(header);
  if (bytes.size() < fixed) return false;
  if (header.state > static_cast<std::uint8_t>(ClaimState::vacant)) return false;

  // Each field once, instead of clearing the record first: this is on the path of every claim.
  record.state = static_cast<ClaimState>(header.state);
  record.result_expired = (header.flags & flag_result_expired) != 0;
  record.poison = (header.flags & flag_poison) != 0;
  record.attempts = header.attempts;
  record.epoch = header.epoch;
  Reader reader{bytes.data() + sizeof header};
  record.lease_until = header.flags & flag_lease_until ? reader.time() : Timestamp{};
  record.result_until = header.flags & flag_result_until ? reader.time() : Timestamp{};
  record.unique_until = header.flags & flag_unique_until ? reader.time() : Timestamp{};
  if (header.flags & flag_one_end) record.result_until = record.unique_until;
  record.session = header.flags & flag_session ? reader.word() : 0;
  record.fingerprint.algorithm = header.algorithm;
  record.fingerprint.digest = header.algorithm != 0 ? reader.digest() : Digest{};
  if (header.flags & flag_claim_id) {
    record.claim_id = reader.digest();
  } else {
    record.claim_id.reset();
  }
  record.result_digest = record.result_expired ? reader.digest() : Digest{};
  record.owner = reader.bytes(header.owner_bytes);
  record.result = {reader.at(), bytes.size() - fixed};
  return true;
}

SessionId session_of(Bytes bytes) noexcept {
  Header header;
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((header.flags & flag_session) == 0) return 0;
  constexpr unsigned before = flag_lease_until | flag_result_until | flag_unique_until;
  const std::size_t at = sizeof header + flagged_bytes[header.flags & before];
  if (bytes.size() < at + 8) return 0;
  SessionId session = 0;
  std::memcpy(&session, bytes.data() + at, sizeof session);
  return session;
}

Timestamp claim_wake_of(Bytes bytes, Timestamp due) noexcept {
  Header header;
  if (bytes.size() < sizeof header) return due;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool trimmed_later = header.state == static_cast<std::uint8_t>(ClaimState::done) &&
                             (header.flags & flag_result_until) != 0 &&
                             (header.flags & flag_result_expired) == 0;
  if (!trimmed_later || bytes.size() <= fixed_bytes(header)) return due;  // or without a result
  const std::size_t at = sizeof header + flagged_bytes[header.flags & flag_lease_until];
  return std::min(due, Reader{bytes.data() + at}.time());
}

}  // namespace semel::engine
