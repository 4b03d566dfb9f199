// What earlier releases of redis-server write, made byte by byte: ziplists, zipmaps, quicklists of
// ziplists, intsets and sorted sets with scores as text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/rdb/crc64.hpp"
#include "net/resp/text.hpp"

namespace semel::tests::packed {

using Items = std::vector<std::string>;

inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value));
  return out;
}

inline std::string length(std::size_t value) {
  if (value < 64) return {static_cast<char>(value)};
  if (value < 16'384) return {static_cast<char>(0x40 | value >> 8), static_cast<char>(value)};
  std::string out{"\x80"};
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

inline std::string prefixed(std::string_view bytes) {
  return length(bytes.size()) + std::string{bytes};
}

/// With type and footer.
inline std::string payload(char type, const std::string& value, std::uint16_t version = 9) {
  const std::string body = std::string{type} + value + little(version, 2);
  return body + little(net::crc64(body), 8);
}

inline std::string ziplist_item(const std::string& item) {
  if (const auto number = net::integer_of(item)) {
    const auto bits = static_cast<std::uint64_t>(*number);
    const auto fits = [&](unsigned width) {
      const std::int64_t bound = std::int64_t{1} << (width - 1);
      return *number >= -bound && *number < bound;
    };
    if (*number >= 0 && *number <= 12) return {static_cast<char>(0xf1 + *number)};
    if (fits(8)) return "\xfe" + little(bits, 1);
    if (fits(16)) return "\xc0" + little(bits, 2);
    if (fits(24)) return "\xf0" + little(bits, 3);
    if (fits(32)) return "\xd0" + little(bits, 4);
    return "\xe0" + little(bits, 8);
  }
  return prefixed(item);  // the same three forms as lengths of a dump
}

inline std::string ziplist(const Items& items) {
  constexpr std::size_t head = 10;
  std::string entries;
  std::size_t before = 0;
  std::size_t last = head;
  for (const std::string& item : items) {
    last = head + entries.size();
    const std::string entry =
        (before < 254 ? little(before, 1) : "\xfe" + little(before, 4)) + ziplist_item(item);
    entries += entry;
    before = entry.size();
  }
  return little(head + entries.size() + 1, 4) + little(last, 4) +
         little(std::min<std::size_t>(items.size(), 65'535), 2) + entries + "\xff";
}

inline std::string zipmap(const Items& fields_and_values) {
  constexpr std::size_t unused = 2;
  const auto size_of = [](std::size_t bytes) {
    return bytes < 254 ? little(bytes, 1) : "\xfe" + little(bytes, 4);
  };
  std::string out = little(std::min<std::size_t>(fields_and_values.size() / 2, 254), 1);
  for (std::size_t i = 0; i + 1 < fields_and_values.size(); i += 2) {
    const std::string& value = fields_and_values[i + 1];
    out += size_of(fields_and_values[i].size()) + fields_and_values[i];
    out += size_of(value.size()) + little(unused, 1) + value + std::string(unused, '?');
  }
  return out + "\xff";
}

inline std::string intset(const std::vector<std::int64_t>& ascending, std::size_t width) {
  std::string out = little(width, 4) + little(ascending.size(), 4);
  for (const std::int64_t each : ascending) out += little(static_cast<std::uint64_t>(each), width);
  return out;
}

inline std::string listpack_of_texts(const Items& short_texts) {
  std::string entries;
  for (const std::string& text : short_texts) {
    const std::string entry = static_cast<char>(0x80 | text.size()) + text;
    entries += entry + static_cast<char>(entry.size());
  }
  return little(6 + entries.size() + 1, 4) + little(short_texts.size(), 2) + entries + "\xff";
}

}  // namespace semel::tests::packed
