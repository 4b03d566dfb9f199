// The one thread of a replica: its tasks, its ticks, and its end when memory runs out.
#pragma once

#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "semel/result.hpp"

namespace semel::replication {

class LoopThread {
 public:
  /// All run on the thread.
  struct Hooks {
    std::function<void()> begin;  ///< first
    std::function<void()> tick;
    std::function<std::uint64_t()> tick_after;  ///< how many milliseconds until the next tick
    /// Memory has ended within a part: what the core, the state and the log have may differ. Takes
    /// no memory. May be called again.
    std::function<void()> starved;
  };

  explicit LoopThread(Hooks hooks) : hooks_(std::move(hooks)), timer_(context_) {}
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }
  /// Once. Errors: no_thread.
  [[nodiscard]] Status start();
  [[nodiscard]] bool is_own() const noexcept {
    return std::this_thread::get_id() == thread_.get_id();
  }
  /// No tick begins after this. On the thread.
  void stop_ticking() noexcept;
  /// Ends the thread when it has run `last`, if it was started. From another thread.
  void join(const std::function<void()>& last);
  /// Call after join(): destroys posted tasks that have not run.
  void drain();

  /// Memory has ended outside of a part. On the thread.
  void starve() const { hooks_.starved(); }
  /// Runs a part of this thread's work, on it.
  template <class Part>
  void run_part(Part&& part) noexcept {
    try {
      part();
    } catch (const std::bad_alloc&) {
      hooks_.starved();
    }
  }
  /// From any thread. False: there is no memory for it.
  template <class What>
  [[nodiscard]] bool post(const What& what) {
    try {
      boost::asio::post(context_, [this, what] { run_part(what); });
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  /// From other threads: `what` must not get lost. Waits while there is no memory.
  template <class What>
  void post_surely(const What& what) {
    while (!post(what)) pause();
  }

 private:
  void run();
  void arm();
  static void pause() noexcept;

  const Hooks hooks_;
  boost::asio::io_context context_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guard_;
  boost::asio::steady_timer timer_;
  bool is_armed_ = false;
  bool ticks_ = true;
  std::thread thread_;
};

}  // namespace semel::replication
