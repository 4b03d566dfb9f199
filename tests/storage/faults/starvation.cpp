// Memory ends for the threads of a storage. An allocation of the threads that sync, drain, rewrite,
// recover and spill is made to fail, the first, then the second, and so on; and from each on all of
// them, until memory is back.
//
// Words: site = the allocation that fails first, counted over all of these threads; scene = what is
// done meanwhile; outage = all allocations from the site on fail.
//
// Each life is a process of its own. Asked after it: did the process go on; was everything that was
// acknowledged there for the next process; has the storage gone on by itself, or has it said that
// it has to be opened again, which it may say for one reason only, that memory ended inside
// RocksDB.
//
// What fails is operator new. In an outage RocksDB gets what it asks for within a call that was
// begun, as there was memory to spare for it (rocks_guard.hpp), unless the call has the site.
// Threads of RocksDB itself are left out: there the process ends.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "tests/proofs/allocations/failing_new.hpp"
#include "tests/proofs/apart.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {
namespace {

using proofs::FailingNew;

constexpr unsigned keys = 320;
constexpr std::size_t value_bytes = 6'000;

enum class Scene : std::uint8_t { plain, joined, cold, again };
constexpr struct {
  Scene scene;
  const char* name;
} scenes[] = {{Scene::plain, "drain, sync and rewrite"},
              {Scene::joined, "joined commits"},
              {Scene::cold, "spill"},
              {Scene::again, "recover"}};

/// Where the life and those who judge it meet: shared memory, written by the life.
struct Ledger {
  struct Key {
    int acknowledged = 0;  // the newest value that was; 0: none, -n: erased after value n
    int attempted = 0;     // the newest that was begun
  };
  Key known[keys];
  int called_back = 0;
  int fired = 0;
};

std::string value_of(unsigned key, int number) {
  std::string value = std::to_string(key) + "/" + std::to_string(number) + "/";
  value.resize(value_bytes, static_cast<char>('a' + key % 26));
  return value;
}

struct World {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;  // ends first
};

Result<World> open(const std::string& directory, Scene scene, const Clock& clock) {
  World world;
  StorageOptions options;
  options.directory = directory + "/storage";
  options.log_bytes = std::size_t{1} << 20;
  options.garbage_bytes = std::size_t{1} << 20;
  options.sync_every = Millis{5};
  SEMEL_TRY(storage, scene == Scene::joined ? open_storage(options, clock, {{"effects", {}}})
                                            : Storage::open(options, clock));
  world.storage = std::move(storage);
  if (scene == Scene::cold) {
    SEMEL_TRY(cold,
              open_cold_directory(
                  {.directory = directory + "/cold", .cache_bytes = std::size_t{1} << 20}, clock));
    world.cold = std::move(cold);
  }
  const Options wanted{.clock = &clock,
                       .journal = world.storage.get(),
                       .durability = Durability::logged,
                       .cold = world.cold.get(),
                       .spill_ttl_min = Millis{0},
                       .memory_bytes = std::size_t{64} << 20,
                       .value_bytes_max = std::size_t{64} << 10,
                       .first_version = world.storage->first_version()};
  SEMEL_TRY(engine, Engine::open(wanted));
  world.engine = std::move(engine);
  SEMEL_CHECK(world.storage->recover(*world.engine));
  return world;
}

int complain(const std::string& what) {
  std::printf("%s\n", what.c_str());
  return 2;
}

/// The changes of a life: some are replaced, some erased, so that there is something to drop and to
/// rewrite.
class Work {
 public:
  Work(World& world, Ledger& ledger) : world_(world), ledger_(ledger) {}

