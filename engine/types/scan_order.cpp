#include "engine/types/scan_order.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace semel::engine {

namespace {

constexpr unsigned place_bits = 48;  // clients keep cursors in doubles, too

std::uint64_t place_of(Bytes member) noexcept {
  return XXH3_64bits(member.data(), member.size()) >> (64 - place_bits);
}

}  // namespace

bool ScanStep::has(Bytes member) const noexcept {
  const std::uint64_t place = place_of(member);
  return place >= from && place <= last;
}

ScanStep scan_step(std::uint64_t cursor, std::size_t size, std::size_t count) noexcept {
  constexpr std::size_t parts_max = 64;
  const std::size_t wanted =
      std::clamp<std::size_t>(size / std::max<std::size_t>(count, 1), 1, parts_max);
  const std::uint64_t width = (std::uint64_t{1} << place_bits) / std::bit_floor(wanted);
  ScanStep step;
  step.from = cursor & ((std::uint64_t{1} << place_bits) - 1);
  step.last = step.from | (width - 1);
  step.next = (step.last + 1) & ((std::uint64_t{1} << place_bits) - 1);
  return step;
}

}  // namespace semel::engine
