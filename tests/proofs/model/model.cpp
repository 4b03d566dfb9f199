// The model proof: random sequences of operations against the oracle, on a clock of their own.
//
// proof_model [--long] [--seed N]
// Each seed is run in every profile; `--seed N` begins with that one. The last line is the figure,
// the exit code the verdict.
#include <array>
#include <chrono>
#include <cstdio>

#include "tests/proofs/arguments.hpp"
#include "tests/proofs/model/model_run.hpp"

namespace {

using namespace semel::proofs;

#ifdef SEMEL_VERIFY
constexpr std::uint64_t verify_small = 1;
constexpr std::uint64_t verify_large = 1'000;
#else
constexpr std::uint64_t verify_small = 10'000;
constexpr std::uint64_t verify_large = 10'000;
#endif

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Few keys meet each other; many keys make the table grow and its segments split.
constexpr std::array profiles{
    Profile{"few keys", 6, 40'000, 400, verify_small, 4'096, 64 * mebibyte},
    Profile{"some keys", 60, 40'000, 2'000, verify_small, 65'536, 64 * mebibyte},
    Profile{"many keys", 30'000, 60'000, 20'000, verify_large, 1'024, 128 * mebibyte},
    Profile{"large values", 12, 15'000, 2'000, verify_small, 1'000'000, 256 * mebibyte},
};

struct Tally {
  std::uint64_t operations = 0;
  std::uint64_t runs = 0;
};

bool run_seed(std::uint64_t seed, Tally& tally) {
  for (const Profile& profile : profiles) {
    ModelRun run{profile, seed};
    if (!run.run()) return false;
    tally.operations += run.operations();
    ++tally.runs;
  }
  return true;
}

}  // namespace

int main(int argument_count, char** argument_texts) {
  const auto arguments = parse_arguments(argument_count, argument_texts);
  if (!arguments) return 2;
  const std::uint64_t first = arguments->seed.value_or(fresh_seed());
  const std::uint64_t wanted = arguments->is_long ? 100'000'000 : 1'000'000;
  std::printf("model: first seed %llu\n", static_cast<unsigned long long>(first));
  Tally tally;
  for (std::uint64_t seed = first; tally.operations < wanted; ++seed) {
    if (!run_seed(seed, tally)) {
      std::printf("model: FAILED with seed %llu after %llu operations\n",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(tally.operations));
      return 1;
    }
  }
  std::printf("model: %llu operations, %llu runs, 0 differences\n",
              static_cast<unsigned long long>(tally.operations),
              static_cast<unsigned long long>(tally.runs));
  return 0;
}
