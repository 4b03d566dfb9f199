// Mutex, SharedMutex and Condition. Vocabulary: a guarded counter, and a flag that one thread sets
// for another.
#include "base/mutex.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

struct Counter {
  semel::base::Mutex mutex;
  semel::base::Condition changed;
  int count SEMEL_GUARDED_BY(mutex) = 0;
};

struct SharedCounter {
  semel::base::SharedMutex mutex;
  int count SEMEL_GUARDED_BY(mutex) = 0;
};

/// What another thread finds: whether it gets the mutex at once.
bool is_free(semel::base::Mutex& mutex) {
  bool got = false;
  std::thread other([&] {
    semel::base::MutexLock lock(mutex, std::defer_lock);
    got = lock.try_lock();
  });
  other.join();
  return got;
}

}  // namespace

TEST_CASE("mutex: what two threads add under it is not lost", "[base][mutex][race]") {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        const semel::base::MutexLock lock(counter.mutex);
        ++counter.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const semel::base::MutexLock lock(counter.mutex);
  CHECK(counter.count == 20'000);
}

TEST_CASE("mutex: a wait ends with the notification, and the lock is held again",
          "[base][mutex][race]") {
  Counter counter;
  std::thread notifier([&] {
    const semel::base::MutexLock lock(counter.mutex);
    counter.count = 1;
    counter.changed.notify_all();
  });
  {
    semel::base::MutexLock lock(counter.mutex);
    while (counter.count == 0) counter.changed.wait(lock);
    CHECK(counter.count == 1);
  }
  notifier.join();
}

TEST_CASE("mutex: a lock may be given up and taken again", "[base][mutex]") {
  Counter counter;
  semel::base::MutexLock lock(counter.mutex);
  lock.unlock();
  const bool was_free = counter.mutex.try_lock();
  if (was_free) counter.mutex.unlock();
  CHECK(was_free);
  lock.lock();
  counter.count = 2;
  CHECK(counter.count == 2);
}

TEST_CASE("mutex: a deferred lock holds nothing until it is taken, and lets go at its end",
          "[base][mutex]") {
  Counter counter;
  {
    semel::base::MutexLock lock(counter.mutex, std::defer_lock);
    CHECK(is_free(counter.mutex));
    if (lock.try_lock()) {
      counter.count = 1;
      CHECK_FALSE(is_free(counter.mutex));
    }
  }
  CHECK(is_free(counter.mutex));
  {
    semel::base::MutexLock lock(counter.mutex, std::defer_lock);
    lock.lock();
    CHECK(counter.count == 1);
    CHECK_FALSE(is_free(counter.mutex));
  }
  CHECK(is_free(counter.mutex));
}

TEST_CASE("shared mutex: what two threads add under it is not lost", "[base][mutex][race]") {
  SharedCounter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        const semel::base::ExclusiveLock lock(counter.mutex);
        ++counter.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const semel::base::SharedLock lock(counter.mutex);
  CHECK(counter.count == 20'000);
}

TEST_CASE("shared mutex: two read at the same time, and a writer waits for both",
          "[base][mutex][race]") {
  SharedCounter counter;
  std::atomic<bool> written{false};
  std::thread writer;
  {
    const semel::base::SharedLock lock(counter.mutex);
    int seen = -1;
    std::thread reader([&] {
      const semel::base::SharedLock inner(counter.mutex);
      seen = counter.count;
    });
    reader.join();  // would not end if a reader kept others out
    CHECK(seen == 0);
    writer = std::thread([&] {
      const semel::base::ExclusiveLock inner(counter.mutex);
      counter.count = 1;
      written = true;
    });
    CHECK(counter.count == 0);
    CHECK_FALSE(written);
  }
  writer.join();
  const semel::base::SharedLock lock(counter.mutex);
  CHECK(counter.count == 1);
}
