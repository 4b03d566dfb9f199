// Joined commits: the effect and the finished claim are in one write of the database.
#include <rocksdb/env.h>
#include <rocksdb/iterator.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "base/stopwatch.hpp"
#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"
#include "semel/storage_tools.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/joint/join_process.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Holds back, or refuses, what RocksDB wants written to its log.
class Gate {
 public:
  enum class State { open, held, broken };

  void set(State state) {
    const std::lock_guard lock{mutex_};
    state_ = state;
    changed_.notify_all();
  }
  /// Returns when somebody stands before the closed gate. False: nobody came.
  [[nodiscard]] bool until_held() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 30s, [&] { return held_ > 0; });
  }
  [[nodiscard]] rocksdb::Status pass() {
    std::unique_lock lock{mutex_};
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return state_ != State::held; });
    --held_;
    return state_ == State::broken ? rocksdb::Status::IOError("the test", "refuses")
                                   : rocksdb::Status::OK();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::open;
  int held_ = 0;
};

class GatedFile final : public rocksdb::WritableFileWrapper {
 public:
  GatedFile(std::unique_ptr<rocksdb::WritableFile> file, Gate& gate, Gate& sync_gate)
      : WritableFileWrapper(file.get()),
        file_(std::move(file)),
        gate_(gate),
        sync_gate_(sync_gate) {}
  using WritableFileWrapper::Append;
  rocksdb::Status Append(const rocksdb::Slice& data) override {
    const rocksdb::Status status = gate_.pass();
    return status.ok() ? WritableFileWrapper::Append(data) : status;
  }
  rocksdb::Status Sync() override {
    const rocksdb::Status status = sync_gate_.pass();
    return status.ok() ? WritableFileWrapper::Sync() : status;
  }

 private:
  std::unique_ptr<rocksdb::WritableFile> file_;
  Gate& gate_;
  Gate& sync_gate_;
};

class GatedEnvironment final : public rocksdb::EnvWrapper {
 public:
  GatedEnvironment(Gate& gate, Gate& sync_gate)
      : EnvWrapper(rocksdb::Env::Default()), gate_(gate), sync_gate_(sync_gate) {}
  [[nodiscard]] const char* Name() const override { return "gated"; }
  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = EnvWrapper::NewWritableFile(name, file, options);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<GatedFile>(std::move(*file), gate_, sync_gate_);
    }
    return status;
  }

 private:
  Gate& gate_;
  Gate& sync_gate_;
};

class GatedDisk final : public storage::Disk {
 public:
  [[nodiscard]] rocksdb::Env* env() override { return &environment_; }
  [[nodiscard]] std::size_t bytes_free(const std::string& path) override {
    // mo: relaxed: set by the thread that then asks
    return is_full.load(std::memory_order_relaxed) ? 0 : Disk::bytes_free(path);
  }
  Gate gate;
  Gate sync_gate;
  std::atomic<bool> is_full{false};

 private:
  GatedEnvironment environment_{gate, sync_gate};
};

}  // namespace

TEST_CASE("join: effect and claim are there after the next open", "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  const Durability level = GENERATE(Durability::logged, Durability::synced);
  Epoch epoch = 0;
  {
    JoinProcess process{directory.path(), clock};
    epoch = process.claim("a");
    const auto paid = process.pay("a", epoch, "paid", level);
    REQUIRE(paid);
    CHECK(paid->owner.answer == OwnerAnswer::ok);
    CHECK(paid->written);
    CHECK(process.effect("a") == std::to_string(epoch));
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.effect("a") == std::to_string(epoch));
  const ClaimOutcome again = process.claims->claim({.key = "a"});
  CHECK(again.answer == ClaimAnswer::replay);
  CHECK(again.result == "paid");
}

