// Runs a part of a proof in a process of its own, so that its end is one line.
#pragma once

#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace semel::proofs {

/// Where the process is, on stdout. For signals, and for an exception that nobody catches.
inline void say_where_and_abort(int = 0) {
  std::fflush(stdout);
  std::array<void*, 40> frames{};
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), static_cast<int>(frames.size())), 1);
  std::abort();
}

/// What `play` returns there, 2 if it ends otherwise or takes longer than a minute. `begin` is
/// called before, in that process.
template <class Begin, class Play>
int apart(const Begin& begin, const Play& play) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::set_terminate([] { say_where_and_abort(); });
    std::signal(SIGSEGV, say_where_and_abort);
    std::signal(SIGALRM, say_where_and_abort);
    begin();
    const int verdict = play();
    std::fflush(stdout);
    _exit(verdict);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::printf("ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 2;
}

}  // namespace semel::proofs
