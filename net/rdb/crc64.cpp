#include "net/rdb/crc64.hpp"

#include <array>

namespace semel::net {

namespace {

constexpr std::uint64_t reflected_polynomial = 0x95ac9329ac4bc9b5;

constexpr auto table = [] {
  std::array<std::uint64_t, 256> made{};
  for (std::uint64_t byte = 0; byte < made.size(); ++byte) {
    std::uint64_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest & 1) != 0 ? rest >> 1 ^ reflected_polynomial : rest >> 1;
    }
    made[byte] = rest;
  }
  return made;
}();

}  // namespace

std::uint64_t crc64(std::string_view bytes, std::uint64_t before) noexcept {
  std::uint64_t crc = before;
  for (const char byte : bytes) {
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ crc >> 8;
  }
  return crc;
}

}  // namespace semel::net
