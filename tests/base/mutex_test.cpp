// Mutex and Condition. Vocabulary: a guarded counter, and a flag that one thread sets for another.
#include "base/mutex.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

struct Counter {
  semel::base::Mutex mutex;
  semel::base::Condition changed;
  int count SEMEL_GUARDED_BY(mutex) = 0;
};

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
  const bool is_free = counter.mutex.try_lock();
  if (is_free) counter.mutex.unlock();
  CHECK(is_free);
  lock.lock();
  counter.count = 2;
  CHECK(counter.count == 2);
}
