// SPOP: members taken out of a set at random.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/objects/object_edit.hpp"
#include "engine/types/byte_list.hpp"

namespace semel::engine {

/// Takes `count` members, or all if there are no more, and appends their keys to `popped`. Which
/// ones follows from `random`. std::bad_alloc.
void pop_members(ObjectEdit& set, std::size_t count, std::uint64_t random, ByteList& popped);

}  // namespace semel::engine