TEST_CASE("join: whoever is not the owner writes nothing", "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  JoinProcess process{directory.path(), clock};
  const Epoch first = process.claim("a");
  clock.advance(61s);
  const Epoch second = process.claim("a");
  const auto stale = process.pay("a", first);
  REQUIRE(stale);
  CHECK(stale->owner.answer == OwnerAnswer::stale_owner);
  CHECK_FALSE(stale->written);
  const auto unknown = process.pay("b", first);
  REQUIRE(unknown);
  CHECK(unknown->owner.answer == OwnerAnswer::unknown);
  CHECK_FALSE(unknown->written);
  CHECK(process.effect("a") == "-");
  CHECK(process.effect("b") == "-");
  REQUIRE(process.pay("a", second)->written);
  CHECK(process.effect("a") == std::to_string(second));
}

TEST_CASE("join: a repeat is told that it was done, and writes nothing", "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  JoinProcess process{directory.path(), clock};
  const Epoch epoch = process.claim("a");
  REQUIRE(process.pay("a", epoch)->written);
  REQUIRE(database(*process.storage).Delete({}, process.payments(), "a").ok());
  const auto again = process.pay("a", epoch);
  REQUIRE(again);
  CHECK(again->owner.answer == OwnerAnswer::ok);
  CHECK_FALSE(again->written);
  const auto otherwise = process.pay("a", epoch, "another result");
  REQUIRE(otherwise);
  CHECK(otherwise->owner.answer == OwnerAnswer::conflict);
  CHECK_FALSE(otherwise->written);
  CHECK(process.effect("a") == "-");
}

TEST_CASE("join: what cannot be written is refused before the claim is touched",
          "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  JoinProcess process{directory.path(), clock};
  const Epoch epoch = process.claim("a");
  const OwnerCall call{.key = "a", .epoch = epoch};
  const auto refused = [&](const rocksdb::WriteBatch& effects, Durability level) {
    const auto outcome = complete_joined(*process.storage, *process.claims, call, effects, level);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == ErrorCode::bad_option);
    CHECK(process.state("a") == ClaimState::held);
    return outcome.error().message();
  };
  rocksdb::WriteBatch effects;
  CHECK(refused(effects, Durability::memory).find("level = 0") != std::string::npos);
  CHECK(refused(effects, Durability::quorum).find("level = 3") != std::string::npos);
  REQUIRE(effects.Put("to the family of the description", "1").ok());
  CHECK(refused(effects, Durability::synced).find("number 0") != std::string::npos);
  rocksdb::ColumnFamilyHandle* later = nullptr;
  rocksdb::DB& rocks = database(*process.storage);
  REQUIRE(rocks.CreateColumnFamily({}, "later", &later).ok());
  effects.Clear();
  REQUIRE(effects.Put(later, "a", "1").ok());
  CHECK(refused(effects, Durability::synced).find("named to open_storage") != std::string::npos);
  REQUIRE(rocks.DestroyColumnFamilyHandle(later).ok());
  REQUIRE(process.pay("a", epoch)->written);
}

TEST_CASE("join: names of families", "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  const auto refused = [&](std::vector<std::string> names) {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, rocksdb::Options{});
    const auto opened = open_storage({.directory = directory.path()}, clock, families);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::bad_option);
    return opened.error().message();
  };
  for (const char* name : {"default", "journal", "joined"}) {
    CHECK(refused({"mine", name}).find("Semel's own") != std::string::npos);
  }
  CHECK(refused({"mine", "other", "mine"}).find("'mine' is named twice") != std::string::npos);
  CHECK(refused({""}).find("has no name") != std::string::npos);
  JoinProcess process{directory.path(), clock};
  CHECK(process.payments() != nullptr);
  CHECK(family(*process.storage, "nobody's") == nullptr);
  CHECK(family(*process.storage, "journal") == nullptr);
}

