#include "storage/log/mutation_codec.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"
#include "storage/log/mutation_fields.hpp"

namespace semel::storage {
namespace {

[[nodiscard]] bool has_own_kind(Kind kind) noexcept {
  return kind != Kind::string && kind != Kind::claim;
}

[[nodiscard]] unsigned flags_of(const ClaimRecord& claim) noexcept {
  unsigned flags = 0;
  each_row<claim_flags>([&](auto flag) {
    if (claim.*flag.row.field) flags |= flag.row.journal;
  });
  if (claim.claim_id) flags |= claim_has_id;
  if (claim.session != 0) flags |= claim_has_session;
  if (claim.lease_until != Timestamp{}) flags |= claim_has_lease;
  if (claim.result_until != Timestamp{}) flags |= claim_has_result_end;
  if (claim.unique_until != Timestamp{}) flags |= claim_has_unique_end;
  each_row<claim_texts>([&](auto text) {
    if (!(claim.*text.row.field).empty()) flags |= text.row.journal;
  });
  each_row<claim_numbers>([&](auto number) {
    if (claim.*number.row.kept != number.row.usual) flags |= number.row.journal;
  });
  return flags;
}

[[nodiscard]] std::uint64_t lease_left(const ClaimRecord& claim, Timestamp now) noexcept {
  return static_cast<std::uint64_t>(std::max(Millis{0}, claim.lease_until - now).count());
}

[[nodiscard]] std::size_t claim_bytes(const ClaimRecord& claim, Version version, Timestamp now,
                                      std::size_t time_bytes) noexcept {
  const unsigned flags = flags_of(claim);
  std::size_t bytes =
      4 + base::varint_bytes(claim.attempts) + base::varint_bytes(version - claim.epoch);
  each_row<claim_numbers>([&](auto number) {
    if (flags & number.row.journal) bytes += base::varint_bytes(claim.*number.row.kept);
  });
  if (flags & claim_has_session) bytes += 8;
  if (flags & claim_has_lease) bytes += time_bytes + base::varint_bytes(lease_left(claim, now));
  if (flags & claim_has_result_end) bytes += time_bytes;
  if (flags & claim_has_unique_end) bytes += time_bytes;
  if (flags & claim_has_id) bytes += claim.claim_id->size();
  if (claim.result_expired) bytes += claim.result_digest.size();
  if (claim.fingerprint.algorithm != 0) bytes += claim.fingerprint.digest.size();
  each_row<claim_texts>([&](auto text) {
    const std::size_t size = (claim.*text.row.field).size();
    bytes += size + (flags & text.row.journal ? base::varint_bytes(size) : 0);
  });
  return bytes;
}

void encode_claim(const ClaimRecord& claim, Version version, const DurableClock& durable_clock,
                  Timestamp now, FieldWriter& writer) {
  SEMEL_ASSERT(claim.owner.size() <= 255);  // one byte says how long it is
  const unsigned flags = flags_of(claim);
  const unsigned further = flags >> 8;
  writer.fixed(
      static_cast<std::uint8_t>(static_cast<unsigned>(claim.state) | further << claim_state_size));
  writer.fixed(static_cast<std::uint8_t>(flags));
  writer.fixed(static_cast<std::uint8_t>(claim.owner.size()));
  writer.fixed(claim.fingerprint.algorithm);
  writer.varint(claim.attempts);
  writer.varint(version -
                claim.epoch);  // usually small: both come from one thread's block of versions
  each_row<claim_numbers>([&](auto number) {
    if (flags & number.row.journal) writer.varint(claim.*number.row.kept);
  });
  if (flags & claim_has_session) writer.fixed(std::uint64_t{claim.session});
  if (flags & claim_has_lease) {
    writer.time(durable_clock.to_durable_ms(claim.lease_until));
    writer.varint(lease_left(claim, now));
  }
  if (flags & claim_has_result_end) writer.time(durable_clock.to_durable_ms(claim.result_until));
  if (flags & claim_has_unique_end) writer.time(durable_clock.to_durable_ms(claim.unique_until));
  if (flags & claim_has_id) writer.array(*claim.claim_id);
  if (claim.result_expired) writer.array(claim.result_digest);
  if (claim.fingerprint.algorithm != 0) writer.array(claim.fingerprint.digest);
  each_row<claim_texts>([&](auto text) {
    const Bytes bytes = claim.*text.row.field;
    if (flags & text.row.journal) writer.varint(bytes.size());
    writer.bytes(bytes);
  });
}

[[nodiscard]] bool decode_claim(FieldReader& reader, Version version,
                                const DurableClock& durable_clock, Timestamp now,
                                ClaimRecord& claim, Millis& moved) {
  const unsigned first = reader.fixed<std::uint8_t>();
  const unsigned state = first & claim_state_bits;
  const unsigned flags = first >> claim_state_size << 8 | reader.fixed<std::uint8_t>();
  const auto owner_bytes = reader.fixed<std::uint8_t>();
  claim.fingerprint.algorithm = reader.fixed<std::uint8_t>();
  claim.attempts = static_cast<std::uint32_t>(reader.varint());
  claim.epoch = version - reader.varint();
  each_row<claim_numbers>([&](auto number) {
    if constexpr (number.row.journal != 0) {
      claim.*number.row.kept = flags & number.row.journal
                                   ? static_cast<std::uint32_t>(reader.varint())
                                   : number.row.usual;
    }
  });
  if (flags & claim_has_session) claim.session = reader.fixed<std::uint64_t>();
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
  each_row<claim_flags>(
      [&](auto flag) { claim.*flag.row.field = (flags & flag.row.journal) != 0; });
  if (claim.result_expired) reader.array(claim.result_digest);
  if (claim.fingerprint.algorithm != 0) reader.array(claim.fingerprint.digest);
  claim.owner = reader.take(owner_bytes);
  each_row<claim_texts>([&](auto text) {
    if (flags & text.row.journal) claim.*text.row.field = reader.prefixed();
  });
  claim.result = reader.take_rest();
  if (state < static_cast<unsigned>(ClaimState::held) ||
      state > static_cast<unsigned>(ClaimState::vacant) || (flags & ~claim_known_bits) != 0) {
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
  return reader.is_good();
}

[[nodiscard]] std::size_t body_bytes(const Mutation& mutation, Timestamp now,
                                     MutationForm form) noexcept {
  const std::size_t time_bytes = time_bytes_of(form);
  std::size_t bytes =
      version_bytes_of(form) + base::varint_bytes(mutation.key.size()) + mutation.key.size();
  if (has_own_kind(mutation.kind)) bytes += 1;
  if (mutation.db != 0) bytes += 1;
  if (mutation.due != no_end) bytes += time_bytes;
  if (mutation.keep_until != mutation.due) bytes += time_bytes;
  if (mutation.claim)
    return bytes + claim_bytes(*mutation.claim, mutation.version, now, time_bytes);
  if (!is_delta(mutation)) return bytes + mutation.value.size();
  return bytes + base::varint_bytes(mutation.version - mutation.base) + mutation.trail.size();
}

}  // namespace

bool is_near(const Mutation& mutation, const DurableClock& durable_clock,
             const MutationBase& base) noexcept {
  const auto is_near_end = [&](Timestamp end) {
    return is_near_time(durable_clock.to_durable_ms(end), base);
  };
  if (!is_near_version(mutation.version, base) || !is_near_end(mutation.due)) return false;
  if (mutation.keep_until != mutation.due && !is_near_end(mutation.keep_until)) return false;
  if (!mutation.claim) return true;
  const ClaimRecord& claim = *mutation.claim;
  const Timestamp ends[] = {claim.lease_until, claim.result_until, claim.unique_until};
  return std::all_of(std::begin(ends), std::end(ends), [&](Timestamp end) {
    return end == Timestamp{} || is_near_end(end);  // those that are not set are not written
  });
}

std::size_t encoded_bytes(const Mutation& mutation, Timestamp now, MutationForm form) noexcept {
  const std::size_t body = body_bytes(mutation, now, form);
  return 1 + base::varint_bytes(body) + body;
}

char* encode(const Mutation& mutation, const DurableClock& durable_clock, Timestamp now, char* to,
             const MutationBase* base) noexcept {
  // The head has two bits for the type; a claim's kind and its record come together.
  SEMEL_ASSERT(static_cast<unsigned>(mutation.type) <= head_type);
  SEMEL_ASSERT(!mutation.claim || mutation.kind == Kind::claim);
  SEMEL_ASSERT(base == nullptr || is_near(mutation, durable_clock, *base));
  FieldWriter writer{to, base};
  unsigned head = static_cast<unsigned>(mutation.type);
  if (mutation.kind == Kind::claim) head |= head_claim;
  if (mutation.due != no_end) head |= head_due;
  if (mutation.keep_until != mutation.due) head |= head_keep;
  if (mutation.db != 0) head |= head_db;
  if (mutation.claim) head |= head_record;
  if (has_own_kind(mutation.kind)) head |= head_kind;
  writer.fixed(static_cast<std::uint8_t>(head));
  writer.varint(
      body_bytes(mutation, now, base == nullptr ? MutationForm::full : MutationForm::near));
  writer.version(mutation.version);
  SEMEL_ASSERT(!is_delta(mutation) || has_own_kind(mutation.kind));
  if (has_own_kind(mutation.kind)) writer.fixed(kind_byte(mutation.kind, is_delta(mutation)));
  if (mutation.db != 0) writer.fixed(mutation.db);
  if (mutation.due != no_end) writer.time(durable_clock.to_durable_ms(mutation.due));
  if (mutation.keep_until != mutation.due)
    writer.time(durable_clock.to_durable_ms(mutation.keep_until));
  writer.varint(mutation.key.size());
  writer.bytes(mutation.key);
  if (mutation.claim) {
    encode_claim(*mutation.claim, mutation.version, durable_clock, now, writer);
  } else if (is_delta(mutation)) {
    writer.varint(mutation.version - mutation.base);
    writer.bytes(mutation.trail);
  } else {
    writer.bytes(mutation.value);
  }
  return writer.end();
}

bool extent_of(Bytes bytes, MutationExtent& extent, const MutationBase* base) noexcept {
  FieldReader reader{bytes, base};
  MutationFront front;
  Bytes body;
  if (!read_front(reader, base, front, body)) return false;
  extent.bytes = bytes.size() - reader.rest().size();
  extent.keep_until_ms = front.keep_until;
  extent.version = front.version;
  extent.type = static_cast<Mutation::Type>(front.head & head_type);
  extent.kind = front.kind;
  extent.is_delta = front.is_delta;
  extent.db = front.db;
  FieldReader inside{body, base};
  extent.key = inside.prefixed();
  return inside.is_good();
}

bool decode(Bytes& bytes, const DurableClock& durable_clock, Timestamp now, Mutation& mutation,
            const MutationBase* base) {
  FieldReader reader{bytes, base};
  MutationFront front;
  Bytes body;
  if (!read_front(reader, base, front, body)) return false;
  bytes = reader.take_rest();
  FieldReader inside{body, base};
  mutation.type = static_cast<Mutation::Type>(front.head & head_type);
  mutation.kind = front.kind;
  mutation.db = front.db;
  mutation.version = front.version;
  mutation.due = durable_clock.from_durable_ms(front.due);
  mutation.keep_until = durable_clock.from_durable_ms(front.keep_until);
  mutation.key = inside.prefixed();
  mutation.value = {};
  mutation.claim.reset();
  mutation.base = 0;
  mutation.trail = {};
  if (!inside.is_good()) return false;
  if (front.is_delta) {
    const std::uint64_t step = inside.varint();
    mutation.base = mutation.version - step;
    mutation.trail = inside.take_rest();
    return inside.is_good() && step != 0 && step <= mutation.version && is_delta(mutation);
  }
  if ((front.head & head_record) == 0) {
    mutation.value = inside.take_rest();
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
