// Memos of steps in a storage: in the records of their claims, whatever the records go through, and
// those of releases before 0.2, which lay beside them.
#include <rocksdb/db.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/patterns/once.hpp"
#include "semel/patterns/steps.hpp"
#include "semel/storage.hpp"
#include "storage/archive/archive.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/golden.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// An engine with a cold store on a storage, as one process has it.
struct TieredProcess {
  TieredProcess(const std::string& path, ManualClock& clock) {
    storage = Storage::open({.directory = path}, clock).value();
    cold = open_cold_directory({.directory = path + "/cold"}, clock).value();
    engine = Engine::open({.clock = &clock,
                           .journal = storage.get(),
                           .durability = Durability::synced,
                           .cold = cold.get(),
                           .spill_ttl_min = Millis{0},
                           .memory_bytes = std::size_t{64} << 20,
                           .background = std::nullopt,
                           .first_version = storage->first_version()})
                 .value();
    REQUIRE(storage->recover(*engine));
    claims.emplace(engine->claims("orders", policies::call).value());
  }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;
  std::optional<Claims> claims;
};

/// `golden/` of an archive, to work on.
std::string unpack_memos(const Directory& directory) {
  const std::string command = std::string{"tar -xzf '"} + SEMEL_GOLDEN +
                              "/memos/format-6.tar.gz' -C '" + directory.of("") +
                              "' --no-same-owner";
  REQUIRE(std::system(command.c_str()) == 0);
  return directory.of("golden");
}

/// As if the process had been killed before it could say that all of them are folded.
void forget_that_memos_are_folded(const std::string& path) {
  storage::Disk disk;
  auto archive = storage::Archive::open(disk, {path, false, {}});
  REQUIRE(archive);
  storage::Description is = (*archive)->description();
  CHECK(is.has_folded_memos);
  is.has_folded_memos = false;
  REQUIRE((*archive)->describe(is));
}

Fingerprint payload_of_maker(std::uint8_t digest) {
  Fingerprint made{.algorithm = 1};
  made.digest.fill(digest);
  return made;
}

/// What the maker of the archive has left under this part's keys.
void check_memos(Engine& engine, const std::string& part) {
  INFO(part);
  Claims orders = engine.claims("orders").value();
  const auto is_receipt = [&](const std::string& key, Epoch epoch) {
    Steps steps{orders, key, epoch};
    CHECK(steps.recall("charge").value() == "receipt-" + key);
    CHECK(steps.recall("mail").value() == std::string("\0sent", 5));
    CHECK(steps.recall(Bytes{"\0payload", 8}).value() == std::nullopt);
  };
  for (const char* name : {"held-", "bare-"}) {
    const std::string key = name + part;
    is_receipt(key, orders.get(key)->epoch);
    CHECK(Steps(orders, key, orders.get(key)->epoch - 1).recall("none").error().code ==
          ErrorCode::not_owner);
  }
  CHECK(orders.get("doubt-" + part)->state == ClaimState::in_doubt);
  CHECK(orders.get("doubt-" + part)->result == "known");
  CHECK(orders.claim({.key = "done-" + part}).result == "result");
  Store store = engine.store();
  for (const char* name : {"held-", "bare-", "doubt-", "back-", "done-"}) {
    CHECK(store.exists("steps/orders:" + (name + part)).value() == false);
  }
  // Those that only look like it.
  CHECK(engine.hashes().hget("steps/2024:run-" + part, "f").value() == "v");
  CHECK(engine.hashes().hget("steps/orders:no-end-" + part, "f").value() == "v");
  CHECK(store.get("steps/orders:text-" + part).value() == "v");
}

/// The same, and the work goes on from them.
void use_memos(Engine& engine, const std::string& part) {
  Claims orders = engine.claims("orders").value();
  const std::string doubt = "doubt-" + part;
  REQUIRE(orders.resolve(doubt, Resolution::released).value());
  CHECK(Steps(orders, doubt, orders.claim({.key = doubt}).epoch).recall("charge").value() ==
        "receipt-" + doubt);
  const std::string back = "back-" + part;
  const Epoch other = orders.claim({.key = back, .fingerprint = payload_of_maker(0xbb)}).epoch;
  CHECK(Steps(orders, back, other).recall("charge").value() == std::nullopt);
  REQUIRE(orders.release({.key = back, .epoch = other}).answer == OwnerAnswer::ok);
  const Epoch same = orders.claim({.key = back, .fingerprint = payload_of_maker(0xaa)}).epoch;
  CHECK(Steps(orders, back, same).recall("charge").value() == "receipt-" + back);
  Claims limited = engine.claims("limited").value();
  const ClaimOutcome again = limited.claim({.key = back});
  CHECK(again.attempt == 2);
  CHECK(Steps(limited, back, again.epoch).recall("charge").value() == "limited");
}

}  // namespace