TEST_CASE("join: a storage that was opened without families takes none, and loses none",
          "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  Epoch epoch = 0;
  {
    JoinProcess process{directory.path(), clock};
    epoch = process.claim("a");
    REQUIRE(process.pay("a", epoch)->written);
  }
  {
    const Directory fresh;
    auto storage = Storage::open({.directory = fresh.path()}, clock).value();
    auto engine = Engine::open({.clock = &clock, .journal = storage.get()}).value();
    Claims claims = engine->claims("jobs", Policy{}).value();
    const auto joined = complete_joined(*storage, claims, {.key = "a"}, rocksdb::WriteBatch{});
    REQUIRE_FALSE(joined);
    CHECK(joined.error().code == ErrorCode::bad_option);
  }
  auto storage = Storage::open({.directory = directory.path()}, clock).value();
  auto engine =
      Engine::open(
          {.clock = &clock, .journal = storage.get(), .first_version = storage->first_version()})
          .value();
  REQUIRE(storage->recover(*engine));
  CHECK(engine->claims("jobs", policy_of_joins()).value().get("a").value().state ==
        ClaimState::done);
  CHECK(family(*storage, "payments") != nullptr);
}

TEST_CASE("join: nobody is told that it is done before it is written", "[storage][join][race]") {
  const Directory directory;
  ManualClock clock;
  GatedDisk disk;
  const Durability level = GENERATE(Durability::logged, Durability::synced);
  JoinProcess process{directory.path(), clock, level, {.directory = {}, .disk = &disk}};
  const Epoch epoch = process.claim("a");
  std::promise<ClaimOutcome> waiter_told;  // by the queue of those who wait for the claim
  process.claims->claim_or_wait({.key = "a"}, no_end, [&](ClaimOutcome&& outcome) {
    waiter_told.set_value(std::move(outcome));
  });
  auto waiter = waiter_told.get_future();
  disk.gate.set(Gate::State::held);
  auto payer =
      std::async(std::launch::async, [&] { return process.pay("a", epoch, "paid", level); });
  REQUIRE(disk.gate.until_held());
  // Done in memory, and in the write that is held back.
  auto repeat = std::async(std::launch::async, [&] { return process.claims->claim({.key = "a"}); });
  std::promise<bool> confirmed;
  auto confirmation = confirmed.get_future();
  process.engine->confirm_async(level,
                                [&](const Status& status) { confirmed.set_value(bool{status}); });
  CHECK(repeat.wait_for(50ms) == std::future_status::timeout);
  CHECK(waiter.wait_for(0s) == std::future_status::timeout);
  CHECK(confirmation.wait_for(0s) == std::future_status::timeout);
  CHECK(payer.wait_for(0s) == std::future_status::timeout);
  disk.gate.set(Gate::State::open);
  CHECK(payer.get()->written);
  CHECK(repeat.get().answer == ClaimAnswer::replay);
  CHECK(waiter.get().answer == ClaimAnswer::replay);
  CHECK(confirmation.get());
}

TEST_CASE("join: a confirmation at synced waits for a join that was only logged",
          "[storage][join][race]") {
  const Directory directory;
  ManualClock clock;
  JoinProcess process{
      directory.path(), clock, Durability::logged, {.directory = {}, .sync_every = 60s}};
  const Epoch epoch = process.claim("a");
  REQUIRE(process.pay("a", epoch, "paid", Durability::logged)->written);
  const std::uint64_t before = process.storage->stats().syncs;
  REQUIRE(process.engine->confirm(Durability::synced));
  CHECK(process.storage->stats().syncs > before);
  const Epoch other = process.claim("b");
  REQUIRE(process.engine->confirm(Durability::synced));
  REQUIRE(process.pay("b", other, "paid", Durability::logged)->written);
  std::promise<bool> told;
  process.engine->confirm_async(Durability::synced,
                                [&](const Status& status) { told.set_value(bool{status}); });
  CHECK(told.get_future().get());
}

