// The hash's truth table, row by row.
#include "engine/hashes/hash_rules.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include "tests/support/catch.hpp"

#include "engine/rules/hash_value.hpp"
#include "semel/limits.hpp"

namespace semel::tests {

using engine::Action;
using engine::Decision;
using engine::HashFacts;
using engine::HashOp;
using engine::HashOutcome;
using engine::HashVerb;
using engine::RecordView;

namespace {

/// One record, and what is decided about it.
class Record {
 public:
  Record() = default;
  Record(Kind kind, std::string value, Timestamp due = no_end)
      : there_(true), kind_(kind), value_(std::move(value)), due_(due) {}

  HashOutcome apply(const HashOp& op) {
    HashOutcome out;
    std::string record;
    engine::HashScratch scratch;
    scratch.bytes = &record;
    const RecordView live{kind_, value_, due_, 7};
    decision_ = decide_hash(there_ ? &live : nullptr, op, facts, out, scratch);
    if (decision_.action == Action::erase) there_ = false;
    if (decision_.action == Action::store) {
      there_ = true;
      kind_ = decision_.kind;
      due_ = decision_.due;
      value_ = std::string{decision_.value};
      CHECK(engine::is_sound(value_));
    }
    return out;
  }
  std::int64_t set(const std::vector<FieldValue>& pairs) {
    return apply({.verb = HashVerb::set, .pairs = pairs}).number;
  }
  std::int64_t del(const std::vector<Bytes>& fields) {
    return apply({.verb = HashVerb::del, .fields = fields}).number;
  }
  std::string get(Bytes field) {
    const HashOutcome out = apply({.field = field});
    return out.found_field ? out.value : "<none>";
  }
  void fill(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("f" + std::to_string(i));
    std::vector<FieldValue> pairs;
    for (const std::string& name : names) pairs.push_back({name, "v"});
    CHECK(set(pairs) == static_cast<std::int64_t>(count));
  }
  [[nodiscard]] bool is_there() const noexcept { return there_; }
  [[nodiscard]] Action action() const noexcept { return decision_.action; }
  [[nodiscard]] Timestamp due() const noexcept { return due_; }
  [[nodiscard]] const std::string& value() const noexcept { return value_; }

  HashFacts facts{.value_bytes_max = 1 << 20, .seed = 42};

