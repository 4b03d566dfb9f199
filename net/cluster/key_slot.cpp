#include "net/cluster/key_slot.hpp"

#include <cstddef>

namespace semel::net {

std::uint16_t slot_of(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  std::uint32_t sum = 0;
  constexpr std::uint32_t polynomial = 0x1021;
  for (const char each : key) {
    sum ^= static_cast<std::uint32_t>(static_cast<unsigned char>(each)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum & 0x8000U) != 0 ? (sum << 1U) ^ polynomial : sum << 1U;
    }
  }
  return static_cast<std::uint16_t>((sum & 0xffffU) % slot_count);
}

}  // namespace semel::net
