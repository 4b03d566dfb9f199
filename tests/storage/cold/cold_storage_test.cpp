// A storage and a cold store in a directory of its own: what one relies on the other for.
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/storage_tools.hpp"
#include "storage/cold/cold_bond.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace fs = std::filesystem;

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
    std::size_t log_bytes = std::size_t{1} << 20;
    std::function<void(const RecoveryProgress&)> progress{};
  };
  Tiered() = default;
  Tiered(const Setup& setup, const Clock& clock) { status = open(setup, clock); }

  Status open(const Setup& setup, const Clock& clock) {
    SEMEL_TRY(opened,
              Storage::open({.directory = setup.storage, .log_bytes = setup.log_bytes, .span = 1s},
                            clock));
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
                                  .value_bytes_max = 1024,
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
    const auto done = engine->host().spill();
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
    Tiered life{{.storage = directory.of("d"),
                 .cold = {},
                 .memory_bytes = std::size_t{256} << 20,
                 .log_bytes = std::size_t{64} << 20},
                clock};
    REQUIRE(life.status);
    life.fill("k", keys);
    REQUIRE(life.storage->drain());
  }
  {
    std::thread spiller;
    Tiered::Setup setup{.storage = directory.of("d"),
                        .cold = directory.of("cold"),
                        .memory_bytes = std::size_t{256} << 20,
                        .log_bytes = std::size_t{64} << 20};
    Tiered spilling;
    setup.progress = [&](const RecoveryProgress&) {
      if (spiller.joinable()) return;
      spiller = std::thread{[&] { static_cast<void>(spilling.engine->host().spill()); }};
    };
    const Status opened = spilling.open(setup, clock);
    REQUIRE(spiller.joinable());
    spiller.join();
    REQUIRE(opened);
    CHECK(spilling.count("k", keys) == keys);
  }
  Tiered life{{.storage = directory.of("d"),
               .cold = directory.of("cold"),
               .memory_bytes = std::size_t{256} << 20,
               .log_bytes = std::size_t{64} << 20},
              clock};
  REQUIRE(life.status);
  CHECK(life.count("k", keys) == keys);
}

namespace {

void copy_all(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
}

/// Names a storage and a cold store of `directory`.
struct Pair {
  Pair(const Directory& directory, const std::string& name)
      : storage(directory.of(name)), cold(directory.of(name + "-cold")) {}
  std::string storage;
  std::string cold;
};

/// A life in which `count` records named `prefix` are spilled.
void live(const Pair& pair, const Clock& clock, const std::string& prefix, int count = 20) {
  Tiered life{{.storage = pair.storage, .cold = pair.cold}, clock};
  if (!life.status) FAIL(life.status.error().message());
  life.fill(prefix, count);
  life.spill();
}

[[nodiscard]] std::string refusal(const std::string& storage, const std::string& cold,
                                  const Clock& clock) {
  Tiered life{{.storage = storage, .cold = cold}, clock};
  if (life.status) return "accepted";
  CHECK(life.status.error().code == ErrorCode::storage_damaged);
  return life.status.error().detail;
}

/// verify_storage() says the same.
[[nodiscard]] std::string finding(const std::string& storage, const std::string& cold) {
  const auto check = verify_storage(storage, {}, cold);
  if (!check) FAIL(check.error().message());
  CHECK(check->is_sound() == check->cold.findings.empty());
  CHECK(check->findings.empty());
  return check->cold.findings.empty() ? "accepted" : check->cold.findings.front().what;
}

using Catch::Contains;

}  // namespace

