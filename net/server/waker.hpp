// How other threads reach a thread of the server and its connections: functions that they post, and
// a waker for each connection, which puts it into a list of the connection's thread.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/session.hpp"

namespace semel::net {

/// Functions that other threads leave for a thread to run.
class PostedFunctions {
 public:
  PostedFunctions() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  /// Readable while there are functions to run. Less than 0: the system had none left.
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }
  /// From any thread. Throws bad_alloc: nothing was added.
  template <class Function>
  void add(Function&& function) {
    auto task = std::make_unique<Task<std::decay_t<Function>>>(std::forward<Function>(function));
    const base::MutexLock lock{mutex_};
    tasks_.push_back(std::move(task));
    if (tasks_.size() == 1) eventfd_write(event_.get(), 1);
  }
  /// Runs those that were added before the call, in their order, without the mutex.
  void run_all() {
    Tasks tasks;
    {
      const base::MutexLock lock{mutex_};
      tasks.swap(tasks_);
      eventfd_t ignored = 0;
      eventfd_read(event_.get(), &ignored);
    }
    for (const auto& task : tasks) task->run();
  }

 private:
  // Not std::function: a function that owns a descriptor cannot be copied.
  class AnyTask {
   public:
    AnyTask() = default;
    virtual ~AnyTask() = default;
    AnyTask(const AnyTask&) = delete;
    AnyTask& operator=(const AnyTask&) = delete;
    virtual void run() = 0;
  };
  template <class Function>
  class Task final : public AnyTask {
   public:
    template <class From>
    explicit Task(From&& from) : function_(std::forward<From>(from)) {}
    void run() override { function_(); }

   private:
    Function function_;
  };
  using Tasks = std::vector<std::unique_ptr<AnyTask>>;

  Descriptor event_;
  base::Mutex mutex_;
  Tasks tasks_ SEMEL_GUARDED_BY(mutex_);
};

/// Names a connection of one thread: slot and generation, so that an old name finds no connection.
using ConnectionName = std::uint64_t;

/// One per thread. Wakers keep it alive after the thread has gone; then it does nothing.
class WakeQueue {
 public:
  WakeQueue();

  /// Becomes readable when something was put into an empty list.
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }
  /// Adds a name. If there is no memory for it, pop_all() reports that one was lost.
  void put(ConnectionName name) noexcept;
  /// Makes descriptor() readable and puts nothing in. Needs no memory.
  void ring() noexcept;
  /// Takes all names, and makes descriptor() unreadable. On the thread itself. False: a name was
  /// lost, so every connection may be meant.
  [[nodiscard]] bool pop_all(std::vector<ConnectionName>& names) noexcept;
  void close() noexcept;

 private:
  Descriptor event_;
  base::Mutex mutex_;
  std::vector<ConnectionName> names_ SEMEL_GUARDED_BY(mutex_);
  bool lost_one_ SEMEL_GUARDED_BY(mutex_) = false;
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
};

/// [waker.signalled]: the work before a wakeup is visible to the collect() that it causes. A wakeup
/// that finds the flag set is covered by a collect() that has not begun.
class Waker final : public SessionHost {
 public:
  Waker(std::shared_ptr<WakeQueue> queue, ConnectionName name) noexcept
      : queue_(std::move(queue)), name_(name) {}

  void wake() noexcept override {
    // mo: acq_rel [waker.signalled]: this wakeup's work is before the clearing that finds it.
    if (!signalled_.exchange(true, std::memory_order_acq_rel)) queue_->put(name_);
  }
  /// Before each collect().
  void clear() noexcept {
    // mo: acq_rel [waker.signalled]: sees the work before the wakeups that it covers.
    signalled_.exchange(false, std::memory_order_acq_rel);
  }

 private:
  const std::shared_ptr<WakeQueue> queue_;
  const ConnectionName name_;
  std::atomic<bool> signalled_{false};
};

}  // namespace semel::net
