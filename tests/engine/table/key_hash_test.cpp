// The hash of a key: made in the frame of a call, it is the library's.
#include "engine/keys/key_hash.hpp"

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include "tests/support/catch.hpp"

namespace semel::engine {

TEST_CASE("key hash: of the lengths that are hashed here it is XXH3's", "[engine][keys]") {
  constexpr std::uint64_t seed = 38;
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  std::array<unsigned char, 192> secret;
  for (int round = 0; round < 20; ++round) {
    for (unsigned char& byte : secret) byte = static_cast<unsigned char>(random());
    for (std::size_t length = 17; length <= 64; ++length) {
      std::string key;
      for (std::size_t i = 0; i < length; ++i) key.push_back(static_cast<char>(random()));
      REQUIRE(is_hashed_here(length));
      REQUIRE(hash_here(key, secret.data()) ==
              XXH3_64bits_withSecret(key.data(), key.size(), secret.data(), secret.size()));
    }
  }
  CHECK_FALSE(is_hashed_here(0));
  CHECK_FALSE(is_hashed_here(16));
  CHECK_FALSE(is_hashed_here(65));
}

}  // namespace semel::engine
