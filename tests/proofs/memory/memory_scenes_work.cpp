// Scenes of claims, waits and threads.
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/proofs/memory/memory_scene.hpp"

namespace semel::proofs {

namespace {

std::string key_of(std::uint64_t i) {
  return "key" + std::to_string(i);
}

void claims_come_and_go(Scene& scene) {
  scene.open(scene.sized(24, 256) * mebibyte);
  Claims names = scene.claims({.lease = Millis{30'000}, .result_ttl = Millis{500}});
  const std::size_t count = scene.sized(300'000, 10'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = key_of(i);
    const ClaimOutcome claimed = names.claim({.key = key});
    scene.expect(claimed.answer == ClaimAnswer::granted, "full of what has ended");
    const OwnerCall mine{.key = key, .epoch = claimed.epoch, .payload = "a result"};
    if (i % 4 == 0) {
      static_cast<void>(names.release(mine));
    } else {
      static_cast<void>(names.complete(mine));
    }
    if (i % 50 == 0) scene.pass(Millis{1});
    scene.look();
  }
}

void one_lock(Scene& scene) {
  // As a user gets it: no thread calls advance(), and the leases are far longer than the scene.
  scene.open_usual(4 * mebibyte);
  Claims names = scene.claims({.lease = Millis{30'000}});
  const std::size_t count = scene.sized(500'000, 10'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const ClaimOutcome claimed = names.claim({.key = "one"});
    scene.expect(claimed.answer == ClaimAnswer::granted, "the only lock is refused");
    static_cast<void>(names.release({.key = "one", .epoch = claimed.epoch, .payload = {}}));
    scene.look();
  }
  scene.expect_room();
}

void many_locks(Scene& scene) {
  scene.open_usual(8 * mebibyte);
  Claims names = scene.claims({.lease = Millis{30'000}, .attempts_ttl = Millis{1}});
  const std::size_t count = scene.sized(400'000, 10'000'000);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = key_of(i % 5'000);
    const ClaimOutcome claimed = names.claim({.key = key});
    if (claimed.answer != ClaimAnswer::granted) ++refused;
    static_cast<void>(names.release({.key = key, .epoch = claimed.epoch, .payload = {}}));
    scene.look();
  }
  scene.expect(refused == 0, "locks are refused");
  scene.expect_room();
}

void large_results(Scene& scene) {
  scene.open(scene.sized(48, 512) * mebibyte);
  Claims names = scene.claims({.lease = Millis{10'000}, .result_ttl = Millis{100}});
  const std::string result(mebibyte - 1'000, 'r');
  const std::size_t count = scene.sized(1'000, 20'000);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = key_of(i);
    const ClaimOutcome claimed = names.claim({.key = key});
    if (claimed.answer == ClaimAnswer::granted) {
      static_cast<void>(names.complete({.key = key, .epoch = claimed.epoch, .payload = result}));
    }
    if (i % 4 == 0) scene.pass(Millis{10});
    scene.look(16);
  }
  scene.pass(Millis{10'000});
  scene.expect_room();
}

void waiters(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  Claims names = scene.claims({.lease = Millis{1'000}});
  std::string key(60'000, 'k');
  std::atomic<std::size_t> answered{0};
  std::size_t asked = 0;
  const std::size_t count = scene.sized(3'000, 30'000);
  for (std::size_t i = 0; i < count; ++i) {
    key.replace(0, 10, std::to_string(1'000'000'000 + i % 300));
    static_cast<void>(names.claim({.key = key}));
    names.claim_or_wait({.key = key}, scene.engine().now() + Millis{500}, [&](ClaimOutcome&&) {
      // mo: relaxed: counted on this thread.
      answered.fetch_add(1, std::memory_order_relaxed);
    });
    ++asked;
    scene.look(64);
  }
  for (int i = 0; i < 30; ++i) scene.tick();
  // mo: relaxed: as above
  scene.expect(answered.load(std::memory_order_relaxed) == asked, "a waiter has no answer");
  scene.expect_room();
}

void threads_come_and_go(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  const std::size_t rounds = scene.sized(40, 1'000);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const std::string value(10 + (round * 8 + t) * 97 % 5'000, 'v');
        for (std::size_t i = 0; i < 300; ++i) {
          static_cast<void>(scene.store().set(key_of(t * 1'000 + i), value));
        }
        for (std::size_t i = 0; i < 300; ++i) {
          static_cast<void>(scene.store().del(key_of(t * 1'000 + i)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    scene.look_now();
  }
  scene.expect_room();
  const std::size_t count = scene.fill("after", 10'000);
  scene.expect(count * 10'000 > scene.room_bytes() / 2, "threads that ended keep memory");
}

void idle_threads(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  constexpr std::size_t count = 24;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t idle = 0;
  bool over = false;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      const std::string value(20 + t * 200, 'v');
      for (std::size_t i = 0; i < 200; ++i) {
        static_cast<void>(scene.store().set(key_of(t * 1'000 + i), value));
      }
      for (std::size_t i = 0; i < 200; ++i) {
        static_cast<void>(scene.store().del(key_of(t * 1'000 + i)));
      }
      std::unique_lock lock{mutex};
      ++idle;
      changed.notify_all();
      changed.wait(lock, [&] { return over; });
    });
  }
  {
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return idle == count; });
  }
  const std::size_t filled = scene.fill("after", 10'000);
  scene.expect(filled * 10'000 > scene.room_bytes() / 2, "idle threads keep memory");
  for (std::size_t i = 0; i < filled; ++i) {
    static_cast<void>(scene.store().del("after" + std::to_string(i)));
  }
  scene.expect_room();
  {
    const std::lock_guard lock{mutex};
    over = true;
  }
  changed.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void scans_while_full(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  const std::size_t count = scene.fill("s", 20'000);
  std::size_t met = 0;
  std::uint64_t cursor = 0;
  do {
    const auto next = scene.engine().scan(cursor, {.count = 100}, [&](const ScanItem&) { ++met; });
    if (!next.ok()) break;
    cursor = *next;
    scene.look_now();
  } while (cursor != 0);
  scene.expect(met >= count, "a scan misses records");
  for (std::size_t i = 0; i < count; i += 2) {
    static_cast<void>(scene.store().del("s" + std::to_string(i)));
  }
  scene.expect_room();
}

void claims_thinned_out(Scene& scene) {
  scene.open(scene.sized(24, 256) * mebibyte);
  Claims names = scene.claims({.lease = Millis{100'000'000}, .attempts_ttl = Millis{1}});
  std::vector<Epoch> epochs;
  for (;;) {
    const ClaimOutcome claimed = names.claim({.key = key_of(epochs.size())});
    if (claimed.answer != ClaimAnswer::granted) break;
    epochs.push_back(claimed.epoch);
    scene.look();
  }
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    if (i % 10 == 0) continue;
    static_cast<void>(names.release({.key = key_of(i), .epoch = epochs[i], .payload = {}}));
  }
  scene.pass(Millis{1});
  scene.expect_room();
  const std::size_t others = scene.fill("other", 2'000);
  scene.expect(others * 2'000 > scene.room_bytes() / 2,
               "claims that were given back keep memory: " + std::to_string(others) + " fit");
  for (std::size_t i = 0; i < epochs.size(); i += 10) {
    const std::string key = key_of(i);
    const OwnerCall mine{.key = key, .epoch = epochs[i], .payload = {}};
    scene.expect(names.complete(mine).answer == OwnerAnswer::ok, "an owner cannot complete");
  }
}

constexpr std::array all_scenes{
    NamedScene{"claims come and go", claims_come_and_go},
    NamedScene{"one lock, defaults", one_lock},
    NamedScene{"many locks, defaults", many_locks},
    NamedScene{"results of 1 MiB", large_results},
    NamedScene{"waiters", waiters},
    NamedScene{"threads come and go", threads_come_and_go},
    NamedScene{"idle threads", idle_threads},
    NamedScene{"scans while full", scans_while_full},
    NamedScene{"claims thinned out", claims_thinned_out},
};

}  // namespace

std::span<const NamedScene> scenes_of_work() {
  return all_scenes;
}

}  // namespace semel::proofs
