#include "tools/semel/help/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/edit_distance.hpp"

namespace semel::tool {
namespace {

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
    const std::size_t edits = base::edit_distance(typed, name);
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
