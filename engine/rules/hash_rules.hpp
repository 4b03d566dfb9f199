// The hash's truth table: what one operation does to one record, as a pure function of (record or
// none, operation). No clock (a change keeps the record's end), no state, and random bits come in
// with the operation; a decision may be taken several times until its compare-and-set wins, so it
// writes to nothing but outcome and scratch.
// Source: docs/semantics.md#hashes
//
//   no record           reads find nothing; a write begins a hash, without end
//   another kind        wrong_type, nothing changes
//   no field is left    the record goes
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/rules/record.hpp"
#include "engine/rules/verbs.hpp"
#include "semel/hashes.hpp"

namespace semel::engine {

struct HashOp {
  HashVerb verb = HashVerb::get;
  Bytes field{};
  std::span<const FieldValue> pairs{};
  std::span<const Bytes> fields{};
  std::int64_t amount = 0;
  long double by_float = 0;
  std::uint64_t random = 0;  ///< any number, another for each call
  std::uint64_t cursor = 0;
  std::size_t count = 10;
  Bytes pattern{};
};

/// What a decision may know besides the record and the operation.
struct HashFacts {
  std::size_t value_bytes_max;
  std::uint64_t seed;  ///< of an index that is made, see hash_value.hpp; must stay secret
};

/// Fresh for each decision.
struct HashOutcome {
  ErrorCode error = ErrorCode::ok;
  bool found = false;        ///< a live hash was there
  bool found_field = false;  ///< get, strlen, set_if_absent: and the field in it
  std::int64_t number = 0;
  std::uint64_t next = 0;    ///< scan: the cursor to go on from
  std::uint64_t fields = 0;  ///< value_too_long: that there would be
  std::uint64_t bytes = 0;   ///< the same
  std::string value{};
  std::vector<std::optional<std::string>> values{};
  FieldValues list{};
};

/// What `op` does to `live` (null: absent). The outcome is overwritten. Decision::value points into
/// `scratch`. Errors, with which the record is kept: wrong_type, value_too_long, not_an_integer,
/// increment_overflow, not_a_float, nan_or_infinity, bad_option, storage_damaged.
[[nodiscard]] Decision decide_hash(const RecordView* live, const HashOp& op, const HashFacts& facts,
                                   HashOutcome& outcome, std::string& scratch);

}  // namespace semel::engine
