#include "net/admin/escape.hpp"

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"
#include "base/hex.hpp"

namespace semel::net {
namespace {

bool continues(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// U+0080..U+009F control a terminal as the first 32 characters do.
bool is_control(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t number = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
    number = number << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  // Refuse overlong forms, surrogates, and numbers above U+10FFFF.
  const bool is_too_long = (length == 3 && number < 0x800) || (length == 4 && number < 0x10000);
  const bool is_surrogate = number >= 0xd800 && number < 0xe000;
  return is_too_long || is_surrogate || number > 0x10ffff ? 0 : length;
}

std::string_view cut_at_character(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  const std::size_t earliest = bytes_max - std::min<std::size_t>(bytes_max, 3);
  while (end > earliest && continues(text[end])) --end;
  SEMEL_ASSERT(end <= bytes_max);
  return text.substr(0, end);
}

void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    const char first = character.front();
    at += character.size();
    if (length == 0) {
      out += "\\\\x";
      base::append_hex(out, static_cast<unsigned char>(first));
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (first == '\n') {
      out += "\\n";
    } else if (first == '\r') {
      out += "\\r";
    } else if (first == '\t') {
      out += "\\t";
    } else if (is_control(character)) {
      out += "\\u00";
      base::append_hex(out, static_cast<unsigned char>(character.back()));
    } else {
      out += character;
    }
  }
}

void append_label_value(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    const char first = character.front();
    at += character.size();
    if (length == 0) {
      out += "\\\\x";
      base::append_hex(out, static_cast<unsigned char>(first));
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (first == '\n') {
      out += "\\n";
    } else {
      out += character;
    }
  }
}

}  // namespace semel::net
