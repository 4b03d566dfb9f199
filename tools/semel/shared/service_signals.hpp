// The signals of a serving program (`semel node`, `semel gateway`). A thread waits for them, so
// that no code runs inside a signal handler.
//
//   SIGTERM, SIGINT   the end; a second one ends at once
//   SIGHUP            files are read and opened again
//   SIGPIPE, SIGXFSZ  ignored: the failed write reports it
//   SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGRTMIN..SIGRTMAX
//                     no effect but a line in the operator log
// Those that mean a crash are node_crash.hpp's. SIGQUIT writes a core, SIGKILL ends, SIGSTOP and
// SIGTSTP stop: as the system has it.
#pragma once

#include <cstdint>
#include <thread>

namespace semel::tool {

/// Call it before the first thread, which inherits the mask.
void block_signals();

enum class Wish : std::uint8_t { reload, end, none };
struct Wished {
  Wish wish = Wish::none;
  int signal = 0;
};
/// Blocks until there is one.
[[nodiscard]] Wished wait_for_wish();

/// Like SIGTERM, but further calls do not count as a second signal. From any thread.
void ask_for_end();

/// On the main thread: from now on a signal to end ends the process at once, as kill -9 does. The
/// end of the parent is no such signal any more.
void let_signals_kill();

/// As long as this lives, a signal to end ends the process at once, with exit code 0: no client
/// has been answered yet.
class EndAtOnce {
 public:
  EndAtOnce();
  ~EndAtOnce();
  EndAtOnce(const EndAtOnce&) = delete;
  EndAtOnce& operator=(const EndAtOnce&) = delete;

 private:
  std::thread thread_;
};

}  // namespace semel::tool
