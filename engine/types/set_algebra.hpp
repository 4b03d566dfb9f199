// Intersection, union and difference of sets that are read one at a time. What they find comes in
// the order of keys; they hold a few thousand keys at once, however large the sets are.
//
// The caller holds a section over the sets.
#pragma once

#include <cstddef>
#include <span>

#include "engine/objects/object_reader.hpp"
#include "semel/function.hpp"

namespace semel::engine {

/// Passes set number `i` to the function. False: it cannot be read, and the computation ends.
using ReadSet = Function<bool(std::size_t i, const Function<void(const ObjectReader&)>&)>;
/// Gets the key of each member of the result. False: enough.
using TakeKey = Function<bool(Bytes key)>;

/// `sizes`: of each set; there is one at least. All return false if a set could not be read.
/// std::bad_alloc.
[[nodiscard]] bool intersect(std::span<const std::size_t> sizes, const ReadSet& read,
                             const TakeKey& take);
/// The first set without the members of the others.
[[nodiscard]] bool subtract(std::span<const std::size_t> sizes, const ReadSet& read,
                            const TakeKey& take);
[[nodiscard]] bool unite(std::span<const std::size_t> sizes, const ReadSet& read,
                         const TakeKey& take);

}  // namespace semel::engine