TEST_CASE("tiered: copies of one of both, or of both from other times, are refused",
          "[storage][cold][attack]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const Pair own{directory, "own"};
  live(own, clock, "one");
  const Pair older{directory, "older"};  // both from the same moment
  copy_all(own.storage, older.storage);
  copy_all(own.cold, older.cold);
  live(own, clock, "two");
  constexpr const char* apart = "not used together last";
  CHECK_THAT(finding(own.storage, older.cold), Contains("is at generation 1"));
  CHECK_THAT(refusal(own.storage, older.cold, clock), Contains("is at generation 1"));
  CHECK_THAT(finding(older.storage, own.cold), Contains(apart));
  CHECK_THAT(refusal(older.storage, own.cold, clock), Contains(apart));
  // The copy goes on, and has more generations than the original needs.
  for (const char* name : {"copy1", "copy2", "copy3"}) live(older, clock, name);
  CHECK_THAT(finding(own.storage, older.cold), Contains(apart));
  CHECK_THAT(refusal(own.storage, older.cold, clock), Contains(apart));
  CHECK_THAT(refusal(older.storage, own.cold, clock), Contains("is at generation 2"));
  CHECK_THAT(refusal(own.storage, "", clock), Contains("there is none"));
  CHECK_THAT(finding(own.storage, ""), Contains("there is none here: name its directory"));
  CHECK_THAT(refusal(own.storage, directory.of("new"), clock), Contains("another one"));
  CHECK_THAT(finding(own.storage, directory.of("new")), Contains("another one"));
  // Whatever was refused has changed nothing.
  CHECK(finding(own.storage, own.cold) == "accepted");
  Tiered life{{.storage = own.storage, .cold = own.cold}, clock};
  REQUIRE(life.status);
  CHECK(life.count("one", 20) + life.count("two", 20) == 40);
  Tiered other{{.storage = older.storage, .cold = older.cold}, clock};
  REQUIRE(other.status);
  CHECK(other.count("one", 20) + other.count("copy3", 20) == 40);
  CHECK(other.count("two", 20) == 0);
}

TEST_CASE("tiered: of a storage and its copy the first that is used keeps the cold store",
          "[storage][cold][attack]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const Pair own{directory, "own"};
  live(own, clock, "one");
  copy_all(own.storage, directory.of("copy"));
  const bool is_copy_first = GENERATE(false, true);
  const std::string first = is_copy_first ? directory.of("copy") : own.storage;
  const std::string second = is_copy_first ? own.storage : directory.of("copy");
  {
    Tiered life{{.storage = first, .cold = own.cold}, clock};
    REQUIRE(life.status);
    CHECK(life.count("one", 20) == 20);
    REQUIRE(life.engine->flush(std::nullopt).ok());  // would take the records of the other as well
  }
  CHECK_THAT(refusal(second, own.cold, clock), Contains("not used together last"));
}

TEST_CASE("tiered: a cold store is used by one storage", "[storage][cold][attack]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const Pair own{directory, "own"};
  {
    Tiered life{{.storage = own.storage, .cold = own.cold}, clock};
    REQUIRE(life.status);
    // At the same time: its directory is locked.
    Tiered other{{.storage = directory.of("other"), .cold = own.cold}, clock};
    REQUIRE_FALSE(other.status);
    CHECK(other.status.error().code == ErrorCode::storage_in_use);
    CHECK(verify_storage(directory.of("other"), {}, own.cold).error().code ==
          ErrorCode::storage_in_use);
  }
  // One after the other, though nothing was spilled.
  CHECK_THAT(refusal(directory.of("other"), own.cold, clock),
             Contains("belongs to another storage"));
  CHECK_THAT(finding(directory.of("other"), own.cold), Contains("belongs to another storage"));
  CHECK(finding(own.storage, own.cold) == "accepted");
  // A storage of which nothing was spilled may go on without, and then not with the old one.
  { REQUIRE(Tiered({.storage = own.storage, .cold = {}}, clock).status); }
  CHECK_THAT(refusal(own.storage, own.cold, clock), Contains("not used together last"));
  { REQUIRE(Tiered({.storage = own.storage, .cold = directory.of("new")}, clock).status); }
}

TEST_CASE("tiered: a directory of something else is no cold store, and nothing is written to it",
          "[storage][cold][attack]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const std::string foreign = directory.of("foreign");
  SECTION("any file") {
    fs::create_directory(foreign);
    std::ofstream{foreign + "/letter"} << "Dear";
  }
  SECTION("a storage") {
    const Tiered life{{.storage = foreign, .cold = foreign + "/cold"}, clock};
    REQUIRE(life.status);
  }
  const auto before = picture(foreign);
  const auto opened = open_cold_directory({.directory = foreign}, clock);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::storage_failed);
  CHECK_THAT(opened.error().detail, Contains("is not a cold store"));
  CHECK(picture(foreign) == before);
}

