// Random numbers: the kernel's, and a small seeded generator for uses that need no secrecy.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace semel::base {

/// Fills `bytes` from the kernel's generator. Progress: blocks only until the kernel has seeded its
/// pool, early in boot. A kernel without getrandom(2), older than 3.17, ends the process: an
/// identity that is not random would be taken for another's.
inline void fill_random(std::span<std::uint8_t> bytes) noexcept {
  while (!bytes.empty()) {
    const auto count = getrandom(bytes.data(), bytes.size(), 0);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {  // a signal may interrupt a read of more than 256 bytes
      std::abort();
    }
  }
}

/// 64 bits from the kernel's generator.
[[nodiscard]] inline std::uint64_t random_number() noexcept {
  std::uint64_t number = 0;
  fill_random({reinterpret_cast<std::uint8_t*>(&number), sizeof number});
  return number;
}

/// The finisher of SplitMix64 (Steele, Lea, Flood 2014), a bijection: every input bit reaches every
/// output bit.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

/// SplitMix64: the next number of the sequence that starts at any `state`. Not for secrets: one
/// number gives away all that follow.
[[nodiscard]] constexpr std::uint64_t next_random(std::uint64_t& state) noexcept {
  state += 0x9e37'79b9'7f4a'7c15;
  return mix_bits(state);
}

}  // namespace semel::base
