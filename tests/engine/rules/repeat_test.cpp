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
