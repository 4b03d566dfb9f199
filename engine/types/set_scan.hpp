// SSCAN: a set that changes is walked over, and every member that is there throughout is met.
//
// A cursor is a place in an order that does not depend on what else the set has: integers in the
// order of numbers, then other members in the order of their hashes. Inserts and removals move
// nothing. Members that share a place are met together.
//
//   cursor   63 bits of an integer, as a number from its least value on; two share a place
//            2^63 + 63 bits of the hash of any other member
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/objects/object_reader.hpp"
#include "semel/function.hpp"

namespace semel::engine {

/// Sets of up to limits::set_scan_whole_max members are met as a whole, larger ones about `count`
/// members at a time, and not less than one of `set_scan_calls`: members that are no integers are
/// found by a walk over all of them. Returns the next cursor; 0: the end.
inline constexpr std::size_t set_scan_calls = 256;
[[nodiscard]] std::uint64_t scan_set(const ObjectReader& set, std::uint64_t cursor,
                                     std::size_t count, const Function<void(Bytes key)>& visit);

}  // namespace semel::engine
