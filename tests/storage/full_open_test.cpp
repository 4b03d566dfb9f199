// A storage that is opened while the disk has no room for its log: what is there can be read,
// nothing is accepted, and both is so again after each restart until space comes back.
#include <atomic>
#include <filesystem>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Room for so many new files of the log. When it is used up, the disk is full.
class SmallDisk final : public storage::Disk {
 public:
  [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override {
    // mo: relaxed: a count; it may be used up by any thread
    if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return Disk::create(path, bytes);
    have(0);
    return Error{ErrorCode::storage_failed, path + ": no space"};
  }
  [[nodiscard]] std::size_t bytes_free(const std::string& path) override {
    // mo: relaxed: as above
    return left_.load(std::memory_order_relaxed) <= 1 ? 0 : Disk::bytes_free(path);
  }
  void have(int files) noexcept {
    left_.store(files, std::memory_order_relaxed);  // mo: relaxed: as above
  }
  void have_plenty() noexcept { have(1'000'000); }

 private:
  std::atomic<int> left_{1'000'000};
};

struct SmallLife {
  SmallLife(const Directory& directory, const ManualClock& clock, storage::Disk& disk) {
    StorageOptions options{
        .directory = directory.path(), .log_bytes = std::size_t{1} << 20, .confirm_within = 100ms};
    options.disk = &disk;
    auto opened = Storage::open(options, clock);
    if (!opened) {
      refusal = opened.error().message();
      return;
    }
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::synced,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 64'000,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    if (const auto recovered = storage->recover(*engine); !recovered.ok()) {
      refusal = recovered.error().message();
    }
  }
  std::string refusal;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

std::size_t log_files(const Directory& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{directory.of("log")}) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("storage: opened on a full disk it is read, and refuses until there is space",
          "[storage]") {
  const Directory directory;
  ManualClock clock;
  SmallDisk disk;
  {
    const SmallLife life{directory, clock, disk};
    REQUIRE(life.engine->store().set("before", "1").ok());
  }
  // With room for one segment none is kept: draining would miss its space.
  for (const int room : {0, 1, 0}) {
    INFO("room for " << room);
    const std::size_t files = log_files(directory);
    disk.have(room);
    const SmallLife life{directory, clock, disk};
    REQUIRE(life.refusal.empty());
    CHECK(log_files(directory) <= files);
    Store store = life.engine->store();
    CHECK(store.get("before").value() == "1");
    CHECK(store.set("new", "1").error().code == ErrorCode::refused);
    CHECK(store.del("before").error().code == ErrorCode::refused);
    CHECK(store.get("before").value() == "1");
    const StorageStats stats = life.storage->stats();
    CHECK_FALSE(stats.accepting);
    CHECK_FALSE(stats.failed);
    CHECK(stats.trouble.find("no space") != std::string::npos);
  }
  {
    disk.have(0);
    const SmallLife life{directory, clock, disk};
    REQUIRE(life.refusal.empty());
    disk.have_plenty();
    const auto is_well = [&] {
      const StorageStats stats = life.storage->stats();
      return stats.accepting && stats.trouble.empty();
    };
    while (!is_well()) static_cast<void>(life.storage->drain());
    CHECK(life.engine->store().set("after", "2").ok());
  }
  const SmallLife life{directory, clock, disk};
  CHECK(life.engine->store().get("before").value() == "1");
  CHECK(life.engine->store().get("after").value() == "2");
}

TEST_CASE("storage: claims of a storage that is opened on a full disk keep what they say",
          "[storage][claims]") {
  const Directory directory;
  ManualClock clock;
  SmallDisk disk;
  Policy policy;
  policy.lease = 60s;
  policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  {
    const SmallLife life{directory, clock, disk};
    Claims claims = life.engine->claims("jobs", policy).value();
    const Epoch done = claims.claim({.key = "done"}).epoch;
    REQUIRE(claims.complete({.key = "done", .epoch = done, .payload = "paid"}).answer ==
            OwnerAnswer::ok);
    REQUIRE(claims.claim({.key = "died"}).answer == ClaimAnswer::granted);
  }
  for (int i = 0; i < 3; ++i) {
    disk.have(0);
    const SmallLife life{directory, clock, disk};
    REQUIRE(life.refusal.empty());
    Claims claims = life.engine->claims("jobs", policy).value();
    CHECK(claims.claim({.key = "done"}).result == "paid");
    CHECK(claims.claim({.key = "new"}).answer != ClaimAnswer::granted);
    CHECK(claims.claim({.key = "died"}).answer != ClaimAnswer::granted);
    CHECK(life.engine->claims("other", policy).error().code == ErrorCode::refused);
  }
}

TEST_CASE("storage: leases of remote owners that cannot be written down are no silent loss",
          "[storage][claims]") {
  const Directory directory;
  ManualClock clock;
  SmallDisk disk;
  Policy policy;
  policy.lease = 60s;
  Epoch held = 0;
  {
    const SmallLife life{directory, clock, disk};
    Claims claims = life.engine->claims("jobs", policy).value();
    held = claims.claim({.key = "held", .session = 0}).epoch;
    REQUIRE(held != 0);
  }
  clock.advance(90s);  // no process runs: the lease begins again
  for (int i = 0; i < 2; ++i) {
    disk.have(0);
    const SmallLife life{directory, clock, disk};
    CHECK(life.refusal.find("leases of remote owners") != std::string::npos);
    CHECK(life.refusal.find("100 ms") != std::string::npos);
  }
  disk.have_plenty();
  const SmallLife life{directory, clock, disk};
  REQUIRE(life.refusal.empty());
  Claims claims = life.engine->claims("jobs", policy).value();
  CHECK(claims.claim({.key = "held"}).answer == ClaimAnswer::in_flight);
  CHECK(claims.complete({.key = "held", .epoch = held}).answer == OwnerAnswer::ok);
}

TEST_CASE("storage: a hold that ended keeps no storage closed on a full disk",
          "[storage][claims][between-12]") {
  const Directory directory;
  const ManualClock clock;
  SmallDisk disk;
  {
    const SmallLife life{directory, clock, disk};
    Claims claims = life.engine->claims("jobs", {.lease = 60s}).value();
    for (const char* const key : {"completed", "failed", "released", "forgotten"}) {
      const Epoch epoch = claims.claim({.key = key, .session = 0}).epoch;
      REQUIRE(epoch != 0);
      const OwnerCall call{.key = key, .epoch = epoch, .payload = "end"};
      if (key[0] == 'c') CHECK(claims.complete(call).answer == OwnerAnswer::ok);
      if (key[0] == 'r') CHECK(claims.release(call).answer == OwnerAnswer::ok);
      if (key == std::string{"failed"}) CHECK(claims.fail(call).answer == OwnerAnswer::ok);
      if (key == std::string{"forgotten"}) CHECK(claims.forget(key).ok());
    }
  }
  for (int i = 0; i < 2; ++i) {
    disk.have(0);
    const SmallLife life{directory, clock, disk};
    REQUIRE(life.refusal.empty());
    Claims claims = life.engine->claims("jobs").value();
    CHECK(claims.claim({.key = "completed"}).result == "end");
    CHECK(claims.get("released").value().state != ClaimState::held);
  }
}

TEST_CASE("storage: a new one is not begun on a full disk", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  SmallDisk disk;
  for (const int room : {0, 1}) {
    disk.have(room);
    const SmallLife life{directory, clock, disk};
    CHECK(life.refusal.find("no space") != std::string::npos);
  }
  disk.have_plenty();
  const SmallLife life{directory, clock, disk};
  REQUIRE(life.refusal.empty());
  CHECK(life.engine->store().set("k", "v").ok());
}

}  // namespace semel::tests
