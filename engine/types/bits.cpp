#include "engine/types/bits.hpp"

#include <bit>
#include <cstring>

#include "base/assert.hpp"

namespace semel::engine {

namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

unsigned byte_at(Bytes bytes, std::uint64_t index) noexcept {
  return index < bytes.size() ? static_cast<unsigned char>(bytes[static_cast<std::size_t>(index)])
                              : 0U;
}

/// The bits of the byte at `index` that are in `range`.
unsigned mask_of(std::uint64_t index, BitRange range) noexcept {
  unsigned mask = 0xff;
  if (index == range.first / 8) mask &= 0xffU >> (range.first % 8);
  if (index == range.last / 8) mask &= 0xff00U >> (range.last % 8 + 1);
  return mask & 0xff;
}

std::uint64_t word_at(Bytes bytes, std::uint64_t index) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + index, word_bytes);
  return word;
}

/// The value of `bits` bits that are in two's complement.
std::int64_t extended(std::uint64_t value, unsigned bits) noexcept {
  const unsigned above = 64 - bits;
  return static_cast<std::int64_t>(value << above) >> above;
}

std::uint64_t low_bits(std::uint64_t value, unsigned bits) noexcept {
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

/// By how much, as redis-server counts it: modulo 2^64.
std::int64_t distance(std::int64_t to, std::int64_t from) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) -
                                   static_cast<std::uint64_t>(from));
}

}  // namespace

bool bit_at(Bytes bytes, std::uint64_t offset) noexcept {
  return (byte_at(bytes, offset / 8) >> (7 - offset % 8) & 1) != 0;
}

void set_bit(std::string& bytes, std::uint64_t offset, bool is_one) noexcept {
  SEMEL_ASSERT(offset / 8 < bytes.size());
  const unsigned mask = 1U << (7 - offset % 8);
  const unsigned byte = byte_at(bytes, offset / 8);
  bytes[static_cast<std::size_t>(offset / 8)] =
      static_cast<char>(is_one ? byte | mask : byte & ~mask);
}

std::uint64_t count_ones(Bytes bytes, BitRange range) noexcept {
  SEMEL_ASSERT(range.first <= range.last && range.last / 8 < bytes.size());
  const std::uint64_t last = range.last / 8;
  std::uint64_t index = range.first / 8;
  std::uint64_t ones = 0;
  const auto count_byte = [&] {
    ones += static_cast<unsigned>(std::popcount(byte_at(bytes, index) & mask_of(index, range)));
    ++index;
  };
  count_byte();
  while (index + word_bytes <= last) {
    ones += static_cast<unsigned>(std::popcount(word_at(bytes, index)));
    index += word_bytes;
  }
  while (index <= last) count_byte();
  return ones;
}

std::optional<std::uint64_t> find_bit(Bytes bytes, bool is_one, BitRange range) noexcept {
  SEMEL_ASSERT(range.first <= range.last && range.last / 8 < bytes.size());
  const unsigned flip = is_one ? 0 : 0xff;
  const std::uint64_t without = is_one ? 0 : ~std::uint64_t{0};
  const std::uint64_t last = range.last / 8;
  std::uint64_t index = range.first / 8;
  while (index <= last) {
    const unsigned wanted = (byte_at(bytes, index) ^ flip) & mask_of(index, range);
    if (wanted != 0) {
      return index * 8 + static_cast<unsigned>(std::countl_zero(static_cast<std::uint8_t>(wanted)));
    }
    ++index;
    while (index + word_bytes <= last && word_at(bytes, index) == without) index += word_bytes;
  }
  return std::nullopt;
}

std::int64_t integer_at(Bytes bytes, std::uint64_t offset, BitfieldType type) noexcept {
  SEMEL_ASSERT(type.bits >= 1 && type.bits <= 64);
  // Nine bytes have all 64 bits at any offset: the first eight, and the rest of the last.
  const std::uint64_t index = offset / 8;
  const unsigned skipped = offset % 8;
  std::uint64_t whole = 0;
  for (unsigned i = 0; i < word_bytes; ++i) whole = whole << 8 | byte_at(bytes, index + i);
  whole <<= skipped;
  whole |= byte_at(bytes, index + word_bytes) >> (8 - skipped);
  const std::uint64_t value = whole >> (64 - type.bits);
  return type.is_signed ? extended(value, type.bits) : static_cast<std::int64_t>(value);
}

void set_integer(std::string& bytes, std::uint64_t offset, BitfieldType type,
                 std::int64_t value) noexcept {
  SEMEL_ASSERT((offset + type.bits - 1) / 8 < bytes.size());
  for (unsigned i = 0; i < type.bits; ++i) {
    const bool is_one = (static_cast<std::uint64_t>(value) >> (type.bits - 1 - i) & 1) != 0;
    set_bit(bytes, offset + i, is_one);
  }
}

std::optional<std::int64_t> add_integers(std::int64_t value, std::int64_t increment,
                                         BitfieldType type, Overflow overflow) noexcept {
  const unsigned bits = type.bits;
  const std::uint64_t sum =
      static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(increment);
  bool is_above = false;
  bool is_below = false;
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (type.is_signed) {
    high = static_cast<std::int64_t>(low_bits(~std::uint64_t{0}, bits) >> 1);
    low = -high - 1;
    const std::int64_t up = distance(high, value);
    const std::int64_t down = distance(low, value);
    is_above = value > high || (bits != 64 && increment > up) ||
               (value >= 0 && increment > 0 && increment > up);
    is_below = !is_above && (value < low || (bits != 64 && increment < down) ||
                             (value < 0 && increment < 0 && increment < down));
  } else {
    SEMEL_ASSERT(bits < 64);
    high = static_cast<std::int64_t>(low_bits(~std::uint64_t{0}, bits));
    // A negative value is one beyond all that the type can hold.
    is_above = value < 0 || value > high || (increment > 0 && increment > high - value);
    is_below = !is_above && increment < 0 && increment < -value;
  }
  if (!is_above && !is_below) return static_cast<std::int64_t>(sum);
  if (overflow == Overflow::fail) return std::nullopt;
  if (overflow == Overflow::saturate) return is_above ? high : low;
  const std::uint64_t wrapped = low_bits(sum, bits);
  return type.is_signed ? extended(wrapped, bits) : static_cast<std::int64_t>(wrapped);
}

}  // namespace semel::engine
