// The time inside an id.
#include <charconv>

#include "base/ascii.hpp"
#include "base/checked.hpp"
#include "base/hex.hpp"
#include "semel/patterns/keys.hpp"

namespace semel {

namespace {

/// Crockford's base 32, strictly: without the look-alikes that people may type.
int base32_digit(char c) noexcept {
  constexpr Bytes digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const std::size_t at = digits.find(base::to_upper(c));
  return at == Bytes::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::optional<std::int64_t> unix_ms_of_uuid7(Bytes text) noexcept {
  // tttttttt-tttt-7xxx-vxxx-xxxxxxxxxxxx, v = 8, 9, a or b
  if (text.size() != 36) return std::nullopt;
  std::int64_t time = 0;
  unsigned digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int digit = base::hex_value(text[i]);
    if (digit < 0) return std::nullopt;
    if (digits < 12) time = time * 16 + digit;
    ++digits;
  }
  if (text[14] != '7' || (base::hex_value(text[19]) & 0xc) != 0x8) return std::nullopt;
  return time;
}

std::optional<std::int64_t> unix_ms_of_ulid(Bytes text) noexcept {
  // ttttttttttrrrrrrrrrrrrrrrr: 48 bits of time and 80 of randomness; 130 bits of digits, so that
  // the first is at most 7.
  if (text.size() != 26 || text[0] > '7') return std::nullopt;
  std::int64_t time = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int digit = base32_digit(text[i]);
    if (digit < 0) return std::nullopt;
    if (i < 10) time = time * 32 + digit;
  }
  return time;
}

std::optional<std::int64_t> unix_ms_of_snowflake(Bytes digits,
                                                 std::int64_t epoch_unix_ms) noexcept {
  const bool is_plain = !digits.empty() && digits[0] >= '0' && digits[0] <= '9' &&
                        (digits[0] != '0' || digits.size() == 1);
  if (!is_plain) return std::nullopt;
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return base::checked_add(id >> 22, epoch_unix_ms);
}

std::optional<std::int64_t> first_sent_of(Bytes id) noexcept {
  if (const auto time = unix_ms_of_uuid7(id)) return time;
  return unix_ms_of_ulid(id);
}

}  // namespace semel
