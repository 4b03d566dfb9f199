// The arguments that all proofs share: --long, --seed N.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

namespace semel::proofs {

struct Arguments {
  bool is_long = false;
  std::optional<std::uint64_t> seed;  ///< to begin with; none: a random one
};

/// None: the error is on stderr.
inline std::optional<Arguments> parse_arguments(int count, char** texts) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(texts[i], "--long") == 0) {
      arguments.is_long = true;
    } else if (std::strcmp(texts[i], "--seed") == 0 && i + 1 < count) {
      char* end = nullptr;
      arguments.seed = std::strtoull(texts[++i], &end, 10);
      if (*end != '\0') {
        std::fprintf(stderr, "--seed %s: not a number\n", texts[i]);
        return std::nullopt;
      }
    } else {
      std::fprintf(stderr, "%s: unknown argument; known: --long, --seed N\n", texts[i]);
      return std::nullopt;
    }
  }
  return arguments;
}

/// A random first seed, so that every run looks somewhere else. It is printed.
inline std::uint64_t fresh_seed() {
  return (std::uint64_t{std::random_device{}()} << 16) % 1'000'000'000;
}

}  // namespace semel::proofs
