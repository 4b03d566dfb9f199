// The fields of a mutation (mutation_codec.hpp), written and read one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/coding.hpp"
#include "semel/claim_fields.hpp"
#include "semel/journal.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

// The head: type in the lowest two bits, then
enum MutationHead : std::uint8_t {
  head_type = 3,
  head_claim = 4,  // kind
  head_due = 8,
  head_keep = 16,
  head_db = 32,
  head_record = 64,  // a claim's record follows
  head_kind = 128,   // a byte for the kind follows: neither a string nor a claim
};
/// In the byte for the kind: a delta, whose base and trail stand in the place of the value.
inline constexpr std::uint8_t kind_delta = 128;
/// What a claim's record has, beside the rows of semel/claim_fields.hpp.
enum ClaimBit : std::uint8_t {
  claim_has_id = 4,
  claim_has_session = 8,
  claim_has_lease = 16,
  claim_has_result_end = 32,
  claim_has_unique_end = 64,
};
/// The byte of the state has the flags that one byte has no room for: 256 and up.
inline constexpr unsigned claim_state_bits = 7;
inline constexpr unsigned claim_state_size = 3;
inline constexpr unsigned claim_row_bits =
    stored_bits([](const auto& row) -> unsigned { return row.journal; });
inline constexpr unsigned claim_known_bits = claim_row_bits | claim_has_id | claim_has_session |
                                             claim_has_lease | claim_has_result_end |
                                             claim_has_unique_end;
static_assert((claim_row_bits & 0x7cU) == 0 && claim_row_bits < 1U << 13);
/// The largest time that fits, 8,900 years after 1970, stands for no end.
inline constexpr std::size_t full_time_bytes = 6;
inline constexpr std::uint64_t full_time_none = (std::uint64_t{1} << 48) - 1;
/// The same for the near form, 49 days after its base.
inline constexpr std::uint32_t near_time_none = ~std::uint32_t{0};

[[nodiscard]] constexpr std::size_t time_bytes_of(MutationForm form) noexcept {
  return form == MutationForm::near ? sizeof(std::uint32_t) : full_time_bytes;
}
[[nodiscard]] constexpr std::size_t version_bytes_of(MutationForm form) noexcept {
  return form == MutationForm::near ? sizeof(std::int32_t) : sizeof(Version);
}

[[nodiscard]] inline bool is_near_version(Version version, const MutationBase& base) noexcept {
  const auto difference = static_cast<std::int64_t>(version - base.version);
  return difference == static_cast<std::int32_t>(difference);
}
[[nodiscard]] inline bool is_near_time(std::uint64_t durable_ms,
                                       const MutationBase& base) noexcept {
  return durable_ms == DurableClock::no_end_ms || durable_ms - base.ms < near_time_none;
}

/// The two forms of a time and of a version, beside the fields that all have.
class FieldWriter : public base::ByteWriter {
 public:
  /// `base` null: the full form.
  FieldWriter(char* to, const MutationBase* base) noexcept : ByteWriter(to), base_(base) {}
  void version(Version version) noexcept {
    if (base_ == nullptr) return fixed(std::uint64_t{version});
    fixed(static_cast<std::uint32_t>(version - base_->version));
  }
  void time(std::uint64_t durable_ms) noexcept {
    if (base_ != nullptr) {
      return fixed(durable_ms == DurableClock::no_end_ms
                       ? near_time_none
                       : static_cast<std::uint32_t>(durable_ms - base_->ms));
    }
    low_bytes(std::min(durable_ms, full_time_none), full_time_bytes);
  }

 private:
  const MutationBase* const base_;
};

class FieldReader : public base::ByteReader {
 public:
  /// `base` null: the full form.
  FieldReader(Bytes bytes, const MutationBase* base) noexcept : ByteReader(bytes), base_(base) {}
  [[nodiscard]] Version version() noexcept {
    if (base_ == nullptr) return fixed<std::uint64_t>();
    const auto difference = static_cast<std::int32_t>(fixed<std::uint32_t>());
    return base_->version + static_cast<Version>(std::int64_t{difference});
  }
  [[nodiscard]] std::uint64_t time() noexcept {
    if (base_ != nullptr) {
      const auto difference = fixed<std::uint32_t>();
      return difference == near_time_none ? DurableClock::no_end_ms : base_->ms + difference;
    }
    const std::uint64_t value = low_bytes(full_time_bytes);
    return value == full_time_none ? DurableClock::no_end_ms : value;
  }

 private:
  const MutationBase* const base_;
};

/// The head and the fields after it, up to the key.
struct MutationFront {
  std::uint8_t head = 0;
  std::size_t body_bytes = 0;  // of all that follows the size
  Kind kind = Kind::string;
  bool is_delta = false;
  std::uint64_t version = 0;
  std::uint8_t db = 0;
  std::uint64_t due = DurableClock::no_end_ms;
  std::uint64_t keep_until = DurableClock::no_end_ms;
};

[[nodiscard]] inline std::uint8_t kind_byte(Kind kind, bool is_delta) noexcept {
  return static_cast<std::uint8_t>(static_cast<unsigned>(kind) | (is_delta ? kind_delta : 0U));
}

/// Sets `body` to the rest. False: damaged.
[[nodiscard]] inline bool read_front(FieldReader& reader, const MutationBase* base,
                                     MutationFront& front, Bytes& body) noexcept {
  front.head = reader.fixed<std::uint8_t>();
  body = reader.prefixed();
  if (!reader.is_good()) return false;
  front.body_bytes = body.size();
  FieldReader inside{body, base};
  front.version = inside.version();
  if (front.head & head_claim) front.kind = Kind::claim;
  if (front.head & head_kind) {
    const auto byte = inside.fixed<std::uint8_t>();
    front.is_delta = (byte & kind_delta) != 0;
    front.kind = static_cast<Kind>(byte & ~kind_delta);
    const bool is_put = (front.head & head_type) == static_cast<unsigned>(Mutation::Type::put);
    const bool is_record = front.kind > Kind::claim && is_record_kind(front.kind);
    const bool is_known =
        front.is_delta ? is_record && is_put : is_record || front.kind == Kind::name_space;
    if (!is_known || (front.head & (head_claim | head_record)) != 0) return false;
  }
  if (front.head & head_db) front.db = inside.fixed<std::uint8_t>();
  if (front.head & head_due) front.due = inside.time();
  front.keep_until = front.head & head_keep ? inside.time() : front.due;
  body = inside.take_rest();
  return inside.is_good();
}

}  // namespace semel::storage
