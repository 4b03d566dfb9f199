#include "net/acl/password.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <vector>

#include "base/hex.hpp"

namespace semel::net {
PasswordHash hash_of_password(std::string_view password) {
  PasswordHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(), hash.data());
  return hash;
}

std::string hex_of(const PasswordHash& hash) {
  return base::hex_of(hash);
}

std::optional<PasswordHash> password_hash_of_hex(std::string_view hex) {
  PasswordHash hash;
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const std::size_t high = base::hex_digits.find(hex[2 * i]);
    const std::size_t low = base::hex_digits.find(hex[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    hash[i] = static_cast<unsigned char>(high << 4U | low);
  }
  return hash;
}

bool is_among(const PasswordHash& hash, std::span<const PasswordHash> hashes) {
  const PasswordHash no_hash{};
  unsigned found = 0;
  for (const PasswordHash& other : hashes) {
    found |= CRYPTO_memcmp(hash.data(), other.data(), hash.size()) == 0 ? 1U : 0U;
  }
  // For a user without passwords, or none at all, about the same is done; the result is not used.
  if (hashes.empty()) static_cast<void>(CRYPTO_memcmp(hash.data(), no_hash.data(), hash.size()));
  return found != 0;
}

std::optional<std::string> random_hex(std::size_t digits) {
  std::vector<unsigned char> bytes((digits + 1) / 2);
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return std::nullopt;
  std::string hex = base::hex_of(bytes);
  hex.resize(digits);
  return hex;
}

}  // namespace semel::net