TEST_CASE("join: a round that ended before the join was logged does not count for it",
          "[storage][join][race]") {
  const Directory directory;
  ManualClock clock;
  GatedDisk disk;
  const StorageOptions options{.directory = {}, .sync_every = 60s, .disk = &disk};
  JoinProcess process{directory.path(), clock, Durability::logged, options};
  const Epoch epoch = process.claim("a");
  const std::uint64_t before = process.storage->stats().syncs;
  disk.gate.set(Gate::State::held);
  auto payer = std::async(std::launch::async,
                          [&] { return process.pay("a", epoch, "paid", Durability::logged); });
  REQUIRE(disk.gate.until_held());
  std::promise<bool> told;
  auto answer = told.get_future();
  process.engine->confirm_async(Durability::synced,
                                [&](const Status& status) { told.set_value(bool{status}); });
  while (process.storage->stats().syncs == before) std::this_thread::yield();
  disk.sync_gate.set(Gate::State::held);
  disk.gate.set(Gate::State::open);
  CHECK(payer.get()->written);
  CHECK(disk.sync_gate.until_held());
  CHECK(answer.wait_for(0s) == std::future_status::timeout);
  disk.sync_gate.set(Gate::State::open);
  CHECK(answer.get());
}

TEST_CASE("join: a change of the claim that comes meanwhile stays behind it",
          "[storage][join][race]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  const std::string copy = beside.path() + "/copy";
  {
    GatedDisk disk;
    JoinProcess process{
        directory.path(), clock, Durability::memory, {.directory = {}, .disk = &disk}};
    const Epoch epoch = process.claim("a");
    disk.gate.set(Gate::State::held);
    auto payer = std::async(std::launch::async, [&] { return process.pay("a", epoch); });
    REQUIRE(disk.gate.until_held());
    // It would say "done" as well, and be in the log at once: no store call writes a claim.
    CHECK_FALSE(process.engine->store().expire("jobs:a", Expiry::in(1'000s)).ok());
    // What kill -9 would leave now.
    std::filesystem::copy(directory.path(), copy, std::filesystem::copy_options::recursive);
    disk.gate.set(Gate::State::open);
    REQUIRE(payer.get()->written);
  }
  {
    JoinProcess process{copy, clock};
    CHECK(process.effect("a") == "-");
    CHECK(process.state("a") == ClaimState::held);
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.effect("a") != "-");
  CHECK(process.state("a") == ClaimState::done);
}

TEST_CASE("join: files that are written anew do not run ahead of it", "[storage][join][race]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  const std::string copy = beside.path() + "/copy";
  {
    GatedDisk disk;
    JoinProcess process{
        directory.path(), clock, Durability::logged, {.directory = {}, .disk = &disk}};
    const Epoch epoch = process.claim("a");
    disk.gate.set(Gate::State::held);
    auto payer = std::async(std::launch::async, [&] { return process.pay("a", epoch); });
    REQUIRE(disk.gate.until_held());
    auto rewrite = std::async(std::launch::async, [&] {
      return process.storage->rewrite(*process.engine);  // reads a claim that is done
    });
    CHECK(rewrite.wait_for(200ms) == std::future_status::timeout);
    std::filesystem::copy(directory.path(), copy, std::filesystem::copy_options::recursive);
    disk.gate.set(Gate::State::open);
    REQUIRE(payer.get()->written);
    REQUIRE(rewrite.get());
  }
  {
    JoinProcess process{copy, clock};
    CHECK(process.effect("a") == "-");
    CHECK(process.state("a") == ClaimState::held);
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.state("a") == ClaimState::done);
}

TEST_CASE("join: a write that fails is an outcome that nobody knows, and the last one",
          "[storage][join][race]") {
  const Directory directory;
  ManualClock clock;
  {
    GatedDisk disk;
    JoinProcess process{
        directory.path(), clock, Durability::logged, {.directory = {}, .disk = &disk}};
    const Epoch first = process.claim("a");
    const Epoch second = process.claim("b");
    disk.gate.set(Gate::State::held);
    auto payer = std::async(std::launch::async, [&] { return process.pay("a", first); });
    REQUIRE(disk.gate.until_held());
    auto repeat =
        std::async(std::launch::async, [&] { return process.claims->claim({.key = "a"}); });
    disk.gate.set(Gate::State::broken);
    const auto paid = payer.get();
    REQUIRE_FALSE(paid.ok());
    CHECK(paid.error().code == ErrorCode::outcome_unknown);
    CHECK(repeat.get().error == ErrorCode::outcome_unknown);
    CHECK(process.storage->stats().failed);
    CHECK(process.storage->stats().trouble.find("the test") != std::string::npos);
    disk.gate.set(Gate::State::open);
    const auto refused = process.pay("b", second);
    REQUIRE(refused);
    CHECK(refused->owner.error == ErrorCode::refused);
    CHECK_FALSE(refused->written);
    CHECK(process.effect("b") == "-");
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.effect("a") == "-");
  CHECK(process.claims->claim({.key = "a"}).answer == ClaimAnswer::granted);
}

TEST_CASE("join: after a write of the user's own has failed, syncs fail and end no process",
          "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  GatedDisk disk;
  const StorageOptions options{.directory = {}, .sync_every = 60s, .disk = &disk};
  JoinProcess process{directory.path(), clock, Durability::logged, options};
  REQUIRE(process.pay("a", process.claim("a"), "paid", Durability::logged)->written);
  disk.gate.set(Gate::State::broken);
  CHECK_FALSE(database(*process.storage).Put({}, process.payments(), "own", "value").ok());
  disk.gate.set(Gate::State::open);
  CHECK_FALSE(process.engine->confirm(Durability::synced));
  CHECK(process.storage->stats().failed);
}

TEST_CASE("join: a lost end of the database's log is noticed if it was synced", "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  const bool synced = GENERATE(false, true);
  {
    JoinProcess process{directory.path(), clock};
    const Epoch epoch = process.claim("a");
    REQUIRE(
        process.pay("a", epoch, "paid", synced ? Durability::synced : Durability::logged)->written);
  }
  std::filesystem::path newest;
  for (const auto& file : std::filesystem::directory_iterator{directory.path() + "/rocksdb"}) {
    if (file.path().extension() == ".log" && file.path() > newest) newest = file.path();
  }
  REQUIRE(std::filesystem::file_size(newest) > 10);
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) - 10);
  if (synced) {
    const auto opened = open_storage({.directory = directory.path()}, clock);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::storage_damaged);
    return;
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.effect("a") == "-");
  CHECK(process.state("a") == ClaimState::held);
}

