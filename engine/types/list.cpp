#include "engine/types/list.hpp"

#include <algorithm>
#include <limits>

namespace semel::engine {
namespace {

/// Of the least number, too, which has no positive counterpart.
[[nodiscard]] std::uint64_t magnitude(std::int64_t number) noexcept {
  const auto bits = static_cast<std::uint64_t>(number);
  return number < 0 ? std::uint64_t{0} - bits : bits;
}

}  // namespace

std::optional<std::size_t> list_rank(std::size_t size, std::int64_t index) noexcept {
  const std::uint64_t distance = magnitude(index);
  if (index >= 0) return distance < size ? std::optional<std::size_t>{distance} : std::nullopt;
  return distance <= size ? std::optional<std::size_t>{size - distance} : std::nullopt;
}

ListRange list_range(std::size_t size, std::int64_t first, std::int64_t last) noexcept {
  const auto place = [size](std::int64_t index) -> std::uint64_t {
    const std::uint64_t distance = magnitude(index);
    if (index >= 0) return distance;
    return distance <= size ? size - distance : 0;
  };
  const bool ends_before = last < 0 && magnitude(last) > size;
  const std::uint64_t from = place(first);
  const std::uint64_t to = ends_before ? 0 : std::min<std::uint64_t>(place(last) + 1, size);
  if (from >= to) return {};
  return {from, to};
}

ListRange list_end(std::size_t size, ListEnd end, std::uint64_t count) noexcept {
  const std::size_t taken = std::min<std::uint64_t>(count, size);
  if (end == ListEnd::head) return {0, taken};
  return {size - taken, size};
}

std::vector<std::size_t> find_in_list(const ObjectReader& list, const ListSearch& search) {
  std::vector<std::size_t> found;
  // Redis counts the least number as no match to skip.
  const bool is_least = search.first_match == std::numeric_limits<std::int64_t>::min();
  std::uint64_t skipped = is_least ? 0 : magnitude(search.first_match) - 1;
  std::uint64_t compared = 0;
  const bool is_back = search.first_match < 0;
  std::size_t rank = is_back ? list.size() : 0;
  const auto look = [&](const Element& element) {
    const std::size_t here = is_back ? --rank : rank++;
    if (search.compared_max != 0 && compared++ == search.compared_max) return false;
    if (element.value != search.element) return true;
    if (skipped != 0) {
      --skipped;
      return true;
    }
    found.push_back(here);
    return search.matches_max == 0 || found.size() < search.matches_max;
  };
  is_back ? list.each_back(0, list.size(), look) : list.each(0, list.size(), look);
  return found;
}

void push_to_list(ObjectEdit& list, ListEnd end, Bytes element) {
  list.insert_at(end == ListEnd::head ? 0 : list.size(), element);
}

bool insert_into_list(ObjectEdit& list, Bytes pivot, bool is_behind, Bytes element) {
  const auto found = find_in_list(list, {.element = pivot, .matches_max = 1});
  if (found.empty()) return false;
  list.insert_at(found.front() + (is_behind ? 1 : 0), element);
  return true;
}

std::size_t remove_from_list(ObjectEdit& list, Bytes element, std::int64_t count) {
  auto found = find_in_list(
      list,
      {.element = element, .first_match = count < 0 ? -1 : 1, .matches_max = magnitude(count)});
  if (count >= 0) std::reverse(found.begin(), found.end());
  // From the tail on, so that the ranks in front stay; neighbours in one step.
  for (std::size_t i = 0; i < found.size();) {
    std::size_t end = i + 1;
    while (end < found.size() && found[end] + 1 == found[end - 1]) ++end;
    list.erase_range(found[end - 1], found[i] + 1);
    i = end;
  }
  return found.size();
}

void trim_list(ObjectEdit& list, ListRange kept) {
  list.erase_range(kept.to, list.size());
  list.erase_range(0, kept.from);
}

}  // namespace semel::engine
