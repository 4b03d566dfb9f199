// A live claim whose renewal cannot be written down: its owner is told, and until its lease ends it
// stays as it is.
#include <atomic>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

class FullDisk final : public storage::Disk {
 public:
  [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override {
    if (!is_full()) return Disk::create(path, bytes);
    return Error{ErrorCode::storage_failed, path + ": no space"};
  }
  [[nodiscard]] std::size_t bytes_free(const std::string& path) override {
    return is_full() ? 0 : Disk::bytes_free(path);
  }
  void be_full(bool full) noexcept {
    is_full_.store(full, std::memory_order_relaxed);  // mo: relaxed: as seen by whoever asks next
  }

 private:
  [[nodiscard]] bool is_full() const noexcept {
    return is_full_.load(std::memory_order_relaxed);  // mo: relaxed: as above
  }
  std::atomic<bool> is_full_{false};
};

struct Process {
  Process(const Directory& directory, const ManualClock& clock, storage::Disk& disk,
          Durability level) {
    StorageOptions options{.directory = directory.path(), .log_bytes = std::size_t{1} << 20};
    options.disk = &disk;
    auto opened = Storage::open(options, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = level,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 64'000,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    REQUIRE(storage->recover(*engine));
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

}  // namespace

TEST_CASE(
    "storage: a renewal that a full disk has no room for is refused, and the claim stays held",
    "[storage][claims]") {
  const Durability level = GENERATE(Durability::logged, Durability::synced);
  const Directory directory;
  ManualClock clock;
  FullDisk disk;
  Policy policy;
  policy.lease = 60s;
  Epoch first = 0;
  Epoch second = 0;
  {
    Process process{directory, clock, disk, level};
    Claims claims = process.engine->claims("jobs", policy).value();
    first = claims.claim({.key = "first", .session = 0}).epoch;
    second = claims.claim({.key = "second", .session = 0}).epoch;
    disk.be_full(true);
    Store store = process.engine->store();
    int stored = 0;
    while (store.set("fill" + std::to_string(stored), std::string(2'000, 'v')).ok()) ++stored;
    REQUIRE(stored < 1'000);
    clock.advance(20s);
    for (int i = 0; i < 3; ++i) {
      const OwnerOutcome refused = claims.renew({.key = "first", .epoch = first, .lease = 60s});
      CHECK(refused.error == ErrorCode::refused);
    }
    // As it was: not longer, not shorter, not somebody else's.
    const ClaimOutcome seen = claims.claim({.key = "first"});
    CHECK(seen.answer == ClaimAnswer::in_flight);
    CHECK(seen.remaining == 40s);
    clock.advance(40s);
    const ClaimOutcome taken = claims.claim({.key = "first"});
    CHECK(taken.answer != ClaimAnswer::granted);
    CHECK(taken.error == ErrorCode::refused);
    // Its owner may still finish: that frees.
    const OwnerOutcome done = claims.complete({.key = "first", .epoch = first, .payload = "late"});
    CHECK(done.answer == OwnerAnswer::ok);
    CHECK(claims.claim({.key = "first"}).answer == ClaimAnswer::replay);
    disk.be_full(false);
    while (!process.storage->stats().accepting) static_cast<void>(process.storage->drain());
    // A lease that is over is not revived, whatever the disk says.
    CHECK(claims.renew({.key = "second", .epoch = second, .lease = 60s}).answer != OwnerAnswer::ok);
    const ClaimOutcome next = claims.claim({.key = "second", .session = 0});
    CHECK(next.answer == ClaimAnswer::granted);
    CHECK(next.takeover);
    clock.advance(50s);
    CHECK(claims.renew({.key = "second", .epoch = next.epoch, .lease = 60s}).answer ==
          OwnerAnswer::ok);
    second = next.epoch;
  }
  Process process{directory, clock, disk, level};
  Claims claims = process.engine->claims("jobs", policy).value();
  CHECK(claims.claim({.key = "first"}).result == "late");
  CHECK(claims.claim({.key = "second"}).answer == ClaimAnswer::in_flight);
  CHECK(claims.complete({.key = "second", .epoch = second}).answer == OwnerAnswer::ok);
}

}  // namespace semel::tests