TEST_CASE("tiered: a process that ends while both get a new token leaves two that fit",
          "[storage][cold][attack]") {
  using storage::misfit;
  const storage::ColdNeeds needs{.storage_id = 7, .mark = {5, 3}, .token = 11};
  const ColdMark mark{5, 3};
  CHECK(misfit(needs, mark, {7, 11, 0, false}).empty());
  CHECK(misfit(needs, mark, {7, 12, 11, true}).empty());         // the store has the new one
  CHECK_FALSE(misfit(needs, mark, {7, 12, 11, false}).empty());  // and the storage had it
  CHECK_FALSE(misfit(needs, mark, {7, 12, 10, true}).empty());
  CHECK_FALSE(misfit(needs, mark, {8, 11, 0, false}).empty());
  CHECK(misfit(needs, mark, {}).empty());  // of an earlier release
  CHECK(misfit(needs, {5, 4}, {7, 11, 0, false}).empty());
  CHECK_FALSE(misfit(needs, {5, 2}, {7, 11, 0, false}).empty());
  CHECK_FALSE(misfit(needs, {6, 3}, {7, 11, 0, false}).empty());
  CHECK_FALSE(misfit(needs, {}, {}).empty());
  // The first of all: the storage has no token yet.
  const storage::ColdNeeds fresh{.storage_id = 7, .mark = {}, .token = 0};
  CHECK(misfit(fresh, mark, {7, 11, 0, true}).empty());
  CHECK_FALSE(misfit(fresh, mark, {7, 11, 0, false}).empty());
  CHECK(misfit(fresh, {}, {}).empty());
}

namespace {

/// Returns the storage's first version.
Version back_up_offline(const Pair& own, const Directory& directory, const std::string& backup,
                        const Clock& clock) {
  auto storage = Storage::open({.directory = own.storage}, clock);
  REQUIRE(storage);
  const auto alone = (*storage)->backup(backup);
  REQUIRE_FALSE(alone);
  CHECK_THAT(alone.error().detail, Contains("there is none"));
  CHECK_FALSE(fs::exists(backup));
  {
    const auto other = open_cold_directory({.directory = directory.of("other")}, clock);
    REQUIRE(other);
    CHECK_FALSE((*storage)->backup(backup, **other));
    CHECK_FALSE(fs::exists(backup));
  }
  const auto cold = open_cold_directory({.directory = own.cold}, clock);
  REQUIRE(cold);
  REQUIRE((*storage)->backup(backup, **cold));
  return (*storage)->first_version();
}

}  // namespace

