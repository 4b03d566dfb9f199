// The rules of lists: places as Redis counts them, searches, changes. A list has no keys; its
// elements are known by their ranks.
//
// Negative places count from the tail: -1 is the last element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/objects/object_edit.hpp"

namespace semel::engine {

enum class ListEnd : std::uint8_t { head, tail };

/// Ranks `from` .. `to` - 1.
struct ListRange {
  std::size_t from = 0;
  std::size_t to = 0;

  [[nodiscard]] std::size_t size() const noexcept { return to - from; }
};

/// The rank of place `index` in a list of `size` elements. None: outside of it.
[[nodiscard]] std::optional<std::size_t> list_rank(std::size_t size, std::int64_t index) noexcept;
/// The part of places `first` to `last`, both included, that a list of `size` elements has.
[[nodiscard]] ListRange list_range(std::size_t size, std::int64_t first,
                                   std::int64_t last) noexcept;
/// The `count` elements at `end`, or all that there are.
[[nodiscard]] ListRange list_end(std::size_t size, ListEnd end, std::uint64_t count) noexcept;

struct ListSearch {
  Bytes element{};
  std::int64_t first_match = 1;    ///< 1: from the first match on; negative: from the tail. Not 0
  std::uint64_t matches_max = 0;   ///< 0: all
  std::uint64_t compared_max = 0;  ///< 0: all
};
/// The ranks that hold the element, in the order of the search.
[[nodiscard]] std::vector<std::size_t> find_in_list(const ObjectReader& list,
                                                    const ListSearch& search);

/// Elements are visited in the order in which Redis pops them: from the end inwards.
template <class Visit>
void each_from(const ObjectReader& list, ListEnd end, ListRange range, Visit&& visit) {
  const auto take = [&](const Element& element) {
    visit(element.value);
    return true;
  };
  end == ListEnd::head ? list.each(range.from, range.to, take)
                       : list.each_back(range.from, range.to, take);
}

void push_to_list(ObjectEdit& list, ListEnd end, Bytes element);
/// Inserts beside the first element that is `pivot`. False: there is none.
[[nodiscard]] bool insert_into_list(ObjectEdit& list, Bytes pivot, bool is_behind, Bytes element);
/// Removes elements that are `element`: the first `count`; of a negative one the last; of 0 all.
/// Returns how many.
std::size_t remove_from_list(ObjectEdit& list, Bytes element, std::int64_t count);
/// Keeps this range alone.
void trim_list(ObjectEdit& list, ListRange kept);

}  // namespace semel::engine
