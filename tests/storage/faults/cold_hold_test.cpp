// The journal keeps a hold beyond its end where an older copy of the claim is in a cold store: what
// takes its place may leave the disk before it.
#include "semel/engine_host.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"
#include "tests/support/catch.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

/// Of a process in which all that is asked of it succeeds.
World quiet_world(const std::string& root, const Clock& clock, storage::Disk& disk,
                  const std::string& cold) {
  StorageOptions options;
  options.directory = root + "/storage";
  options.log_bytes = std::size_t{1} << 20;
  options.span = 1s;
  options.disk = &disk;
  auto world = open_world(options, clock, Durability::logged, Joins::no, cold);
  if (!world) FAIL(world.error().message());
  return *std::move(world);
}
World tiered_world(const std::string& root, const Clock& clock, storage::Disk& disk) {
  return quiet_world(root, clock, disk, root + "/cold");
}

}  // namespace

TEST_CASE("tiered: a hold that keeps a copy in the cold store away ends like any other",
          "[cold_hold][claims]") {
  enum class End { released, completed, with_its_lease, none };
  const End end = GENERATE(End::released, End::completed, End::with_its_lease, End::none);
  const bool restarts = GENERATE(false, true);
  CAPTURE(static_cast<int>(end), restarts);
  const Scratch scratch;
  ManualClock clock;
  tests::BootDisk disk{"boot"};
  Policy policy;
  policy.lease = 60s;
  policy.failure_ttl = 10h;
  policy.result_ttl = 5s;
  policy.attempts_ttl = 1ms;
  std::optional<World> world = tiered_world(scratch.path(), clock, disk);
  std::optional<Claims> claims = *world->engine->claims("locks", policy);
  const auto next_process = [&] {
    world.reset();
    world = tiered_world(scratch.path(), clock, disk);
    claims = *world->engine->claims("locks", policy);
  };
  const auto spill_all = [&] {
    REQUIRE(world->storage->drain());
    REQUIRE(world->engine->host().spill());
  };
  const ClaimRequest ask{.key = "k", .session = SessionId{0}};
  const Epoch first = claims->claim(ask).epoch;
  OwnerCall fails{.key = "k", .epoch = first};
  fails.on_failure = Policy::OnFailure::keep;
  REQUIRE(claims->fail(fails).answer == OwnerAnswer::ok);
  spill_all();
  REQUIRE(claims->forget("k").value());
  const ClaimOutcome held = claims->claim(ask);
  REQUIRE(held.answer == ClaimAnswer::granted);
  spill_all();  // the journal gets the hold again, to be kept as long as the copy
  if (restarts) next_process();
  if (end == End::released) {
    REQUIRE(claims->release({.key = "k", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  }
  if (end == End::completed) {
    REQUIRE(claims->complete({.key = "k", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  }
  if (end == End::with_its_lease) {
    clock.advance(70s);
    world->engine->advance();
  }
  world.reset();
  clock.advance(70s);
  for (int life = 0; life < 3; ++life) {
    CAPTURE(life);
    next_process();
    CHECK(claims->get("k")->state == (end == End::none ? ClaimState::held : ClaimState::absent));
    world.reset();
    clock.advance(life == 0 ? 0s : 70s);
  }
}

TEST_CASE(
    "storage: a hold that was renewed for less time keeps the longer one away when it is over",
    "[cold_hold][claims]") {
  const bool in_doubt_by_now = GENERATE(false, true);
  const bool is_tiered = GENERATE(false, true);
  CAPTURE(in_doubt_by_now, is_tiered);
  const Scratch scratch;
  ManualClock clock;
  tests::BootDisk disk{"boot"};
  Policy policy;
  policy.lease = 60s;
  policy.attempts_ttl = 1ms;
  const auto next_process = [&] {
    return quiet_world(scratch.path(), clock, disk, is_tiered ? scratch.path() + "/cold" : "");
  };
  std::optional<World> world = next_process();
  Claims claims = *world->engine->claims("locks", policy);
  const ClaimRequest ask{.key = "k", .lease = 3600s, .session = SessionId{0}};
  const Epoch first = claims.claim(ask).epoch;
  REQUIRE(first != 0);
  REQUIRE(claims.renew({.key = "k", .epoch = first, .lease = 1s}).answer == OwnerAnswer::ok);
  clock.advance(5s);
  world->engine->advance();
  REQUIRE(claims.get("k")->state == ClaimState::absent);
  if (in_doubt_by_now) {
    policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
    REQUIRE(world->engine->change_namespace("locks", policy).ok());
  }
  world.reset();
  clock.advance(10s);
  world = next_process();
  claims = *world->engine->claims("locks", policy);
  CHECK(claims.get("k")->state == ClaimState::absent);
  CHECK(claims.complete({.key = "k", .epoch = first}).answer != OwnerAnswer::ok);
  const ClaimOutcome next = claims.claim(ask);
  CHECK(next.answer == ClaimAnswer::granted);
  CHECK(next.epoch > first);
}

}  // namespace semel::faults
