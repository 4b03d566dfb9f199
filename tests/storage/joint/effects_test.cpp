// Effects of joined commits: what RocksDB would refuse once it is in its log is refused before the
// claim is decided. Words: families and batches of random_effects.hpp.
#include <functional>
#include <map>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/storage/directory.hpp"
#include "tests/storage/joint/effects_world.hpp"

namespace semel::tests {

namespace {

struct EffectRow {
  const char* what;
  const char* refused;  ///< a part of the error; null: it is taken
  std::function<void(const EffectsProcess&, rocksdb::WriteBatch&)> fill;
};

void require_ok(const rocksdb::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

using Payer = EffectsProcess;
using Effects = rocksdb::WriteBatch;

const std::vector<EffectRow> refused_rows{
    {"a merge without an operator", "entry 1, Merge: the column family 'plain' has no merge",
     [](const Payer& p, Effects& b) { require_ok(b.Merge(p.of("plain"), "a", "1")); }},
    {"a merge that the operator does not take", "tests.PickyAppend does not take it",
     [](const Payer& p, Effects& b) {
       require_ok(b.Put(p.of("merged"), "a", "1"));
       require_ok(b.Merge(p.of("merged"), "a", "bad"));
     }},
    {"the same without a value", "entry 1, Merge: the merge operator tests.PickyAppend",
     [](const Payer& p, Effects& b) { require_ok(b.Merge(p.of("merged"), "new", "bad")); }},
    {"wide columns where there is a merge operator", "wide columns cannot be merged",
     [](const Payer& p, Effects& b) {
       require_ok(b.PutEntity(p.of("merged"), "a", {{"column", "1"}}));
     }},
    {"wide columns that cannot be read", "its wide columns cannot be read",
     [](const Payer& p, Effects& b) {
       require_ok(b.PutEntity(p.of("plain"), "a", {{"column", "1"}}));
       std::string bytes = b.Data();
       bytes[bytes.find("column") - 1] = '\x7f';  // the length of the name
       b = Effects{bytes};
     }},
    {"a range whose end is before its begin", "its end 'a' is not after its begin 'z'",
     [](const Payer& p, Effects& b) { require_ok(b.DeleteRange(p.of("plain"), "z", "a")); }},
    {"the same in another order", "its end 'z' is not after its begin 'a'",
     [](const Payer& p, Effects& b) { require_ok(b.DeleteRange(p.of("turned"), "a", "z")); }},
    {"a range with an empty end", "its end '' is not after",
     [](const Payer& p, Effects& b) { require_ok(b.DeleteRange(p.of("plain"), "a", "")); }},
    {"a range without a key", "its end 'a' is not after its begin 'a'",
     [](const Payer& p, Effects& b) { require_ok(b.DeleteRange(p.of("plain"), "a", "a")); }},
    {"a family with timestamps", "'stamped' has timestamps in its keys",
     [](const Payer& p, Effects& b) { require_ok(b.Put(p.of("stamped"), "a", "12345678", "1")); }},
    {"a family with timestamps, and none given", "'stamped' has timestamps in its keys",
     [](const Payer& p, Effects& b) { require_ok(b.Put(p.of("stamped"), "a", "1")); }},
    {"a family with other tables", "'tables' has tables of the form PlainTable",
     [](const Payer& p, Effects& b) { require_ok(b.DeleteRange(p.of("tables"), "a", "b")); }},
    {"a family that was dropped", "'dropped' was dropped",
     [](const Payer& p, Effects& b) { require_ok(b.Put(p.of("dropped"), "a", "1")); }},
    {"a family of Semel's own", "'default', is Semel's own",
     [](const Payer&, Effects& b) { require_ok(b.Delete("a")); }},
    {"the second entry", "entry 2, SingleDelete: the column family 'dropped'",
     [](const Payer& p, Effects& b) {
       require_ok(b.Put(p.of("plain"), "a", "1"));
       require_ok(b.SingleDelete(p.of("dropped"), "a"));
     }},
    {"an index into a blob file", "an index into a blob file: is no effect",
     [](const Payer& p, Effects& b) {
       b = batch_of(1, std::string{'\x10', static_cast<char>(p.of("plain")->GetID())} +
                           std::string{"\1a\1b"});
     }},
    {"the begin of a transaction", "a mark of a transaction: is no effect",
     [](const Payer&, Effects& b) { b = batch_of(0, "\x09"); }},
    {"the end of a transaction", "a mark of a transaction: is no effect",
     [](const Payer&, Effects& b) { b = batch_of(0, "\x0a\1x"); }},
    {"a commit", "a mark of a transaction: is no effect",
     [](const Payer&, Effects& b) { b = batch_of(0, "\x0b\1x"); }},
    {"a rollback", "a mark of a transaction: is no effect",
     [](const Payer&, Effects& b) { b = batch_of(0, "\x0c\1x"); }},
    {"an entry of an unknown kind", "unknown WriteBatch tag",
     [](const Payer&, Effects& b) { b = batch_of(1, "\x7e\1x"); }},
    {"a wrong count", "wrong count",
     [](const Payer& p, Effects& b) {
       require_ok(b.Put(p.of("plain"), "a", "1"));
       b = batch_of(2, b.Data().substr(12));
     }},
    {"bytes that end too soon", "bad WriteBatch Put",
     [](const Payer& p, Effects& b) {
       require_ok(b.Put(p.of("plain"), "a", "1"));
       b = batch_of(1, b.Data().substr(12, b.Data().size() - 13));
     }},
    {"less than a header", "too small", [](const Payer&, Effects& b) { b = Effects{"short"}; }},
};

const std::vector<EffectRow> taken_rows{
    {"nothing", nullptr, [](const Payer&, Effects&) {}},
    {"an empty key", nullptr,
     [](const Payer& p, Effects& b) { require_ok(b.Put(p.of("plain"), "", "")); }},
    {"a key of 8 MiB", nullptr,
     [](const Payer& p, Effects& b) {
       require_ok(b.Put(p.of("plain"), std::string(std::size_t{8} << 20, 'k'), "1"));
     }},
    {"wide columns", nullptr,
     [](const Payer& p, Effects& b) {
       require_ok(b.PutEntity(p.of("plain"), "wide", {{"", "1"}, {"column", "2"}}));
     }},
    {"merges over all that changes the key before", nullptr,
     [](const Payer& p, Effects& b) {
       require_ok(b.Merge(p.of("merged"), "m", "1"));
       require_ok(b.DeleteRange(p.of("merged"), "a", "z"));
       require_ok(b.Merge(p.of("merged"), "m", "2"));
       require_ok(b.Delete(p.of("merged"), "m"));
       require_ok(b.Put(p.of("merged"), "m", "3"));
       require_ok(b.Merge(p.of("merged"), "m", "4"));
     }},
    {"a merge with what is there", nullptr,
     [](const Payer& p, Effects& b) { require_ok(b.Merge(p.of("merged"), "m", "5")); }},
    {"both kinds of deletes of one key", nullptr,
     [](const Payer& p, Effects& b) {
       require_ok(b.Put(p.of("plain"), "s", "1"));
       require_ok(b.Delete(p.of("plain"), "s"));
       require_ok(b.SingleDelete(p.of("plain"), "s"));
     }},
    {"ranges", nullptr,
     [](const Payer& p, Effects& b) {
       require_ok(b.DeleteRange(p.of("plain"), "a", "b"));
       require_ok(b.DeleteRange(p.of("turned"), "z", "a"));
     }},
    {"data of the log alone", nullptr,
     [](const Payer&, Effects& b) { require_ok(b.PutLogData("a note")); }},
    {"save points, and an end of the log", nullptr,
     [](const Payer& p, Effects& b) {
       b.SetSavePoint();
       require_ok(b.Put(p.of("plain"), "p", "1"));
       b.MarkWalTerminationPoint();
       require_ok(b.Put(p.of("plain"), "q", "1"));
       b.SetSavePoint();
     }},
    {"checksums of its entries", nullptr,
     [](const Payer& p, Effects& b) {
       Effects with{0, 0, 8, 0};
       require_ok(with.Put(p.of("plain"), "c", "1"));
       b = with;
     }},
};

}  // namespace

TEST_CASE("joined effects: what RocksDB would refuse later is refused before the claim is touched",
          "[storage][join][attack][between-14]") {
  const Directory directory;
  ManualClock clock;
  {
    EffectsProcess process{directory.path(), clock};
    const Epoch epoch = process.claim("a");
    for (const EffectRow& row : refused_rows) {
      INFO(row.what);
      rocksdb::WriteBatch batch;
      row.fill(process, batch);
      const auto refused = process.commit("a", epoch, batch);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == ErrorCode::bad_option);
      CHECK_THAT(refused.error().message(), Catch::Contains(row.refused));
      REQUIRE(process.state("a") == ClaimState::held);
      REQUIRE_FALSE(process.storage->stats().failed);
    }
    REQUIRE(process.pay("a", epoch)->written);
  }
  EffectsProcess process{directory.path(), clock};
  CHECK(process.state("a") == ClaimState::done);
  CHECK(process.effect("a") != "-");
}

TEST_CASE("joined effects: what is taken is there after the next open, and that succeeds",
          "[storage][join][attack][between-14]") {
  const Directory directory;
  ManualClock clock;
  for (const EffectRow& row : taken_rows) {
    INFO(row.what);
    EffectsProcess process{directory.path(), clock};
    rocksdb::WriteBatch batch;
    row.fill(process, batch);
    const auto taken = process.commit(row.what, process.claim(row.what), batch);
    if (!taken) FAIL(taken.error().message());
    CHECK(taken->written);
  }
  EffectsProcess process{directory.path(), clock};
  for (const EffectRow& row : taken_rows) CHECK(process.state(row.what) == ClaimState::done);
  std::string merged;
  require_ok(database(*process.storage).Get({}, process.of("merged"), "m", &merged));
  CHECK(merged == "345");
  require_ok(database(*process.storage).Get({}, process.of("plain"), "q", &merged));
}

TEST_CASE("joined effects: a batch of the largest size is taken, and one byte more is not",
          "[storage][join][attack][between-14]") {
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  EffectsProcess process{directory.path(), clock};
  const Epoch epoch = process.claim("a");
  // An entry: tag, family, key with its length, and 4 bytes for the length of the value.
  constexpr std::size_t more = 12 + 2 + 2 + 4;
  std::string value(joined_effects_bytes_max - more + 1, 'v');
  {
    rocksdb::WriteBatch batch;
    require_ok(batch.Put(process.of("plain"), "k", value));
    REQUIRE(batch.GetDataSize() == joined_effects_bytes_max + 1);
    const auto refused = process.commit("a", epoch, batch);
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message(), Catch::Contains("268435457 bytes, allowed 268435456"));
  }
  value.pop_back();
  rocksdb::WriteBatch batch;
  require_ok(batch.Put(process.of("plain"), "k", value));
  const auto taken = process.commit("a", epoch, batch);
  if (!taken) FAIL(taken.error().message());
  CHECK(taken->written);
}

