// A stack of its own for work that may yield and go on later, on the same thread.
#pragma once

#include <memory>

namespace semel::net {

/// One piece of work at a time; all calls on one thread. The stack is kept from work to work.
class Fibre {
 public:
  using Work = void (*)(void* argument);

  Fibre();
  /// No work may be under way.
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Runs `work(argument)` until it returns or yields. True: it has returned.
  [[nodiscard]] bool run(Work work, void* argument);
  /// Goes on where the work yielded; returns as run().
  [[nodiscard]] bool resume();
  /// Called by the work: run() or resume() returns; this returns in the next resume().
  void yield();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::net
