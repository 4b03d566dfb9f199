// What a cold store remembers across lives, what it forgets, and what it does when the disk fails.
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "engine/api/engine_impl.hpp"

#include "semel/engine_host.hpp"
#include "tests/storage/cold/cold_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// A disk that can be told to fail.
class BrokenDisk final : public rocksdb::FileSystemWrapper {
 public:
  BrokenDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  [[nodiscard]] const char* Name() const override { return "BrokenDisk"; }

  // mo: seq_cst [broken_disk.fails]: tests reason about one order of switches and calls.
  std::atomic<bool> reads_fail{false};
  std::atomic<bool> writes_fail{false};

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> inner;
    auto status = target()->NewRandomAccessFile(path, options, &inner, context);
    if (status.ok()) *file = std::make_unique<Reader>(std::move(inner), *this);
    return status;
  }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    // mo: seq_cst [broken_disk.fails]
    if (writes_fail.load(std::memory_order_seq_cst) && path.ends_with(".part")) {
      return rocksdb::IOStatus::NoSpace("no space left on a device");
    }
    return target()->NewWritableFile(path, options, file, context);
  }

 private:
  class Reader final : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    Reader(std::unique_ptr<rocksdb::FSRandomAccessFile>&& inner, const BrokenDisk& disk)
        : FSRandomAccessFileOwnerWrapper(std::move(inner)), disk_(disk) {}
    rocksdb::IOStatus Read(std::uint64_t at, std::size_t count, const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* context) const override {
      // mo: seq_cst [broken_disk.fails]
      if (disk_.reads_fail.load(std::memory_order_seq_cst)) {
        return rocksdb::IOStatus::IOError("the disk does not answer");
      }
      return target()->Read(at, count, options, result, scratch, context);
    }

   private:
    const BrokenDisk& disk_;
  };
};

struct OnBrokenDisk {
  std::shared_ptr<BrokenDisk> disk = std::make_shared<BrokenDisk>();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  Directory directory{cold_medium};
  ManualClock clock;
};

void fill(Engine& engine, int count, Expiry expiry = Expiry::in(1h)) {
  for (int i = 0; i < count; ++i) {
    const std::string key = "key" + std::to_string(i);
    REQUIRE(engine.store().set(key, key + "!", {.expiry = expiry}).has_value());
  }
}

/// How many of the keys that fill() made are answered right; the rest must say they are absent.
int right_answers(Engine& engine, int count, int first = 0) {
  int right = 0;
  for (int i = first; i < count; ++i) {
    const std::string key = "key" + std::to_string(i);
    const auto value = engine.store().get(key).value();
    if (value == key + "!") ++right;
    if (value && value != key + "!") FAIL("key " << key << " holds " << *value);
  }
  return right;
}

std::vector<std::string> parts_of(const Directory& directory) {
  std::vector<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator{directory.path() + "/db"}) {
    if (file.path().extension() == ".sst") found.push_back(file.path());
  }
  return found;
}

}  // namespace

