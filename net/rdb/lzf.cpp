#include "net/rdb/lzf.hpp"

namespace semel::net {

namespace {

constexpr unsigned literal_max = 32;  // a first byte below begins a stretch of literals
constexpr unsigned long_reference = 7;

unsigned byte_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<unsigned char>(bytes[at]);
}

}  // namespace

bool append_unpacked(std::string_view packed, std::size_t bytes, std::string& to) {
  if (packed.empty() || bytes == 0 || bytes > lzf_bytes_max(packed.size())) return false;
  const std::size_t begin = to.size();
  const std::size_t end = begin + bytes;
  to.reserve(end);
  std::size_t at = 0;
  while (at < packed.size()) {
    const unsigned first = byte_at(packed, at++);
    if (first < literal_max) {
      const std::size_t count = first + 1;
      if (packed.size() - at < count || end - to.size() < count) return false;
      to.append(packed, at, count);
      at += count;
      continue;
    }
    std::size_t count = (first >> 5) + 2;
    if (first >> 5 == long_reference) {
      if (at == packed.size()) return false;
      count += byte_at(packed, at++);
    }
    if (at == packed.size()) return false;
    const std::size_t back = ((first & 0x1f) << 8 | byte_at(packed, at++)) + 1;
    if (to.size() - begin < back || end - to.size() < count) return false;
    // Byte by byte: source and target may overlap.
    for (std::size_t from = to.size() - back; count > 0; --count, ++from) to.push_back(to[from]);
  }
  return to.size() == end;
}

}  // namespace semel::net
