// Text of others as a string of JSON, whatever its bytes are: what is not visible ASCII becomes an
// escape of its byte.
#pragma once

#include <string>
#include <string_view>

#include "base/hex.hpp"

namespace semel::gateway {

inline void append_json(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      to += "\\u00";
      base::append_hex(to, byte);
    } else {
      to += c;
    }
  }
  to += '"';
}

}  // namespace semel::gateway
