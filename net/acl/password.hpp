// Passwords: kept as SHA-256, compared in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace semel::net {

using PasswordHash = std::array<unsigned char, 32>;

[[nodiscard]] PasswordHash hash_of_password(std::string_view password);

/// 64 small hexadecimal digits.
[[nodiscard]] std::string hex_of(const PasswordHash& hash);
[[nodiscard]] std::optional<PasswordHash> password_hash_of_hex(std::string_view hex);

/// Whether `hash` is among `hashes`. All of them are compared, each whole; where there are none,
/// one comparison is made all the same.
[[nodiscard]] bool is_among(const PasswordHash& hash, std::span<const PasswordHash> hashes);

/// `digits` random hexadecimal digits. None: the machine has no randomness to give.
[[nodiscard]] std::optional<std::string> random_hex(std::size_t digits);

}  // namespace semel::net
