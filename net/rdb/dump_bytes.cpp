#include "net/rdb/dump_bytes.hpp"

#include <charconv>

#include "net/rdb/lzf.hpp"

namespace semel::net {

std::string_view DumpBytes::take(std::uint64_t bytes) noexcept {
  if (bytes > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

bool DumpBytes::spend(std::uint64_t bytes) noexcept {
  if (bytes > room_) {
    fail(DumpFault::too_large);
    return false;
  }
  room_ -= static_cast<std::size_t>(bytes);
  return true;
}

std::uint64_t DumpBytes::length(std::uint8_t first) noexcept {
  constexpr std::uint8_t length_of_32_bits = 128;
  constexpr std::uint8_t length_of_64_bits = 129;
  if (first < 64) return first;
  if (first < 128) return std::uint64_t{first & 63U} << 8 | byte();
  if (first == length_of_32_bits) return big_number(take(4));
  if (first == length_of_64_bits) return big_number(take(8));
  fail();
  return 0;
}

void DumpBytes::string(std::string& to) {
  const std::uint8_t first = byte();
  switch (first) {
    case of_8_bits:
      return number(1, to);
    case of_16_bits:
      return number(2, to);
    case of_32_bits:
      return number(4, to);
    case packed:
      return unpack(to);
    default:
      break;
  }
  const std::string_view bytes = take(length(first));
  if (good() && spend(bytes.size())) to.append(bytes);
}

void DumpBytes::number(std::size_t bytes, std::string& to) {
  constexpr unsigned all_bits = 64;
  const unsigned unused = all_bits - static_cast<unsigned>(8 * bytes);
  const std::int64_t value =
      static_cast<std::int64_t>(little_number(take(bytes)) << unused) >> unused;
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  const std::string_view digits{text, static_cast<std::size_t>(end - text)};
  if (good() && spend(digits.size())) to.append(digits);
}

void DumpBytes::unpack(std::string& to) {
  const std::uint64_t packed_bytes = length(byte());
  const std::uint64_t bytes = length(byte());
  const std::string_view from = take(packed_bytes);
  if (!good()) return;
  if (bytes > lzf_bytes_max(from.size())) return fail();
  if (spend(bytes) && !append_unpacked(from, static_cast<std::size_t>(bytes), to)) fail();
}

}  // namespace semel::net
