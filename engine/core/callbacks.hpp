// Where the engine calls what its user wrote: an exception ends there. It is counted, told to
// Options::on_callback_exception, and the engine goes on as if the callback had returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "semel/engine.hpp"

namespace semel::engine {

/// Safe from any thread.
class CallbackWatch {
 public:
  explicit CallbackWatch(const std::function<void(Callback, std::exception_ptr)>& told)
      : told_(told) {}

  /// Calls `callback`. False: it threw.
  template <class Function>
  bool run(Callback which, Function&& callback) noexcept {
    try {
      std::forward<Function>(callback)();
      return true;
    } catch (...) {
      report(which);
      return false;
    }
  }
  [[nodiscard]] std::uint64_t threw() const noexcept {
    return threw_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  void report(Callback which) noexcept {
    threw_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    if (!told_) return;
    try {
      told_(which, std::current_exception());
    } catch (...) {  // counted it is
    }
  }

  const std::function<void(Callback, std::exception_ptr)> told_;
  std::atomic<std::uint64_t> threw_{0};
};

}  // namespace semel::engine
