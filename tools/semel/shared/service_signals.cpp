#include "tools/semel/shared/service_signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <initializer_list>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

// The signal that the process sends itself; from others it has no effect. Not SIGTERM: clients may
// ask for the end twice.
constexpr int own_signal = SIGUSR1;

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  return signals;
}

/// The signals that wait_for_wish() receives.
sigset_t handled_signals() {
  sigset_t signals = set_of({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
                             SIGIO, SIGPWR, SIGSTKFLT});
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaddset(&signals, number);
  return signals;
}

siginfo_t next_of(const sigset_t& signals) {
  siginfo_t info{};
  while (sigwaitinfo(&signals, &info) < 0) {
  }
  return info;
}

bool is_own(const siginfo_t& info) {
  const bool is_sent = info.si_code == SI_USER || info.si_code == SI_TKILL;
  return info.si_signo == own_signal && is_sent && info.si_pid == getpid();
}

}  // namespace

void block_signals() {
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
}

Wished wait_for_wish() {
  const siginfo_t info = next_of(handled_signals());
  const int number = info.si_signo;
  if (number == SIGTERM || number == SIGINT || is_own(info)) return {Wish::end, number};
  return {number == SIGHUP ? Wish::reload : Wish::none, number};
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
        for (;;) {
          const siginfo_t info = next_of(set_of({SIGTERM, SIGINT, own_signal}));
          // The own signal can only come from the destructor: there are no clients yet.
          if (is_own(info)) return;
          if (info.si_signo != own_signal) _exit(static_cast<int>(Exit::ok));
        }
      }) {}

EndAtOnce::~EndAtOnce() {
  pthread_kill(thread_.native_handle(), own_signal);
  thread_.join();
}

}  // namespace semel::tool
