// The hash of a key, with a secret drawn for the run: the author of the input cannot choose keys
// that collide. Only the place of a key depends on it; keys are compared in full.
#pragma once

#include <sys/random.h>
#include <xxhash.h>

#include <cstdint>
#include <cstring>

#include "semel/types.hpp"

namespace semel::tool {

class KeyHash {
 public:
  KeyHash() {
    // Cannot fail for up to 256 bytes once the system has started.
    static_cast<void>(!getrandom(secret_, sizeof secret_, 0));
  }
  [[nodiscard]] std::uint64_t operator()(Bytes key) const noexcept {
    return XXH3_64bits_withSecret(key.data(), key.size(), secret_, sizeof secret_);
  }

  static constexpr std::size_t digest_bytes = 16;
  /// 128 bits that stand for the key.
  void digest(Bytes key, char* into) const noexcept {
    const XXH128_hash_t value =
        XXH3_128bits_withSecret(key.data(), key.size(), secret_, sizeof secret_);
    std::memcpy(into, &value.low64, sizeof value.low64);
    std::memcpy(into + sizeof value.low64, &value.high64, sizeof value.high64);
  }

 private:
  unsigned char secret_[XXH_SECRET_DEFAULT_SIZE] = {};
};

}  // namespace semel::tool
