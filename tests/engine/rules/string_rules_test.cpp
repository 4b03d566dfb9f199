// The store's truth table, row by row.
//
// Words: *absent* is no record; *string* and *claim* are the two kinds; *due* is the end of a
// record; *now* stands still; *keep*, *store* and *erase* are what a decision does.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include "tests/support/catch.hpp"

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/numbers.hpp"
#include "engine/rules/string_rules.hpp"
#include "semel/store.hpp"
#include "tests/support/record_map.hpp"

namespace semel::tests {
namespace {

using engine::Action;
using Limits = std::numeric_limits<std::int64_t>;

constexpr Timestamp now{Millis{1'000'000}};
constexpr Timestamp later = now + Millis{5'000};
constexpr Timestamp past = now - Millis{1};
constexpr std::size_t value_max = 64;

/// One key "k", prepared and looked at.
class Key {
 public:
  static Key absent() { return Key{}; }
  static Key string(std::string value, Timestamp due = no_end) {
    Key key;
    key.map_.put("k", {Kind::string, std::move(value), due, 7});
    return key;
  }
  static Key claim(Timestamp due = no_end) {
    Key key;
    key.map_.put("k", {Kind::claim, "opaque", due, 7});
    return key;
  }

  StoreOutcome apply(StoreOp op) {
    op.key = "k";
    return map_.apply(op, now);
  }
  /// Value of the string, or what there is instead.
  [[nodiscard]] std::string value() const {
    const auto* held = map_.find("k", now);
    if (held == nullptr) return "<absent>";
    return held->kind == Kind::string ? held->value : "<claim>";
  }
  [[nodiscard]] Timestamp due() const {
    const auto* held = map_.find("k", now);
    return held != nullptr ? held->due : Timestamp{};
  }
  [[nodiscard]] Action action() const { return map_.action; }

 private:
  RecordMap map_{value_max};
};

std::string digest_of(const std::string& value) {
  return Key::string(value).apply({.verb = Verb::digest}).value;
}

StoreOp set_op(Condition condition, Bytes operand, bool get) {
  return {
      .verb = Verb::set, .condition = condition, .get = get, .value = "new", .operand = operand};
}

}  // namespace

TEST_CASE("set: each condition on each kind of record", "[engine][store][set]") {
  const std::string digest = digest_of("old");
  const std::string other = digest_of("other");
  struct Row {
    Condition condition;
    std::string operand;
    bool on_absent;
    bool on_match;  // a string "old"
    ErrorCode on_claim;
    bool stored_on_claim;
  };
  const Row rows[] = {
      {Condition::always, "", true, true, ErrorCode::ok, true},
      {Condition::if_absent, "", true, false, ErrorCode::ok, false},
      {Condition::if_present, "", false, true, ErrorCode::ok, true},
      {Condition::if_equal, "old", false, true, ErrorCode::wrong_type, false},
      {Condition::if_equal, "olD", false, false, ErrorCode::wrong_type, false},
      {Condition::if_not_equal, "old", true, false, ErrorCode::wrong_type, false},
      {Condition::if_not_equal, "", true, true, ErrorCode::wrong_type, false},
      {Condition::if_digest_equal, digest, false, true, ErrorCode::wrong_type, false},
      {Condition::if_digest_equal, other, false, false, ErrorCode::wrong_type, false},
      {Condition::if_digest_not_equal, digest, true, false, ErrorCode::wrong_type, false},
      {Condition::if_digest_not_equal, other, true, true, ErrorCode::wrong_type, false},
  };
  for (const Row& row : rows) {
    INFO("condition " << static_cast<int>(row.condition) << ", operand " << row.operand);
    for (const bool get : {false, true}) {
      const StoreOp op = set_op(row.condition, row.operand, get);

      Key absent = Key::absent();
      StoreOutcome out = absent.apply(op);
      CHECK(out.applied == row.on_absent);
      CHECK_FALSE(out.found);
      CHECK_FALSE(out.has_value);
      CHECK(absent.value() == (row.on_absent ? "new" : "<absent>"));

      Key string = Key::string("old", later);
      out = string.apply(op);
      CHECK(out.found);
      CHECK(out.applied == row.on_match);
      CHECK(out.has_value == get);
      CHECK(out.value == (get ? "old" : ""));
      CHECK(string.value() == (row.on_match ? "new" : "old"));
      CHECK(string.due() == (row.on_match ? no_end : later));

      Key claim = Key::claim();
      out = claim.apply(op);
      CHECK(out.kind == Kind::claim);
      CHECK(out.error == (get ? ErrorCode::wrong_type : row.on_claim));
      CHECK(out.applied == (!get && row.stored_on_claim));
      CHECK_FALSE(out.has_value);
      CHECK(claim.value() == (!get && row.stored_on_claim ? "new" : "<claim>"));
    }
  }
}

TEST_CASE("set: each expiry, and both sides of now", "[engine][store][set][ttl]") {
  struct Row {
    Expiry expiry;
    Timestamp due;  // of the record after it
  };
  const Row rows[] = {
      {Expiry::clear(), no_end},
      {Expiry::keep(), later},
      {Expiry::in(Millis{1}), now + Millis{1}},
      {Expiry::in(limits::ttl_max), now + limits::ttl_max},
      {Expiry::at(now + Millis{1}), now + Millis{1}},
      {Expiry::at(no_end), no_end},
  };
  for (const Row& row : rows) {
    Key key = Key::string("old", later);
    CHECK(key.apply({.verb = Verb::set, .expiry = row.expiry, .value = "new"}).applied);
    CHECK(key.value() == "new");
    CHECK(key.due() == row.due);
  }
  Key fresh = Key::absent();
  fresh.apply({.verb = Verb::set, .expiry = Expiry::keep(), .value = "new"});
  CHECK(fresh.due() == no_end);

  for (const Timestamp when : {now, past, Timestamp::min()}) {
    Key live = Key::string("old");
    const StoreOutcome out =
        live.apply({.verb = Verb::set, .get = true, .expiry = Expiry::at(when), .value = "new"});
    CHECK(out.applied);
    CHECK(out.value == "old");
    CHECK(live.action() == Action::erase);
    Key absent = Key::absent();
    CHECK(absent.apply({.verb = Verb::set, .expiry = Expiry::at(when)}).applied);
    CHECK(absent.action() == Action::keep);
  }
}

TEST_CASE("set: a time near the end of the clock saturates", "[engine][store][set][ttl]") {
  StoreOutcome out;
  std::string scratch;
  const auto due_at = [&](Timestamp at, Millis ttl) {
    const StoreOp op{.verb = Verb::set, .expiry = Expiry::in(ttl), .key = "k"};
    return engine::decide(nullptr, op, at, value_max, out, scratch).due;
  };
  CHECK(due_at(no_end - Millis{2}, Millis{1}) == no_end - Millis{1});
  CHECK(due_at(no_end - Millis{2}, Millis{2}) == no_end);
  CHECK(due_at(no_end - Millis{2}, limits::ttl_max) == no_end);
}

TEST_CASE("validate: each bound at n and at n + 1", "[engine][store][limits]") {
  const auto check = [](const StoreOp& op) { return engine::validate(op, 8, 4); };
  const std::string bytes(9, 'x');
  const Bytes nine = bytes;
  CHECK(check({.db = 15, .key = "k"}) == ErrorCode::ok);
  CHECK(check({.db = 16, .key = "k"}) == ErrorCode::db_out_of_range);
  CHECK(check({.key = ""}) == ErrorCode::key_empty);
  CHECK(check({.key = nine.substr(1)}) == ErrorCode::ok);
  CHECK(check({.key = nine}) == ErrorCode::key_too_long);
  CHECK(check({.key = "k", .value = nine.substr(5)}) == ErrorCode::ok);
  CHECK(check({.key = "k", .value = nine.substr(4)}) == ErrorCode::value_too_long);
  for (const Verb verb : {Verb::set, Verb::expire, Verb::increx}) {
    const auto with = [&](Expiry expiry) {
      return check({.verb = verb, .expiry = expiry, .key = "k"});
    };
    CHECK(with(Expiry::in(Millis{0})) == ErrorCode::invalid_expire);
    CHECK(with(Expiry::in(Millis{-1})) == ErrorCode::invalid_expire);
    CHECK(with(Expiry::in(Millis{1})) == ErrorCode::ok);
    CHECK(with(Expiry::in(limits::ttl_max)) == ErrorCode::ok);
    CHECK(with(Expiry::in(limits::ttl_max + Millis{1})) == ErrorCode::invalid_expire);
    CHECK(with(Expiry::at(Timestamp::min())) == ErrorCode::ok);
  }
}

TEST_CASE("string operations refuse a claim and change nothing", "[engine][store][kind]") {
  Arithmetic arithmetic;
  for (const Verb verb : {Verb::get, Verb::strlen, Verb::getrange, Verb::digest, Verb::getdel,
                          Verb::getex, Verb::append, Verb::setrange, Verb::incr_by, Verb::decr_by,
                          Verb::incr_by_float, Verb::increx}) {
    INFO("verb " << static_cast<int>(verb));
    Key key = Key::claim(later);
    const StoreOutcome out =
        key.apply({.verb = verb, .value = "x", .amount = 1, .arithmetic = &arithmetic});
    CHECK(out.error == ErrorCode::wrong_type);
    CHECK(out.found);
    CHECK_FALSE(out.applied);
    CHECK_FALSE(out.has_value);
    CHECK(key.action() == Action::keep);
  }
}

TEST_CASE("key operations work on a claim", "[engine][store][kind]") {
  CHECK(Key::claim().apply({.verb = Verb::exists}).found);
  CHECK(Key::claim().apply({.verb = Verb::type}).kind == Kind::claim);
  CHECK(Key::claim(later).apply({.verb = Verb::expire_time}).due == later);
  for (const Verb verb : {Verb::del, Verb::delex}) {
    Key key = Key::claim();
    CHECK(key.apply({.verb = verb}).applied);
    CHECK(key.value() == "<absent>");
  }
  Key key = Key::claim();
  CHECK(key.apply({.verb = Verb::expire, .expiry = Expiry::at(later)}).applied);
  CHECK(key.value() == "<claim>");
  CHECK(key.due() == later);
  CHECK(key.apply({.verb = Verb::persist}).applied);
  CHECK(key.due() == no_end);
}

TEST_CASE("a finished claim with a new end is still visited when its result ends",
          "[engine][store][kind]") {
  ClaimRecord record;
  record.state = ClaimState::done;
  record.result = "answer";
  record.result_until = later;
  record.unique_until = later + Millis{10};
  engine::Scratch scratch;
  std::string text;
  const auto wake_with_end = [&](Timestamp end) {
    const engine::RecordView live{Kind::claim, engine::encode(record, scratch), no_end, 7};
    StoreOutcome outcome;
    const engine::Decision decision =
        engine::decide(&live, {.verb = Verb::expire, .expiry = Expiry::at(end), .key = "k"}, now,
                       100, outcome, text);
    REQUIRE(decision.action == engine::Action::store);
    CHECK(decision.value == live.value);
    return engine::claim_wake_of(decision.value, decision.due);
  };
  CHECK(wake_with_end(later + Millis{1}) == later);
  CHECK(wake_with_end(later) == later);
  CHECK(wake_with_end(later - Millis{1}) == later - Millis{1});
  record.state = ClaimState::held;
  CHECK(wake_with_end(later + Millis{1}) == later + Millis{1});
}

TEST_CASE("get, getdel, exists, type, strlen: absent and string", "[engine][store][read]") {
  StoreOutcome out = Key::absent().apply({.verb = Verb::get});
  CHECK_FALSE(out.found);
  CHECK_FALSE(out.has_value);
  out = Key::string("").apply({.verb = Verb::get});
  CHECK(out.has_value);
  CHECK(out.value.empty());
  CHECK(Key::string("abc").apply({.verb = Verb::get}).value == "abc");
  CHECK_FALSE(Key::absent().apply({.verb = Verb::exists}).found);
  CHECK_FALSE(Key::absent().apply({.verb = Verb::type}).found);
  CHECK(Key::string("a").apply({.verb = Verb::type}).kind == Kind::string);
  CHECK(Key::absent().apply({.verb = Verb::strlen}).number == 0);
  CHECK(Key::string("abc").apply({.verb = Verb::strlen}).number == 3);
  Key key = Key::string("abc", later);
  out = key.apply({.verb = Verb::getdel});
  CHECK((out.value == "abc" && out.applied && key.value() == "<absent>"));
  out = key.apply({.verb = Verb::getdel});
  CHECK_FALSE((out.has_value || out.applied));
}

TEST_CASE("getrange: negative ends count from the end and stop at the first byte",
          "[engine][store][read]") {
  struct Row {
    std::int64_t start, end;
    std::string expected;
  };
  const Row rows[] = {{0, -1, "hello"},
                      {0, 0, "h"},
                      {1, 3, "ell"},
                      {-3, -2, "ll"},
                      {-100, 1, "he"},
                      {0, -100, "h"},
                      {-2, -3, ""},
                      {3, 2, ""},
                      {4, 4, "o"},
                      {5, 9, ""},
                      {4, 5, "o"},
                      {Limits::min(), Limits::max(), "hello"},
                      {Limits::max(), Limits::max(), ""},
                      {Limits::min(), Limits::min(), "h"}};
  for (const Row& row : rows) {
    INFO(row.start << ".." << row.end);
    const StoreOp op{.verb = Verb::getrange, .amount = row.start, .end = row.end};
    CHECK(Key::string("hello").apply(op).value == row.expected);
    CHECK(Key::string("").apply(op).value.empty());
    CHECK(Key::absent().apply(op).value.empty());
  }
}

TEST_CASE("digest: XXH3-64 with seed 0 as 16 lower-case digits, leading zeros kept",
          "[engine][store][digest]") {
  CHECK(digest_of("Hello world") == "b6acb9d84a38ff74");
  CHECK(digest_of("") == "2d06800538d394c2");
  const StoreOutcome out = Key::absent().apply({.verb = Verb::digest});
  CHECK_FALSE(out.has_value);
}

TEST_CASE("a digest operand is 16 hex digits in any case", "[engine][store][digest]") {
  const std::string good = digest_of("old");
  std::string upper = good;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  CHECK(Key::string("old").apply(set_op(Condition::if_digest_equal, upper, false)).applied);

  const std::string bad[] = {"",
                             good.substr(1),
                             good + "0",
                             "g" + good.substr(1),
                             " " + good.substr(1),
                             "0x" + good.substr(2)};
  for (const std::string& operand : bad) {
    for (const Verb verb : {Verb::set, Verb::delex}) {
      for (const Condition condition :
           {Condition::if_digest_equal, Condition::if_digest_not_equal}) {
        Key key = Key::string("old");
        const StoreOutcome out = key.apply({.verb = verb,
                                            .condition = condition,
                                            .get = verb == Verb::set,
                                            .value = "new",
                                            .operand = operand});
        CHECK(out.error == ErrorCode::bad_digest);
        CHECK_FALSE(out.has_value);
        CHECK(key.value() == "old");
        Key absent = Key::absent();
        CHECK(absent.apply({.verb = verb, .condition = condition, .operand = operand}).error ==
              ErrorCode::bad_digest);
      }
    }
  }
}

TEST_CASE("delex: deletes under its condition", "[engine][store][delex]") {
  const auto deleted = [](Condition condition, const std::string& operand) {
    Key key = Key::string("old");
    const bool applied =
        key.apply({.verb = Verb::delex, .condition = condition, .operand = operand}).applied;
    CHECK((key.value() == "<absent>") == applied);
    return applied;
  };
  CHECK(deleted(Condition::always, ""));
  CHECK(deleted(Condition::if_present, ""));
  CHECK(deleted(Condition::if_equal, "old"));
  CHECK_FALSE(deleted(Condition::if_equal, "new"));
  CHECK(deleted(Condition::if_not_equal, "new"));
  CHECK_FALSE(deleted(Condition::if_not_equal, "old"));
  CHECK(deleted(Condition::if_digest_equal, digest_of("old")));
  CHECK_FALSE(deleted(Condition::if_digest_equal, digest_of("new")));
  CHECK(deleted(Condition::if_digest_not_equal, digest_of("new")));
  CHECK_FALSE(deleted(Condition::if_digest_not_equal, digest_of("old")));

  Key claim = Key::claim();
  CHECK(claim.apply({.verb = Verb::delex, .condition = Condition::if_equal}).error ==
        ErrorCode::wrong_type);
  Key absent = Key::absent();
  const StoreOutcome out =
      absent.apply({.verb = Verb::delex, .condition = Condition::if_not_equal, .operand = "x"});
  CHECK(out.error == ErrorCode::ok);
  CHECK_FALSE(out.applied);
  CHECK(absent.apply({.verb = Verb::delex, .condition = Condition::if_absent}).error ==
        ErrorCode::syntax);
}

TEST_CASE("getex: returns the value and changes the ttl", "[engine][store][ttl]") {
  const auto getex = [](Key& key, Expiry expiry) {
    const StoreOutcome out = key.apply({.verb = Verb::getex, .expiry = expiry});
    CHECK(out.value == "v");
    return out.applied;
  };
  Key key = Key::string("v", later);
  CHECK_FALSE(getex(key, Expiry::keep()));
  CHECK(key.due() == later);
  CHECK(getex(key, Expiry::in(Millis{9})));
  CHECK(key.due() == now + Millis{9});
  CHECK(getex(key, Expiry::at(later)));
  CHECK(getex(key, Expiry::clear()));
  CHECK(key.due() == no_end);
  CHECK_FALSE(getex(key, Expiry::clear()));
  CHECK(getex(key, Expiry::at(now)));
  CHECK(key.value() == "<absent>");
  // As in Redis the record is looked at before the ttl is judged.
  const StoreOp zero{.verb = Verb::getex, .expiry = Expiry::in(Millis{0})};
  CHECK(Key::absent().apply(zero).error == ErrorCode::ok);
  CHECK(Key::string("v").apply(zero).error == ErrorCode::invalid_expire);
  CHECK(Key::claim().apply(zero).error == ErrorCode::wrong_type);
}

TEST_CASE("append and setrange keep the ttl and hold the limit", "[engine][store][write]") {
  Key key = Key::string("ab", later);
  CHECK(key.apply({.verb = Verb::append, .value = "cd"}).number == 4);
  CHECK((key.value() == "abcd" && key.due() == later));
  CHECK(key.apply({.verb = Verb::setrange, .value = "XY", .amount = 3}).number == 5);
  CHECK((key.value() == "abcXY" && key.due() == later));

  Key fresh = Key::absent();
  CHECK(fresh.apply({.verb = Verb::append}).applied);  // an empty string is a record
  CHECK(fresh.value().empty());
  CHECK(fresh.apply({.verb = Verb::setrange, .value = "z", .amount = 2}).number == 3);
  CHECK(fresh.value() == std::string("\0\0z", 3));

  Key absent = Key::absent();
  CHECK(absent.apply({.verb = Verb::setrange, .amount = 9}).number == 0);
  CHECK(absent.value() == "<absent>");
  CHECK(Key::string("abc").apply({.verb = Verb::setrange, .amount = 9}).number == 3);
  CHECK(Key::absent().apply({.verb = Verb::setrange, .value = "x", .amount = -1}).error ==
        ErrorCode::offset_out_of_range);

  const std::string full(value_max, 'x');
  CHECK(Key::string(full).apply({.verb = Verb::append}).error == ErrorCode::ok);
  CHECK(Key::string(full).apply({.verb = Verb::append, .value = "y"}).error ==
        ErrorCode::value_too_long);
  const auto last = static_cast<std::int64_t>(value_max) - 1;
  const auto at = [](std::int64_t offset) {
    return Key::absent().apply({.verb = Verb::setrange, .value = "y", .amount = offset}).error;
  };
  CHECK(at(last) == ErrorCode::ok);
  CHECK(at(last + 1) == ErrorCode::value_too_long);
  CHECK(at(Limits::max()) == ErrorCode::value_too_long);
}

TEST_CASE("incr_by and decr_by: bounds of 64 bits, ttl kept", "[engine][store][counter]") {
  struct Row {
    std::string before;
    Verb verb;
    std::int64_t by;
    ErrorCode error;
    std::string after;
  };
  const std::string top = std::to_string(Limits::max());
  const std::string bottom = std::to_string(Limits::min());
  const Row rows[] = {
      {"10", Verb::incr_by, 5, ErrorCode::ok, "15"},
      {"10", Verb::decr_by, 15, ErrorCode::ok, "-5"},
      {"0", Verb::incr_by, Limits::max(), ErrorCode::ok, top},
      {"1", Verb::incr_by, Limits::max(), ErrorCode::increment_overflow, "1"},
      {"-1", Verb::incr_by, Limits::min() + 1, ErrorCode::ok, bottom},
      {"-1", Verb::incr_by, Limits::min(), ErrorCode::increment_overflow, "-1"},
      {"-1", Verb::decr_by, Limits::max(), ErrorCode::ok, bottom},
      {"-2", Verb::decr_by, Limits::max(), ErrorCode::increment_overflow, "-2"},
      {"-2", Verb::decr_by, Limits::min(), ErrorCode::decrement_overflow, "-2"},
      {top, Verb::incr_by, 0, ErrorCode::ok, top},
      {" 1", Verb::incr_by, 1, ErrorCode::not_an_integer, " 1"},
      {"1.0", Verb::incr_by, 1, ErrorCode::not_an_integer, "1.0"},
      {"", Verb::incr_by, 1, ErrorCode::not_an_integer, ""},
  };
  for (const Row& row : rows) {
    INFO(row.before << " by " << row.by);
    Key key = Key::string(row.before, later);
    const StoreOutcome out = key.apply({.verb = row.verb, .amount = row.by});
    CHECK(out.error == row.error);
    CHECK(out.applied == (row.error == ErrorCode::ok));
    CHECK(key.value() == row.after);
    CHECK(key.due() == later);
    if (out.applied) CHECK(std::to_string(out.number) == row.after);
  }
  Key fresh = Key::absent();
  CHECK(fresh.apply({.verb = Verb::decr_by, .amount = 3}).number == -3);
  CHECK(fresh.due() == no_end);
}

TEST_CASE("incr_by_float: as Redis prints, no exponent", "[engine][store][counter]") {
  const auto add = [](Key key, long double by) {
    Arithmetic arithmetic;
    arithmetic.by_float = by;
    const StoreOutcome out = key.apply({.verb = Verb::incr_by_float, .arithmetic = &arithmetic});
    if (out.error != ErrorCode::ok) return std::string{name_of(out.error)};
    CHECK(key.value() == out.value);
    return out.value;
  };
  CHECK(add(Key::absent(), 0.5L) == "0.5");
  CHECK(add(Key::string("3.0e3"), 200) == "3200");
  CHECK(add(Key::string("10.50"), 0.1L) == "10.6");
  CHECK(add(Key::string("1"), -1) == "0");
  CHECK(add(Key::string("-0.5"), 0.5L) == "0");
  CHECK(add(Key::string("abc"), 1) == "not_a_float");
  CHECK(add(Key::string(" 1"), 1) == "not_a_float");
  CHECK(add(Key::string("inf"), 1) == "nan_or_infinity");
  CHECK(add(Key::string("1"), std::numeric_limits<long double>::infinity()) == "nan_or_infinity");
  CHECK(add(Key::string("1"), 1e70L) == "value_too_long");  // 71 digits, the limit is 64
}

TEST_CASE("increx: bounds refuse or saturate", "[engine][store][increx]") {
  struct Row {
    std::string before;
    std::int64_t by;
    std::optional<std::int64_t> lower, upper;
    bool saturate;
    ErrorCode error;
    std::int64_t value, applied;
  };
  constexpr auto none = std::nullopt;
  const Row rows[] = {
      {"99", 1, none, 100, false, ErrorCode::ok, 100, 1},
      {"100", 1, none, 100, false, ErrorCode::ok, 100, 0},
      {"98", 5, none, 100, true, ErrorCode::ok, 100, 2},
      {"100", 5, none, 100, true, ErrorCode::ok, 100, 0},
      {"1", -1, 0, none, false, ErrorCode::ok, 0, -1},
      {"0", -1, 0, none, false, ErrorCode::ok, 0, 0},
      {"1", -5, 0, none, true, ErrorCode::ok, 0, -1},
      {"150", -5, none, 100, false, ErrorCode::ok, 150, 0},
      {"150", -5, none, 100, true, ErrorCode::ok, 100, -50},
      {"5", Limits::max(), none, 10, true, ErrorCode::ok, 10, 5},
      {"5", Limits::max(), none, none, false, ErrorCode::ok, 5, 0},
      {"5", Limits::max(), none, none, true, ErrorCode::ok, Limits::max(), Limits::max() - 5},
      {"-5", Limits::min(), -7, none, true, ErrorCode::ok, -7, -2},
      {"-2", 1, Limits::max(), none, true, ErrorCode::increment_overflow, 0, 0},
      {"5", 1, 10, 9, false, ErrorCode::bad_option, 0, 0},
      {"5", 1, 6, 6, false, ErrorCode::ok, 6, 1},
      {"x", 1, none, none, false, ErrorCode::not_an_integer, 0, 0},
      {"1.5", 1, none, none, false, ErrorCode::not_an_integer, 0, 0},
  };
  for (const Row& row : rows) {
    INFO(row.before << " by " << row.by << ", saturate " << row.saturate);
    Arithmetic arithmetic;
    arithmetic.has_lower = row.lower.has_value();
    arithmetic.has_upper = row.upper.has_value();
    arithmetic.lower = row.lower.value_or(0);
    arithmetic.upper = row.upper.value_or(0);
    arithmetic.saturate = row.saturate;
    Key key = Key::string(row.before, later);
    const StoreOutcome out = key.apply({.verb = Verb::increx,
                                        .expiry = Expiry::in(Millis{9}),
                                        .amount = row.by,
                                        .arithmetic = &arithmetic});
    CHECK(out.error == row.error);
    if (row.error != ErrorCode::ok) {
      CHECK(key.value() == row.before);
      continue;
    }
    CHECK(out.number == row.value);
    CHECK(out.second == row.applied);
    const bool refused = row.applied == 0 && !row.saturate;
    CHECK(out.applied == !refused);
    CHECK(key.value() == std::to_string(row.value));
    CHECK(key.due() == (refused ? later : now + Millis{9}));  // saturated is applied: ttl set
  }
}

TEST_CASE("increx: a refused increment creates nothing", "[engine][store][increx]") {
  Arithmetic arithmetic;
  arithmetic.has_upper = true;
  arithmetic.upper = 2;
  Key key = Key::absent();
  StoreOutcome out = key.apply({.verb = Verb::increx, .amount = 3, .arithmetic = &arithmetic});
  CHECK((out.number == 0 && out.second == 0 && !out.applied));
  CHECK(key.value() == "<absent>");
  arithmetic.saturate = true;
  out = key.apply({.verb = Verb::increx, .amount = 3, .arithmetic = &arithmetic});
  CHECK((out.number == 2 && out.second == 2 && out.applied));
  CHECK(key.value() == "2");
}

TEST_CASE("increx: keeps, sets or clears the ttl", "[engine][store][increx][ttl]") {
  const auto due_after = [](Key key, Expiry expiry, bool only_without_ttl) {
    Arithmetic arithmetic;
    arithmetic.expiry_only_without_ttl = only_without_ttl;
    const StoreOutcome out =
        key.apply({.verb = Verb::increx, .expiry = expiry, .amount = 1, .arithmetic = &arithmetic});
    CHECK(out.applied == (out.error == ErrorCode::ok));
    return out.error == ErrorCode::ok ? key.due() : Timestamp::min();
  };
  const Timestamp soon = now + Millis{9};
  const Expiry in = Expiry::in(Millis{9});
  CHECK(due_after(Key::string("1", later), Expiry::keep(), false) == later);
  CHECK(due_after(Key::string("1", later), Expiry::clear(), false) == no_end);
  CHECK(due_after(Key::string("1", later), in, false) == soon);
  CHECK(due_after(Key::string("1", later), in, true) == later);
  CHECK(due_after(Key::string("1"), in, true) == soon);
  CHECK(due_after(Key::absent(), in, true) == soon);
  CHECK(due_after(Key::absent(), Expiry::at(now), false) == Timestamp{});  // gone
  CHECK(due_after(Key::string("1"), Expiry::at(past), true) == Timestamp{});
  CHECK(due_after(Key::string("1", later), Expiry::at(past), true) == later);
  CHECK(due_after(Key::string("1"), Expiry::keep(), true) == Timestamp::min());  // syntax
  CHECK(due_after(Key::string("1"), Expiry::clear(), true) == Timestamp::min());
}

TEST_CASE("increx by float: new value and increment applied as text", "[engine][store][increx]") {
  constexpr long double infinity = std::numeric_limits<long double>::infinity();
  const auto increx = [](const std::string& before, long double by, long double upper,
                         bool saturate) {
    Arithmetic arithmetic;
    arithmetic.use_float = true;
    arithmetic.by_float = by;
    arithmetic.has_upper = true;
    arithmetic.upper_float = upper;
    arithmetic.saturate = saturate;
    const StoreOutcome out = Key::string(before).apply(
        {.verb = Verb::increx, .expiry = Expiry::keep(), .arithmetic = &arithmetic});
    return out.error == ErrorCode::ok ? out.value : std::string{name_of(out.error)};
  };
  CHECK(increx("1.5", 0.25L, 2, false) == "1.75 0.25");
  CHECK(increx("1.5", 0.5L, 2, false) == "2 0.5");
  CHECK(increx("1.5", 0.75L, 2, false) == "1.5 0");
  CHECK(increx("1.5", 0.75L, 2, true) == "2 0.5");
  CHECK(increx("10", 1, infinity, false) == "11 1");
  CHECK(increx("10", 1, std::nanl(""), false) == "bad_option");
  CHECK(increx("10", infinity, 20, true) == "nan_or_infinity");
  CHECK(increx("inf", 1, 20, true) == "nan_or_infinity");
  CHECK(increx("x", 1, 20, true) == "not_a_float");
  CHECK(increx("1e4932", 1e4932L, infinity, false).ends_with(" 0"));
}

TEST_CASE("expire: each rule against ttl and none", "[engine][store][expire]") {
  const ExpireRule nx{.only_without_ttl = true};
  const ExpireRule xx{.only_with_ttl = true};
  const ExpireRule gt{.only_later = true};
  const ExpireRule lt{.only_earlier = true};
  const ExpireRule xx_gt{.only_with_ttl = true, .only_later = true};
  const ExpireRule xx_lt{.only_with_ttl = true, .only_earlier = true};
  struct Row {
    ExpireRule rule;
    bool without_ttl, earlier, equal, later;  // accepted?
  };
  const Row rows[] = {{{}, true, true, true, true},      {nx, true, false, false, false},
                      {xx, false, true, true, true},     {gt, false, false, false, true},
                      {lt, true, true, false, false},    {xx_gt, false, false, false, true},
                      {xx_lt, false, true, false, false}};
  const auto accepted = [](Key key, const ExpireRule& rule, Timestamp due) {
    const StoreOutcome out =
        key.apply({.verb = Verb::expire, .rule = rule, .expiry = Expiry::at(due)});
    CHECK((key.due() == due || !out.applied));
    return out.applied;
  };
  constexpr Millis ms{1};
  for (const Row& row : rows) {
    INFO("row " << &row - rows);
    CHECK(accepted(Key::string("v"), row.rule, later) == row.without_ttl);
    CHECK(accepted(Key::string("v", later), row.rule, later - ms) == row.earlier);
    CHECK(accepted(Key::string("v", later), row.rule, later) == row.equal);
    CHECK(accepted(Key::string("v", later), row.rule, later + ms) == row.later);
    CHECK_FALSE(accepted(Key::absent(), row.rule, later));
  }
}

TEST_CASE("expire: rules that cannot be combined are a syntax error", "[engine][store][expire]") {
  for (unsigned bits = 0; bits < 16; ++bits) {
    const bool nx = bits & 1, xx = bits & 2, gt = bits & 4, lt = bits & 8;
    const ExpireRule rule{nx, xx, gt, lt};
    const bool bad = (nx && (xx || gt || lt)) || (gt && lt);
    for (Key key : {Key::absent(), Key::string("v", later)}) {
      const StoreOutcome out =
          key.apply({.verb = Verb::expire, .rule = rule, .expiry = Expiry::in(Millis{1})});
      CHECK((out.error == ErrorCode::syntax) == bad);
    }
  }
  for (const Expiry expiry : {Expiry::clear(), Expiry::keep()}) {
    CHECK(Key::string("v").apply({.verb = Verb::expire, .expiry = expiry}).error ==
          ErrorCode::syntax);
  }
}

TEST_CASE("expire: an end that has passed deletes", "[engine][store][expire]") {
  for (const Timestamp when : {now, past, Timestamp::min()}) {
    for (Key key : {Key::string("v"), Key::claim(later)}) {
      CHECK(key.apply({.verb = Verb::expire, .expiry = Expiry::at(when)}).applied);
      CHECK(key.action() == Action::erase);
    }
    CHECK_FALSE(Key::absent().apply({.verb = Verb::expire, .expiry = Expiry::at(when)}).applied);
  }
  Key alive = Key::string("v");
  CHECK(alive.apply({.verb = Verb::expire, .expiry = Expiry::at(now + Millis{1})}).applied);
  CHECK(alive.action() == Action::store);
}

TEST_CASE("persist: true only if there was a ttl", "[engine][store][ttl]") {
  CHECK(Key::string("v", later).apply({.verb = Verb::persist}).applied);
  CHECK_FALSE(Key::string("v").apply({.verb = Verb::persist}).applied);
  CHECK_FALSE(Key::absent().apply({.verb = Verb::persist}).applied);
}

TEST_CASE("del and expire_time: absent and string", "[engine][store][key]") {
  CHECK(Key::string("v").apply({.verb = Verb::del}).applied);
  CHECK_FALSE(Key::absent().apply({.verb = Verb::del}).applied);
  CHECK(Key::string("v").apply({.verb = Verb::expire_time}).due == no_end);
  CHECK(Key::string("v", later).apply({.verb = Verb::expire_time}).due == later);
  CHECK_FALSE(Key::absent().apply({.verb = Verb::expire_time}).found);
}

}  // namespace semel::tests