TEST_CASE("cold: what was spilled has left memory and is answered all the same",
          "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  fill(*process.engine, 5'000);
  CHECK(process.spill().records == 5'000);
  CHECK(process.engine->stats().records == 0);
  CHECK(right_answers(*process.engine, 5'000) == 5'000);
  CHECK(process.engine->stats().records == 0);  // an answer is no reason to come back
  CHECK(process.engine->size(0) == 5'000);
  CHECK(process.engine->store()
            .set("key7", "x", {.condition = Condition::if_absent, .get = true})
            ->previous == "key7!");
  CHECK(process.engine->store().set("key7", "x")->stored);
  CHECK(process.read("key7") == "x");
  CHECK(process.engine->size(0) == 5'000);
  CHECK(process.engine->store().del("key8").value());
  CHECK(process.read("key8") == "<none>");
  CHECK(process.engine->size(0) == 4'999);
  CHECK(process.broken() == "");
}

TEST_CASE("cold: claims that are held stay in memory, finished ones may leave", "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  Claims names = process.engine->claims("n", Policy{}).value();
  const ClaimOutcome held = names.claim({.key = "held"});
  const ClaimOutcome done = names.claim({.key = "done"});
  REQUIRE(names.complete({.key = "done", .epoch = done.epoch, .payload = "r"}).answer ==
          OwnerAnswer::ok);
  CHECK(process.spill().records == 1);
  CHECK(process.engine->stats().records == 1);
  CHECK(names.claim({.key = "done"}).answer == ClaimAnswer::replay);
  CHECK(names.claim({.key = "done"}).result == "r");
  CHECK(names.complete({.key = "held", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  CHECK(names.forget("done").value());
  CHECK(names.claim({.key = "done"}).epoch > done.epoch);
}

TEST_CASE("cold: copies, filters and flushes are there in the next process", "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  Version largest = 0;
  {
    ColdLife process{directory, clock};
    fill(*process.engine, 3'000);
    REQUIRE(process.engine->store(3).set("flushed", "1").has_value());
    process.spill();
    REQUIRE(process.engine->flush(3).ok());
    REQUIRE(process.engine->store(3).set("after", "2").has_value());
    largest = process.engine->store(3).set("after", "3")->version;
    process.spill();
  }
  ColdLife process{directory, clock};
  CHECK(right_answers(*process.engine, 3'000) == 3'000);
  CHECK(process.read("flushed", 3) == "<none>");
  CHECK(process.read("after", 3) == "3");
  CHECK(process.engine->store().set("new", "1")->version > largest);
  // Nearly all of the others are known to be new without a look at the disk.
  const std::uint64_t before = process.cold.store->stats().lookups;
  for (int i = 0; i < 10'000; ++i) CHECK(process.read("other" + std::to_string(i)) == "<none>");
  CHECK(process.cold.store->stats().lookups - before < 150);
}

TEST_CASE("cold: another shard count is refused, for ranks would mean something else",
          "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  { const ColdLife process{directory, clock, nullptr, Options{.shard_count = 4}}; }
  const ColdDatabase cold{directory};
  const auto opened = Engine::open({.clock = &clock, .cold = cold.store.get(), .shard_count = 8});
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == ErrorCode::bad_option);
  CHECK(opened.error().detail == "shard_count = 8, the cold store was made with 4");
}

TEST_CASE("cold: a generation whose records have ended goes, files and filters, at once",
          "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  fill(*process.engine, 20'000, Expiry::in(10s));
  process.spill();
  const ColdStats before = process.cold.store->stats();
  CHECK(before.generations == 1);
  CHECK(before.records == 20'000);
  CHECK(parts_of(directory).size() >= before.parts);
  clock.advance(9'999ms);
  CHECK(right_answers(*process.engine, 100) == 100);
  clock.advance(1ms);
  CHECK(right_answers(*process.engine, 100) == 0);
  CHECK(process.engine->size(0) == 0);
  process.spill();
  const ColdStats after = process.cold.store->stats();
  CHECK(after.generations == 0);
  CHECK(after.filter_bytes == 0);
  CHECK(parts_of(directory).empty());
}

TEST_CASE("cold: with a background thread memory is made room in, and what ended is dropped",
          "[storage][cold][race]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock, nullptr, Options{.spill_above = 20, .background = 1ms}};
  const auto wait_for = [](const auto& condition) {
    for (int i = 0; i < 20'000'000 && !condition(); ++i) std::this_thread::yield();
    return condition();
  };
  constexpr int count = 50'000;  // more than twice what memory holds
  const std::string value(600, 'v');
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const std::string key = "key" + std::to_string(i);
    while (!process.engine->store().set(key, value, {.expiry = Expiry::in(1h)}).ok()) {
      REQUIRE(++refused < 100'000'000);
      std::this_thread::yield();
    }
  }
  CHECK(wait_for([&] { return process.engine->stats().spills > 0; }));  // counted when it ends
  CHECK(process.engine->stats().spills_failed == 0);
  for (int i = 0; i < count; i += 7) REQUIRE(process.read("key" + std::to_string(i)) == value);
  clock.advance(2h);
  CHECK(wait_for([&] { return process.cold.store->stats().generations == 0; }));
}

TEST_CASE("cold: a newer generation that ends first does not let an older copy come back",
          "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  REQUIRE(process.engine->store().set("k", "old", {.expiry = Expiry::in(100s)}).has_value());
  process.spill();
  REQUIRE(process.engine->store().set("k", "new", {.expiry = Expiry::in(5s)}).has_value());
  const bool newer_leaves = GENERATE(true, false);
  if (newer_leaves) process.spill();
  CHECK(process.read("k") == "new");
  clock.advance(6s);
  while (process.engine->advance() == 0) {
  }
  process.spill();
  CHECK(process.read("k") == "<none>");
  clock.advance(93s);
  while (process.engine->advance() == 0) {
  }
  CHECK(process.read("k") == "<none>");
}

TEST_CASE("cold: an erased key does not come back when a timer of its record fires",
          "[storage][cold]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  REQUIRE(process.engine->store().set("k", "old", {.expiry = Expiry::in(100s)}).has_value());
  process.spill();
  REQUIRE(process.engine->store().set("k", "new", {.expiry = Expiry::in(5s)}).has_value());
  REQUIRE(process.engine->store().del("k").value());
  clock.advance(6s);  // of "new"; a delete marker is in its slot
  while (process.engine->advance() == 0) {
  }
  CHECK(process.read("k") == "<none>");
}

TEST_CASE("cold: a disk that does not answer is an error and changes nothing",
          "[storage][cold][fault]") {
  OnBrokenDisk on;
  ColdLife process{on.directory, on.clock, nullptr, {}, on.env.get()};
  fill(*process.engine, 2'000);
  process.spill();
  on.disk->reads_fail.store(true, std::memory_order_seq_cst);  // mo: [broken_disk.fails]
  int errors = 0;
  for (int i = 0; i < 2'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const auto stored = process.engine->store().set(key, "x", {.condition = Condition::if_absent});
    if (!stored.ok()) {
      ++errors;
      CHECK(stored.error().code == ErrorCode::storage_failed);
    } else {
      CHECK_FALSE(stored->stored);  // its bucket was in memory
    }
  }
  CHECK(errors > 1'000);
  CHECK(process.engine->store().set("quite new", "1")->stored);
  // Several keys: all or nothing. The first of them is in no bucket at all.
  std::vector<KeyValue> pairs{{"also new", "1"}};
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("key" + std::to_string(i * 50));
  for (const std::string& name : names) pairs.push_back({name, "x"});
  const Status several = process.engine->store().mset(pairs);
  REQUIRE_FALSE(several.has_value());
  CHECK(several.error().code == ErrorCode::storage_failed);
  CHECK(process.read("also new") == "<none>");
  on.disk->reads_fail.store(false, std::memory_order_seq_cst);  // mo: [broken_disk.fails]
  CHECK(right_answers(*process.engine, 2'000) == 2'000);
}

TEST_CASE("cold: a damaged bucket is an error, never an absent key", "[storage][cold][fault]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  {
    ColdLife process{directory, clock};
    fill(*process.engine, 4'000);
    process.spill();
  }
  std::mt19937_64 random{Catch::rngSeed()};
  for (const std::string& path : parts_of(directory)) {
    const auto size = std::filesystem::file_size(path);
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    // Behind facts and filter, which open() reads, and before the index.
    for (int i = 0; i < 8; ++i) {
      const auto at = static_cast<std::streamoff>(size / 4 + random() % (size / 2));
      file.seekg(at);
      const char byte = static_cast<char>(file.get() ^ 0x10);
      file.seekp(at);
      file.put(byte);
    }
  }
  ColdLife process{directory, clock};
  int damaged = 0;
  int right = 0;
  for (int i = 0; i < 4'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const auto value = process.engine->store().get(key);
    if (!value.ok()) {
      CHECK(value.error().code == ErrorCode::storage_damaged);
      ++damaged;
    } else {
      REQUIRE(value.value() == key + "!");
      ++right;
    }
  }
  CHECK(damaged > 0);
  CHECK(damaged + right == 4'000);
}

TEST_CASE(
    "cold: a directory with more generations than the limit is damaged, one with as many is not",
    "[storage][cold][fault]") {
  const Directory directory{cold_medium};
  ColdDatabase cold{directory};
  rocksdb::ColumnFamilyHandle* const family = cold.families[1];
  const auto add_generation = [&](std::uint64_t number) {
    storage::PartFacts facts;
    facts.number = facts.generation = number;
    facts.last = ~std::uint64_t{0};
    facts.records = facts.buckets = facts.filter_lines = 1;
    const storage::ColdPart part{facts};
    const auto put = [&](storage::ColdKey what, const std::string& value) {
      REQUIRE(cold.database->Put({}, family, storage::cold_key(number, what, 0), value).ok());
    };
    put(storage::ColdKey::facts, storage::encode_facts(part, storage::DurableClock{0}));
    put(storage::ColdKey::filter, std::string{part.filter.view()});
  };
  const auto open = [&] {
    return storage::RocksColdStore::open({.database = cold.database.get(),
                                          .family = family,
                                          .durable_clock = storage::DurableClock{0}});
  };
  for (std::uint64_t i = 1; i <= storage::cold_generations_max; ++i) add_generation(i);
  {
    const auto store = open();
    REQUIRE(store);
    CHECK((*store)->stats().generations == storage::cold_generations_max);
  }
  add_generation(storage::cold_generations_max + 1);
  const auto store = open();
  REQUIRE_FALSE(store);
  CHECK(store.error().code == ErrorCode::storage_damaged);
}

TEST_CASE("cold: where the disk takes no spill, nothing is forgotten and memory gets full",
          "[storage][cold][fault]") {
  OnBrokenDisk on;
  ColdLife process{on.directory, on.clock, nullptr, {}, on.env.get()};
  fill(*process.engine, 2'000);
  on.disk->writes_fail.store(true, std::memory_order_seq_cst);  // mo: [broken_disk.fails]
  const auto failed = process.engine->host().spill();
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == ErrorCode::storage_failed);
  CHECK(process.engine->stats().records == 2'000);
  CHECK(process.engine->stats().spills_failed == 1);
  CHECK(right_answers(*process.engine, 2'000) == 2'000);
  int stored = 0;
  for (;; ++stored) {
    const auto set = process.engine->store().set("more" + std::to_string(stored), "1");
    if (set.ok()) continue;
    CHECK(set.error().code == ErrorCode::memory_full);
    break;
  }
  CHECK(process.engine->host().spill_due());
  on.disk->writes_fail.store(false, std::memory_order_seq_cst);  // mo: [broken_disk.fails]
  CHECK(process.spill().records == static_cast<std::uint64_t>(2'000 + stored));
  CHECK(process.engine->store().set("more at last", "1").has_value());
  CHECK(right_answers(*process.engine, 2'000) == 2'000);
}

TEST_CASE("cold: an engine that is full of filters refuses spills, and is opened again as it was",
          "[storage][cold][attack]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  const Options options{.value_bytes_max = 64};
  std::uint64_t written = 0;
  ErrorCode last = ErrorCode::ok;
  {
    ColdLife process{directory, clock, nullptr, options, nullptr, 32};
    Store store = process.engine->store();
    const Expiry hour = Expiry::in(Millis{3'600'000});
    while (last == ErrorCode::ok) {
      const auto stored = store.set(std::to_string(written), "", {.expiry = hour});
      if (stored.ok()) {
        ++written;
        continue;
      }
      REQUIRE(stored.error().code == ErrorCode::memory_full);
      const auto spilled = process.engine->host().spill();
      if (!spilled) last = spilled.error().code;
      // Or there is nothing to spill: the table's segments and the filters take all of it.
      if (spilled && spilled->records == 0) last = ErrorCode::memory_full;
    }
    // Refused, and nothing is forgotten.
    CHECK(last == ErrorCode::memory_full);
    CHECK(store.get("0")->has_value());
    CHECK(process.engine->stats().bytes_used <= process.engine->stats().bytes_limit);
  }
  CAPTURE(written);
  ColdLife process{directory, clock, nullptr, options, nullptr, 32};
  CHECK(process.read("0") == "");
  CHECK(process.engine->store().set("new", "v").ok());
  // What has ended makes room again.
  clock.advance(Millis{3'600'001});
  process.spill();
  CHECK(process.cold.store->stats().records <= 1);
}

TEST_CASE("cold: few records that lie everywhere make room without a spill",
          "[storage][cold][attack][fault-20]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  Store store = process.engine->store();
  int stored = 0;
  while (store.set(std::to_string(stored), "1").ok()) ++stored;
  for (int i = 0; i < stored; ++i) {
    if (i % 500 != 0) REQUIRE(store.del(std::to_string(i)).value());
  }
  const std::string large(3'000, 'v');  // of another size: what was freed serves it all the same
  for (int i = 0; i < 100; ++i) REQUIRE(store.set("large" + std::to_string(i), large).has_value());
  CHECK_FALSE(process.engine->host().spill_due());
}

TEST_CASE("cold: a crash between writing a part and removing its records loses and doubles nothing",
          "[storage][cold][crash]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  MemoryJournal journal;
  {
    ColdLife process{directory, clock, &journal};
    fill(*process.engine, 500);
    // As a spill does it, up to the crash: the table knows nothing of the part.
    ColdStore& cold = *process.cold.store;
    REQUIRE(cold.begin_generation().has_value());
    journal.replay([&](Ticket, const Mutation& mutation) {
      cold.collect(
          semel::engine::impl_of(*process.engine).core().keys().rank_of(mutation.db, mutation.key),
          mutation);
    });
    // Meanwhile one is replaced and one erased.
    REQUIRE(process.engine->store().set("key1", "newer").has_value());
    REQUIRE(process.engine->store().del("key2").value());
    REQUIRE(cold.write_part(0, ~std::uint64_t{0}).has_value());
  }
  std::ofstream{directory.path() + "/db/cold-99.part"} << "half of a part";
  ColdLife process{directory, clock, &journal};
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/db/cold-99.part"));
  CHECK(process.cold.store->stats().records == 500);
  journal.replay([&](Ticket, const Mutation& mutation) {
    REQUIRE(process.engine->host().restore(mutation).has_value());
  });
  CHECK(process.read("key1") == "newer");
  CHECK(process.read("key2") == "<none>");
  CHECK(right_answers(*process.engine, 500, 3) == 497);
  clock.advance(2h);
  while (process.engine->advance() == 0) {
  }
  CHECK(process.read("key2") == "<none>");
}

TEST_CASE("cold: a journal may forget what a spill has put on disk, and what stayed is said again",
          "[storage][cold][crash]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  TrimmedJournal journal;
  Epoch held = 0;
  {
    ColdLife process{directory, clock, &journal};
    fill(*process.engine, 300);
    Claims names = process.engine->claims("n", Policy{}).value();
    process.spill();
    held = names.claim({.key = "held", .session = 0}).epoch;
    REQUIRE(process.engine->store().del("key5").value());  // leaves a delete marker over a copy
    process.spill();
    CHECK(journal.cut() >= 302);
  }
  ColdLife process{directory, clock, &journal};
  int replayed = 0;
  journal.replay([&](const Mutation& mutation) {
    ++replayed;
    REQUIRE(process.engine->host().restore(mutation).has_value());
  });
  CHECK(replayed == 3);  // the namespace, the claim and the delete marker
  CHECK(process.read("key5") == "<none>");
  CHECK(right_answers(*process.engine, 300) == 299);
  Claims names = process.engine->claims("n", Policy{}).value();
  CHECK(names.claim({.key = "held"}).answer == ClaimAnswer::in_flight);
  CHECK(names.complete({.key = "held", .epoch = held}).answer == OwnerAnswer::ok);
}

}  // namespace semel::tests
