// A byte as % and two upper-case hexadecimal digits.
#pragma once

#include <string>

namespace semel::base {

inline void append_percent(std::string& text, char byte) {
  constexpr char digits[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  text += '%';
  text += digits[value >> 4U];
  text += digits[value & 15U];
}

}  // namespace semel::base
