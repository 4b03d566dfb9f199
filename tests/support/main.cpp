// The entry of every test program. Each run draws its own seed and prints it, so that runs differ
// and a failure can be had again: --rng-seed N.
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <random>
#include "tests/support/catch.hpp"

namespace {

/// Whether the command line asks for a list, which a program reads.
template <class Config>
bool lists(const Config& config) {
  if constexpr (requires { config.listTestNamesOnly; }) {  // of Catch2 version 2
    if (config.listTestNamesOnly) return true;
  }
  return config.listTests || config.listTags || config.listReporters || config.showHelp;
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().rngSeed = std::random_device{}();
  if (const int refused = session.applyCommandLine(argc, argv); refused != 0) return refused;
  const auto& config = session.configData();
  if (!lists(config)) {
    std::printf("seed %u (again with --rng-seed %u)\n", config.rngSeed, config.rngSeed);
    std::fflush(stdout);
  }
  return session.run();
}
