// The bits of a string: SETBIT, BITCOUNT, BITPOS, and the integers in it of BITFIELD. Bit 0 is the
// highest of byte 0. All functions are pure; none reads outside of its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "semel/types.hpp"

namespace semel::engine {

/// Both ends are in it; `first` <= `last`.
struct BitRange {
  std::uint64_t first;
  std::uint64_t last;
};

/// Beyond the end there are zeros.
[[nodiscard]] bool bit_at(Bytes bytes, std::uint64_t offset) noexcept;
/// `offset` is inside.
void set_bit(std::string& bytes, std::uint64_t offset, bool is_one) noexcept;

/// How many bits of `range`, which is inside, are ones.
[[nodiscard]] std::uint64_t count_ones(Bytes bytes, BitRange range) noexcept;
/// The first bit of `range`, which is inside, that is as wanted.
[[nodiscard]] std::optional<std::uint64_t> find_bit(Bytes bytes, bool is_one,
                                                    BitRange range) noexcept;

// --- integers ------------------------------------------------------------------------------------

struct BitfieldType {
  bool is_signed = false;
  unsigned bits = 0;  ///< 1..64, without a sign 1..63
};

/// What becomes of a number that its type cannot hold.
enum class Overflow : std::uint8_t { wrap, saturate, fail };

/// Beyond the end there are zeros.
[[nodiscard]] std::int64_t integer_at(Bytes bytes, std::uint64_t offset,
                                      BitfieldType type) noexcept;
/// The low bits of `value`; all of the place is inside.
void set_integer(std::string& bytes, std::uint64_t offset, BitfieldType type,
                 std::int64_t value) noexcept;
/// `value + increment` as an integer of `type`; none: it overflows, and that is a failure. For
/// values that are not of the type it gives what redis-server 7.0 gives: past its lowest value, a
/// signed one of 63 bits and less may saturate at the highest.
[[nodiscard]] std::optional<std::int64_t> add_integers(std::int64_t value, std::int64_t increment,
                                                       BitfieldType type,
                                                       Overflow overflow) noexcept;

}  // namespace semel::engine
