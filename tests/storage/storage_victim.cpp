// Works on a storage until it is killed, and says on stdout what it was about to do and what it was
// told. Whoever kills it remembers; this process must not.
//
//   storage_victim DIRECTORY early|memory|logged|synced SEED [written]
//
// written: the log's files are not mapped
//
//   s KEY VALUE   found after recovery, one line for each record; then "ready"
//   t KEY VALUE   about to set (VALUE "-": to delete)
//   a KEY VALUE   acknowledged; at "early" before it was, which must be noticed
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "storage/log/disk.hpp"

namespace {

class UnmappedDisk final : public semel::storage::Disk {
 public:
  [[nodiscard]] bool maps_safely(const std::string&) override { return false; }
};

constexpr int thread_count = 2;
constexpr int keys_each = 50;

void say(const std::string& line) {
  // One write, so that lines of two threads do not mix (pipe(7): up to 4,096 bytes).
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::_Exit(3);
  }
}

void work(semel::Engine& engine, int thread, std::uint64_t seed, bool early) {
  semel::Store store = engine.store();
  std::uint64_t state = seed * 2 + static_cast<std::uint64_t>(thread) + 1;
  for (std::uint64_t number = 0;; ++number) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto which = static_cast<int>((state >> 33) % keys_each);
    const std::string key = std::to_string(thread) + "." + std::to_string(which);
    const bool deletes = (state >> 50) % 4 == 0;
    const std::string value = deletes ? "-" : std::to_string(seed) + "/" + std::to_string(number);
    say("t " + key + " " + value + "\n");
    if (early) say("a " + key + " " + value + "\n");
    const bool told = deletes ? store.del(key).has_value() : store.set(key, value).has_value();
    if (told && !early) say("a " + key + " " + value + "\n");
  }
}

int fail(const semel::Error& error) {
  std::fprintf(stderr, "storage_victim: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const bool is_written = count == 5 && std::strcmp(arguments[4], "written") == 0;
  if (count != 4 && !is_written) return 2;
  const semel::Durability level =
      std::strcmp(arguments[2], "synced") == 0   ? semel::Durability::synced
      : std::strcmp(arguments[2], "logged") == 0 ? semel::Durability::logged
                                                 : semel::Durability::memory;
  const bool early = std::strcmp(arguments[2], "early") == 0;
  const std::uint64_t seed = std::strtoull(arguments[3], nullptr, 10);
  const semel::SystemClock clock;
  UnmappedDisk unmapped;
  auto storage = semel::Storage::open({.directory = arguments[1],
                                       .log_bytes = std::size_t{1} << 20,
                                       .disk = is_written ? &unmapped : nullptr},
                                      clock);
  if (!storage) return fail(storage.error());
  auto engine = semel::Engine::open({.clock = &clock,
                                     .journal = storage->get(),
                                     .durability = level,
                                     .memory_bytes = std::size_t{64} << 20,
                                     .key_bytes_max = 1024,
                                     .value_bytes_max = 1024,
                                     .first_version = (*storage)->first_version()});
  if (!engine) return fail(engine.error());
  auto report = (*storage)->recover(**engine);
  if (!report) return fail(report.error());
  auto keys = (*engine)->store().keys("*");
  if (!keys.ok()) return fail(keys.error());
  for (const std::string& key : *keys) {
    const auto value = (*engine)->store().get(key);
    if (!value.ok()) return fail(value.error());
    say("s " + key + " " + value->value_or("-") + "\n");
  }
  say("ready\n");
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] { work(**engine, t, seed, early); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
