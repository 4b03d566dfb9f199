#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/hex.hpp"
#include "semel/patterns/keys.hpp"

namespace semel {

namespace {

/// A seed for each shape of input, so that no payload can be another shape's bytes.
constexpr std::uint64_t scope_seed = 0x53636f7065;                // "Scope"
constexpr std::uint64_t parameters_seed = 0x506172616d;           // "Param"
constexpr std::uint64_t scoped_parameters_seed = 0x53506172616d;  // "SParam"

Fingerprint to_fingerprint(XXH128_hash_t hash, FingerprintAlgorithm algorithm) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Fingerprint fingerprint;
  fingerprint.algorithm = static_cast<std::uint8_t>(algorithm);
  std::memcpy(fingerprint.digest.data(), canonical.digest, fingerprint.digest.size());
  return fingerprint;
}

/// XXH3-128 of a sequence of pieces.
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed) { XXH3_128bits_reset_withSeed(&state_, seed); }

  void add(Bytes bytes) {
    if (!bytes.empty()) XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }

  /// The bytes behind their length, little-endian, so that two fields cannot trade bytes.
  void add_field(Bytes bytes) {
    unsigned char size[8];
    for (unsigned i = 0; i < sizeof size; ++i) {
      size[i] = static_cast<unsigned char>(std::uint64_t{bytes.size()} >> (8 * i));
    }
    XXH3_128bits_update(&state_, size, sizeof size);
    add(bytes);
  }

  void add_scope(const Scope& scope) {
    add_field(scope.tenant);
    add_field(scope.user);
  }

  void add_parameters(std::span<const KeyField> parameters) {
    std::vector<KeyField> sorted{parameters.begin(), parameters.end()};
    std::sort(sorted.begin(), sorted.end(), [](const KeyField& one, const KeyField& other) {
      return std::tie(one.name, one.value) < std::tie(other.name, other.value);
    });
    for (const KeyField& field : sorted) {
      add_field(field.name);
      add_field(field.value);
    }
  }

  [[nodiscard]] Fingerprint digest(FingerprintAlgorithm algorithm) const {
    return to_fingerprint(XXH3_128bits_digest(&state_), algorithm);
  }

 private:
  XXH3_state_t state_{};  // a reset reads the old content
};

bool is_open(const Scope& scope) noexcept {
  return scope.tenant.empty() && scope.user.empty();
}

}  // namespace

Fingerprint fingerprint_of(Bytes payload) {
  return to_fingerprint(XXH3_128bits(payload.data(), payload.size()),
                        FingerprintAlgorithm::xxh3_bytes);
}

std::string digest_key(Bytes name, Bytes payload) {
  std::string text = "xxh3-" + base::hex_of(fingerprint_of(payload).digest);
  text.append("-").append(std::to_string(payload.size()));
  return composite_key({name, text});
}

Fingerprint fingerprint_of(const Scope& scope, Bytes payload) {
  if (is_open(scope)) return fingerprint_of(payload);
  Hasher hasher{scope_seed};
  hasher.add_scope(scope);
  hasher.add(payload);
  return hasher.digest(FingerprintAlgorithm::xxh3_bytes);
}

Fingerprint fingerprint_of(std::span<const KeyField> parameters) {
  Hasher hasher{parameters_seed};
  hasher.add_parameters(parameters);
  return hasher.digest(FingerprintAlgorithm::xxh3_parameters);
}

Fingerprint fingerprint_of(const Scope& scope, std::span<const KeyField> parameters) {
  if (is_open(scope)) return fingerprint_of(parameters);
  Hasher hasher{scoped_parameters_seed};
  hasher.add_scope(scope);
  hasher.add_parameters(parameters);
  return hasher.digest(FingerprintAlgorithm::xxh3_parameters);
}

}  // namespace semel
