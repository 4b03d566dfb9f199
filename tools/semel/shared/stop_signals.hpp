// Ctrl-C, SIGTERM and a terminal that closes, as a request: a run finishes what it has read, and
// writes and saves it. A second signal ends the process at once.
#pragma once

#include <csignal>

namespace semel::tool {

/// One at a time. A signal that the process was started to ignore (nohup) stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that came first; 0: none.
  [[nodiscard]] int received() const noexcept;
  /// Becomes readable when one has come; for poll().
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  static constexpr int signal_count = 3;

  int descriptor_;
  struct sigaction before_[signal_count] = {};
};

}  // namespace semel::tool
