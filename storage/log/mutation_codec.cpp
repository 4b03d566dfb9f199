#include "storage/log/mutation_codec.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/assert.hpp"

namespace semel::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is copied, not swapped");

// The head: type in the lowest two bits, then
enum Head : std::uint8_t {
  head_type = 3,
  head_claim = 4,  // kind
  head_due = 8,
  head_keep = 16,
  head_db = 32,
  head_record = 64,  // a claim's record follows
  head_kind = 128,   // a byte for the kind follows: neither a string nor a claim
};
enum ClaimFlag : std::uint8_t {
  claim_result_expired = 1,
  claim_poison = 2,
  claim_has_id = 4,
  claim_has_session = 8,
  claim_has_lease = 16,
  claim_has_result_end = 32,
  claim_has_unique_end = 64,
};
constexpr std::size_t time_bytes = 6;
/// The largest time that fits, 8,900 years after 1970, stands for no end.
constexpr std::uint64_t time_none = (std::uint64_t{1} << 48) - 1;

[[nodiscard]] std::size_t varint_bytes(std::uint64_t value) noexcept {
  return static_cast<std::size_t>(std::max(1, (64 - std::countl_zero(value) + 6) / 7));
}

class Writer {
 public:
  explicit Writer(char* to) noexcept : to_(to) {}
  template <class T>
  void number(T value) noexcept {
    static_assert(std::is_unsigned_v<T>);
    std::memcpy(to_, &value, sizeof value);
    to_ += sizeof value;
  }
  void varint(std::uint64_t value) noexcept {
    for (; value >= 128; value >>= 7) *to_++ = static_cast<char>(value | 128);
    *to_++ = static_cast<char>(value);
  }
  void time(std::uint64_t line_ms) noexcept {
    line_ms = std::min(line_ms, time_none);
    std::memcpy(to_, &line_ms, time_bytes);
    to_ += time_bytes;
  }
  void bytes(Bytes part) noexcept {
    if (!part.empty()) std::memcpy(to_, part.data(), part.size());
    to_ += part.size();
  }
  template <class Array>
  void array(const Array& part) noexcept {
    bytes({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  [[nodiscard]] char* end() const noexcept { return to_; }

 private:
  char* to_;
};

/// Reads fields, and remembers whether one was cut off.
class Reader {
 public:
  explicit Reader(Bytes bytes) noexcept : bytes_(bytes) {}
  template <class T>
  [[nodiscard]] T number() noexcept {
    T value{};
    const Bytes part = take(sizeof value);
    if (part.size() == sizeof value) std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
    good_ = false;
    return 0;
  }
  [[nodiscard]] std::uint64_t time() noexcept {
    std::uint64_t value = 0;
    const Bytes part = take(time_bytes);
    if (part.size() == time_bytes) std::memcpy(&value, part.data(), time_bytes);
    return value == time_none ? DurableClock::no_end_ms : value;
  }
  template <class Array>
  void array(Array& to) noexcept {
    const Bytes part = take(to.size());
    if (part.size() == to.size()) std::memcpy(to.data(), part.data(), to.size());
  }
  [[nodiscard]] Bytes take(std::size_t count) noexcept {
    if (count > bytes_.size()) {
      good_ = false;
      return {};
    }
    const Bytes part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  [[nodiscard]] Bytes rest() noexcept { return take(bytes_.size()); }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  Bytes bytes_;
  bool good_ = true;
};

[[nodiscard]] bool has_own_kind(Kind kind) noexcept {
  return kind != Kind::string && kind != Kind::claim;
}

[[nodiscard]] unsigned flags_of(const ClaimRecord& claim) noexcept {
  unsigned flags = 0;
  if (claim.result_expired) flags |= claim_result_expired;
  if (claim.poison) flags |= claim_poison;
  if (claim.claim_id) flags |= claim_has_id;
  if (claim.session != 0) flags |= claim_has_session;
  if (claim.lease_until != Timestamp{}) flags |= claim_has_lease;
  if (claim.result_until != Timestamp{}) flags |= claim_has_result_end;
  if (claim.unique_until != Timestamp{}) flags |= claim_has_unique_end;
  return flags;
}

[[nodiscard]] std::uint64_t lease_left(const ClaimRecord& claim, Timestamp now) noexcept {
  return static_cast<std::uint64_t>(std::max(Millis{0}, claim.lease_until - now).count());
}

[[nodiscard]] std::size_t claim_bytes(const ClaimRecord& claim, Version version,
                                      Timestamp now) noexcept {
  const unsigned flags = flags_of(claim);
  std::size_t bytes = 4 + varint_bytes(claim.attempts) + varint_bytes(version - claim.epoch);
  if (flags & claim_has_session) bytes += 8;
  if (flags & claim_has_lease) bytes += time_bytes + varint_bytes(lease_left(claim, now));
  if (flags & claim_has_result_end) bytes += time_bytes;
  if (flags & claim_has_unique_end) bytes += time_bytes;
  if (flags & claim_has_id) bytes += claim.claim_id->size();
  if (flags & claim_result_expired) bytes += claim.result_digest.size();
  if (claim.fingerprint.algorithm != 0) bytes += claim.fingerprint.digest.size();
  return bytes + claim.owner.size() + claim.result.size();
}

void encode_claim(const ClaimRecord& claim, Version version, const DurableClock& durable_clock,
                  Timestamp now, Writer& writer) {
  SEMEL_ASSERT(claim.owner.size() <= 255);  // one byte says how long it is
  const unsigned flags = flags_of(claim);
  writer.number(static_cast<std::uint8_t>(claim.state));
  writer.number(static_cast<std::uint8_t>(flags));
  writer.number(static_cast<std::uint8_t>(claim.owner.size()));
  writer.number(claim.fingerprint.algorithm);
  writer.varint(claim.attempts);
  writer.varint(version -
                claim.epoch);  // usually small: both come from one thread's block of versions
  if (flags & claim_has_session) writer.number(std::uint64_t{claim.session});
  if (flags & claim_has_lease) {
    writer.time(durable_clock.to_durable_ms(claim.lease_until));
    writer.varint(lease_left(claim, now));
  }
  if (flags & claim_has_result_end) writer.time(durable_clock.to_durable_ms(claim.result_until));
  if (flags & claim_has_unique_end) writer.time(durable_clock.to_durable_ms(claim.unique_until));
  if (flags & claim_has_id) writer.array(*claim.claim_id);
  if (flags & claim_result_expired) writer.array(claim.result_digest);
  if (claim.fingerprint.algorithm != 0) writer.array(claim.fingerprint.digest);
  writer.bytes(claim.owner);
  writer.bytes(claim.result);
}

[[nodiscard]] bool decode_claim(Reader& reader, Version version, const DurableClock& durable_clock,
                                Timestamp now, ClaimRecord& claim, Millis& moved) {
  const auto state = reader.number<std::uint8_t>();
  const auto flags = reader.number<std::uint8_t>();
  const auto owner_bytes = reader.number<std::uint8_t>();
  claim.fingerprint.algorithm = reader.number<std::uint8_t>();
  claim.attempts = static_cast<std::uint32_t>(reader.varint());
  claim.epoch = version - reader.varint();
  if (flags & claim_has_session) claim.session = reader.number<std::uint64_t>();
  Millis lease{0};
  if (flags & claim_has_lease) {
    claim.lease_until = durable_clock.from_durable_ms(reader.time());
    lease = Millis{static_cast<std::int64_t>(reader.varint())};
  }
  if (flags & claim_has_result_end)
    claim.result_until = durable_clock.from_durable_ms(reader.time());
  if (flags & claim_has_unique_end)
    claim.unique_until = durable_clock.from_durable_ms(reader.time());
  if (flags & claim_has_id) reader.array(claim.claim_id.emplace());
  claim.result_expired = (flags & claim_result_expired) != 0;
  claim.poison = (flags & claim_poison) != 0;
  if (claim.result_expired) reader.array(claim.result_digest);
  if (claim.fingerprint.algorithm != 0) reader.array(claim.fingerprint.digest);
  claim.owner = reader.take(owner_bytes);
  claim.result = reader.rest();
  if (state < static_cast<std::uint8_t>(ClaimState::held) ||
      state > static_cast<std::uint8_t>(ClaimState::vacant)) {
    return false;
  }
  claim.state = static_cast<ClaimState>(state);
  // An owner with a session belonged to a process that has ended. A remote owner may still be
  // alive.
  if (claim.state == ClaimState::held && claim.session == 0 && lease > Millis{0}) {
    const Timestamp fresh = now + lease;
    moved = fresh - claim.lease_until;
    claim.lease_until = fresh;
  }
  return reader.good();
}

[[nodiscard]] std::size_t body_bytes(const Mutation& mutation, Timestamp now) noexcept {
  std::size_t bytes = 8 + varint_bytes(mutation.key.size()) + mutation.key.size();
  if (has_own_kind(mutation.kind)) bytes += 1;
  if (mutation.db != 0) bytes += 1;
  if (mutation.due != no_end) bytes += time_bytes;
  if (mutation.keep_until != mutation.due) bytes += time_bytes;
  return bytes + (mutation.claim ? claim_bytes(*mutation.claim, mutation.version, now)
                                 : mutation.value.size());
}

}  // namespace

std::size_t encoded_bytes(const Mutation& mutation, Timestamp now) noexcept {
  const std::size_t body = body_bytes(mutation, now);
  return 1 + varint_bytes(body) + body;
}

char* encode(const Mutation& mutation, const DurableClock& durable_clock, Timestamp now,
             char* to) noexcept {
  // The head has two bits for the type; a claim's kind and its record come together.
  SEMEL_ASSERT(static_cast<unsigned>(mutation.type) <= head_type);
  SEMEL_ASSERT(!mutation.claim || mutation.kind == Kind::claim);
  Writer writer{to};
  unsigned head = static_cast<unsigned>(mutation.type);
  if (mutation.kind == Kind::claim) head |= head_claim;
  if (mutation.due != no_end) head |= head_due;
  if (mutation.keep_until != mutation.due) head |= head_keep;
  if (mutation.db != 0) head |= head_db;
  if (mutation.claim) head |= head_record;
  if (has_own_kind(mutation.kind)) head |= head_kind;
  writer.number(static_cast<std::uint8_t>(head));
  writer.varint(body_bytes(mutation, now));
  writer.number(std::uint64_t{mutation.version});
  if (has_own_kind(mutation.kind)) writer.number(static_cast<std::uint8_t>(mutation.kind));
  if (mutation.db != 0) writer.number(mutation.db);
  if (mutation.due != no_end) writer.time(durable_clock.to_durable_ms(mutation.due));
  if (mutation.keep_until != mutation.due)
    writer.time(durable_clock.to_durable_ms(mutation.keep_until));
  writer.varint(mutation.key.size());
  writer.bytes(mutation.key);
  if (mutation.claim) {
    encode_claim(*mutation.claim, mutation.version, durable_clock, now, writer);
  } else {
    writer.bytes(mutation.value);
  }
  return writer.end();
}

namespace {

/// The head and what follows it, up to the key.
struct Front {
  std::uint8_t head = 0;
  Kind kind = Kind::string;
  std::uint64_t version = 0;
  std::uint8_t db = 0;
  std::uint64_t due = DurableClock::no_end_ms;
  std::uint64_t keep_until = DurableClock::no_end_ms;
};

/// Sets `body` to the rest. False: damaged.
[[nodiscard]] bool read_front(Reader& reader, Front& front, Bytes& body) noexcept {
  front.head = reader.number<std::uint8_t>();
  body = reader.take(reader.varint());
  if (!reader.good()) return false;
  Reader inside{body};
  front.version = inside.number<std::uint64_t>();
  if (front.head & head_claim) front.kind = Kind::claim;
  if (front.head & head_kind) {
    front.kind = static_cast<Kind>(inside.number<std::uint8_t>());
    const bool is_known = front.kind == Kind::hash || front.kind == Kind::name_space;
    if (!is_known || (front.head & (head_claim | head_record)) != 0) return false;
  }
  if (front.head & head_db) front.db = inside.number<std::uint8_t>();
  if (front.head & head_due) front.due = inside.time();
  front.keep_until = front.head & head_keep ? inside.time() : front.due;
  body = inside.rest();
  return inside.good();
}

}  // namespace

bool extent_of(Bytes bytes, MutationExtent& extent) noexcept {
  Reader reader{bytes};
  Front front;
  Bytes body;
  if (!read_front(reader, front, body)) return false;
  extent.bytes = bytes.size() - reader.left();
  extent.keep_until_ms = front.keep_until;
  extent.version = front.version;
  extent.type = static_cast<Mutation::Type>(front.head & head_type);
  extent.kind = front.kind;
  extent.db = front.db;
  Reader inside{body};
  extent.key = inside.take(inside.varint());
  return inside.good();
}

bool decode(Bytes& bytes, const DurableClock& durable_clock, Timestamp now, Mutation& mutation) {
  Reader reader{bytes};
  Front front;
  Bytes body;
  if (!read_front(reader, front, body)) return false;
  bytes = reader.rest();
  Reader inside{body};
  mutation.type = static_cast<Mutation::Type>(front.head & head_type);
  mutation.kind = front.kind;
  mutation.db = front.db;
  mutation.version = front.version;
  mutation.due = durable_clock.from_durable_ms(front.due);
  mutation.keep_until = durable_clock.from_durable_ms(front.keep_until);
  mutation.key = inside.take(inside.varint());
  mutation.value = {};
  mutation.claim.reset();
  if (!inside.good()) return false;
  if ((front.head & head_record) == 0) {
    mutation.value = inside.rest();
    return true;
  }
  Millis moved{0};
  if (!decode_claim(inside, mutation.version, durable_clock, now, mutation.claim.emplace(),
                    moved)) {
    return false;
  }
  // The record still ends when its lease ends at the latest.
  if (mutation.due != no_end) mutation.due += std::max(Millis{0}, moved);
  return true;
}

}  // namespace semel::storage
