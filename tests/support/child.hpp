// What a child process does when it breaks a rule: an assertion ends the process that it is in.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "tests/support/catch.hpp"

namespace semel::tests {

struct Ended {
  std::string output;  ///< of standard error
  int status = 0;      ///< of waitpid()
};

/// Runs `scene` in a child process. An engine has to be opened there: a child cannot use its
/// parent's.
template <class Scene>
Ended run_apart(Scene&& scene) {
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    dup2(pipe_ends[1], 2);
    scene();
    _exit(0);
  }
  close(pipe_ends[1]);
  Ended ended;
  std::array<char, 512> part{};
  for (ssize_t n = 0; (n = read(pipe_ends[0], part.data(), part.size())) > 0;) {
    ended.output.append(part.data(), static_cast<std::size_t>(n));
  }
  close(pipe_ends[0]);
  REQUIRE(waitpid(child, &ended.status, 0) == child);
  return ended;
}

}  // namespace semel::tests
