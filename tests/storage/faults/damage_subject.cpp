// What tests/storage/faults/damage.py damages, and what it opens that with.
//
//   damage_subject make DIRECTORY SEED close|kill    works on a new storage, says what is in it,
//                                                    and closes it or is killed
//   damage_subject open DIRECTORY NOW UNIX BOOT      opens and recovers it at that time
//
// Lines of make: "now MS UNIX_MS", then "k KEY STATE" for each key, then "made". Lines of open: "k
// KEY STATE", then "opened"; or "refused CODE MESSAGE". States are those of world.hpp; what a key
// holds is known exactly, for nothing is under way when the process ends.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/storage/boot_disk.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;
using tests::BootDisk;

constexpr unsigned thread_count = 2;
constexpr int steps = 900;

StorageOptions options_of(const std::string& directory, BootDisk& disk) {
  StorageOptions options;
  options.directory = directory;
  options.sync_every = 20ms;
  options.span = 10'000ms;
  options.log_bytes = std::size_t{1} << 20;
  options.garbage_bytes = std::size_t{1} << 20;
  options.disk = &disk;
  return options;
}

int fail(const Error& error) {
  std::printf("refused %s %s\n", std::string{name_of(error.code)}.c_str(), error.message().c_str());
  return 1;
}

int make(const std::string& directory, std::uint64_t seed, bool is_killed) {
  ManualClock clock;
  BootDisk disk{"first"};
  Ledger ledger = new_ledger(thread_count);
  auto world = open_world(options_of(directory, disk), clock, Durability::logged);
  if (!world) return fail(world.error());
  for (unsigned t = 0; t < thread_count; ++t) {
    Worker worker{*world,
                  ledger,
                  clock,
                  {.thread = t, .level = Durability::logged, .seed = seed + t, .process = "m"}};
    for (int i = 0; i < steps; ++i) {
      if (!worker.step()) return fail({ErrorCode::storage_failed, worker.tally().last_error});
      clock.advance(Millis{static_cast<std::int64_t>(i % 40)});
    }
  }
  std::printf("now %lld %lld\n", static_cast<long long>(clock.now().time_since_epoch().count()),
              static_cast<long long>(clock.unix_ms()));
  for (const auto& [key, history] : ledger) {
    const auto state = state_of(*world, key);
    if (!state) return fail(state.error());
    std::printf("k %s %s\n", key.c_str(), state->c_str());
  }
  // What the mark does not know of yet, up to sync_every long, looks when it is cut off as if the
  // kill had come earlier. That is outside of what can be shown here.
  const Status confirmed = world->engine->confirm(Durability::synced);
  if (!confirmed) return fail(confirmed.error());
  const std::uint64_t syncs = world->storage->stats().syncs;
  while (world->storage->stats().bytes_unsynced != 0 || world->storage->stats().syncs < syncs) {
    std::this_thread::yield();
  }
  if (!is_killed) world->close();
  std::printf("made\n");
  std::fflush(stdout);
  if (is_killed) kill(getpid(), SIGKILL);
  return 0;
}

int open(const std::string& directory, const char* now, const char* unix_ms, const char* boot) {
  const ManualClock clock{Millis{std::strtoll(now, nullptr, 10)},
                          std::strtoll(unix_ms, nullptr, 10)};
  BootDisk disk{boot};
  auto world = open_world(options_of(directory, disk), clock, Durability::logged);
  if (!world) return fail(world.error());
  for (const auto& [key, history] : new_ledger(thread_count)) {
    const auto state = state_of(*world, key);
    if (!state) return fail(state.error());
    std::printf("k %s %s\n", key.c_str(), state->c_str());
  }
  const auto keys = world->engine->store().keys("*");
  if (!keys.ok()) return fail(keys.error());
  std::printf("records %zu\n", keys->size());
  std::printf("opened\n");
  return 0;
}

}  // namespace
}  // namespace semel::faults

int main(int count, char** texts) {
  const auto is = [&](int size, const char* name) {
    return count == size && std::strcmp(texts[1], name) == 0;
  };
  if (is(5, "make")) {
    return semel::faults::make(texts[2], std::strtoull(texts[3], nullptr, 10),
                               std::strcmp(texts[4], "kill") == 0);
  }
  if (is(6, "open")) return semel::faults::open(texts[2], texts[3], texts[4], texts[5]);
  return 2;
}
