#include "gateway/rules/message.hpp"

#include <algorithm>

namespace semel::gateway {

bool equal_names(std::string_view one, std::string_view other) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return one.size() == other.size() &&
         std::equal(one.begin(), one.end(), other.begin(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

FieldLookup find_field(Fields fields, std::string_view name) noexcept {
  FieldLookup found;
  for (const Field& field : fields) {
    if (!equal_names(field.name, name)) continue;
    if (found.value) {
      found.repeated = true;
      break;
    }
    found.value = field.value;
  }
  return found;
}

bool has_token(std::string_view value, std::string_view token) noexcept {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    if (equal_names(without_blanks(value.substr(0, comma)), token)) return true;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return false;
}

std::string_view without_blanks(std::string_view text) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string out{text};
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

}  // namespace semel::gateway
