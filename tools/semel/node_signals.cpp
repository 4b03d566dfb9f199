#include "tools/semel/node_signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <initializer_list>

#include "tools/semel/exit_code.hpp"

namespace semel::tool {
namespace {

// Not SIGTERM: clients may ask for the end twice.
constexpr int own_signal = SIGUSR1;

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  return signals;
}

int next_of(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  return signal;
}

}  // namespace

void block_signals() {
  const sigset_t signals = set_of({SIGTERM, SIGINT, SIGHUP, own_signal});
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Wish wait_for_wish() {
  const int signal = next_of(set_of({SIGTERM, SIGINT, SIGHUP, own_signal}));
  return signal == SIGHUP ? Wish::reload : Wish::end;
}

void ask_for_end() {
  kill(getpid(), own_signal);
}

void let_signals_kill() {
  prctl(PR_SET_PDEATHSIG, 0);
  const sigset_t signals = set_of({SIGTERM, SIGINT});
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

EndAtOnce::EndAtOnce()
    : thread_([] {
        // The own signal can only come from the destructor: there are no clients yet.
        if (next_of(set_of({SIGTERM, SIGINT, own_signal})) != own_signal) {
          _exit(static_cast<int>(Exit::ok));
        }
      }) {}

EndAtOnce::~EndAtOnce() {
  pthread_kill(thread_.native_handle(), own_signal);
  thread_.join();
}

}  // namespace semel::tool
