// Sliding windows of claims on the disk: an end that a duplicate has moved is the next process's,
// from the journal, from the cold store and from a backup.
#include <memory>
#include <optional>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/claims.hpp"
#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/storage.hpp"
#include "semel/storage_tools.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/golden.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr Millis window = 1600ms;
constexpr Millis share = 100ms;  // by which an end is later than the window asks for

Policy sliding() {
  Policy policy;
  policy.result_ttl = window;
  policy.sliding_max = 60'000ms;
  return policy;
}

/// An engine with a cold store on a storage, as one process has it.
struct SlidingProcess {
  SlidingProcess(const std::string& path, ManualClock& clock) {
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
    claims.emplace(engine->claims("ns", sliding()).value());
  }
  void complete(Bytes key) {
    const Epoch epoch = claims->claim({.key = key}).epoch;
    REQUIRE(claims->complete({.key = key, .epoch = epoch, .payload = "done"}).answer ==
            OwnerAnswer::ok);
  }
  [[nodiscard]] bool replays(Bytes key) {
    const ClaimOutcome outcome = claims->claim({.key = key});
    return outcome.answer == ClaimAnswer::replay && outcome.result == "done";
  }
  [[nodiscard]] Millis left(Bytes key) { return claims->get(key)->unique_remaining; }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;
  std::optional<Claims> claims;
};

}  // namespace

TEST_CASE("sliding on disk: the end that a duplicate moved is there after each restart",
          "[storage][claims][sliding]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  {
    SlidingProcess process{directory.path(), clock};
    process.complete("k");
  }
  for (int life = 0; life < 5; ++life) {
    SlidingProcess process{directory.path(), clock};
    clock.advance(window);
    REQUIRE(process.replays("k"));
    CHECK(process.left("k") == window + share);
  }
  {
    SlidingProcess process{directory.path(), clock};
    CHECK(process.left("k") == window + share);
    clock.advance(window + share - 1ms);
    CHECK(process.claims->get("k")->state == ClaimState::done);
    clock.advance(1ms);
    CHECK(process.claims->get("k")->state == ClaimState::absent);
  }
}

TEST_CASE("sliding on disk: a backup has the end, and the latest one",
          "[storage][claims][sliding][backup]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  const auto open = [&](const std::string& name) {
    golden::Process process = golden::open(directory.of(name), clock).value();
    static_cast<void>(process.engine->claims("ns", sliding()).value());
    return process;
  };
  {
    golden::Process process = open("first");
    Claims claims = process.engine->claims("ns").value();
    const Epoch epoch = claims.claim({.key = "k"}).epoch;
    REQUIRE(claims.complete({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
    clock.advance(window);
    REQUIRE(claims.claim({.key = "k"}).answer == ClaimAnswer::replay);
    REQUIRE(process.storage->backup(directory.of("backup")));
  }
  REQUIRE(restore_backup(directory.of("backup"), directory.of("second")));
  golden::Process process = open("second");
  Claims claims = process.engine->claims("ns").value();
  CHECK(claims.policy().sliding_max == 60'000ms);
  CHECK(claims.get("k")->unique_remaining == window + share);
  clock.advance(window);
  CHECK(claims.claim({.key = "k"}).answer == ClaimAnswer::replay);
  CHECK(claims.get("k")->unique_remaining == window + share);
}

TEST_CASE("sliding on disk: the latest end stays the one of the completion",
          "[storage][claims][sliding][limit]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  {
    SlidingProcess process{directory.path(), clock};
    process.complete("k");
  }
  for (int life = 0; life < 40; ++life) {
    SlidingProcess process{directory.path(), clock};
    clock.advance(1499ms);
    REQUIRE(process.replays("k"));
  }
  SlidingProcess process{directory.path(), clock};
  CHECK(process.left("k") == 60'000ms - 40 * 1499ms);
  clock.advance(39ms);
  CHECK(process.replays("k"));
  clock.advance(1ms);
  CHECK(process.claims->claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("sliding on disk: a duplicate of a record in the cold store moves its end",
          "[storage][cold][claims][sliding]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  {
    SlidingProcess process{directory.path(), clock};
    process.complete("k");
    process.complete("left alone");
    REQUIRE(process.engine->host().spill().value().records == 2);
    clock.advance(window);
    CHECK(process.replays("k"));
    CHECK(process.left("k") == window + share);
    CHECK(process.left("left alone") == share);
  }
  clock.advance(share);
  {
    SlidingProcess process{directory.path(), clock};
    CHECK(process.left("k") == window);
    CHECK(process.claims->get("left alone")->state == ClaimState::absent);
    REQUIRE(process.engine->host().spill());
    CHECK(process.left("k") == window);
    clock.advance(window - 1ms);
    CHECK(process.replays("k"));
    REQUIRE(process.engine->host().spill());
  }
  SlidingProcess process{directory.path(), clock};
  clock.advance(window + share - 1ms);
  CHECK(process.claims->get("k")->state == ClaimState::done);
  clock.advance(1ms);
  CHECK(process.claims->get("k")->state == ClaimState::absent);
}

}  // namespace semel::tests
