// Fields of hashes that end by themselves, beside a model that keeps fields in a vector.
// Words: model = what each key should hold; ended = its time has come, whether or not the engine
// has looked; twin = an engine that was given the journal, or a snapshot.
#include "engine/object_api/hash_fields.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include "tests/support/catch.hpp"

#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests::hash_fields {  // names that other tests have as well

using namespace std::chrono_literals;

namespace {

struct ModelField {
  std::string field;
  std::string value;
  Timestamp end = no_end;
};

struct ModelHash {
  std::vector<ModelField> fields;  // in the order in which they came
  Timestamp end = no_end;          // of the key

  ModelField* find(const std::string& field) {
    const auto at = std::find_if(fields.begin(), fields.end(),
                                 [&](const ModelField& each) { return each.field == field; });
    return at == fields.end() ? nullptr : &*at;
  }
  void remove(const std::string& field) {
    std::erase_if(fields, [&](const ModelField& each) { return each.field == field; });
  }
  void set(const std::string& field, const std::string& value, Timestamp end_of_field) {
    if (ModelField* const there = find(field)) {
      there->value = value;
      there->end = end_of_field;
    } else {
      fields.push_back({field, value, end_of_field});
    }
  }
};

bool allows(const ExpireRule& rule, Timestamp before, Timestamp due) {
  if (rule.only_without_ttl) return before == no_end;
  if (rule.only_with_ttl) return before != no_end;
  if (rule.only_later) return before != no_end && due > before;
  if (rule.only_earlier) return due < before;
  return true;
}

class FieldModel {
 public:
  /// `fields`: of which names there are; of more than 512 the order does not count.
  FieldModel(unsigned seed, unsigned fields) : fields_(fields), random_(seed) {}

  void step() {
    sweep();
    const std::string key = any_key();
    ModelHash& hash = hashes_[key];
    switch (below(16)) {
      case 0:
      case 1:
        return set(key, hash);
      case 2:
        return remove(key, hash);
      case 3:
        return add(key, hash);
      case 4:
      case 5:
      case 6:
        return expire(key, hash);
      case 7:
        return persist(key, hash);
      case 8:
        return get_and_delete(key, hash);
      case 9:
        return get_and_expire(key, hash);
      case 10:
      case 11:
        return set_with_end(key, hash);
      case 12:
        return expire_key(key, hash);
      case 13:
        return move(key, hash);
      case 14:
        return bench_.pass(Millis{below(60)});
      default:
        return bench_.clock.advance(Millis{below(60)});  // nobody looks
    }
  }