  void set_all(int number) {
    for (unsigned i = 0; i < keys; ++i) {
      Ledger::Key& key = ledger_.known[i];
      key.attempted = number;
      if (world_.engine->store().set(name_of(i), value_of(i, number)).ok()) {
        key.acknowledged = number;
      }
      if (i % 32 == 0) confirm();
      if (i % 64 == 0) drain();
    }
  }
  void erase_most() {
    for (unsigned i = 0; i < keys; ++i) {
      Ledger::Key& key = ledger_.known[i];
      if (i % 16 == 0) continue;
      const int before = key.acknowledged;
      key.attempted = -key.attempted;
      if (world_.engine->store().del(name_of(i)).ok())
        key.acknowledged = before > 0 ? -before : before;
    }
    drain();
  }
  void confirm() {
    world_.engine->confirm_async(Durability::synced, [this](const Status&) {
      // mo: relaxed: a count
      std::atomic_ref{ledger_.called_back}.fetch_add(1, std::memory_order_relaxed);
    });
    ++confirmations_;
  }
  void drain() { static_cast<void>(world_.storage->drain()); }
  void join(unsigned count) {
    auto claims = world_.engine->claims("work", Policy{});
    if (!claims) return;
    for (unsigned i = 0; i < count; ++i) {
      const std::string key = "job" + std::to_string(i);
      const ClaimOutcome granted = claims->claim({.key = key});
      if (granted.answer != ClaimAnswer::granted) continue;
      rocksdb::WriteBatch effects;
      static_cast<void>(effects.Put(family(*world_.storage, "effects"), key, "effect"));
      static_cast<void>(complete_joined(*world_.storage, *claims,
                                        {.key = key, .epoch = granted.epoch, .payload = "r"},
                                        effects, Durability::logged));
      confirm();
    }
  }
  void spill() {
    std::thread{[this] { spill_once(); }}.join();
  }
  [[nodiscard]] int confirmations() const noexcept { return confirmations_; }

  static std::string name_of(unsigned key) { return "key" + std::to_string(key); }

 private:
  void spill_once() {
    static_cast<void>(pthread_setname_np(pthread_self(), "semel:spill"));
    static_cast<void>(world_.engine->host().spill());
  }

