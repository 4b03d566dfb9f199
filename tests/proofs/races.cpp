// 32 threads do everything an engine and the pattern library can, on few keys: operations, claims,
// waits that are cancelled and destroyed, sections, snapshots, scans, sessions, locks and guarded
// calls, beside threads that come and go. Meant for ThreadSanitizer, which reports what it sees;
// asked here is that no two hold a claim at once, that no thread waits at the end, and the engine's
// own check. Arguments: --seconds N (10), --seed N.
#include <array>
#include <atomic>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "semel/claims.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/store.hpp"
#include "tests/proofs/arguments.hpp"

namespace semel::proofs {
namespace {

constexpr std::size_t thread_count = 32;
constexpr std::size_t key_count = 8;

struct Arena {
  std::unique_ptr<Engine> engine;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> clashes{0};
  std::array<std::atomic<int>, key_count> owners{};  // of claims, by key
};

/// One thread's random numbers.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(base::mix_bits(seed)) {}
  std::uint64_t roll(std::uint64_t sides) { return base::next_random(state_) % sides; }

 private:
  std::uint64_t state_;
};

void own(Arena& arena, Claims& ns, std::size_t key, Epoch epoch, std::uint64_t how) {
  // mo: acq_rel: what one owner did is before what the next one does.
  if (arena.owners[key].fetch_add(1, std::memory_order_acq_rel) != 0) {
    arena.clashes.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
  }
  arena.owners[key].fetch_sub(1, std::memory_order_acq_rel);  // mo: acq_rel: as above
  const std::string name = std::to_string(key);
  if (how % 3 == 0) {
    static_cast<void>(ns.fail({.key = name, .epoch = epoch}));
  } else {
    static_cast<void>(ns.release({.key = name, .epoch = epoch}));
  }
}

struct Task {
  struct promise_type {
    Task get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Task wait_alone(Claims ns, std::string key) {
  static_cast<void>(co_await ns.claim_or_wait_async({.key = key}, no_end));
}

void claim_somehow(Arena& arena, Claims& ns, Dice& dice) {
  const std::size_t key = dice.roll(key_count);
  const std::string name = std::to_string(key);
  const Timestamp soon = deadline_after(arena.engine->now(), Millis{20});
  switch (dice.roll(5)) {
    case 0: {
      const ClaimOutcome got = ns.claim_or_wait({.key = name}, soon);
      if (got.answer == ClaimAnswer::granted) own(arena, ns, key, got.epoch, dice.roll(3));
      break;
    }
    case 1: {
      const std::uint64_t how = dice.roll(3);
      const WaitTicket ticket =
          ns.claim_or_wait({.key = name}, soon, [&arena, ns, key, how](ClaimOutcome&& got) mutable {
            if (got.answer == ClaimAnswer::granted) own(arena, ns, key, got.epoch, how);
          });
      if (ticket != 0) ns.cancel_wait(name, ticket);
      break;
    }
    case 2: {  // of a namespace in which claims are only ever held by one who never finishes
      Claims held = *arena.engine->claims("held");
      const Task task = wait_alone(held, "for ever");
      task.handle.destroy();
      break;
    }
    case 3: {
      std::array<ClaimRequest, 3> requests{{{.key = name}, {.key = "x"}, {.key = "y"}}};
      std::array<ClaimOutcome, 3> outcomes;
      if (!ns.claim_all(requests, outcomes)) break;
      own(arena, ns, key, outcomes[0].epoch, 1);
      static_cast<void>(ns.release({.key = "x", .epoch = outcomes[1].epoch}));
      static_cast<void>(ns.release({.key = "y", .epoch = outcomes[2].epoch}));
      break;
    }
    default: {
      const ClaimOutcome got = ns.claim({.key = name});
      if (got.answer == ClaimAnswer::granted) own(arena, ns, key, got.epoch, dice.roll(3));
    }
  }
}

void touch_store(Arena& arena, Dice& dice) {
  Store store = arena.engine->store();
  const std::string name = "s" + std::to_string(dice.roll(64));
  switch (dice.roll(5)) {
    case 0:
      static_cast<void>(store.set(name, std::string(dice.roll(400), 'v'),
                                  {.expiry = Expiry::in(Millis{1 + dice.roll(30)})}));
      break;
    case 1:
      static_cast<void>(store.get(name));
      break;
    case 2: {
      const std::array<Bytes, 2> keys{name, "s1"};
      static_cast<void>(store.del(keys));
      break;
    }
    case 3:
      static_cast<void>(arena.engine->hashes().hset("h" + name, "f", name));
      break;
    default:
      static_cast<void>(store.append(name, "more"));
  }
}

void do_something_rare(Arena& arena, Dice& dice) {
  Engine& engine = *arena.engine;
  switch (dice.roll(7)) {
    case 0:
      static_cast<void>(engine.host().snapshot([](const Mutation&) {}));
      break;
    case 1:
      static_cast<void>(engine.scan(0, {.count = 100}, [](const ScanItem&) {}));
      break;
    case 2: {
      auto section = engine.section({});
      StoreOutcome outcome;
      section->apply(StoreOp{.verb = Verb::set, .key = "s1", .value = "x"}, outcome);
      break;
    }
    case 3: {
      const SessionId session = engine.open_session();
      Claims ns = *engine.claims("ns");
      static_cast<void>(ns.claim({.key = "of a session", .session = session}));
      engine.close_session(session);
      break;
    }
    case 4:
      engine.host().quiesce();
      break;
    case 5:
      engine.unsubscribe_expired(engine.subscribe_expired([](const ExpiredEvent&) {}));
      break;
    default:
      static_cast<void>(engine.size(0));
      static_cast<void>(engine.stats());
  }
}

void live(Arena& arena, std::uint64_t seed) {
  Dice dice{seed};
  Claims ns = *arena.engine->claims("ns");
  Claims locks = *arena.engine->claims("locks");
  std::uint64_t calls = 0;
  // mo: relaxed: ends a loop
  while (!arena.stop.load(std::memory_order_relaxed) && calls < 20'000) {
    ++calls;
    const std::uint64_t what = dice.roll(100);
    if (what < 50) {
      touch_store(arena, dice);
    } else if (what < 90) {
      claim_somehow(arena, ns, dice);
    } else if (what < 96) {
      Lock lock{locks, "l" + std::to_string(dice.roll(3))};
      if (lock.try_lock_for(Millis{5})) lock.unlock();
    } else {
      do_something_rare(arena, dice);
    }
  }
  arena.calls.fetch_add(calls, std::memory_order_relaxed);  // mo: relaxed: a count
}

int run(std::uint64_t seconds, std::uint64_t seed) {
  std::printf("seed %lu\n", static_cast<unsigned long>(seed));
  Arena arena;
  arena.engine = *Engine::open({.memory_bytes = std::size_t{64} << 20, .background = Millis{1}});
  Engine& engine = *arena.engine;
  static_cast<void>(engine.claims("ns", Policy{}));
  static_cast<void>(engine.claims("locks", Policy{}));
  Claims held = *engine.claims("held", Policy{.lease = limits::ttl_max});
  const Epoch never_finishes = held.claim({.key = "for ever"}).epoch;
  const Timestamp end =
      deadline_after(engine.now(), Millis{static_cast<std::int64_t>(seconds * 1'000)});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; ++i) {
    // Each line of threads is made of many that follow each other.
    threads.emplace_back([&arena, &engine, seed, end, i] {
      for (std::uint64_t life = 0; engine.now() < end; ++life) {
        std::thread{[&] { live(arena, seed + i * 1'000'003 + life); }}.join();
      }
    });
  }
  while (engine.now() < end) std::this_thread::yield();
  arena.stop.store(true, std::memory_order_relaxed);  // mo: relaxed: ends a loop
  for (std::thread& thread : threads) thread.join();
  static_cast<void>(held.release({.key = "for ever", .epoch = never_finishes}));
  const std::size_t waiters = engine.stats().waiters;
  const std::vector<std::string> broken = engine.host().check_invariants();
  for (const std::string& rule : broken) std::printf("broken: %s\n", rule.c_str());
  const std::uint64_t clashes = arena.clashes.load(std::memory_order_relaxed);  // mo: relaxed: end
  std::printf("%zu threads, %lu s, %lu calls, %lu clashes, %zu left waiting, %zu rules broken\n",
              thread_count, static_cast<unsigned long>(seconds),
              static_cast<unsigned long>(arena.calls.load(std::memory_order_relaxed)),
              static_cast<unsigned long>(clashes), waiters, broken.size());  // mo: relaxed: end
  return clashes == 0 && waiters == 0 && broken.empty() ? 0 : 1;
}

}  // namespace
}  // namespace semel::proofs

int main(int count, char** texts) {
  std::uint64_t seconds = 10;
  std::uint64_t seed = semel::proofs::fresh_seed();
  for (int i = 1; i < count; ++i) {
    const bool is_long = std::strcmp(texts[i], "--long") == 0;
    const bool has_value = i + 1 < count;
    if (is_long) {
      seconds = 600;
    } else if (std::strcmp(texts[i], "--seconds") == 0 && has_value) {
      seconds = std::strtoull(texts[++i], nullptr, 10);
    } else if (std::strcmp(texts[i], "--seed") == 0 && has_value) {
      seed = std::strtoull(texts[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "%s: unknown argument; known: --long, --seconds N, --seed N\n",
                   texts[i]);
      return 2;
    }
  }
  return semel::proofs::run(seconds, seed);
}