TEST_CASE("joined effects: a batch whose checksums do not fit its bytes is refused",
          "[storage][join][attack][between-14]") {
  const Directory directory;
  ManualClock clock;
  EffectsProcess process{directory.path(), clock};
  const Epoch epoch = process.claim("a");
  rocksdb::WriteBatch batch{0, 0, 8, 0};
  require_ok(batch.Put(process.of("plain"), "a", "value"));
  const_cast<char*>(batch.Data().data())[batch.GetDataSize() - 1] ^= 1;  // as memory may
  const auto refused = process.commit("a", epoch, batch);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::bad_option);
  CHECK(process.state("a") == ClaimState::held);
}

TEST_CASE("joined effects: of any batch both are there after the next open, or neither",
          "[storage][join][attack][between-14]") {
  const std::uint64_t seed = Catch::rngSeed();
  CAPTURE(seed);
  const Directory directory{Directory::Medium::memory};
  ManualClock clock;
  RandomEffects random{seed};
  std::map<std::string, bool> taken;
  int count = 0;
  for (int life = 0; life < 12; ++life) {
    EffectsProcess process{directory.path(), clock};
    for (const auto& [key, is_taken] : taken) {
      REQUIRE(process.state(key) == (is_taken ? ClaimState::done : ClaimState::held));
      REQUIRE((process.effect(key) != "-") == is_taken);
    }
    for (int i = 0; i < 25; ++i) {
      const std::string key = std::to_string(life) + "." + std::to_string(i);
      rocksdb::WriteBatch batch;
      require_ok(batch.Put(process.payments(), key, "paid"));
      random.fill([&](const char* name) { return process.of(name); }, batch);
      const auto outcome = process.commit(key, process.claim(key), batch);
      if (!outcome) {
        INFO(outcome.error().message());
        REQUIRE(outcome.error().code == ErrorCode::bad_option);
      }
      taken[key] = outcome.ok();
      count += outcome.ok();
      REQUIRE_FALSE(process.storage->stats().failed);
    }
  }
  CHECK(count > 30);  // of 300: both kinds are there
  CHECK(count < 270);
}

}  // namespace semel::tests
