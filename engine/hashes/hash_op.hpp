// An operation on a hash, and its outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/rules/verbs.hpp"
#include "semel/hashes.hpp"
#include "semel/op.hpp"

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
  Expiry expiry{};        ///< of fields; set_ex: keep and clear as of SET
  ExpireRule rule{};      ///< expire
  bool retimes = false;   ///< get_ex: expiry is meant
  Condition condition{};  ///< set_ex: always, if_absent (all fields are), if_present (all are)
};

/// What a decision may know besides the record and the operation.
struct HashFacts {
  std::size_t value_bytes_max;  ///< of a packed hash
  std::uint64_t seed;           ///< of an index that is made, see hash_value.hpp; must stay secret
  Timestamp now{};              ///< fields that end by then have ended
  std::size_t large_bytes_max = 0;  ///< of a large hash, packed; if it is more
};

/// Answers of HEXPIRE and its like to one field.
struct FieldAnswer {
  static constexpr std::int64_t no_field = -2, no_end = -1, refused = 0, done = 1, removed = 2;
};

/// Fresh for each decision.
struct HashOutcome {
  ErrorCode error = ErrorCode::ok;
  bool found = false;        ///< a live hash was there
  bool found_field = false;  ///< get, strlen, set_if_absent: and the field in it; see HashVerb
  std::int64_t number = 0;
  std::uint64_t next = 0;       ///< scan: the cursor to go on from
  std::uint64_t fields = 0;     ///< value_too_long: that there would be
  std::uint64_t bytes = 0;      ///< the same
  std::uint64_t bytes_max = 0;  ///< the same: the limit
  std::string value{};
  std::vector<std::optional<std::string>> values{};
  FieldValues list{};
  std::vector<std::optional<Timestamp>> dues{};  ///< none: no such field
  std::vector<std::int64_t> numbers{};           ///< FieldAnswer
  bool is_changed = false;                       ///< verbs from expire on: and in these ways
  bool removes = false;
  bool retimes = false;
  bool is_gone = false;  ///< with its last field
};

}  // namespace semel::engine