  World& world_;
  Ledger& ledger_;
  int confirmations_ = 0;
};

/// Memory is back: the storage goes on, or has said why not.
int judge(World& world, const Work& work, const Ledger& ledger) {
  const SystemClock clock;
  const Timestamp until = clock.now() + Millis{20'000};
  bool failed = false;
  while (!world.storage->drain()) {
    failed = world.storage->stats().failed;
    if (failed) break;
    if (clock.now() > until) {
      return complain("it did not go on: " + world.storage->stats().trouble);
    }
    std::this_thread::yield();
  }
  if (failed && world.storage->stats().trouble.find("memory") == std::string::npos) {
    return complain("it failed for another reason: " + world.storage->stats().trouble);
  }
  if (!failed && !world.engine->confirm(Durability::synced)) return complain("it does not sync");
  if (!failed && world.cold != nullptr && !world.engine->host().spill()) failed = true;
  // mo: relaxed: a count
  const auto called = [&] {
    return std::atomic_ref{const_cast<int&>(ledger.called_back)}.load(std::memory_order_relaxed);
  };
  while (called() != work.confirmations()) {
    if (clock.now() > until) return complain("callbacks are missing");
    std::this_thread::yield();
  }
  return failed ? 4 : 0;
}

/// 0: it went on; 1: there is no such site; 2: wrong; 4: it said that it has to be opened again.
int live(const std::string& directory, Scene scene, std::uint64_t site, std::uint64_t more,
         Ledger& ledger) {
  const SystemClock clock;
  if (scene == Scene::again) FailingNew::arm_background(site, more);
  auto world = open(directory, scene, clock);
  if (scene == Scene::again && !world) {
    ledger.fired = 1;
    FailingNew::disarm_background();
    world = open(directory, scene, clock);
  }
  if (!world) return complain("it cannot be opened: " + world.error().message());
  if (scene != Scene::again) FailingNew::arm_background(site, more);
  Work work{*world, ledger};
  if (scene == Scene::joined) work.join(8);
  if (scene != Scene::again) work.set_all(ledger.known[0].attempted + 1);
  if (scene == Scene::cold) work.spill();
  if (scene == Scene::plain) work.erase_most();
  if (FailingNew::disarm_background()) ledger.fired = 1;
  const int verdict = judge(*world, work, ledger);
  world->engine.reset();
  world->cold.reset();
  world->storage.reset();
  return verdict;
}

/// 0: everything that was acknowledged is there.
int look(const std::string& directory, Scene scene, const Ledger& ledger) {
  const SystemClock clock;
  auto world = open(directory, scene, clock);
  if (!world) return complain("it cannot be opened again: " + world.error().message());
  for (unsigned i = 0; i < keys; ++i) {
    const Ledger::Key& key = ledger.known[i];
    const auto found = world->engine->store().get(Work::name_of(i));
    if (!found.ok()) return complain("a key cannot be read: " + found.error().message());
    const bool is_acknowledged =
        key.acknowledged > 0 ? *found == value_of(i, key.acknowledged) : !found->has_value();
    const bool is_attempted =
        key.attempted > 0 ? *found == value_of(i, key.attempted) : !found->has_value();
    if (!is_acknowledged && !(key.attempted != key.acknowledged && is_attempted)) {
      return complain("key " + std::to_string(i) + " is not what was acknowledged");
    }
  }
  if (const Status drained = world->storage->drain(); !drained) {
    return complain("the next process does not drain: " + drained.error().message());
  }
  return 0;
}

int apart(const std::function<int()>& play) {
  const auto begin = [] {
    // An assertion of RocksDB, where it was built with them.
    std::signal(SIGABRT, [](int) {
      if (storage::RocksGuard::is_inside()) _exit(5);
      std::signal(SIGABRT, SIG_DFL);
    });
    std::set_terminate([] {
      FailingNew::disarm_background();
      proofs::say_where_and_abort();
    });
  };
  return proofs::apart(begin, play);
}

struct Sum {
  std::uint64_t lives = 0;
  std::uint64_t reopened = 0;
  std::uint64_t ended = 0;  // by an assertion of RocksDB
  std::uint64_t wrong = 0;
};

/// False: there is no such site.
bool play(Scene scene, std::uint64_t site, std::uint64_t more, Ledger& ledger, Sum& sum) {
  ledger = {};
  const Scratch scratch;
  int verdict = 0;
  if (scene == Scene::again) {
    verdict = apart([&] {
      const int made = live(scratch.path(), Scene::plain, ~std::uint64_t{0}, 0, ledger);
      return made == 4 ? 2 : made;
    });
    ledger.called_back = 0;
  }
  if (verdict == 0) {
    verdict = apart([&] { return live(scratch.path(), scene, site, more, ledger); });
  }
  const int after = apart([&] { return look(scratch.path(), scene, ledger); });
  if (ledger.fired == 0 && verdict == 0 && after == 0) return false;
  ++sum.lives;
  sum.reopened += verdict == 4 ? 1 : 0;
  sum.ended += verdict == 5 ? 1 : 0;
  if ((verdict == 0 || verdict == 4 || verdict == 5) && after == 0) return true;
  ++sum.wrong;
  std::printf("  site %lu, %s: wrong (%d, %d)\n", static_cast<unsigned long>(site),
              more == 0 ? "once" : "outage", verdict, after);
  return true;
}

int run(const proofs::Arguments& arguments, std::uint64_t lives_max) {
  constexpr std::uint64_t sites_max = 20'000;
  constexpr std::uint64_t outage = ~std::uint64_t{0} >> 1;
  auto* const ledger = static_cast<Ledger*>(
      mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (ledger == MAP_FAILED) return 3;
  FailingNew::spare([]() noexcept { return storage::RocksGuard::is_inside(); });
  Sum all;
  for (const auto& [scene, name] : scenes) {
    for (const std::uint64_t more : {std::uint64_t{0}, outage}) {
      Sum one;
      // The first ones each, then in growing steps, so that some hundred lives reach the last.
      const std::uint64_t each = arguments.is_long ? 500 : lives_max / 4;
      std::uint64_t site = 1;
      while (site <= sites_max && play(scene, site, more, *ledger, one)) {
        site += site <= each ? 1 : 1 + site / (arguments.is_long ? 100 : 12);
      }
      std::printf("%-24s %-7s up to site %5lu: %4lu lives, %lu had to be opened again, %lu wrong\n",
                  name, more == 0 ? "once" : "outage", static_cast<unsigned long>(site),
                  static_cast<unsigned long>(one.lives), static_cast<unsigned long>(one.reopened),
                  static_cast<unsigned long>(one.wrong));
      std::fflush(stdout);
      all.lives += one.lives;
      all.reopened += one.reopened;
      all.ended += one.ended;
      all.wrong += one.wrong;
    }
  }
  std::printf(
      "%lu lives, %lu had to be opened again, %lu ended by RocksDB's assertions, %lu not as they "
      "should\n",
      static_cast<unsigned long>(all.lives), static_cast<unsigned long>(all.reopened),
      static_cast<unsigned long>(all.ended), static_cast<unsigned long>(all.wrong));
  return all.wrong == 0 && all.lives > 0 ? 0 : 1;
}

}  // namespace
}  // namespace semel::faults

int main(int count, char** texts) {
  const auto arguments = semel::proofs::parse_arguments(count, texts);
  return arguments ? semel::faults::run(*arguments, 40) : 2;
}
