// Lengths and strings as redis-server writes them in dumps and RDB files; drawn in dump_format.hpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/rdb/byte_items.hpp"
#include "net/rdb/dump_format.hpp"

namespace semel::net {

/// Little-endian.
[[nodiscard]] inline std::uint64_t little_number(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}
[[nodiscard]] inline std::uint64_t big_number(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (const char each : bytes) value = value << 8 | static_cast<unsigned char>(each);
  return value;
}

/// What an element of a large object takes at least besides its bytes, so that many empty ones are
/// not more than `bytes_max`.
inline constexpr std::size_t dump_item_bytes = 5;

/// Reads from the front of `payload`, which must outlive this; strings of `bytes_max` bytes at most
/// together. After a fault everything is empty.
class DumpBytes {
 public:
  /// First bytes of strings that are something else than a length and bytes.
  enum Encoded : std::uint8_t { of_8_bits = 192, of_16_bits, of_32_bits, packed };

  DumpBytes(std::string_view payload, std::size_t bytes_max) noexcept
      : rest_(payload), room_(bytes_max) {}

  [[nodiscard]] DumpFault fault() const noexcept { return fault_; }
  [[nodiscard]] bool good() const noexcept { return fault_ == DumpFault::none; }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
  void fail(DumpFault fault = DumpFault::format) noexcept {
    if (good()) fault_ = fault;
    rest_ = {};
  }
  std::string_view take(std::uint64_t bytes) noexcept;
  std::uint8_t byte() noexcept { return static_cast<std::uint8_t>(little_number(take(1))); }
  double binary_score() noexcept {
    return std::bit_cast<double>(little_number(take(sizeof(double))));
  }
  std::uint64_t length() noexcept { return length(byte()); }
  /// Of elements: at least one.
  std::uint64_t count() noexcept {
    const std::uint64_t count = length();
    if (good() && count == 0) fail();
    return good() ? count : 0;
  }
  /// Appends a string to `to`.
  void string(std::string& to);
  /// A string that is read at once: valid until the next.
  [[nodiscard]] std::string_view string() {
    scratch_.clear();
    string(scratch_);
    return good() ? std::string_view{scratch_} : std::string_view{};
  }
  void item(ByteItems& items) {
    if (!spend(dump_item_bytes)) return;
    string(items.open());
    items.end_item();
  }
  /// Takes this off `bytes_max`. False: it is too much.
  [[nodiscard]] bool spend(std::uint64_t bytes) noexcept;

 private:
  std::uint64_t length(std::uint8_t first) noexcept;
  void number(std::size_t bytes, std::string& to);
  void unpack(std::string& to);

  std::string_view rest_;
  std::size_t room_;  // for strings
  DumpFault fault_ = DumpFault::none;
  std::string scratch_;
};

}  // namespace semel::net