TEST_CASE("tiered: a backup has the cold store, and the restored pair is another incarnation",
          "[storage][cold][tools]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  const Pair own{directory, "own"};
  const std::string backup = directory.of("backup");
  Version first = 0;
  const bool is_offline = GENERATE(false, true);
  {
    Tiered life{{.storage = own.storage, .cold = own.cold}, clock};
    REQUIRE(life.status);
    life.fill("cold", 2'000);
    life.spill();
    life.fill("warm", 50);
    if (!is_offline) REQUIRE(life.storage->backup(backup));
    life.fill("later", 50);
    life.spill();
  }
  if (is_offline) first = back_up_offline(own, directory, backup, clock);
  const auto before = picture(backup);
  REQUIRE(verify_storage(backup)->is_sound());
  CHECK(picture(backup) == before);
  CHECK(verify_storage(backup)->cold.records == (is_offline ? 2'100 : 2'000));
  // No part of it can be opened.
  const auto opened = open_cold_directory({.directory = backup + "/cold"}, clock);
  REQUIRE_FALSE(opened);
  CHECK_THAT(opened.error().detail, Contains("semel restore"));

  const std::string to = directory.of("to");
  REQUIRE(restore_backup(backup, to));
  REQUIRE(restore_backup(backup, directory.of("again")));
  CHECK(verify_storage(to)->is_sound());
  // Neither half fits where it does not belong.
  for (const auto& [storage, cold] :
       std::vector<std::pair<std::string, std::string>>{{to, own.cold},
                                                        {own.storage, to + "/cold"},
                                                        {to, directory.of("again/cold")},
                                                        {directory.of("again"), to + "/cold"}}) {
    CAPTURE(storage, cold);
    CHECK(refusal(storage, cold, clock) != "accepted");
    CHECK(finding(storage, cold) != "accepted");
  }
  {
    Tiered life{{.storage = to, .cold = to + "/cold"}, clock};
    REQUIRE(life.status);
    CHECK(life.storage->first_version() > first);
    CHECK(life.count("cold", 2'000) + life.count("warm", 50) == 2'050);
    CHECK(life.count("later", 50) == (is_offline ? 50 : 0));
    life.fill("more", 10);
    life.spill();
  }
  fs::rename(to + "/cold", directory.of("moved"));
  Tiered life{{.storage = to, .cold = directory.of("moved")}, clock};
  REQUIRE(life.status);
  CHECK(life.count("more", 10) == 10);
}

TEST_CASE("tiered: a backup without its cold store, or with damage in it, is not restored",
          "[storage][cold][tools]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const Pair own{directory, "own"};
  const std::string backup = directory.of("backup");
  {
    Tiered life{{.storage = own.storage, .cold = own.cold}, clock};
    REQUIRE(life.status);
    life.fill("cold", 2'000);
    life.spill();
    REQUIRE(life.storage->backup(backup));
  }
  std::string damaged;
  SECTION("it is not there") {
    fs::remove_all(backup + "/cold");
  }
  SECTION("a file of it is not there") {
    damaged = files_in(backup + "/cold/cold", ".sst").back();
    fs::remove(damaged);
  }
  SECTION("a byte of it is wrong") {
    for (const std::string& file : files_in(backup + "/cold/cold", ".sst")) {
      if (damaged.empty() || fs::file_size(file) > fs::file_size(damaged)) damaged = file;
    }
    flip(damaged, fs::file_size(damaged) / 2);
  }
  SECTION("a byte of it is wrong that no block's checksum covers") {
    for (const std::string& file : files_in(backup + "/cold/cold", ".sst")) {
      if (damaged.empty() || fs::file_size(file) > fs::file_size(damaged)) damaged = file;
    }
    flip(damaged, fs::file_size(damaged) - 20);  // padding of the footer
  }
  const auto check = verify_storage(backup);
  REQUIRE(check);
  CHECK_FALSE(check->is_sound());
  REQUIRE_FALSE(check->cold.findings.empty());
  if (!damaged.empty()) CHECK(check->cold.findings.front().file == damaged);
  const Status restored = restore_backup(backup, directory.of("to"));
  REQUIRE_FALSE(restored);
  CHECK(restored.error().code == ErrorCode::storage_damaged);
  CHECK_FALSE(fs::exists(directory.of("to")));
}

TEST_CASE("tiered: a backup beside spills and writers has every record and no half of a group",
          "[storage][cold][attack]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const Pair own{directory, "own"};
  std::vector<std::pair<std::string, int>> made;  // and how many groups were acknowledged before
  {
    Tiered life{{.storage = own.storage, .cold = own.cold}, clock};
    REQUIRE(life.status);
    std::atomic<int> written{0};
    std::atomic<bool> stops{false};
    std::thread writer{[&] {
      Store store = life.engine->store();
      for (int i = 0; !stops.load(std::memory_order_relaxed); ++i) {  // mo: relaxed: a wish
        const std::string one = "a" + std::to_string(i);
        const std::string other = "b" + std::to_string(i);
        const std::array<KeyValue, 2> pair{KeyValue{one, "done"}, KeyValue{other, "done"}};
        if (!store.mset(pair)) return;
        written.store(i + 1, std::memory_order_release);  // mo: release [tiered_backup.written]
      }
    }};
    std::thread spiller{[&] {
      while (!stops.load(std::memory_order_relaxed)) {  // mo: relaxed: a wish
        if (!life.engine->host().spill()) return;
      }
    }};
    for (int i = 0; i < 8; ++i) {
      made.emplace_back(directory.of("backup" + std::to_string(i)),
                        written.load(std::memory_order_acquire));  // mo: acquire [as above]
      const auto status = life.storage->backup(made.back().first);
      if (!status) FAIL_CHECK(status.error().message());
    }
    stops.store(true, std::memory_order_relaxed);  // mo: relaxed: a wish
    writer.join();
    spiller.join();
  }
  for (const auto& [backup, least] : made) {
    CAPTURE(backup, least);
    const std::string to = backup + "-to";
    REQUIRE(restore_backup(backup, to));
    Tiered life{{.storage = to, .cold = to + "/cold"}, clock};
    REQUIRE(life.status);
    CHECK(life.count("a", least) == least);
    Store store = life.engine->store();
    int parted = 0;
    for (int i = 0; i < least + 50'000; ++i) {
      const bool one = store.get("a" + std::to_string(i)).value().has_value();
      const bool other = store.get("b" + std::to_string(i)).value().has_value();
      parted += one == other ? 0 : 1;
      if (!one && !other && i > least) break;
    }
    CHECK(parted == 0);
  }
}

TEST_CASE("tiered: repair binds a cold store that is there, and gives one up only if it is told",
          "[storage][cold][tools]") {
  const Directory directory{Directory::Medium::memory};
  const ManualClock clock;
  const Pair own{directory, "own"};
  live(own, clock, "one");
  copy_all(own.cold, directory.of("older"));
  live(own, clock, "two");
  const auto repair = [&](const StorageRepairOptions& options) {
    const auto done = repair_storage(own.storage, options);
    if (!done) FAIL(done.error().message());
    return *done;
  };
  SECTION("it fits: nothing to do") {
    const StorageRepair done = repair({.accept_loss = true, .cold = own.cold});
    CHECK_FALSE(done.changed);
    CHECK(done.found.is_sound());
  }
  SECTION("it is not there: that alone is no reason to forget") {
    const StorageRepair done = repair({.accept_loss = true});
    CHECK_FALSE(done.changed);
    CHECK_FALSE(done.found.is_sound());
    CHECK(finding(own.storage, own.cold) == "accepted");
  }
  SECTION("an older copy is all that is left") {
    CHECK_FALSE(repair({.cold = directory.of("older")}).changed);
    const StorageRepair done = repair({.accept_loss = true, .cold = directory.of("older")});
    CHECK(done.changed);
    CHECK(done.cold_bound);
    Tiered life{{.storage = own.storage, .cold = directory.of("older")}, clock};
    REQUIRE(life.status);
    CHECK(life.storage->first_version() > Version{1} << 48);
    CHECK(life.count("one", 20) == 20);
  }
  SECTION("that of another storage is not bound") {
    const Pair other{directory, "other"};
    live(other, clock, "x");
    const StorageRepair done = repair({.accept_loss = true, .cold = other.cold});
    CHECK_FALSE(done.changed);
    CHECK(finding(other.storage, other.cold) == "accepted");
  }
  SECTION("it is given up") {
    const StorageRepair done = repair({.accept_loss = true, .without_cold = true});
    CHECK(done.cold_given_up);
    CHECK(finding(own.storage, "") == "accepted");
    Tiered life{{.storage = own.storage, .cold = directory.of("new")}, clock};
    CHECK(life.status);
  }
}

TEST_CASE("tiered: many lives leave neither files nor memory behind", "[storage][cold]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  const Pair own{directory, "own"};
  std::size_t files = 0;
  for (int i = 0; i < 60; ++i) {
    Tiered life{{.storage = own.storage, .cold = own.cold}, clock};
    REQUIRE(life.status);
    REQUIRE(life.engine->store().set("k", "v", {.expiry = Expiry::in(1s)}).ok());
    life.spill();
    clock.advance(2s);
    REQUIRE(life.cold->drop_ended(clock.now()));
    files = files_in(own.cold + "/cold", ".sst").size();
  }
  CHECK(files < 24);
}

}  // namespace semel::tests