  void compare() { compare(*bench_.engine); }
  void compare_twins() {
    const auto again = open_engine({.clock = &bench_.clock});
    bench_.journal.replay(
        [&](Ticket, const Mutation& mutation) { REQUIRE(again->host().restore(mutation)); });
    compare(*again);
    const auto cut = open_engine({.clock = &bench_.clock});
    REQUIRE(bench_.engine->host().snapshot(
        [&](const Mutation& put) { REQUIRE(cut->host().restore(put)); }));
    compare(*cut);
    while (again->advance() == 0) {
    }
    compare(*again);
    CHECK(broken_rules(*bench_.engine).empty());
    CHECK(broken_rules(*again).empty());
  }
  /// All ends pass, and the memory is given back.
  void end_all() {
    for (const auto& [key, hash] : hashes_) {
      if (!hash.fields.empty()) static_cast<void>(engine().store(0).expire(key, Expiry::in(200ms)));
    }
    bench_.pass(1'000ms);
    CHECK(engine().stats().records == 0);
    CHECK(broken_rules(engine()).empty());
  }

 private:
  using Names = std::vector<std::string>;

  [[nodiscard]] unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
  [[nodiscard]] Engine& engine() { return *bench_.engine; }
  [[nodiscard]] Timestamp now() const { return bench_.clock.now(); }
  [[nodiscard]] std::string any_key() { return std::string(1, static_cast<char>('a' + below(3))); }
  [[nodiscard]] std::string any_value() {
    return below(3) == 0 ? std::string(below(300), 'v') : std::to_string(below(1'000));
  }
  [[nodiscard]] Names any_fields() {
    Names fields(1 + below(below(8) == 0 ? fields_ - 5 : 4));
    for (std::string& each : fields) each = "f" + std::to_string(below(fields_));
    return fields;
  }
  static std::vector<Bytes> bytes_of(const Names& names) { return {names.begin(), names.end()}; }
  [[nodiscard]] Timestamp any_end() {
    return below(6) == 0 ? now() - Millis{below(3)} : now() + Millis{1 + below(150)};
  }
  [[nodiscard]] ExpireRule any_rule() {
    ExpireRule rule;
    switch (below(8)) {
      case 0:
        rule.only_without_ttl = true;
        break;
      case 1:
        rule.only_with_ttl = true;
        break;
      case 2:
        rule.only_later = true;
        break;
      case 3:
        rule.only_earlier = true;
        break;
      default:
        break;
    }
    return rule;
  }

  void sweep() {
    for (auto& [key, hash] : hashes_) {
      std::erase_if(hash.fields, [&](const ModelField& each) { return each.end <= now(); });
      if (hash.end <= now() || hash.fields.empty()) hash = {};
    }
  }

  void set(const std::string& key, ModelHash& hash) {
    const Names fields = any_fields();
    std::vector<FieldValue> pairs;
    Names values;
    for (std::size_t i = 0; i < fields.size(); ++i) values.push_back(any_value());
    std::int64_t added = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      pairs.push_back({fields[i], values[i]});
      added += hash.find(fields[i]) == nullptr ? 1 : 0;
      hash.set(fields[i], values[i], no_end);
    }
    CHECK(engine().hashes().hset(key, pairs).value() == added);
  }
  void remove(const std::string& key, ModelHash& hash) {
    const Names fields = any_fields();
    const std::size_t before = hash.fields.size();
    for (const std::string& field : fields) hash.remove(field);
    const auto gone = engine().hashes().hdel(key, bytes_of(fields));
    CHECK(gone.value() == static_cast<std::int64_t>(before - hash.fields.size()));
  }
  void add(const std::string& key, ModelHash& hash) {
    const std::string field = "n" + std::to_string(below(3));
    ModelField* const there = hash.find(field);
    const std::int64_t sum = (there != nullptr ? std::stoll(there->value) : 0) + 7;
    hash.set(field, std::to_string(sum), there != nullptr ? there->end : no_end);
    CHECK(engine().hashes().hincrby(key, field, 7).value() == sum);
  }
  void expire(const std::string& key, ModelHash& hash) {
    Names fields = any_fields();
    fields.push_back("n0");
    const ExpireRule rule = any_rule();
    const Timestamp end = any_end();
    std::vector<std::int64_t> expected;
    for (const std::string& field : fields) {
      ModelField* const there = hash.find(field);
      if (there == nullptr) {
        expected.push_back(-2);
      } else if (!allows(rule, there->end, end)) {
        expected.push_back(0);
      } else if (end <= now()) {
        hash.remove(field);
        expected.push_back(2);
      } else {
        there->end = end;
        expected.push_back(1);
      }
    }
    const auto got =
        engine::expire_fields(engine(), {0, key}, bytes_of(fields), Expiry::at(end), rule);
    CHECK(got.value().numbers == expected);
    const bool removes = std::count(expected.begin(), expected.end(), 2) != 0;
    CHECK(got->change.removes == removes);
    CHECK(got->change.is_gone == (removes && hash.fields.empty()));
  }
  void persist(const std::string& key, ModelHash& hash) {
    const Names fields = any_fields();
    std::vector<std::int64_t> expected;
    for (const std::string& field : fields) {
      ModelField* const there = hash.find(field);
      expected.push_back(there == nullptr ? -2 : there->end == no_end ? -1 : 1);
      if (there != nullptr) there->end = no_end;
    }
    CHECK(engine::persist_fields(engine(), {0, key}, bytes_of(fields)).value().numbers == expected);
  }
  void get_and_delete(const std::string& key, ModelHash& hash) {
    const Names fields = any_fields();
    std::vector<std::optional<std::string>> expected;
    for (const std::string& field : fields) {
      const ModelField* const there = hash.find(field);
      expected.push_back(there != nullptr ? std::optional{there->value} : std::nullopt);
      hash.remove(field);
    }
    CHECK(engine::get_and_delete_fields(engine(), {0, key}, bytes_of(fields)).value().values ==
          expected);
  }
  void get_and_expire(const std::string& key, ModelHash& hash) {
    const Names fields = any_fields();
    const Timestamp end = below(4) == 0 ? no_end : any_end();
    const std::optional<Expiry> expiry = below(4) == 0   ? std::nullopt
                                         : end == no_end ? std::optional{Expiry::clear()}
                                                         : std::optional{Expiry::at(end)};
    std::vector<std::optional<std::string>> expected;
    for (const std::string& field : fields) {
      ModelField* const there = hash.find(field);
      expected.push_back(there != nullptr ? std::optional{there->value} : std::nullopt);
      if (there == nullptr || !expiry) continue;
      there->end = end;
      if (end <= now()) hash.remove(field);
    }
    CHECK(engine::get_and_expire_fields(engine(), {0, key}, bytes_of(fields), expiry)
              .value()
              .values == expected);
  }
  void set_with_end(const std::string& key, ModelHash& hash) {
    const Names fields = any_fields();
    const std::string value = any_value();
    std::vector<FieldValue> pairs;
    for (const std::string& field : fields) pairs.push_back({field, value});
    constexpr Condition conditions[] = {Condition::always, Condition::if_absent,
                                        Condition::if_present};
    const Condition condition = conditions[below(3)];
    const bool keeps = below(4) == 0;
    const Timestamp end = below(4) == 0 ? no_end : any_end();
    const bool is_set = std::all_of(fields.begin(), fields.end(), [&](const std::string& each) {
      return condition == Condition::always ||
             (hash.find(each) != nullptr) == (condition == Condition::if_present);
    });
    if (is_set) {
      for (const std::string& field : fields) {
        const ModelField* const there = hash.find(field);
        const Timestamp kept = there != nullptr ? there->end : no_end;
        hash.set(field, value, keeps ? kept : end);
        if (!keeps && end <= now()) hash.remove(field);
      }
    }
    const Expiry expiry = keeps           ? Expiry::keep()
                          : end == no_end ? Expiry::clear()
                                          : Expiry::at(end);
    CHECK(engine::set_fields(engine(), {0, key}, pairs, expiry, condition).value().is_set ==
          is_set);
  }
  void expire_key(const std::string& key, ModelHash& hash) {
    const bool is_there = !hash.fields.empty();
    if (below(3) == 0) {
      CHECK(engine().store(0).persist(key).value() == (is_there && hash.end != no_end));
      hash.end = no_end;
      return;
    }
    const Timestamp end = any_end();
    CHECK(engine().store(0).expire(key, Expiry::at(end)).value() == is_there);
    if (is_there) hash.end = end;
  }
  void move(const std::string& key, const ModelHash& hash) {
    const std::string to = any_key();
    if (to == key || hash.fields.empty()) return;
    const ModelHash moved = hash;
    if (below(2) == 0) {
      REQUIRE(engine().store(0).rename(key, to));
      hashes_[key] = {};
    } else {
      REQUIRE(engine().store(0).copy(key, to, std::nullopt, true).value());
    }
    hashes_[to] = moved;
  }

  void compare(Engine& engine) {
    sweep();
    for (const auto& [key, hash] : hashes_) {
      Names fields;
      Names pairs;
      std::vector<std::optional<Timestamp>> ends;
      for (const ModelField& each : hash.fields) {
        fields.push_back(each.field);
        pairs.push_back(each.field + "=" + each.value);
        ends.emplace_back(each.end);
      }
      const auto listed = [](const FieldValues& all) {
        Names names;
        for (const FieldValue& each : all) {
          names.push_back(std::string{each.field} + "=" + std::string{each.value});
        }
        return names;
      };
      Hashes hashes = engine.hashes();
      const bool is_ordered = fields_ <= 45;
      if (!is_ordered) std::sort(pairs.begin(), pairs.end());
      const auto check_all = [&](const FieldValues& all) {
        Names names = listed(all);
        if (!is_ordered) std::sort(names.begin(), names.end());
        REQUIRE(names == pairs);
      };
      check_all(hashes.hgetall(key).value());
      check_all(hashes.hrandfield(key, 100'000).value());
      check_all(hashes.hscan(key, 0, {}, 100'000).value().items);
      CHECK(hashes.hlen(key).value() == static_cast<std::int64_t>(fields.size()));
      REQUIRE(engine::field_ends(engine, {0, key}, bytes_of(fields)).value() == ends);
      CHECK(engine.store(0).exists(key).value() == !fields.empty());
      CHECK(hashes.hrandfield(key).value().has_value() == !fields.empty());
      const auto ttl = engine.store(0).ttl(key).value();
      CHECK(ttl.found == !fields.empty());
      CHECK(ttl.due == hash.end);
    }
  }

  EngineFixture bench_;
  const unsigned fields_;
  std::minstd_rand random_;
  std::map<std::string, ModelHash> hashes_;
};

const Bytes name[] = {"name"};
const Bytes both[] = {"name", "age"};
const FieldValue pairs_of_both[] = {{"name", "Ann"}, {"age", "41"}};

}  // namespace

TEST_CASE("fields: every call answers as a model of fields with ends does",
          "[engine][hashes][model]") {
  const unsigned first = std::random_device{}();
  for (unsigned run = 0; run < 12; ++run) {
    const unsigned seed = first + run;
    CAPTURE(seed);
    FieldModel model{seed, 45};
    for (unsigned i = 0; i < 600; ++i) {
      CAPTURE(i);
      model.step();
      model.compare();
      if (i % 100 == 99) model.compare_twins();
    }
    model.end_all();
  }
}

TEST_CASE("fields: so it does of hashes that are large at times", "[engine][hashes][model]") {
  const unsigned first = std::random_device{}();
  for (unsigned run = 0; run < 6; ++run) {
    const unsigned seed = first + run;
    CAPTURE(seed);
    FieldModel model{seed, 900};
    for (unsigned i = 0; i < 400; ++i) {
      CAPTURE(i);
      model.step();
      if (i % 5 == 0) model.compare();
      if (i % 100 == 99) model.compare_twins();
    }
    model.end_all();
  }
}

TEST_CASE("fields: one is there until the millisecond its ttl ends", "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  REQUIRE(hashes.hset("h", pairs_of_both).ok());
  REQUIRE(engine::expire_fields(*bench.engine, {0, "h"}, name, Expiry::in(10ms), {}).ok());
  bench.clock.advance(9ms);
  CHECK(hashes.hget("h", "name").value() == "Ann");
  bench.clock.advance(1ms);
  CHECK_FALSE(hashes.hget("h", "name").value());
  CHECK(hashes.hlen("h").value() == 1);
  CHECK(hashes.hdel("h", name).value() == 0);
  CHECK(hashes.hset("h", "name", "Bob").value());
  CHECK(bench.store().ttl("h").value().due == no_end);
}

TEST_CASE("fields: upkeep takes out what has ended, says so, and gives the memory back",
          "[engine][hashes]") {
  EngineFixture bench;
  Hashes hashes = bench.engine->hashes();
  std::vector<ExpiredEvent::What> seen;
  bench.engine->subscribe_expired([&](const ExpiredEvent& event) { seen.push_back(event.what); });
  REQUIRE(hashes.hset("h", "age", "41").ok());
  const std::uint64_t before = bench.engine->stats().bytes_records;
  const FieldValue large{"name", Bytes{}};
  const std::string value(50'000, 'v');
  const FieldValue pairs[] = {{large.field, value}};
  REQUIRE(
      engine::set_fields(*bench.engine, {0, "h"}, pairs, Expiry::in(10ms), Condition::always).ok());
  CHECK(bench.engine->stats().bytes_records > before + value.size());
  bench.pass(10ms);
  CHECK(seen == std::vector{ExpiredEvent::What::fields});
  CHECK(bench.engine->stats().bytes_records == before);

  const Bytes age[] = {"age"};
  REQUIRE(engine::expire_fields(*bench.engine, {0, "h"}, age, Expiry::in(5ms), {}).ok());
  bench.clock.advance(5ms);
  CHECK_FALSE(bench.store().exists("h").value());
  bench.pass(1ms);
  CHECK(seen == std::vector{ExpiredEvent::What::fields, ExpiredEvent::What::last_fields});
  CHECK(bench.engine->stats().records == 0);
}

TEST_CASE("fields: a refusal changes nothing", "[engine][hashes]") {
  EngineFixture bench{{.value_bytes_max = 200}};
  Hashes hashes = bench.engine->hashes();
  REQUIRE(bench.put("s", "v"));
  const KeyRef text{0, "s"};
  CHECK(code_of(engine::field_ends(*bench.engine, text, name)) == ErrorCode::wrong_type);
  CHECK(code_of(engine::persist_fields(*bench.engine, text, name)) == ErrorCode::wrong_type);
  CHECK(code_of(engine::expire_fields(*bench.engine, {0, "h"}, name, Expiry::in(0ms), {})) ==
        ErrorCode::invalid_expire);
  const std::string value(190, 'v');
  REQUIRE(hashes.hset("h", "name", value).ok());
  // The end needs room of its own.
  CHECK(code_of(engine::expire_fields(*bench.engine, {0, "h"}, name, Expiry::in(9ms), {})) ==
        ErrorCode::value_too_long);
  CHECK(hashes.hget("h", "name").value() == value);
  bench.pass(20ms);
  CHECK(hashes.hget("h", "name").value() == value);
}

TEST_CASE("fields: unsound ends are not restored", "[engine][hashes]") {
  EngineFixture bench;
  REQUIRE(engine::set_fields(*bench.engine, {0, "h"}, pairs_of_both, Expiry::in(1'000ms),
                             Condition::always)
              .ok());
  std::string good;
  bench.journal.replay([&](Ticket, const Mutation& put) { good = put.value; });
  REQUIRE_FALSE(good.empty());
  const auto restored = [&](Bytes value, std::size_t number) {
    const auto twin = open_engine({.clock = &bench.clock});
    Mutation put;
    put.kind = Kind::hash;
    put.version = 5;
    put.key = "h";
    put.value = value;
    const bool is_taken = twin->host().restore(put).has_value();
    CAPTURE(number);
    // Whatever was taken can be read and changed.
    CHECK(twin->hashes().hgetall("h").ok() == true);
    CHECK(engine::field_ends(*twin, {0, "h"}, both).ok());
    static_cast<void>(engine::expire_fields(*twin, {0, "h"}, both, Expiry::in(5ms), {}));
    CHECK(broken_rules(*twin).empty());
    return is_taken;
  };
  CHECK(restored(good, 0));
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_FALSE(restored(Bytes{good}.substr(0, size), size));
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x80);
    static_cast<void>(restored(bad, at));
  }
}

}  // namespace semel::tests::hash_fields
