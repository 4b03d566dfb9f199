// The linearizability proof: recorded histories of 2 to 8 threads on few keys, while the table
// grows, records expire, snapshots are read, sections run and sessions die.
//
// proof_linearizability [--long] [--seed N]
// Prints the seed; the threads' interleaving is the machine's own, so a seed makes a failure
// likely again, not certain. The last line is the figure, the exit code the verdict.
#include <chrono>
#include <cstdio>

#include "tests/proofs/arguments.hpp"
#include "tests/proofs/linearizability/linear_run.hpp"

namespace {

/// In so many rounds: two, and one more for each 20.
std::uint64_t unexplored_max(std::uint64_t rounds) {
  return 2 + rounds / 20;
}

}  // namespace

int main(int argument_count, char** argument_texts) {
  using namespace semel::proofs;
  const auto arguments = parse_arguments(argument_count, argument_texts);
  if (!arguments) return 2;
  const std::uint64_t first = arguments->seed.value_or(fresh_seed());
  const std::uint64_t wanted = arguments->is_long ? 20'000'000 : 200'000;
  std::printf("linearizability: first seed %llu\n", static_cast<unsigned long long>(first));
  RoundResult all;
  std::uint64_t rounds = 0;
  std::uint64_t unexplored = 0;
  for (std::uint64_t seed = first; all.operations < wanted; ++seed, ++rounds) {
    LinearRound round{seed};
    const RoundResult result = round.run();
    // A thread that the machine stops for long makes its call overlap thousands of others, more
    // than the search can follow. Such a round shows nothing; too many of them are a failure.
    if (result.gave_up && ++unexplored <= unexplored_max(rounds)) {
      std::printf("linearizability: seed %llu shows nothing: %s\n",
                  static_cast<unsigned long long>(seed), result.report.c_str());
      continue;
    }
    if (!result.right) {
      // The first line of the report says whether it was wrong or the checker gave up.
      std::printf("linearizability: FAILED with seed %llu after %llu operations: %s\n",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(all.operations), result.report.c_str());
      return 1;
    }
    all.operations += result.operations;
    all.histories += result.histories;
    all.configurations_most = std::max(all.configurations_most, result.configurations_most);
  }
  std::printf(
      "linearizability: %llu operations, %llu histories, %llu rounds (%llu show nothing), "
      "at most %zu explanations at once, all linearizable\n",
      static_cast<unsigned long long>(all.operations),
      static_cast<unsigned long long>(all.histories), static_cast<unsigned long long>(rounds),
      static_cast<unsigned long long>(unexplored), all.configurations_most);
  return 0;
}