TEST_CASE("join: without space nothing is begun", "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  GatedDisk disk;
  JoinProcess process{
      directory.path(), clock, Durability::logged, {.directory = {}, .disk = &disk}};
  const Epoch epoch = process.claim("a");
  disk.is_full.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  const auto refused = process.pay("a", epoch);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::storage_failed);
  CHECK(process.state("a") == ClaimState::held);
  disk.is_full.store(false, std::memory_order_relaxed);  // mo: relaxed: as above
  CHECK(process.pay("a", epoch)->written);
}

TEST_CASE("join: what was joined is there after draining, rewriting, and in a backup",
          "[storage][join]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  const std::string copy = beside.path() + "/copy";
  const auto check = [&](const std::string& path, int count) {
    JoinProcess process{path, clock};
    for (int i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i);
      CHECK(process.effect(key) != "-");
      CHECK(process.state(key) == ClaimState::done);
    }
    CHECK(process.engine->size(0) == static_cast<std::uint64_t>(count));
  };
  const auto pay = [](JoinProcess& process, int i) {
    const std::string key = "k" + std::to_string(i);
    REQUIRE(process.pay(key, process.claim(key))->written);
  };
  {
    JoinProcess process{directory.path(), clock};
    pay(process, 0);
    REQUIRE(process.storage->drain());
    pay(process, 1);
    REQUIRE(process.storage->rewrite(*process.engine));
    pay(process, 2);
    REQUIRE(process.storage->drop_ended());
    pay(process, 3);
    REQUIRE(process.storage->backup(copy));
    pay(process, 4);
  }
  check(directory.path(), 5);
  REQUIRE(restore_backup(copy, beside.of("restored")));
  check(beside.of("restored"), 4);
  check(directory.path(), 5);
}

