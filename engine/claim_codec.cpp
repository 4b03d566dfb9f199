// See claim_codec.hpp for the format.
#include "engine/claim_codec.hpp"

#include <bit>
#include <cstring>

namespace semel::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is copied, not swapped");
static_assert(limits::owner_label_max <= 255, "the length of the owner label is one byte");

enum Flag : std::uint8_t {
  flag_result_expired = 1,
  flag_poison = 2,
  flag_lease_until = 4,
  flag_result_until = 8,
  flag_unique_until = 16,
  flag_session = 32,
  flag_claim_id = 64,
  flag_result_digest = 128,
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

constexpr std::uint8_t time_flags =
    flag_lease_until | flag_result_until | flag_unique_until | flag_session;

[[nodiscard]] std::size_t words_in(std::uint8_t flags) noexcept {
  return static_cast<std::size_t>(std::popcount(static_cast<unsigned>(flags & time_flags)));
}

[[nodiscard]] std::size_t digests_in(const Header& header) noexcept {
  const auto flagged = static_cast<unsigned>(header.flags & (flag_claim_id | flag_result_digest));
  return static_cast<std::size_t>(std::popcount(flagged)) + (header.algorithm != 0 ? 1 : 0);
}

[[nodiscard]] std::uint8_t flags_of(const ClaimRecord& record) noexcept {
  unsigned flags = 0;
  if (record.result_expired) flags |= flag_result_expired;
  if (record.poison) flags |= flag_poison;
  if (record.lease_until != Timestamp{}) flags |= flag_lease_until;
  if (record.result_until != Timestamp{}) flags |= flag_result_until;
  if (record.unique_until != Timestamp{}) flags |= flag_unique_until;
  if (record.session != 0) flags |= flag_session;
  if (record.claim_id) flags |= flag_claim_id;
  if (record.result_digest != Digest{}) flags |= flag_result_digest;
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
  const std::size_t fixed =
      sizeof header + words_in(header.flags) * 8 + digests_in(header) * sizeof(Digest);
  const std::size_t total = fixed + header.owner_bytes + record.result.size();
  char* const start = scratch.reserve(total);
  Writer writer{start};
  writer.bytes(&header, sizeof header);
  if (header.flags & flag_lease_until) writer.time(record.lease_until);
  if (header.flags & flag_result_until) writer.time(record.result_until);
  if (header.flags & flag_unique_until) writer.time(record.unique_until);
  if (header.flags & flag_session) writer.word(record.session);
  if (header.algorithm != 0) writer.bytes(record.fingerprint.digest.data(), sizeof(Digest));
  if (record.claim_id) writer.bytes(record.claim_id->data(), sizeof(Digest));
  if (header.flags & flag_result_digest) {
    writer.bytes(record.result_digest.data(), sizeof(Digest));
  }
  writer.bytes(record.owner.data(), header.owner_bytes);
  writer.bytes(record.result.data(), record.result.size());
  return {start, total};
}

bool decode(Bytes bytes, ClaimRecord& record) noexcept {
  Header header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t least = sizeof header + words_in(header.flags) * 8 +
                            digests_in(header) * sizeof(Digest) + header.owner_bytes;
  if (bytes.size() < least) return false;
  if (header.state > static_cast<std::uint8_t>(ClaimState::vacant)) return false;

  record = ClaimRecord{};
  record.state = static_cast<ClaimState>(header.state);
  record.result_expired = (header.flags & flag_result_expired) != 0;
  record.poison = (header.flags & flag_poison) != 0;
  record.attempts = header.attempts;
  record.epoch = header.epoch;
  Reader reader{bytes.data() + sizeof header};
  if (header.flags & flag_lease_until) record.lease_until = reader.time();
  if (header.flags & flag_result_until) record.result_until = reader.time();
  if (header.flags & flag_unique_until) record.unique_until = reader.time();
  if (header.flags & flag_session) record.session = reader.word();
  record.fingerprint.algorithm = header.algorithm;
  if (header.algorithm != 0) record.fingerprint.digest = reader.digest();
  if (header.flags & flag_claim_id) record.claim_id = reader.digest();
  if (header.flags & flag_result_digest) record.result_digest = reader.digest();
  record.owner = reader.bytes(header.owner_bytes);
  record.result = {reader.at(), bytes.size() - least};
  return true;
}

SessionId session_of(Bytes bytes) noexcept {
  Header header;
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((header.flags & flag_session) == 0) return 0;
  const auto before = static_cast<std::uint8_t>(header.flags & ~unsigned{flag_session});
  const std::size_t at = sizeof header + words_in(before) * 8;
  if (bytes.size() < at + 8) return 0;
  SessionId session = 0;
  std::memcpy(&session, bytes.data() + at, sizeof session);
  return session;
}

}  // namespace semel::engine
