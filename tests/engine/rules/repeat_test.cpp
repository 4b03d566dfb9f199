// The repeat oracle against the truth tables, over the whole table of states and operations.
//
// Vocabulary: repeat - a call that a live record answers by itself; oracle -
// engine/rules/repeat.hpp; truth table - decide() and decide_claim(), pure functions of (record,
// call, now).
#include "engine/rules/repeat.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/rules/claim_rules.hpp"
#include "engine/rules/claim_states.hpp"
#include "engine/rules/string_rules.hpp"
#include "engine/table/entry.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"

using namespace semel;
using semel::engine::Action;
using semel::engine::RecordView;

namespace {

constexpr Timestamp now{Millis{1'000'000}};
constexpr Version seen_version = 77;

// --- the store ----------------------------------------------------------------------------------

/// A record as the table holds it.
class Stored {
 public:
  explicit Stored(const RecordView& view)
      : memory_((engine::Entry::bytes(1, view.value.size()) + 7) / 8) {
    engine::Entry::write(memory_.data(), {view.kind, 0, view.due, view.version}, "k", view.value);
  }
  [[nodiscard]] const engine::Entry& entry() const {
    return *reinterpret_cast<const engine::Entry*>(memory_.data());
  }

 private:
  std::vector<std::uint64_t> memory_;
};

std::vector<RecordView> live_records() {
  static const std::string large(300, 'x');
  std::vector<RecordView> records;
  for (const Kind kind : {Kind::string, Kind::claim, Kind::hash}) {
    for (const Bytes value : {Bytes{""}, Bytes{"v"}, Bytes{"17"}, Bytes{large}}) {
      for (const Timestamp due : {no_end, now + Millis{1}, now + Millis{60'000}}) {
        records.push_back({kind, value, due, seen_version});
      }
    }
  }
  return records;
}

template <class Visit>
void for_each_store_op(Visit&& visit) {
  for (auto verb = 0; verb <= static_cast<int>(Verb::persist); ++verb) {
    for (auto condition = 0; condition <= static_cast<int>(Condition::if_version); ++condition) {
      for (const bool get : {false, true}) {
        for (const Expiry expiry : {Expiry::clear(), Expiry::keep(), Expiry::in(Millis{5}),
                                    Expiry::at(now - Millis{5}), Expiry::at(now + Millis{5})}) {
          StoreOp op;
          op.verb = static_cast<Verb>(verb);
          op.condition = static_cast<Condition>(condition);
          op.get = get;
          op.expiry = expiry;
          op.key = "k";
          op.value = "new";
          op.operand = "v";
          op.expected = seen_version;
          visit(op);
        }
      }
    }
  }
}

bool same(const StoreOutcome& one, const StoreOutcome& other) {
  return one.error == other.error && one.found == other.found && one.applied == other.applied &&
         one.has_value == other.has_value && one.kind == other.kind && one.number == other.number &&
         one.second == other.second && one.due == other.due && one.value == other.value;
}

// --- claims -------------------------------------------------------------------------------------

engine::Scratch& scratch() {
  static engine::Scratch room;
  return room;
}

Fingerprint fingerprint_of(std::uint8_t algorithm, std::uint8_t first) {
  Fingerprint fingerprint{.algorithm = algorithm};
  fingerprint.digest[0] = first;
  return fingerprint;
}

/// Each state, with and without what a record may carry; encoded.
std::vector<std::string> claim_records() {
  std::vector<std::string> all;
  for (const ClaimState state : {ClaimState::held, ClaimState::done, ClaimState::failed,
                                 ClaimState::in_doubt, ClaimState::vacant}) {
    for (unsigned with = 0; with < 128; ++with) {
      ClaimRecord record;
      record.state = state;
      record.epoch = 5;
      record.attempts = (with & 1) != 0 ? 3 : 1;
      record.lease_until = now + ((with & 2) != 0 ? Millis{10} : Millis{-10});
      record.result_until = now + ((with & 4) != 0 ? Millis{10} : Millis{0});
      record.unique_until = now + Millis{100};
      if ((with & 8) != 0) record.fingerprint = fingerprint_of(1, 9);
      if ((with & 16) != 0) record.claim_id.emplace().fill(4);
      if ((with & 32) != 0) record.owner = "worker";
      if ((with & 64) != 0) record.session = 12;
      record.result_expired = state == ClaimState::done && (with & 66) == 66;
      record.poison = state == ClaimState::failed && (with & 2) != 0;
      if (state != ClaimState::held && !record.result_expired) record.result = "the result";
      all.emplace_back(engine::encode(record, scratch()));
      record.unique_until = record.result_until;  // one end for both
      all.emplace_back(engine::encode(record, scratch()));
    }
  }
  return all;
}

template <class Visit>
void for_each_claim_request(Visit&& visit) {
  for (const Fingerprint& fingerprint :
       {Fingerprint{}, fingerprint_of(1, 9), fingerprint_of(1, 8), fingerprint_of(2, 9)}) {
    for (const int id : {0, 4, 5}) {
      for (const bool old : {false, true}) {
        ClaimRequest request;
        request.key = "k";
        request.fingerprint = fingerprint;
        if (id != 0) request.claim_id.emplace().fill(static_cast<std::uint8_t>(id));
        if (old) request.first_sent_unix_ms = 1;
        visit(request);
      }
    }
  }
}

std::vector<Policy> policies_of_all_kinds() {
  Policy window;
  window.window = Millis{1'000};
  Policy doubtful;
  doubtful.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  doubtful.attempts_max = 1;
  Policy issued;
  issued.issued = true;
  Policy fair;
  fair.fair = fair.strict = true;
  return {{}, window, doubtful, issued, fair};
}

bool same(const ClaimOutcome& one, const ClaimOutcome& other) {
  return one.answer == other.answer && one.error == other.error && one.takeover == other.takeover &&
         one.result_expired == other.result_expired && one.poison == other.poison &&
         one.attempt == other.attempt && one.epoch == other.epoch &&
         one.remaining == other.remaining && one.retry_after == other.retry_after &&
         one.folded_onto == other.folded_onto &&
         one.window_start_unix_ms == other.window_start_unix_ms &&
         one.window_end_unix_ms == other.window_end_unix_ms && one.version == other.version &&
         one.owner == other.owner && one.result == other.result;
}

}  // namespace

TEST_CASE("repeat oracle: of the store it answers what decide() answers, and decide() keeps it",
          "[engine][rules]") {
  std::size_t answered = 0;
  for (const RecordView& live : live_records()) {
    const Stored stored{live};
    for_each_store_op([&](const StoreOp& op) {
      if (!engine::may_repeat(op)) return;
      StoreOutcome fast;
      const bool is_repeat = engine::answer_repeat(op, stored.entry(), fast);
      CHECK(is_repeat == engine::answers_repeat(live.kind));
      if (!is_repeat) {
        CHECK(same(fast, {}));  // nothing was written: decide() begins with a fresh outcome
        return;
      }
      ++answered;
      StoreOutcome decided;
      std::string room;
      const engine::Decision decision = engine::decide(&live, op, now, 1'000, decided, room);
      CHECK(decision.action == Action::keep);
      CHECK(same(fast, decided));
      CHECK(fast.version == live.version);  // what decide_at() answers where it keeps the record
    });
  }
  CHECK(answered > 500);
}

TEST_CASE("repeat oracle: of claims it answers what decide_claim() answers, and keeps the record",
          "[engine][rules][claims]") {
  std::size_t answered = 0;
  std::size_t finished = 0;
  for (const std::string& bytes : claim_records()) {
    const RecordView live{Kind::claim, bytes, now + Millis{100}, seen_version};
    for_each_claim_request([&](const ClaimRequest& request) {
      for (const Policy& policy : policies_of_all_kinds()) {
        for (const bool others_first : {false, true}) {
          ClaimOutcome fast;
          const bool is_repeat = engine::answer_repeat(request, bytes, now, fast);
          if (!is_repeat) CHECK(same(fast, {}));
          if (!is_repeat && !engine::is_finished(bytes)) continue;
          ClaimOutcome decided;
          engine::ClaimFacts facts{.now = now, .candidate = 99};
          facts.others_first = others_first;
          facts.unix_now = 1'700'000'000'000;
          const engine::Decision decision =
              engine::decide_claim(&live, request, policy, facts, decided, scratch());
          CHECK(decision.action == Action::keep);  // no claim changes finished work
          ++finished;
          if (!is_repeat) continue;
          CHECK(same(fast, decided));
          ++answered;
        }
      }
    });
  }
  CHECK(answered > 500);
  CHECK(finished > answered);
}

TEST_CASE("repeat oracle: of work under way it answers what decide_claim() answers, and keeps it",
          "[engine][rules][claims]") {
  std::size_t answered = 0;
  for (const std::string& bytes : claim_records()) {
    const RecordView live{Kind::claim, bytes, now + Millis{100}, seen_version};
    for_each_claim_request([&](const ClaimRequest& request) {
      for (const Policy& policy : policies_of_all_kinds()) {
        for (const bool owner_dead : {false, true}) {
          ClaimOutcome fast;
          const auto is_closed = [&](SessionId) { return owner_dead; };
          if (!engine::answer_in_flight(request, bytes, policy, now, is_closed, fast)) {
            CHECK(same(fast, {}));
            continue;
          }
          ClaimOutcome decided;
          engine::ClaimFacts facts{.now = now, .candidate = 99, .owner_dead = owner_dead};
          facts.unix_now = 1'700'000'000'000;
          const engine::Decision decision =
              engine::decide_claim(&live, request, policy, facts, decided, scratch());
          CHECK(decision.action == Action::keep);
          CHECK(decided.answer == ClaimAnswer::in_flight);
          CHECK(same(fast, decided));
          ++answered;
        }
      }
    });
  }
  CHECK(answered > 500);
}

TEST_CASE("claims: a first grant stores the bytes of a record that is held",
          "[engine][rules][claims]") {
  std::size_t granted = 0;
  for (const Policy& policy : policies_of_all_kinds()) {
    if (policy.issued) continue;
    for (const SessionId session : {SessionId{0}, SessionId{12}}) {
      for_each_claim_request([&](const ClaimRequest& request) {
        const engine::ClaimFacts facts{.now = now, .candidate = 99, .session = session};
        for (const Bytes owner : {Bytes{""}, Bytes{"worker"}}) {
          ClaimRequest asked = request;
          asked.owner = owner;
          engine::ClaimFacts own_facts = facts;
          own_facts.unix_now = 500;  // first_sent is within the window
          ClaimOutcome outcome;
          const engine::Decision made =
              engine::decide_claim(nullptr, asked, policy, own_facts, outcome, scratch());
          REQUIRE(outcome.answer == ClaimAnswer::granted);
          CHECK(outcome.attempt == 1);
          CHECK(outcome.epoch == 99);
          CHECK(!outcome.takeover);
          ClaimRecord whole;
          whole.state = ClaimState::held;
          whole.attempts = 1;
          whole.epoch = 99;
          whole.session = session;
          whole.lease_until = now + policy.lease;
          whole.fingerprint = asked.fingerprint;
          whole.claim_id = asked.claim_id;
          whole.owner = owner;
          engine::Scratch room;
          CHECK(made.value == engine::encode(whole, room));
          CHECK(made.due == engine::held_due(whole, policy));
          CHECK(!made.gives_up);
          ++granted;
        }
      });
    }
  }
  CHECK(granted > 100);
}

TEST_CASE("claims: a completion stores the bytes of the record that is done",
          "[engine][rules][claims]") {
  std::size_t in_lease = 0;
  const std::string large(300, 'r');
  Policy two_ends;
  two_ends.unique_ttl = two_ends.result_ttl + Millis{1};
  auto policies = policies_of_all_kinds();
  policies.push_back(two_ends);
  std::vector<std::string> records = claim_records();
  for (std::size_t i = records.size(); i-- > 0;) {  // the same with memos
    ClaimRecord record;
    REQUIRE(engine::decode(records[i], record));
    record.memos = "memos";
    records.emplace_back(engine::encode(record, scratch()));
  }
  for (const std::string& bytes : records) {
    const RecordView live{Kind::claim, bytes, now + Millis{100}, seen_version};
    ClaimRecord record;
    REQUIRE(engine::decode(bytes, record));
    if (record.state != ClaimState::held) continue;
    for (const Policy& policy : policies) {
      for (const Bytes payload : {Bytes{""}, Bytes{"paid"}, Bytes{large}}) {
        for (const ResultKeeping keeping : {ResultKeeping::required, ResultKeeping::none}) {
          for (const bool owner_dead : {false, true}) {
            const OwnerCall call{
                .key = "k", .epoch = record.epoch, .payload = payload, .keeping = keeping};
            const engine::ClaimFacts facts{.now = now, .owner_dead = owner_dead};
            OwnerOutcome outcome;
            const engine::Decision made = engine::decide_owner(
                engine::OwnerVerb::complete, &live, call, policy, facts, outcome, scratch());
            const bool late = engine::lease_over(record, now, owner_dead);
            if (late && policy.strict) {
              CHECK(outcome.answer == OwnerAnswer::refused);
              continue;
            }
            ClaimRecord whole = record;
            engine::Scratch room;
            const engine::Decision expected = engine::store_done(whole, payload, policy, now, room,
                                                                 keeping == ResultKeeping::none);
            CHECK(outcome.answer == OwnerAnswer::ok);
            CHECK(outcome.late == late);
            CHECK(made.action == Action::store);
            CHECK(made.kind == Kind::claim);
            CHECK(made.gives_up);
            CHECK(made.due == expected.due);
            CHECK(made.value == expected.value);
            in_lease += late ? 0U : 1U;
          }
        }
      }
    }
  }
  CHECK(in_lease > 500);
}

TEST_CASE("repeat oracle: the typed calls of the store answer as EngineHost::apply does",
          "[engine][rules]") {
  semel::tests::EngineFixture f;
  Store store = f.engine->store();
  const std::string large(300, 'x');
  REQUIRE(store.set("string", "v").ok());
  REQUIRE(store.set("empty", "").ok());
  REQUIRE(store.set("large", large).ok());
  REQUIRE(store.set("timed", "v", {.expiry = Expiry::in(Millis{50})}).ok());
  REQUIRE(f.engine->hashes().hset("hash", "f", "v").ok());
  auto jobs = f.engine->claims("jobs", {});
  REQUIRE(jobs.has_value());
  REQUIRE(jobs->claim({.key = "claim"}).answer == ClaimAnswer::granted);
  for (const Bytes key : {"string", "empty", "large", "timed", "hash", "jobs:claim", "none"}) {
    INFO("key " << key);
    StoreOutcome applied;
    f.engine->host().apply({.verb = Verb::get, .key = key}, applied);
    const auto got = store.get(key);
    REQUIRE(got.ok() == (applied.error == ErrorCode::ok));
    if (!got.ok()) {
      CHECK(got.error().code == applied.error);
    } else {
      CHECK(*got == (applied.has_value ? std::optional{applied.value} : std::nullopt));
    }
    if (key == "none") continue;  // the next two would make it
    for (const bool get : {false, true}) {
      f.engine->host().apply({.verb = Verb::set,
                              .condition = Condition::if_absent,
                              .get = get,
                              .key = key,
                              .value = "new"},
                             applied);
      const auto set = store.set(key, "new", {.condition = Condition::if_absent, .get = get});
      REQUIRE(set.ok() == (applied.error == ErrorCode::ok));
      if (!set.ok()) {
        CHECK(set.error().code == applied.error);
        continue;
      }
      CHECK(set->stored == applied.applied);
      CHECK(set->version == applied.version);
      CHECK(set->previous == (applied.has_value ? std::optional{applied.value} : std::nullopt));
    }
  }
}

namespace {

/// One engine that is asked by typed calls and has nothing beside its table, and one with a journal
/// that is asked by EngineHost::apply().
struct Twins {
  semel::tests::EngineFixture whole{same_seed()};
  ManualClock clock;
  std::unique_ptr<Engine> plain = semel::tests::open_engine(same_seed(&clock));

  static Options same_seed(const Clock* clock = nullptr) {
    Options options;
    options.hash_seed = 7;
    options.clock = clock;
    return options;
  }

  template <class Make>
  void on_both(Make&& make) {
    make(*plain);
    make(*whole.engine);
  }
  /// Puts what `held` names under `key`; "none": nothing.
  void prepare(const std::string& key, Bytes held) {
    on_both([&](Engine& engine) {
      if (held == "hash") {
        REQUIRE(engine.hashes().hset(key, "f", "v").ok());
      } else if (held == "claim") {
        auto jobs = engine.claims("jobs", {});
        REQUIRE(jobs->claim({.key = key.substr(5)}).answer == ClaimAnswer::granted);
      } else if (held != "none") {
        const std::string value = held == "large" ? std::string(300, 'x') : std::string{held};
        REQUIRE(engine.store().set(key, value, {.expiry = Expiry::in(Millis{50})}).ok());
      }
    });
    if (held != "ended") return;
    clock.advance(Millis{50});
    whole.clock.advance(Millis{50});
  }
  /// The typed call answers what the operation does.
  void ask(const StoreOp& op) {
    StoreOutcome applied;
    whole.engine->host().apply(op, applied);
    const auto value =
        applied.has_value ? std::optional{applied.value} : std::optional<std::string>{};
    Store store = plain->store();
    ErrorCode error = ErrorCode::ok;
    if (op.verb == Verb::set) {
      const auto set = store.set(
          op.key, op.value,
          {.condition = op.condition, .operand = op.operand, .expiry = op.expiry, .get = op.get});
      error = semel::tests::code_of(set);
      if (set.ok()) {
        CHECK(set->stored == applied.applied);
        CHECK(set->version == applied.version);
        CHECK(set->previous == value);
      }
    } else if (op.verb == Verb::del) {
      const auto gone = store.del(op.key);
      error = semel::tests::code_of(gone);
      if (gone.ok()) CHECK(*gone == applied.applied);
    } else {
      const auto found = op.verb == Verb::get ? store.get(op.key) : store.getdel(op.key);
      error = semel::tests::code_of(found);
      if (found.ok()) CHECK(*found == value);
    }
    CHECK(error == applied.error);
  }
  void compare(Bytes key) {
    const Stats one = plain->stats();
    const Stats other = whole.engine->stats();
    CHECK(one.operations == other.operations);
    CHECK(one.hits == other.hits);
    CHECK(one.misses == other.misses);
    CHECK(one.records == other.records);
    CHECK(one.records_with_ttl == other.records_with_ttl);
    CHECK(one.bytes_records == other.bytes_records);
    for (const Verb look : {Verb::get, Verb::type, Verb::expire_time}) {
      StoreOutcome left;
      StoreOutcome wanted;
      plain->host().apply({.verb = look, .key = key}, left);
      whole.engine->host().apply({.verb = look, .key = key}, wanted);
      CHECK(same(left, wanted));
      CHECK(left.version == wanted.version);
    }
  }
};

}  // namespace

TEST_CASE("string calls: SET, GET, GETDEL and DEL do what EngineHost::apply does",
          "[engine][rules]") {
  Twins twins;
  unsigned number = 0;
  for (const Bytes held : {"none", "v", "17", "", "large", "ended", "hash", "claim"}) {
    for (const Expiry expiry :
         {Expiry::clear(), Expiry::keep(), Expiry::in(Millis{5}), Expiry::at(Timestamp{Millis{1}}),
          Expiry::at(Timestamp{Millis{90'000'000}}), Expiry::in(Millis{0})}) {
      for (const Verb verb : {Verb::set, Verb::getdel, Verb::del, Verb::get}) {
        for (auto condition = 0; condition <= static_cast<int>(Condition::if_version);
             ++condition) {
          for (const bool get : {false, true}) {
            INFO(held << ", verb " << static_cast<int>(verb) << ", condition " << condition);
            const std::string key = "jobs:" + std::to_string(++number);
            twins.prepare(key, held);
            StoreOp op{.verb = verb, .key = key};
            if (verb == Verb::set) {
              op.condition = static_cast<Condition>(condition);
              op.get = get;
              op.expiry = expiry;
              op.value = "new";
              op.operand = "v";
            }
            twins.ask(op);
            twins.compare(key);
          }
        }
      }
    }
  }
  CHECK(semel::tests::broken_rules(*twins.plain).empty());
}