TEST_CASE("join: what has ended leaves the disk, and what is written stays bounded",
          "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  JoinProcess process{directory.path(), clock, Durability::logged, {.directory = {}, .span = 1s}};
  const std::string result(100'000, 'r');
  const auto fill = [&](int round) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = std::to_string(round) + "." + std::to_string(i);
      REQUIRE(process.pay(key, process.claim(key), result, Durability::logged)->written);
    }
  };
  fill(0);
  REQUIRE(process.storage->drop_ended());
  CHECK(process.storage->stats().bytes_files > 20'000'000);
  clock.advance(2 * 3'600s);
  process.engine->advance();
  REQUIRE(process.storage->drop_ended());
  CHECK(process.storage->stats().bytes_files < 1'000'000);
  // By itself, without anybody asking for it.
  for (int round = 1; round <= 12; ++round) {
    fill(round);  // 20 MB
    clock.advance(2 * 3'600s);
    process.engine->advance();
  }
  // Its thread may be behind on a busy machine.
  const base::Stopwatch waited;
  while (process.storage->stats().bytes_files >= 130'000'000 && waited.passed() < 30s) {
    std::this_thread::yield();
  }
  CHECK(process.storage->stats().bytes_files < 130'000'000);
}

TEST_CASE("join: what was replaced is forgotten when the files are written anew",
          "[storage][join]") {
  const Directory directory;
  ManualClock clock;
  const std::string result(100'000, 'r');
  {
    JoinProcess process{directory.path(), clock};
    for (int i = 0; i < 100; ++i) {
      const std::string key = "k" + std::to_string(i);
      REQUIRE(process.pay(key, process.claim(key), result, Durability::logged)->written);
      if (i != 7) REQUIRE(process.claims->forget(key).value());
    }
    REQUIRE(process.storage->drop_ended());  // out of memory into files
    CHECK(process.storage->stats().bytes_files > 9'000'000);
    REQUIRE(process.storage->rewrite(*process.engine));
    CHECK(process.storage->stats().bytes_files < 1'000'000);
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.state("k7") == ClaimState::done);
  CHECK(process.state("k8") == ClaimState::absent);
  CHECK(process.effect("k8") != "-");
  CHECK(process.engine->size(0) == 1);
}

TEST_CASE("join: many owners at once, each effect once", "[storage][join][race]") {
  const Directory directory;
  ManualClock clock;
  constexpr int thread_count = 4;
  constexpr int keys = 200;
  std::atomic<int> written{0};
  std::atomic<int> wrong{0};
  {
    JoinProcess process{directory.path(), clock, GENERATE(Durability::logged, Durability::synced)};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < keys; ++i) {
          const std::string key = "k" + std::to_string(i);
          const ClaimOutcome claim = process.claims->claim_or_wait({.key = key}, no_end);
          if (claim.answer == ClaimAnswer::granted) {
            rocksdb::WriteBatch effects;
            static_cast<void>(effects.Put(process.payments(), key, "1"));  // into memory
            const auto paid =
                complete_joined(*process.storage, *process.claims,
                                {.key = key, .epoch = claim.epoch, .payload = "paid"}, effects,
                                i % 2 == 0 ? Durability::logged : Durability::synced);
            if (paid && paid->written)
              written.fetch_add(1, std::memory_order_relaxed);  // mo: count
          } else if (claim.answer != ClaimAnswer::replay || claim.result != "paid") {
            wrong.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
          }
        }
      });
    }
    for (int i = 0; i < 3; ++i) CHECK(process.storage->rewrite(*process.engine));
    for (std::thread& thread : threads) thread.join();
    CHECK(written.load(std::memory_order_relaxed) == keys);  // mo: relaxed: the threads have ended
    CHECK(wrong.load(std::memory_order_relaxed) == 0);       // mo: relaxed: as above
  }
  JoinProcess process{directory.path(), clock};
  for (int i = 0; i < keys; ++i) {
    CHECK(process.effect("k" + std::to_string(i)) == "1");
    CHECK(process.state("k" + std::to_string(i)) == ClaimState::done);
  }
}

}  // namespace semel::tests
