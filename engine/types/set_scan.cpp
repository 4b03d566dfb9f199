#include "engine/types/set_scan.hpp"

#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/types/object_limits.hpp"

namespace semel::engine {

namespace {

constexpr std::uint64_t half = std::uint64_t{1} << 63;

std::uint64_t place_of_other(Bytes key) noexcept {
  return half | XXH3_64bits(key.data(), key.size()) >> 1;
}

/// The least integer at a place below `half`.
std::int64_t integer_at(std::uint64_t place) noexcept {
  return static_cast<std::int64_t>((place << 1) ^ half);
}
std::uint64_t place_of_integer(Bytes key) noexcept {
  return (static_cast<std::uint64_t>(integer_of_member(key)) ^ half) >> 1;
}

/// Where a walk over the integers has ended.
struct IntegerScan {
  std::size_t rank;  ///< of the first that was not met
  std::size_t met = 0;
};

/// Integers at `cursor` and behind it, `count` at most but for those that share the last place.
IntegerScan scan_integers(const ObjectReader& set, std::uint64_t cursor, std::size_t integers,
                          std::size_t count, const Function<void(Bytes key)>& visit) {
  IntegerScan scan{.rank = set.rank(member_key(std::to_string(integer_at(cursor))))};
  std::uint64_t last = 0;
  for (; scan.rank < integers; ++scan.rank, ++scan.met) {
    const Bytes key = set.at(scan.rank).key;
    const std::uint64_t place = place_of_integer(key);
    if (scan.met >= count && place != last) break;
    visit(key);
    last = place;
  }
  return scan;
}

/// The other members, which begin at rank `from`: those at `cursor` and behind it, in no order.
/// Returns the place of the first that was not met; 0: there is none.
std::uint64_t scan_others(const ObjectReader& set, std::uint64_t cursor, std::size_t from,
                          std::size_t count, const Function<void(Bytes key)>& visit) {
  std::vector<std::uint64_t> places;
  set.each(from, set.size(), [&](const Element& element) {
    const std::uint64_t place = place_of_other(element.key);
    if (place >= cursor) places.push_back(place);
    return true;
  });
  std::uint64_t next = 0;  // the first place that is not met now
  if (places.size() > count) {
    std::nth_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count),
                     places.end());
    next = places[count];
    // A place is met as a whole: if no member is in front of `next`, that one is the first.
    const bool is_first = std::none_of(places.begin(), places.end(),
                                       [next](std::uint64_t place) { return place < next; });
    if (is_first) {
      std::uint64_t behind = 0;
      for (const std::uint64_t place : places) {
        if (place > next && (behind == 0 || place < behind)) behind = place;
      }
      next = behind;
    }
  }
  set.each(from, set.size(), [&](const Element& element) {
    const std::uint64_t place = place_of_other(element.key);
    if (place >= cursor && (next == 0 || place < next)) visit(element.key);
    return true;
  });
  return next;
}

}  // namespace

std::uint64_t scan_set(const ObjectReader& set, std::uint64_t cursor, std::size_t count,
                       const Function<void(Bytes key)>& visit) {
  if (set.size() <= limits::set_scan_whole_max) {
    set.each(0, set.size(), [&](const Element& element) {
      visit(element.key);
      return true;
    });
    return 0;
  }
  const std::size_t wanted = std::max({count, set.size() / set_scan_calls, std::size_t{1}});
  const std::size_t integers = set.rank(other_members_begin);
  if (cursor >= half) return scan_others(set, cursor, integers, wanted, visit);
  const IntegerScan scan = scan_integers(set, cursor, integers, wanted, visit);
  if (scan.rank < integers) return place_of_integer(set.at(scan.rank).key);
  if (integers == set.size()) return 0;
  return scan.met < wanted ? scan_others(set, half, integers, wanted - scan.met, visit) : half;
}

}  // namespace semel::engine