 private:
  bool there_ = false;
  Kind kind_ = Kind::string;
  std::string value_;
  Timestamp due_ = no_end;
  Decision decision_;
};

constexpr HashVerb all_verbs[] = {HashVerb::get,    HashVerb::get_many, HashVerb::len,
                                  HashVerb::strlen, HashVerb::all,      HashVerb::random,
                                  HashVerb::scan,   HashVerb::set,      HashVerb::set_if_absent,
                                  HashVerb::del,    HashVerb::incr_by,  HashVerb::incr_by_float};

std::vector<std::string> fields_of(const FieldValues& list) {
  std::vector<std::string> names;
  for (const FieldValue& each : list) names.emplace_back(each.field);
  return names;
}

}  // namespace

TEST_CASE("hash machine: another kind is never touched", "[engine][hash]") {
  const FieldValue pair{"f", "v"};
  const Bytes field = "f";
  for (const Kind kind : {Kind::string, Kind::claim}) {
    for (const HashVerb verb : all_verbs) {
      Record record{kind, "bytes"};
      const HashOutcome out = record.apply(
          {.verb = verb, .field = "f", .pairs = {&pair, 1}, .fields = {&field, 1}, .amount = 1});
      CHECK(out.error == ErrorCode::wrong_type);
      CHECK_FALSE(out.found);
      CHECK(record.action() == Action::keep);
    }
  }
}

TEST_CASE("hash rules: bytes that are not a hash are reported, not read", "[engine][hash]") {
  const FieldValue pair{"f", "v"};
  for (const HashVerb verb : all_verbs) {
    Record record{Kind::hash, "no hash"};
    const HashOutcome out = record.apply({.verb = verb, .pairs = {&pair, 1}, .amount = 1});
    CHECK(out.error == ErrorCode::storage_damaged);
    CHECK(record.action() == Action::keep);
  }
}

TEST_CASE("hash machine: reads of nothing find nothing and write nothing", "[engine][hash]") {
  const Bytes fields[] = {"a", "b"};
  for (const HashVerb verb : {HashVerb::get, HashVerb::get_many, HashVerb::len, HashVerb::strlen,
                              HashVerb::all, HashVerb::random, HashVerb::scan, HashVerb::del}) {
    Record record;
    const HashOutcome out = record.apply({.verb = verb, .fields = fields, .amount = 5});
    CHECK(out.error == ErrorCode::ok);
    CHECK_FALSE(out.found);
    CHECK(out.number == 0);
    CHECK(out.list.empty());
    CHECK(out.values.size() == (verb == HashVerb::get_many ? 2 : 0));
    CHECK(record.action() == Action::keep);
  }
}

TEST_CASE("hash machine: set counts what is new, and a change keeps the record's end",
          "[engine][hash]") {
  Record record;
  CHECK(record.set({{"a", "1"}, {"b", "2"}, {"a", "3"}}) == 2);
  CHECK(record.due() == no_end);
  CHECK(record.get("a") == "3");
  CHECK(record.set({}) == 0);
  CHECK(record.action() == Action::keep);

  Record ending{Kind::hash, record.value(), Timestamp{Millis{99}}};
  CHECK(ending.set({{"c", "4"}, {"b", "5"}}) == 1);
  CHECK(ending.due() == Timestamp{Millis{99}});
  CHECK(ending.del({"a", "a", "x"}) == 1);
  CHECK(ending.due() == Timestamp{Millis{99}});
}

TEST_CASE("hash machine: set_if_absent leaves a field that is there", "[engine][hash]") {
  Record record;
  const FieldValue first{"a", "1"};
  const FieldValue second{"a", "2"};
  CHECK_FALSE(record.apply({.verb = HashVerb::set_if_absent, .pairs = {&first, 1}}).found_field);
  CHECK(record.apply({.verb = HashVerb::set_if_absent, .pairs = {&second, 1}}).found_field);
  CHECK(record.action() == Action::keep);
  CHECK(record.get("a") == "1");
}

TEST_CASE("hash machine: with its last field the record goes", "[engine][hash]") {
  Record record;
  record.fill(2);
  CHECK(record.del({"x"}) == 0);
  CHECK(record.action() == Action::keep);
  CHECK(record.del({"f1", "x", "f0", "f1"}) == 2);
  CHECK_FALSE(record.is_there());
}

TEST_CASE("hash machine: numbers are counted as Redis counts them", "[engine][hash]") {
  Record record;
  const auto add = [&](Bytes field, std::int64_t by) {
    return record.apply({.verb = HashVerb::incr_by, .field = field, .amount = by});
  };
  const auto add_float = [&](Bytes field, long double by) {
    return record.apply({.verb = HashVerb::incr_by_float, .field = field, .by_float = by});
  };
  CHECK(add("n", 5).number == 5);
  CHECK(add("n", -7).number == -2);
  CHECK(record.get("n") == "-2");
  record.set({{"max", "9223372036854775807"}, {"text", "abc"}, {"space", " 1"}, {"none", ""}});
  const std::string before = record.value();
  CHECK(add("max", 1).error == ErrorCode::increment_overflow);
  CHECK(add("text", 1).error == ErrorCode::not_an_integer);
  CHECK(add("space", 1).error == ErrorCode::not_an_integer);
  CHECK(add("none", 1).error == ErrorCode::not_an_integer);
  CHECK(add_float("text", 1).error == ErrorCode::not_a_float);
  CHECK(add_float("none", 1).error == ErrorCode::not_a_float);
  record.set({{"large", "1e4932"}});
  CHECK(add_float("large", 1e4932L).error == ErrorCode::nan_or_infinity);
  CHECK(record.get("large") == "1e4932");
  CHECK(add_float("f", 10.5L).value == "10.5");
  CHECK(add_float("f", 0.1L).value == "10.6");
  CHECK(record.get("f") == "10.6");
  CHECK(record.get("max") == "9223372036854775807");
}

TEST_CASE("hash machine: their bytes end at the limit of a record", "[engine][hash]") {
  Record record;
  record.facts.value_bytes_max = limits::value_bytes_max;
  record.fill(70'000);
  const std::size_t full = record.value().size();
  record.facts.value_bytes_max = full + 8 + 2 + 8;  // a word, two lengths, the field
  const FieldValue longer_by_one{"one more", "v"};
  const HashOutcome refused = record.apply({.verb = HashVerb::set, .pairs = {&longer_by_one, 1}});
  CHECK(refused.error == ErrorCode::value_too_long);
  CHECK(refused.fields == 70'001);
  CHECK(record.action() == Action::keep);
  CHECK(record.set({{"one more", ""}}) == 1);

  Record small;
  small.facts.value_bytes_max = 6;  // head, two lengths, field, value
  CHECK(small.set({{"f", "v"}}) == 1);
  const FieldValue longer{"f", "vv"};
  const HashOutcome too_long = small.apply({.verb = HashVerb::set, .pairs = {&longer, 1}});
  CHECK(too_long.error == ErrorCode::value_too_long);
  CHECK(too_long.bytes == 7);
  CHECK(small.get("f") == "v");
  small.facts.value_bytes_max = 3;  // made under a larger limit: it may become shorter
  CHECK(small.set({{"f", ""}}) == 0);
  CHECK(small.get("f").empty());
}

TEST_CASE("hash machine: random fields are of the hash, different, or as often as asked",
          "[engine][hash]") {
  for (const std::size_t size : {1U, 5U, 33U, 100U}) {
    Record record;
    record.fill(size);
    std::map<std::string, int> seen;
    for (std::uint64_t random = 0; random < 2'000; ++random) {
      const auto one = record.apply({.verb = HashVerb::random, .amount = 1, .random = random});
      REQUIRE(one.list.size() == 1);
      ++seen[std::string{one.list[0].field}];
    }
    CHECK(seen.size() == size);  // each can come
    for (const auto& [field, times] : seen) CHECK(times < 4'000 / static_cast<int>(size) + 50);

    const auto all = record.apply({.verb = HashVerb::all});
    const auto most = record.apply({.verb = HashVerb::random, .amount = 1'000, .random = 3});
    CHECK(fields_of(most.list) == fields_of(all.list));
    const auto some = record.apply({.verb = HashVerb::random, .amount = 4, .random = 9});
    const auto names = fields_of(some.list);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() ==
          std::min<std::size_t>(4, size));
    CHECK(record.apply({.verb = HashVerb::random, .amount = -300, .random = 5}).list.size() == 300);
    CHECK(record.apply({.verb = HashVerb::random, .amount = 0}).list.empty());
  }
}

TEST_CASE("hash machine: random fields have a limit in number and in bytes", "[engine][hash]") {
  Record record;
  record.fill(3);
  const auto pick = [&](std::int64_t amount) {
    return record.apply({.verb = HashVerb::random, .amount = -amount});
  };
  constexpr auto most = static_cast<std::int64_t>(limits::hash_picks_max);
  CHECK(pick(most).list.size() == limits::hash_picks_max);
  CHECK(pick(most + 1).error == ErrorCode::bad_option);
  CHECK(record.apply({.verb = HashVerb::random, .amount = std::numeric_limits<std::int64_t>::min()})
            .error == ErrorCode::bad_option);
  const std::string large(limits::hash_picks_bytes_max / 128 - 1, 'x');
  Record heavy;
  heavy.set({{"f", large}});
  CHECK(heavy.apply({.verb = HashVerb::random, .amount = -128}).list.size() == 128);
  CHECK(heavy.apply({.verb = HashVerb::random, .amount = -129}).error == ErrorCode::bad_option);
}

TEST_CASE("hash rules: a scan returns up to 512 fields at once, and more in pieces",
          "[engine][hash]") {
  for (const std::size_t size :
       {limits::hash_scan_whole_max, limits::hash_scan_whole_max + 1, std::size_t{3'000}}) {
    Record record;
    record.fill(size);
    std::set<std::string> seen;
    std::uint64_t cursor = 0;
    int calls = 0;
    do {
      const auto out = record.apply({.verb = HashVerb::scan, .cursor = cursor, .count = 100});
      for (const std::string& name : fields_of(out.list)) CHECK(seen.insert(name).second);
      cursor = out.next;
      // What comes and goes meanwhile does not hide what stays.
      if (calls++ % 3 == 0) record.set({{"new " + std::to_string(calls), ""}});
    } while (cursor != 0);
    CHECK((calls == 1) == (size == limits::hash_scan_whole_max));
    for (std::size_t i = 0; i < size; ++i) CHECK(seen.count("f" + std::to_string(i)) == 1);
    const auto matched =
        record.apply({.verb = HashVerb::scan, .count = 10'000, .pattern = "f1[0-4]"});
    CHECK(matched.list.size() == 5);
    CHECK(matched.next == 0);
    CHECK(record.apply({.verb = HashVerb::scan, .cursor = ~std::uint64_t{0}}).next == 0);
    CHECK(record.apply({.verb = HashVerb::scan, .count = 0}).error == ErrorCode::bad_option);
  }
}

}  // namespace semel::tests
