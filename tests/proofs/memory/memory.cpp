// The memory proof: what the process itself holds, scene by scene, against the limit of its engine.
//
// proof_memory [--long] [--seed N]
// Each scene runs in a process of its own, so that none finds what another has left. Resident
// memory never exceeds limit + 10 % + 16 MiB, and where there is room a new claim is granted within
// a second of the scene's clock. The last line is the figure, the exit code the verdict.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "semel/engine_host.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/proofs/memory/memory_scene.hpp"

namespace {

using namespace semel::proofs;

constexpr double mib(std::size_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(mebibyte);
}

/// In a process of its own. Its exit code: 0 held, 1 not.
int play(const NamedScene& named, std::uint64_t seed, bool is_long) {
  alarm(is_long ? 1'800 : 120);
  const semel::SystemClock clock;
  const semel::Timestamp begun = clock.now();
  Scene scene{seed, is_long};
  named.play(scene);
  scene.look_now();
  const std::vector<std::string> broken = scene.engine().host().check_invariants();
  if (!broken.empty()) scene.expect(false, broken.front());
  scene.close();
  const std::chrono::duration<double> took = clock.now() - begun;
  std::printf(
      "%-22s limit %6.0f MiB, resident at most %7.1f MiB, room after %4lld ms, %5.1f s%s%s\n",
      named.name, mib(scene.limit()), mib(scene.peak_bytes()),
      static_cast<long long>(scene.waited().count()), took.count(),
      scene.failed() ? ": FAILED: " : "", scene.failure().c_str());
  std::fflush(stdout);
  return scene.failed() ? 1 : 0;
}

}  // namespace

int main(int argument_count, char** argument_texts) {
  const auto arguments = parse_arguments(argument_count, argument_texts);
  if (!arguments) return 2;
  const std::uint64_t seed = arguments->seed.value_or(fresh_seed());
  std::printf("memory: seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::size_t count = 0;
  std::size_t failed = 0;
  for (const auto scenes : {scenes_of_records(), scenes_of_work()}) {
    for (const NamedScene& scene : scenes) {
      ++count;
      const pid_t child = fork();
      if (child == 0) _exit(play(scene, seed, arguments->is_long));
      int status = 0;
      waitpid(child, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      ++failed;
      if (!WIFEXITED(status)) {
        std::printf("%-22s ended by signal %d: FAILED\n", scene.name, WTERMSIG(status));
        std::fflush(stdout);  // or each child after it would print it again
      }
    }
  }
  std::printf("memory: %zu scenes, %zu failed\n", count, failed);
  return failed == 0 ? 0 : 1;
}
