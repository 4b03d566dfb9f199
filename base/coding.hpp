// Numbers and runs of bytes as they stand in files and messages: the one place that turns them into
// bytes and back.
//
//   fixed     as many bytes as the number has, the lowest first
//   varint    seven bits a byte, the lowest first; the last byte has its top bit clear
//   signed    a varint in zigzag: 0, -1, 1, -2, ..
//   prefixed  a varint, and then as many bytes
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace semel::base {

static_assert(std::endian::native == std::endian::little, "numbers are copied, not swapped");

inline constexpr std::size_t varint_bytes_max = 10;

[[nodiscard]] constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
  return static_cast<std::size_t>(std::max(1, (64 - std::countl_zero(value) + 6) / 7));
}
static_assert(varint_bytes(127) == 1 && varint_bytes(128) == 2);
static_assert(varint_bytes(~std::uint64_t{0}) == varint_bytes_max);

[[nodiscard]] constexpr std::uint64_t zigzag(std::uint64_t value) noexcept {
  return (value << 1) ^ (0 - (value >> 63));
}
[[nodiscard]] constexpr std::uint64_t unzigzag(std::uint64_t value) noexcept {
  return (value >> 1) ^ (0 - (value & 1));
}

/// The number of eight bytes, the highest first: such numbers are in the order of the bytes.
[[nodiscard]] inline std::uint64_t big_endian(const char* at) noexcept {
  std::uint64_t number;
  std::memcpy(&number, at, sizeof number);
  return __builtin_bswap64(number);
}

// --- to the end of a string ---------------------------------------------------------------------

template <class Number>
void put_fixed(std::string& to, Number value) {
  static_assert(std::is_integral_v<Number>);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) to.push_back(static_cast<char>(value | 128));
  to.push_back(static_cast<char>(value));
}
/// A difference that may be negative; wraps around as the subtraction did.
inline void put_signed(std::string& to, std::uint64_t value) {
  put_varint(to, zigzag(value));
}
inline void put_prefixed(std::string& to, std::string_view bytes) {
  put_varint(to, bytes.size());
  to.append(bytes);
}
template <class Array>
void put_array(std::string& to, const Array& bytes) {
  static_assert(sizeof bytes[0] == 1);
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// --- to room that is known to be large enough ---------------------------------------------------

class ByteWriter {
 public:
  explicit ByteWriter(char* to) noexcept : to_(to) {}

  template <class Number>
  void fixed(Number value) noexcept {
    static_assert(std::is_integral_v<Number>);
    bytes({reinterpret_cast<const char*>(&value), sizeof value});
  }
  /// The lowest `count` bytes of `value`.
  void low_bytes(std::uint64_t value, std::size_t count) noexcept {
    bytes({reinterpret_cast<const char*>(&value), count});
  }
  void varint(std::uint64_t value) noexcept {
    for (; value >= 128; value >>= 7) *to_++ = static_cast<char>(value | 128);
    *to_++ = static_cast<char>(value);
  }
  void bytes(std::string_view part) noexcept {
    if (!part.empty()) std::memcpy(to_, part.data(), part.size());
    to_ += part.size();
  }
  template <class Array>
  void array(const Array& part) noexcept {
    static_assert(sizeof part[0] == 1);
    bytes({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  /// Behind the bytes written.
  [[nodiscard]] char* end() const noexcept { return to_; }

 private:
  char* to_;
};

// --- reading ------------------------------------------------------------------------------------

/// Takes fields from the front of bytes that may be damaged: it never leaves them, and remembers
/// the first field that is not there as a whole. That one and those behind it are 0 or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view from) noexcept : rest_(from) {}

  template <class Number>
  [[nodiscard]] Number fixed() noexcept {
    static_assert(std::is_integral_v<Number>);
    return static_cast<Number>(low_bytes(sizeof(Number)));
  }
  /// A number of `count` bytes, at most 8.
  [[nodiscard]] std::uint64_t low_bytes(std::size_t count) noexcept {
    std::uint64_t value = 0;
    const std::string_view part = take(count);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  [[nodiscard]] std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift == 63 && byte > 1) break;  // it is larger than 64 bits
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return is_good_ ? value : 0;
    }
    fail();
    return 0;
  }
  [[nodiscard]] std::uint64_t signed_varint() noexcept { return unzigzag(varint()); }
  [[nodiscard]] std::string_view prefixed() noexcept { return take(varint()); }
  template <class Array>
  void array(Array& to) noexcept {
    static_assert(sizeof to[0] == 1);
    const std::string_view part = take(to.size());
    if (part.size() == to.size()) std::memcpy(to.data(), part.data(), to.size());
  }
  [[nodiscard]] std::string_view take(std::uint64_t count) noexcept {
    if (!is_good_ || count > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }
  /// All that is left, which is taken, too.
  [[nodiscard]] std::string_view take_rest() noexcept { return take(rest_.size()); }

  void fail() noexcept { is_good_ = false; }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  /// Every byte was taken, and no field was missing.
  [[nodiscard]] bool is_at_end() const noexcept { return is_good_ && rest_.empty(); }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

}  // namespace semel::base
