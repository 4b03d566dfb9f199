// Mutexes whose guarded members the compiler checks: std::mutex and std::shared_mutex with clang's
// thread-safety attributes. `-Wthread-safety` reports an access to a SEMEL_GUARDED_BY member
// without its lock. Other compilers see plain classes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define SEMEL_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SEMEL_THREAD_ATTRIBUTE(x)
#endif

/// A member that is read and written with `mutex` held only.
#define SEMEL_GUARDED_BY(mutex) SEMEL_THREAD_ATTRIBUTE(guarded_by(mutex))
/// A function that is called with the mutexes held.
#define SEMEL_REQUIRES(...) SEMEL_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// The same where a shared lock is enough.
#define SEMEL_REQUIRES_SHARED(...) SEMEL_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
/// A function that is called with the mutexes not held.
#define SEMEL_EXCLUDES(...) SEMEL_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// A function that locks, or unlocks, what it is called on.
#define SEMEL_ACQUIRE(...) SEMEL_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SEMEL_ACQUIRE_SHARED(...) SEMEL_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define SEMEL_RELEASE(...) SEMEL_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SEMEL_RELEASE_SHARED(...) SEMEL_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define SEMEL_TRY_ACQUIRE(...) SEMEL_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
/// A function whose locking the analysis cannot follow. Its comment says why it is right.
#define SEMEL_NO_THREAD_SAFETY_ANALYSIS SEMEL_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace semel::base {

class SEMEL_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() SEMEL_ACQUIRE() { mutex_.lock(); }
  void unlock() SEMEL_RELEASE() { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() SEMEL_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  /// Tells the analysis that it is held, and checks nothing. For a lambda that is called under the
  /// lock: the analysis looks at its body alone.
  void assume_held() const SEMEL_THREAD_ATTRIBUTE(assert_capability(this)) {}

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a Mutex until its end; unlock() and lock() in between are allowed. With std::defer_lock it
/// begins without: lock() or try_lock() then takes the mutex.
class SEMEL_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SEMEL_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  MutexLock(Mutex& mutex, std::defer_lock_t later) noexcept SEMEL_EXCLUDES(mutex)
      : lock_(mutex.mutex_, later) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() SEMEL_RELEASE() = default;

  void lock() SEMEL_ACQUIRE() { lock_.lock(); }
  void unlock() SEMEL_RELEASE() { lock_.unlock(); }
  [[nodiscard]] bool try_lock() SEMEL_TRY_ACQUIRE(true) { return lock_.try_lock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

/// A mutex that many may hold to read, or one to write.
class SEMEL_THREAD_ATTRIBUTE(capability("shared_mutex")) SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() SEMEL_ACQUIRE() { mutex_.lock(); }
  void unlock() SEMEL_RELEASE() { mutex_.unlock(); }
  void lock_shared() SEMEL_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() SEMEL_RELEASE_SHARED() { mutex_.unlock_shared(); }
  [[nodiscard]] bool try_lock_shared() SEMEL_THREAD_ATTRIBUTE(try_acquire_shared_capability(true)) {
    return mutex_.try_lock_shared();
  }

 private:
  std::shared_mutex mutex_;
};

/// Holds a SharedMutex to write until its end.
class SEMEL_THREAD_ATTRIBUTE(scoped_lockable) ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) SEMEL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;
  ~ExclusiveLock() SEMEL_RELEASE() { mutex_.unlock(); }

 private:
  SharedMutex& mutex_;
};

/// Holds a SharedMutex to read until its end.
class SEMEL_THREAD_ATTRIBUTE(scoped_lockable) SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) SEMEL_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  /// Takes over what try_lock_shared() has locked.
  SharedLock(SharedMutex& mutex, std::adopt_lock_t) noexcept SEMEL_REQUIRES_SHARED(mutex)
      : mutex_(mutex) {}
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock() SEMEL_RELEASE() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

/// std::condition_variable for a MutexLock. A wait may end early without a notification: call it in
/// a loop. (A predicate would be a lambda, whose locks the analysis cannot see.)
class Condition {
 public:
  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  template <class Rep, class Period>
  std::cv_status wait_for(MutexLock& lock, const std::chrono::duration<Rep, Period>& duration) {
    return condition_.wait_for(lock.lock_, duration);
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace semel::base
