#include "net/console/key_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hex.hpp"
#include "net/admin/escape.hpp"

namespace semel::net {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Characters that are invisible, change the order of visible ones, or have no fixed glyph.
// Source: https://www.unicode.org/reports/tr36/, and the general categories Cc, Cf, Zs, Zl, Zp, Co
constexpr std::array hidden{
    Range{0x00, 0x1F},       Range{0x7F, 0xA0},       Range{0xAD, 0xAD},
    Range{0x034F, 0x034F},   Range{0x0600, 0x0605},   Range{0x061C, 0x061C},
    Range{0x06DD, 0x06DD},   Range{0x070F, 0x070F},   Range{0x115F, 0x1160},
    Range{0x1680, 0x1680},   Range{0x17B4, 0x17B5},   Range{0x180B, 0x180F},
    Range{0x2000, 0x200F},   Range{0x2028, 0x202F},   Range{0x205F, 0x206F},
    Range{0x3000, 0x3000},   Range{0x3164, 0x3164},   Range{0xE000, 0xF8FF},
    Range{0xFE00, 0xFE0F},   Range{0xFEFF, 0xFEFF},   Range{0xFFA0, 0xFFA0},
    Range{0xFFF0, 0xFFFF},   Range{0x110BD, 0x110BD}, Range{0x1BCA0, 0x1BCA3},
    Range{0x1D173, 0x1D17A}, Range{0xE0000, 0x10FFFF}};

std::uint32_t code_point(std::string_view character) {
  const auto at = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i]));
  };
  constexpr std::uint32_t tail = 0x3F;
  switch (character.size()) {
    case 1:
      return at(0);
    case 2:
      return (at(0) & 0x1FU) << 6U | (at(1) & tail);
    case 3:
      return (at(0) & 0x0FU) << 12U | (at(1) & tail) << 6U | (at(2) & tail);
    default:
      return (at(0) & 0x07U) << 18U | (at(1) & tail) << 12U | (at(2) & tail) << 6U | (at(3) & tail);
  }
}

bool is_shown(std::string_view character) {
  const std::uint32_t code = code_point(character);
  return std::none_of(hidden.begin(), hidden.end(), [&](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

}  // namespace

std::string key_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const std::string_view part = bytes.substr(0, std::max<std::size_t>(length, 1));
    if (part == "\\") {
      text += "\\\\";
    } else if (length != 0 && is_shown(part)) {
      text += part;
    } else {
      for (const char byte : part) {
        text += "\\x";
        base::append_hex(text, static_cast<std::uint8_t>(byte));
      }
    }
    bytes.remove_prefix(part.size());
  }
  return text;
}

std::optional<std::string> bytes_of_key_text(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text.substr(i + 1, 1) == "\\") {
      bytes += '\\';
      ++i;
    } else {
      if (text.substr(i + 1, 1) != "x" || text.size() - i < 4) return std::nullopt;
      const int high = base::hex_value(text[i + 2]);
      const int low = base::hex_value(text[i + 3]);
      if (high < 0 || low < 0) return std::nullopt;
      bytes += static_cast<char>(high * 16 + low);
      i += 3;
    }
  }
  return bytes;
}

}  // namespace semel::net
