#include "patterns/tokens/signed_digests.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <span>

#include "base/hex.hpp"
#include "semel/patterns/identity.hpp"
#include "semel/patterns/signed_request.hpp"

namespace semel {

namespace {

Fingerprint first_half(const std::optional<patterns::Sha256>& digest,
                       FingerprintAlgorithm algorithm) {
  Fingerprint fingerprint;
  if (!digest) return fingerprint;
  fingerprint.algorithm = static_cast<std::uint8_t>(algorithm);
  std::copy_n(digest->begin(), fingerprint.digest.size(), fingerprint.digest.begin());
  return fingerprint;
}

void append_field(Bytes bytes, std::string& text) {
  for (unsigned i = 0; i < 8; ++i) {
    text += static_cast<char>(static_cast<unsigned char>(std::uint64_t{bytes.size()} >> (8 * i)));
  }
  text += bytes;
}

}  // namespace

std::optional<patterns::Sha256> patterns::hmac_sha256(Bytes secret, Bytes text) {
  Sha256 digest{};
  const void* const key = secret.empty() ? "" : secret.data();
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), key, static_cast<int>(secret.size()), bytes, text.size(), digest.data(),
           nullptr) == nullptr) {
    return std::nullopt;
  }
  return digest;
}

std::string hmac_sha256_hex(Bytes secret, Bytes text) {
  const auto digest = patterns::hmac_sha256(secret, text);
  return digest ? base::hex_of(*digest) : std::string{};
}

std::string md5_hex(Bytes text) {
  std::array<std::uint8_t, 16> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_md5(), nullptr) != 1) {
    return {};
  }
  return base::hex_of(digest);
}

namespace {

/// "" if libcrypto fails.
std::string sha256_hex(Bytes bytes) {
  patterns::Sha256 digest{};
  const bool is_done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1;
  return is_done ? base::hex_of(digest) : std::string{};
}

}  // namespace

std::string identity_key(Bytes text) {
  return sha256_hex(text);
}

std::string digest_key_sha256(Bytes name, Bytes payload) {
  const std::string digest = sha256_hex(payload);
  if (digest.empty()) return {};
  return composite_key({name, "sha256-" + digest});
}

bool equal_in_constant_time(Bytes one, Bytes other) noexcept {
  return one.size() == other.size() &&
         (one.empty() || CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0);
}

Fingerprint fingerprint_sha256(Bytes payload, FingerprintAlgorithm algorithm) {
  patterns::Sha256 digest{};
  const bool is_done = EVP_Digest(payload.data(), payload.size(), digest.data(), nullptr,
                                  EVP_sha256(), nullptr) == 1;
  return first_half(is_done ? std::optional{digest} : std::nullopt, algorithm);
}

Fingerprint fingerprint_sha256(const Scope& scope, Bytes payload, FingerprintAlgorithm algorithm) {
  if (scope.tenant.empty() && scope.user.empty()) return fingerprint_sha256(payload, algorithm);
  std::string key;
  append_field(scope.tenant, key);
  append_field(scope.user, key);
  return first_half(patterns::hmac_sha256(key, payload), algorithm);
}

}  // namespace semel
