// A storage with a cold store is opened with the memory limit that it ran with, whatever its log
// holds. Each process is one of its own: a kill leaves what a kill leaves.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/storage/directory.hpp"
#include "tests/support/child.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr int step = 997;  // keys that are looked at: each so many

[[noreturn]] void end_child(int code, const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  _exit(code);
}

struct TieredLife {
  TieredLife(const std::string& directory, std::size_t memory_bytes) {
    auto opened = Storage::open({.directory = directory + "/storage"}, clock);
    if (!opened) end_child(3, opened.error().message());
    storage = *std::move(opened);
    auto beside = open_cold_directory(
        {.directory = directory + "/cold", .cache_bytes = std::size_t{1} << 20}, clock);
    if (!beside) end_child(3, beside.error().message());
    cold = *std::move(beside);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .cold = cold.get(),
                              .memory_bytes = memory_bytes,
                              .value_bytes_max = 4'096,
                              .first_version = storage->first_version()});
    if (!made) end_child(3, made.error().message());
    engine = *std::move(made);
    if (const auto recovered = storage->recover(*engine); !recovered) {
      end_child(3, "not recovered: " + recovered.error().message());
    }
  }
  /// A store that is full for a moment spills first.
  void set(int number) const {
    const std::string key = std::to_string(number);
    for (int attempt = 0; attempt < 1'000; ++attempt) {
      const auto set = engine->store().set(key, key + value, {.expiry = Expiry::in(1h)});
      if (set.ok()) return;
      static_cast<void>(engine->host().spill());  // or its own thread does
    }
    end_child(4, "not set: " + key);
  }
  void check(int count) const {
    for (int i = 0; i < count; i += step) {
      const std::string key = std::to_string(i);
      const auto found = engine->store().get(key);
      if (!found.ok() || *found != key + value) end_child(5, "lost: " + key);
    }
  }
  const SystemClock clock;
  const std::string value = std::string(100, 'v');
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;  // ends first
};

void must_end_well(const Ended& ended) {
  if (!WIFEXITED(ended.status) || WEXITSTATUS(ended.status) != 0) FAIL(ended.output);
}

}  // namespace

TEST_CASE("cold: a storage is opened with the memory limit that it ran with",
          "[storage][cold][between-16]") {
  const Directory directory{Directory::Medium::memory};
  const auto [mebibytes, is_killed] =
      GENERATE(std::pair{8U, false}, std::pair{8U, true}, std::pair{16U, true});
  const std::size_t memory_bytes = std::size_t{mebibytes} << 20;
  INFO("memory_bytes = " << memory_bytes << (is_killed ? ", killed" : ", ended"));
  // Of 150 bytes in the log: more than memory holds, as far as they are in the log or in files.
  const int count = static_cast<int>(memory_bytes / 80);
  must_end_well(run_apart([&] {
    const TieredLife life{directory.path(), memory_bytes};
    for (int i = 0; i < count; ++i) life.set(i);
    if (is_killed) _exit(0);
  }));
  for (int i = 0; i < 2; ++i) {  // what a start leaves is opened as well
    must_end_well(run_apart([&] {
      const TieredLife life{directory.path(), memory_bytes};
      life.check(count);
      if (is_killed) _exit(0);
    }));
  }
}

}  // namespace semel::tests
