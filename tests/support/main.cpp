// The entry of every test program. Each run draws its own seed and prints it, so that runs differ
// and a failure can be had again: --rng-seed N.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().rngSeed = std::random_device{}();
  if (const int refused = session.applyCommandLine(argc, argv); refused != 0) return refused;
  const auto& config = session.configData();
  const bool listing = config.listTests || config.listTags || config.listReporters ||
                       config.listTestNamesOnly || config.showHelp;
  if (!listing) {
    std::printf("seed %u (again with --rng-seed %u)\n", config.rngSeed, config.rngSeed);
    std::fflush(stdout);
  }
  return session.run();
}
