#include "net/rdb/dump_writer.hpp"

#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "net/rdb/crc64.hpp"

namespace semel::net {

namespace {

/// The number whose text this is, if there is no other text for it.
std::optional<std::int32_t> small_integer(std::string_view text) noexcept {
  constexpr std::size_t bytes_max = 11;
  if (text.empty() || text.size() > bytes_max) return std::nullopt;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  char again[16];
  const auto again_end = std::to_chars(again, again + sizeof again, number).ptr;
  if (text != std::string_view{again, static_cast<std::size_t>(again_end - again)}) {
    return std::nullopt;
  }
  return number;
}

template <class Number>
bool holds(std::int32_t number) noexcept {
  return number >= std::numeric_limits<Number>::min() &&
         number <= std::numeric_limits<Number>::max();
}

}  // namespace

void DumpWriter::little(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) byte(static_cast<std::uint8_t>(value));
}

void DumpWriter::big(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0;) byte(static_cast<std::uint8_t>(value >> (8 * i)));
}

void DumpWriter::length(std::uint64_t value) {
  constexpr std::uint8_t of_32_bits = 128;
  constexpr std::uint8_t of_64_bits = 129;
  if (value < 64) return byte(static_cast<std::uint8_t>(value));
  if (value < 16'384) return big(value | 0x4000, 2);
  if (value <= UINT32_MAX) {
    byte(of_32_bits);
    return big(value, 4);
  }
  byte(of_64_bits);
  big(value, 8);
}

void DumpWriter::string(std::string_view bytes) {
  constexpr std::uint8_t of_8_bits = 192;
  constexpr std::uint8_t of_16_bits = 193;
  constexpr std::uint8_t of_32_bits = 194;
  if (const auto number = small_integer(bytes)) {
    const auto bits = static_cast<std::uint32_t>(*number);
    if (holds<std::int8_t>(*number)) {
      byte(of_8_bits);
      return little(bits, 1);
    }
    if (holds<std::int16_t>(*number)) {
      byte(of_16_bits);
      return little(bits, 2);
    }
    byte(of_32_bits);
    return little(bits, 4);
  }
  length(bytes.size());
  bytes_.append(bytes);
}

void DumpWriter::score(double score) {
  little(std::bit_cast<std::uint64_t>(score), sizeof score);
}

std::string DumpWriter::take(std::uint16_t version) {
  little(version, 2);
  little(crc64(bytes_), 8);
  return std::move(bytes_);
}

}  // namespace semel::net
