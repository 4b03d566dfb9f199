// A storage and a child of its process (docs/process-life.md#fork).
// Words: child = what fork() makes; verdict = its exit code, which says what it found.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/cold_directory.hpp"
#include "semel/storage.hpp"
#include "semel/store.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

namespace {

struct Process {
  Process(const Directory& directory, ManualClock& clock) {
    storage = Storage::open({.directory = directory.of("log")}, clock).value();
    cold = open_cold_directory({.directory = directory.of("cold")}, clock).value();
    engine = Engine::open({.clock = &clock,
                           .journal = storage.get(),
                           .durability = Durability::synced,
                           .cold = cold.get(),
                           .first_version = storage->first_version()})
                 .value();
    REQUIRE(storage->recover(*engine));
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;
};

int use_and_end(Process& parents) {
  alarm(10);
  const auto forked = [](const auto& result) {
    return !result.has_value() && result.error().code == ErrorCode::forked;
  };
  if (!forked(parents.engine->store().set("k", "child"))) return 1;
  if (!forked(parents.storage->wait(1, Durability::synced))) return 2;
  if (!forked(parents.storage->drain())) return 3;
  if (parents.storage->append({}) != 0 || parents.storage->accepts_writes()) return 4;
  parents.engine.reset();
  parents.cold.reset();
  parents.storage.reset();
  return 0;
}

}  // namespace

TEST_CASE("fork: a child neither writes nor closes its parent's storage, nor lets go of it",
          "[storage][process][attack][fault-21]") {
  const Directory directory;
  ManualClock clock;
  {
    Process first{directory, clock};
    REQUIRE(first.engine->store().set("k", "before").ok());
    const pid_t child = fork();
    if (child == 0) _exit(use_and_end(first));
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(first.engine->store().set("k", "after").ok());
    const auto second = Storage::open({.directory = directory.of("log")}, clock);
    REQUIRE_FALSE(second.has_value());  // it is still the parent's alone
    CHECK(second.error().code == ErrorCode::storage_in_use);
  }
  Process next{directory, clock};
  CHECK(next.engine->store().get("k").value() == "after");
}

}  // namespace semel::tests
