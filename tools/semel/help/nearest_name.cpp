#include "tools/semel/help/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace semel::tool {
namespace {

/// Optimal string alignment distance. O(|a| * |b|): the caller bounds both.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_above(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
    std::swap(two_above, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::size_t length_difference(std::string_view a, std::string_view b) {
  return a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
}

}  // namespace

std::string_view nearest_name(std::string_view typed, std::span<const std::string> known) {
  // Dashes are no part of a name's length: with one edit -x would be every short flag.
  const std::size_t letters = typed.size() - std::min(typed.find_first_not_of('-'), typed.size());
  const std::size_t edits_max = std::min(name_edits_max, letters / 2);
  std::string_view nearest;
  std::size_t fewest = edits_max + 1;
  for (const std::string& name : known) {
    if (length_difference(typed, name) >= fewest) continue;
    const std::size_t edits = edit_distance(typed, name);
    if (edits < fewest) {
      fewest = edits;
      nearest = name;
    }
  }
  return nearest;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t bytes_max = 60;
  std::string out = "'";
  for (const char c : text.substr(0, bytes_max)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() <= bytes_max) return out + "'";
  return out + fmt::format("...' ({} bytes)", text.size());
}

}  // namespace semel::tool
