// The fields of a mutation (mutation_codec.hpp), written and read one by one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "semel/journal.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

static_assert(std::endian::native == std::endian::little, "the format is copied, not swapped");

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
enum ClaimFlag : std::uint8_t {
  claim_result_expired = 1,
  claim_poison = 2,
  claim_has_id = 4,
  claim_has_session = 8,
  claim_has_lease = 16,
  claim_has_result_end = 32,
  claim_has_unique_end = 64,
  claim_has_memos = 128,
};
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

[[nodiscard]] inline std::size_t varint_bytes(std::uint64_t value) noexcept {
  return static_cast<std::size_t>(std::max(1, (64 - std::countl_zero(value) + 6) / 7));
}

class FieldWriter {
 public:
  /// `base` null: the full form.
  FieldWriter(char* to, const MutationBase* base) noexcept : to_(to), base_(base) {}
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
  void version(Version version) noexcept {
    if (base_ == nullptr) return number(std::uint64_t{version});
    number(static_cast<std::uint32_t>(version - base_->version));
  }
  void time(std::uint64_t durable_ms) noexcept {
    if (base_ != nullptr) {
      return number(durable_ms == DurableClock::no_end_ms
                        ? near_time_none
                        : static_cast<std::uint32_t>(durable_ms - base_->ms));
    }
    durable_ms = std::min(durable_ms, full_time_none);
    std::memcpy(to_, &durable_ms, full_time_bytes);
    to_ += full_time_bytes;
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
  const MutationBase* const base_;
};

/// Reads fields, and remembers whether one was cut off.
class FieldReader {
 public:
  /// `base` null: the full form.
  FieldReader(Bytes bytes, const MutationBase* base) noexcept : bytes_(bytes), base_(base) {}
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
  [[nodiscard]] Version version() noexcept {
    if (base_ == nullptr) return number<std::uint64_t>();
    const auto difference = static_cast<std::int32_t>(number<std::uint32_t>());
    return base_->version + static_cast<Version>(std::int64_t{difference});
  }
  [[nodiscard]] std::uint64_t time() noexcept {
    if (base_ != nullptr) {
      const auto difference = number<std::uint32_t>();
      return difference == near_time_none ? DurableClock::no_end_ms : base_->ms + difference;
    }
    std::uint64_t value = 0;
    const Bytes part = take(full_time_bytes);
    if (part.size() == full_time_bytes) std::memcpy(&value, part.data(), full_time_bytes);
    return value == full_time_none ? DurableClock::no_end_ms : value;
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
  const MutationBase* const base_;
  bool good_ = true;
};

/// The head and what follows it, up to the key.
struct MutationFront {
  std::uint8_t head = 0;
  std::size_t body_bytes = 0;  // of all that follows the size
  Kind kind = Kind::string;
  std::uint64_t version = 0;
  std::uint8_t db = 0;
  std::uint64_t due = DurableClock::no_end_ms;
  std::uint64_t keep_until = DurableClock::no_end_ms;
};

/// Sets `body` to the rest. False: damaged.
[[nodiscard]] inline bool read_front(FieldReader& reader, const MutationBase* base,
                                     MutationFront& front, Bytes& body) noexcept {
  front.head = reader.number<std::uint8_t>();
  body = reader.take(reader.varint());
  if (!reader.good()) return false;
  front.body_bytes = body.size();
  FieldReader inside{body, base};
  front.version = inside.version();
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

}  // namespace semel::storage
