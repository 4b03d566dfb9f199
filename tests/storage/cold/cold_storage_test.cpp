// A storage and a cold store in a directory of its own: what one relies on the other for.
#include <functional>
#include <string>
#include <thread>

#include "semel/cold_directory.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// A tiered engine of one process. Where something is refused, `status` says so and the rest is
/// null.
struct Tiered {
  struct Setup {
    std::string storage;
    std::string cold;  // empty: none
    std::size_t memory_bytes = std::size_t{64} << 20;
    std::function<void(const RecoveryProgress&)> progress{};
  };
  Tiered() = default;
  Tiered(const Setup& setup, const Clock& clock) { status = open(setup, clock); }

  Status open(const Setup& setup, const Clock& clock) {
    SEMEL_TRY(opened, Storage::open({.directory = setup.storage, .span = 1s}, clock));
    storage = std::move(opened);
    if (!setup.cold.empty()) {
      SEMEL_TRY(beside, open_cold_directory(
                            {.directory = setup.cold, .cache_bytes = std::size_t{1} << 20}, clock));
      cold = std::move(beside);
    }
    SEMEL_TRY(made, Engine::open({.clock = &clock,
                                  .journal = storage.get(),
                                  .durability = Durability::logged,
                                  .cold = cold.get(),
                                  .spill_ttl_min = Millis{0},
                                  .memory_bytes = setup.memory_bytes,
                                  .first_version = storage->first_version()}));
    engine = std::move(made);
    SEMEL_TRY(recovered, storage->recover(*engine, setup.progress));
    report = recovered;
    return Done{};
  }
  void fill(const std::string& prefix, int count) {
    Store store = engine->store();
    for (int i = 0; i < count; ++i) {
      const auto stored = store.set(prefix + std::to_string(i), "done");
      if (!stored.ok()) FAIL(stored.error().message());
    }
  }
  [[nodiscard]] int count(const std::string& prefix, int most) {
    int found = 0;
    Store store = engine->store();
    for (int i = 0; i < most; ++i) {
      found += store.get(prefix + std::to_string(i)).value() == "done" ? 1 : 0;
    }
    return found;
  }
  void spill() {
    if (const Status drained = storage->drain(); !drained) FAIL(drained.error().message());
    const auto done = engine->spill();
    if (!done) FAIL(done.error().message());
  }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;  // ends first
  RecoveryReport report;
  Status status{Done{}};
};

}  // namespace

TEST_CASE("tiered: no spill makes void what recovery has not put back yet",
          "[storage][cold][attack]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  constexpr int keys = 300'000;
  {
    Tiered life{{.storage = directory.of("d"), .cold = {}, .memory_bytes = std::size_t{256} << 20},
                clock};
    REQUIRE(life.status);
    life.fill("k", keys);
    REQUIRE(life.storage->drain());
  }
  {
    std::thread spiller;
    Tiered::Setup setup{.storage = directory.of("d"),
                        .cold = directory.of("cold"),
                        .memory_bytes = std::size_t{256} << 20};
    Tiered spilling;
    setup.progress = [&](const RecoveryProgress&) {
      if (spiller.joinable()) return;
      spiller = std::thread{[&] { static_cast<void>(spilling.engine->spill()); }};
    };
    const Status opened = spilling.open(setup, clock);
    REQUIRE(spiller.joinable());
    spiller.join();
    REQUIRE(opened);
    CHECK(spilling.count("k", keys) == keys);
  }
  Tiered life{{.storage = directory.of("d"),
               .cold = directory.of("cold"),
               .memory_bytes = std::size_t{256} << 20},
              clock};
  REQUIRE(life.status);
  CHECK(life.count("k", keys) == keys);
}

}  // namespace semel::tests
