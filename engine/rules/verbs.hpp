// The verbs of operations on hashes and of the calls of a claim's owner.
//
// A verb that writes has a number in the log of a group: its place among the writes of its kind. So
// a new one comes last.
#pragma once

#include <cstdint>

namespace semel::engine {

enum class HashVerb : std::uint8_t {
  // reads
  get,       ///< value of field
  get_many,  ///< values, of fields in their order
  len,       ///< number
  strlen,    ///< number; found_field
  all,       ///< list
  random,    ///< list: amount of them, see Hashes::hrandfield
  scan,      ///< list and next: from cursor, about count
  ends,      ///< of fields: dues; found_field: a field has an end
  // writes
  set,            ///< pairs; number: how many are new
  set_if_absent,  ///< pairs, of which there is one
  del,            ///< fields; number: how many were there
  incr_by,        ///< amount; number: what it is then
  incr_by_float,  ///< by_float; value: what it is then
  // writes of commands, which a group's log has as the words of their requests
  expire,   ///< fields, expiry, rule; numbers: HEXPIRE's
  persist,  ///< fields; numbers: HPERSIST's
  get_del,  ///< fields; values
  get_ex,   ///< fields, retimes, expiry; values
  set_ex,   ///< pairs, condition, expiry; found_field: the condition refused it
};

/// The last write that the log of a group has as an operation of its own.
inline constexpr HashVerb last_logged_hash_verb = HashVerb::incr_by_float;

enum class OwnerVerb : std::uint8_t { complete, fail, renew, release };

}  // namespace semel::engine
