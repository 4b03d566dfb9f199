// An operation of the store (Op) and its result (Outcome).
// One flat pair for all single-key commands: it can be batched, logged and replayed as a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// What a record is. The numbers are on the disk.
enum class Kind : std::uint8_t {
  string = 1,
  claim = 2,
  hash = 3,
  list = 4,
  set = 5,
  sorted_set = 6,
  stream = 7,
  name_space = 8,  ///< of mutations only: the terms of a namespace of claims. No record has it
};

/// As TYPE and the tools have it.
[[nodiscard]] constexpr std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::string:
      return "string";
    case Kind::claim:
      return "claim";
    case Kind::hash:
      return "hash";
    case Kind::list:
      return "list";
    case Kind::set:
      return "set";
    case Kind::sorted_set:
      return "zset";
    case Kind::stream:
      return "stream";
    case Kind::name_space:
      return "namespace";
  }
  return "unknown";
}

/// The kinds that records have, by number: those with a row in engine/kinds/kinds.cpp.
[[nodiscard]] std::span<const Kind> record_kinds() noexcept;
[[nodiscard]] bool is_record_kind(Kind kind) noexcept;

enum class Verb : std::uint8_t {
  // reads
  get,
  exists,
  type,
  strlen,
  getrange,     ///< bytes amount..end, both inclusive, negative counts from the end
  digest,       ///< XXH3-64 of the value as 16 lower-case hex digits
  expire_time,  ///< due of the record
  // writes
  set,
  getdel,
  getex,
  append,
  setrange,       ///< value written at offset amount, zero-padded
  incr_by,        ///< adds amount
  decr_by,        ///< subtracts amount
  incr_by_float,  ///< adds arithmetic->by_float
  increx,         ///< bounded counter with ttl, see Arithmetic
  del,
  delex,   ///< del under condition
  expire,  ///< sets due under rule; a due that has passed deletes
  persist,
};

/// True if `verb` can change a record.
[[nodiscard]] constexpr bool is_write(Verb verb) noexcept {
  return verb >= Verb::set;
}

enum class Condition : std::uint8_t {
  always,
  if_absent,            ///< NX
  if_present,           ///< XX
  if_equal,             ///< IFEQ: value equals operand; absent fails
  if_not_equal,         ///< IFNE: absent passes
  if_digest_equal,      ///< IFDEQ: digest equals operand (16 hex digits, any case); absent fails
  if_digest_not_equal,  ///< IFDNE: absent passes
  if_version,           ///< the record's version is StoreOp::expected; 0: there is none
};

/// When a record ends, as said by the caller.
class Expiry {
 public:
  enum class Mode : std::uint8_t { clear, keep, in, at };

  /// The record does not end (an existing ttl is removed).
  static constexpr Expiry clear() noexcept { return Expiry{Mode::clear, 0}; }
  /// An existing ttl stays (KEEPTTL).
  static constexpr Expiry keep() noexcept { return Expiry{Mode::keep, 0}; }
  /// Ends `ttl` from now; valid range 1 ms..limits::ttl_max.
  static constexpr Expiry in(Duration ttl) noexcept { return Expiry{Mode::in, ttl.count()}; }
  /// Ends at a point of the engine's clock. In the past: the record is dead at once.
  static constexpr Expiry at(Timestamp when) noexcept {
    return Expiry{Mode::at, when.time_since_epoch().count()};
  }

  constexpr Expiry() noexcept = default;
  [[nodiscard]] constexpr Mode mode() const noexcept { return mode_; }
  [[nodiscard]] constexpr Millis ttl() const noexcept { return Millis{ms_}; }
  [[nodiscard]] constexpr Timestamp when() const noexcept { return Timestamp{Millis{ms_}}; }

 private:
  constexpr Expiry(Mode mode, std::int64_t ms) noexcept : ms_(ms), mode_(mode) {}
  std::int64_t ms_ = 0;
  Mode mode_ = Mode::clear;
};

/// EXPIRE's NX, XX, GT, LT. A record without ttl counts as never ending; combinations are bits.
struct ExpireRule {
  bool only_without_ttl = false;  ///< NX
  bool only_with_ttl = false;     ///< XX
  bool only_later = false;        ///< GT
  bool only_earlier = false;      ///< LT
};

/// Operands of incr_by_float and increx.
struct Arithmetic {
  bool use_float = false;  ///< increx: by_float, lower_float, upper_float instead of integers
  bool has_lower = false;
  bool has_upper = false;
  bool saturate = false;                 ///< clamp to the bound instead of refusing
  bool expiry_only_without_ttl = false;  ///< ENX
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  long double by_float = 0;
  long double lower_float = 0;
  long double upper_float = 0;
};

/// One single-key operation of the store.
struct StoreOp {
  Verb verb = Verb::get;
  std::uint8_t db = 0;  ///< 0..limits::db_count - 1
  Condition condition = Condition::always;
  bool get = false;  ///< set: return the previous value; a record of another kind is an error
  ExpireRule rule{};
  Expiry expiry{};
  Bytes key{};              ///< 1..Options::key_bytes_max bytes
  Bytes value{};            ///< 0..Options::value_bytes_max bytes
  Bytes operand{};          ///< of condition
  Version expected = 0;     ///< of if_version
  std::int64_t amount = 0;  ///< increment, offset or start, by verb
  std::int64_t end = -1;
  const Arithmetic* arithmetic = nullptr;  ///< incr_by_float and increx; must outlive the call
};

/// What one operation found and did. Reusable: apply() resets every field.
struct StoreOutcome {
  ErrorCode error = ErrorCode::ok;  ///< not ok: nothing was changed
  bool found = false;               ///< a live record was there just before
  bool applied = false;             ///< the operation changed (or deleted) the record
  bool has_value = false;           ///< value is meant (get, previous value, text of a float)
  Kind kind = Kind::string;         ///< of the record found
  bool raw = false;                 ///< type: a string that grew by append or setrange
  std::int64_t number = 0;          ///< length, counter; increx: new value
  /// increx: increment applied. exists, of a hash: when the next of its fields ends, in ms of the
  /// engine's clock; 0: none does.
  std::int64_t second = 0;
  Timestamp due = no_end;  ///< expire_time: end of the record found
  Version version = 0;     ///< of the record found or written; for waiting on durability
  std::string value;       ///< increx by float: new value and increment applied, one space between
};

}  // namespace semel