TEST_CASE("memos: a restart and a spill leave them with their claims",
          "[storage][cold][memos][once-again-1][once-again-2][once-again-3]") {
  const Directory directory;
  ManualClock clock;
  Epoch held = 0;
  Epoch old = 0;
  {
    TieredProcess process{directory.of("s"), clock};
    Claims& orders = *process.claims;
    for (const char* key : {"held", "back", "doubt", "done", "kept"}) {
      const Epoch epoch = orders.claim({.key = key, .session = SessionId{0}}).epoch;
      REQUIRE(Steps(orders, key, epoch).remember("charge", key));
      const OwnerCall call{.key = key, .epoch = epoch};
      OwnerCall fail = call;
      fail.on_failure = Bytes{key} == "back"    ? Policy::OnFailure::release
                        : Bytes{key} == "doubt" ? Policy::OnFailure::in_doubt
                                                : Policy::OnFailure::keep;
      if (Bytes{key} == "held") {
        held = epoch;
      } else if (Bytes{key} == "done") {
        REQUIRE(orders.complete(call).answer == OwnerAnswer::ok);
      } else {
        REQUIRE(orders.fail(fail).answer == OwnerAnswer::ok);
      }
    }
    old = held;
    for (int i = 0; i < 200; ++i) {
      REQUIRE(once(orders, "filler" + std::to_string(i), [] {
                return std::string(100, 'f');
              }).answer == OnceAnswer::ran);
    }
    REQUIRE(process.storage->drain());
    REQUIRE(process.engine->host().spill().value().records > 0);
    CHECK(Steps(orders, "held", held).recall("charge").value() == "held");
  }
  for (const bool drains : {false, true}) {
    TieredProcess process{directory.of("s"), clock};
    Claims& orders = *process.claims;
    CHECK(Steps(orders, "held", held).recall("charge").value() == "held");
    CHECK(Steps(orders, "held", held).recall("none").value() == std::nullopt);
    CHECK(Steps(orders, "held", held - 1).recall("none").error().code == ErrorCode::not_owner);
    CHECK(orders.get("doubt")->state == ClaimState::in_doubt);
    if (drains) REQUIRE(process.storage->drain());
  }
  TieredProcess process{directory.of("s"), clock};
  Claims& orders = *process.claims;
  clock.advance(25h);
  process.engine->advance();
  CHECK(Steps(orders, "held", old).recall("charge").error().code == ErrorCode::not_owner);
  REQUIRE(orders.resolve("doubt", Resolution::released).value());
  const Epoch doubted = orders.claim({.key = "doubt"}).epoch;
  CHECK(Steps(orders, "doubt", doubted).recall("charge").value() == "doubt");
  clock.advance(Millis{policies::call.result_ttl + policies::call.failure_ttl});
  for (const char* key : {"done", "kept", "back"}) {
    INFO(key);
    const ClaimOutcome next = orders.claim({.key = key});
    REQUIRE(next.answer == ClaimAnswer::granted);
    CHECK(Steps(orders, key, next.epoch).recall("charge").value() == std::nullopt);
  }
}

TEST_CASE("memos: those of a release before 0.2 become a part of their claims",
          "[storage][upgrade][memos]") {
  const Directory directory;
  const std::string path = unpack_memos(directory);
  for (int process = 0; process < 3; ++process) {
    ManualClock clock{golden::engine_start, golden::unix_start_ms};
    {
      auto opened = golden::open(path, clock);
      if (!opened) FAIL(opened.error().message());
      for (const char* part : {"drained", "undrained"}) check_memos(*opened->engine, part);
      if (process == 2) {
        for (const char* part : {"drained", "undrained"}) use_memos(*opened->engine, part);
      }
      CHECK(fold_memos(*opened->engine).value() == 0);
    }
    if (process == 0) forget_that_memos_are_folded(path);  // and nothing is folded twice
  }
}

TEST_CASE("memos: a kill while they are folded leaves each where it is, and the next start goes on",
          "[storage][upgrade][memos]") {
  const Directory directory;
  const std::string path = unpack_memos(directory);
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto opened = golden::open(path, clock);
    REQUIRE(opened);
    Claims orders = opened->engine->claims("orders").value();
    // One that the process had not come to.
    const Epoch late = orders.claim({.key = "late", .session = SessionId{0}}).epoch;
    REQUIRE(late != 0);
    REQUIRE(opened->engine->hashes().hset("steps/orders:late", "charge", "of before").ok());
    REQUIRE(
        opened->engine->store().expire("steps/orders:late", Expiry::in(golden::long_ttl)).value());
  }
  forget_that_memos_are_folded(path);
  auto opened = golden::open(path, clock);
  REQUIRE(opened);
  Claims orders = opened->engine->claims("orders").value();
  CHECK(Steps(orders, "late", orders.get("late")->epoch).recall("charge").value() == "of before");
  for (const char* part : {"drained", "undrained"}) {
    check_memos(*opened->engine, part);
    use_memos(*opened->engine, part);
  }
}

TEST_CASE("memos: a new storage is not looked through", "[storage][upgrade][memos]") {
  const Directory directory;
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  for (int process = 0; process < 2; ++process) {
    auto opened = golden::open(directory.of("s"), clock);
    REQUIRE(opened);
    Hashes hashes = opened->engine->hashes();
    if (process == 0) {
      REQUIRE(opened->engine->claims("orders", Policy{}).ok());
      REQUIRE(hashes.hset("steps/orders:mine", "f", "v").ok());
      REQUIRE(opened->engine->store()
                  .expire("steps/orders:mine", Expiry::in(golden::long_ttl))
                  .value());
    }
    CHECK(hashes.hget("steps/orders:mine", "f").value() == "v");
  }
}

}  // namespace semel::tests
