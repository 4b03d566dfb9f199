// Terms that change apply to what is held, and a claim is no value: issue Once again, 6, 11,
// 13, 14.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/memory_journal.hpp"
#include "semel/policies.hpp"
#include "tests/engine/claim_bench.hpp"
#include "tests/engine/engine_fixture.hpp"

using namespace semel;
using namespace semel::tests;
using namespace std::chrono_literals;
using engine::print;

namespace {

Policy short_policy() {
  Policy policy;
  policy.lease = 1000ms;
  policy.attempts_ttl = 1000ms;
  return policy;
}

Policy doubting(Policy policy) {
  policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  return policy;
}

}  // namespace

// --- changed terms -------------------------------------------------------------------------------

TEST_CASE("a namespace that becomes in_doubt makes its held claims so",
          "[engine][claims][once-again-13]") {
  EngineFixture f;
  Claims ns = f.claims("ns", short_policy());
  Claims other = f.claims("other", short_policy());
  const Epoch epoch = ns.claim({.key = "held"}).epoch;
  const ClaimOutcome late = ns.claim({.key = "late"});
  static_cast<void>(other.claim({.key = "held"}));
  f.clock.advance(500ms);
  static_cast<void>(ns.renew({.key = "held", .epoch = epoch}));
  f.clock.advance(600ms);  // the lease of `late` is over, and its record is still there
  REQUIRE(f.engine->change_namespace("ns", doubting(short_policy())).ok());
  f.pass(1h);
  CHECK(ns.claim({.key = "held"}).answer == ClaimAnswer::in_doubt);
  CHECK(ns.claim({.key = "late"}).answer == ClaimAnswer::in_doubt);
  CHECK(other.claim({.key = "held"}).answer == ClaimAnswer::granted);
  CHECK(ns.complete({.key = "held", .epoch = epoch}).answer == OwnerAnswer::ok);
  CHECK(ns.complete({.key = "late", .epoch = late.epoch}).answer == OwnerAnswer::ok);
}

TEST_CASE("a change to in_doubt survives a restart at each of its mutations",
          "[engine][claims][once-again-13]") {
  EngineFixture f;
  Claims ns = f.claims("ns", short_policy());
  constexpr int claims = 5;
  for (int i = 0; i < claims; ++i) REQUIRE(ns.claim({.key = std::to_string(i)}).epoch != 0);
  const std::size_t before = f.journal.size();
  REQUIRE(f.engine->change_namespace("ns", doubting(short_policy())).ok());
  const std::size_t after = f.journal.size();
  REQUIRE(after == before + claims + 1);
  // A log may be read in any order: as written, or all of the namespace first.
  for (std::size_t run = 0; run < 2 * (after - before + 1); ++run) {
    const std::size_t cut = before + run / 2;
    ManualClock clock{f.clock.now().time_since_epoch()};
    auto next = open_engine({.clock = &clock, .first_version = 1'000'000});
    const auto restore = [&](auto&& is_wanted) {
      std::size_t at = 0;
      f.journal.replay([&](Ticket, const Mutation& mutation) {
        if (at++ < cut && is_wanted(mutation.kind)) REQUIRE(next->host().restore(mutation).ok());
      });
    };
    if (run % 2 == 0) {
      restore([](Kind) { return true; });
    } else {
      restore([](Kind kind) { return kind == Kind::name_space; });
      restore([](Kind kind) { return kind != Kind::name_space; });
    }
    const Result<Claims> again = next->claims("ns");
    REQUIRE(again.has_value());
    Claims space = *again;
    const bool changed = space.policy().on_lease_end == Policy::OnLeaseEnd::in_doubt;
    clock.advance(1h);
    while (next->advance() == 0) {
    }
    for (int i = 0; i < claims && changed; ++i) {
      CAPTURE(cut, i);
      CHECK(space.claim({.key = std::to_string(i)}).answer == ClaimAnswer::in_doubt);
    }
  }
}

TEST_CASE("a change that remembers attempts for longer does so for what is held",
          "[engine][claims][once-again-13]") {
  EngineFixture f;
  Policy policy = short_policy();
  policy.attempts_max = 2;
  Claims ns = f.claims("ns", policy);
  REQUIRE(ns.claim({.key = "k"}).attempt == 1);
  policy.attempts_ttl = 1h;
  REQUIRE(f.engine->change_namespace("ns", policy).ok());
  f.pass(30min);
  CHECK(ns.claim({.key = "k"}).attempt == 2);
}

TEST_CASE("what is released was not tried, and what was tried before is remembered",
          "[engine][claims][once-again-13]") {
  EngineFixture f;
  Policy policy = short_policy();
  policy.attempts_max = 2;
  Claims ns = f.claims("ns", policy);
  const ClaimOutcome first = ns.claim({.key = "k"});
  REQUIRE(ns.fail({.key = "k", .epoch = first.epoch}).answer == OwnerAnswer::ok);
  for (int i = 0; i < 5; ++i) {
    const ClaimOutcome second = ns.claim({.key = "k"});
    REQUIRE(second.answer == ClaimAnswer::granted);
    CHECK(second.attempt == 2);
    CHECK(ns.release({.key = "k", .epoch = second.epoch}).answer == OwnerAnswer::ok);
  }
  const ClaimOutcome last = ns.claim({.key = "k"});
  REQUIRE(ns.fail({.key = "k", .epoch = last.epoch}).answer == OwnerAnswer::ok);
  CHECK(ns.claim({.key = "k"}).poison);
}

// --- sessions ------------------------------------------------------------------------------------

TEST_CASE("a session that is not open owns nothing", "[engine][claims][once-again-11]") {
  EngineFixture f;
  Claims ns = f.claims("ns", short_policy());
  const auto refused = [&](SessionId session) {
    const ClaimOutcome outcome = ns.claim({.key = "k", .session = session});
    return outcome.answer == ClaimAnswer::busy && outcome.error == ErrorCode::session_closed;
  };
  CHECK(refused(12'345));
  const SessionId session = f.engine->open_session();
  CHECK(ns.claim({.key = "open", .session = session}).answer == ClaimAnswer::granted);
  f.engine->close_session(session);
  CHECK(refused(session));
  CHECK(ns.claim({.key = "k", .session = 0}).answer == ClaimAnswer::granted);
  std::vector<ClaimRequest> batch{{.key = "a"}, {.key = "b", .session = session}};
  std::vector<ClaimOutcome> outcomes(2);
  CHECK_FALSE(ns.claim_all(batch, outcomes));
  CHECK(outcomes[1].error == ErrorCode::session_closed);
  ns.claim(batch, outcomes);
  CHECK(outcomes[0].answer == ClaimAnswer::granted);
  CHECK(outcomes[1].error == ErrorCode::session_closed);
}

// --- batches -------------------------------------------------------------------------------------

TEST_CASE("claim_all grants one key to one payload", "[engine][claims][batch][once-again-6]") {
  EngineFixture f;
  Claims ns = f.claims("ns", short_policy());
  const auto ask = [&](std::vector<ClaimRequest> batch) {
    std::vector<ClaimOutcome> outcomes(batch.size());
    const bool all = ns.claim_all(batch, outcomes);
    for (const ClaimOutcome& each : outcomes) CHECK((all || each.epoch == 0));
    return std::pair{all, outcomes};
  };
  {
    const auto [all, outcomes] =
        ask({{.key = "k", .fingerprint = print(1, 1)}, {.key = "k", .fingerprint = print(1, 2)}});
    CHECK_FALSE(all);
    CHECK(outcomes[0].answer == ClaimAnswer::granted);
    CHECK(outcomes[1].answer == ClaimAnswer::mismatch);
    CHECK(outcomes[1].folded_onto == 0);
    CHECK(ns.get("k")->state == ClaimState::absent);
  }
  {  // the first gave none, and two later ones differ
    const auto [all, outcomes] = ask({{.key = "k"},
                                      {.key = "k", .fingerprint = print(1, 1)},
                                      {.key = "j"},
                                      {.key = "k", .fingerprint = print(1, 2)}});
    CHECK_FALSE(all);
    CHECK(outcomes[1].answer == ClaimAnswer::granted);
    CHECK(outcomes[3].answer == ClaimAnswer::mismatch);
  }
  const auto [all, outcomes] = ask({{.key = "k", .fingerprint = print(1, 1)},
                                    {.key = "k"},
                                    {.key = "k", .fingerprint = print(1, 1)}});
  CHECK(all);
  CHECK(outcomes[2].epoch == outcomes[0].epoch);
}

// --- a claim is no value -------------------------------------------------------------------------

TEST_CASE("store calls change no claim", "[engine][claims][store][once-again-14]") {
  EngineFixture f;
  Claims ns = f.claims("ns", short_policy());
  Store store = f.store();
  const Epoch held = ns.claim({.key = "held"}).epoch;
  const Epoch done = ns.claim({.key = "done"}).epoch;
  REQUIRE(ns.complete({.key = "done", .epoch = done, .payload = "paid"}).answer == OwnerAnswer::ok);
  REQUIRE(store.set("value", "v").ok());
  const auto code = [](const auto& result) {
    return result.ok() ? ErrorCode::ok : result.error().code;
  };
  for (const char* const key : {"ns:held", "ns:done"}) {
    CAPTURE(key);
    CHECK(code(store.expire(key, Expiry::in(1ms))) == ErrorCode::wrong_type);
    CHECK(code(store.expire(key, Expiry::in(1h), {.only_later = true})) == ErrorCode::wrong_type);
    CHECK(code(store.expire(key, Expiry::at(f.clock.now() - 1ms))) == ErrorCode::wrong_type);
    CHECK(code(store.persist(key)) == ErrorCode::wrong_type);
    CHECK(code(store.set(key, "v")) == ErrorCode::wrong_type);
    CHECK(code(store.set(key, "v", {.condition = Condition::if_present})) == ErrorCode::wrong_type);
    CHECK(code(store.set(key, "v", {.expiry = Expiry::at(f.clock.now() - 1ms)})) ==
          ErrorCode::wrong_type);
    CHECK_FALSE(store.setnx(key, "v").value());
    CHECK(code(store.getdel(key)) == ErrorCode::wrong_type);
    CHECK(code(store.getex(key, Expiry::in(1ms))) == ErrorCode::wrong_type);
    CHECK(code(store.append(key, "v")) == ErrorCode::wrong_type);
    CHECK(code(store.rename(key, "elsewhere")) == ErrorCode::wrong_type);
    CHECK(code(store.renamenx(key, "elsewhere")) == ErrorCode::wrong_type);
    CHECK(code(store.copy(key, "elsewhere", {}, false)) == ErrorCode::wrong_type);
    CHECK(code(store.copy(key, "elsewhere", 3, false)) == ErrorCode::wrong_type);
    CHECK(code(store.move(key, 3)) == ErrorCode::wrong_type);
    CHECK(code(store.rename("value", key)) == ErrorCode::wrong_type);
    CHECK(code(store.copy("value", key, {}, true)) == ErrorCode::wrong_type);
    CHECK_FALSE(store.copy("value", key, {}, false).value());
    CHECK_FALSE(store.renamenx("value", key).value());
    const KeyValue pairs[] = {{"other", "v"}, {key, "v"}};
    CHECK(code(store.mset(pairs)) == ErrorCode::wrong_type);
    CHECK_FALSE(store.exists("other").value());
    CHECK_FALSE(store.msetnx(pairs).value());
  }
  CHECK_FALSE(store.exists("elsewhere").value());
  CHECK(store.get("value").value() == "v");
  CHECK(ns.claim({.key = "done"}).result == "paid");
  CHECK(ns.renew({.key = "held", .epoch = held}).answer == OwnerAnswer::ok);
  CHECK(f.engine->stats().claims_forgotten == 0);
}

TEST_CASE("to delete a claim is to forget it, counted and noted",
          "[engine][claims][store][once-again-14]") {
  EngineFixture f{{.decision_log_bytes = 1 << 20}};
  Claims ns = f.claims("ns", short_policy());
  const auto why_granted_anew = [&](Bytes key, const char* how) {
    const ClaimOutcome again = ns.claim({.key = key});
    REQUIRE(again.answer == ClaimAnswer::granted);
    const auto decisions = ns.explain(key).value();
    REQUIRE(decisions.size() == 3);
    CAPTURE(how);
    CHECK(decisions[1].call == DecisionCall::forget);
    CHECK(decisions[1].seen == ClaimState::held);
    CHECK(decisions[2].why.find("had been forgotten") != std::string::npos);
  };
  for (const char* const key : {"del", "delex", "flush", "forget"}) {
    REQUIRE(ns.claim({.key = key}).answer == ClaimAnswer::granted);
  }
  CHECK(f.store().del("ns:del").value());
  why_granted_anew("del", "del");
  CHECK(f.store().delex("ns:delex", Condition::always, {}).value());
  why_granted_anew("delex", "delex");
  CHECK(ns.forget("forget").value());
  why_granted_anew("forget", "forget");
  CHECK(f.engine->stats().claims_forgotten == 3);
  REQUIRE(f.engine->flush(0).ok());
  why_granted_anew("flush", "flush");
  CHECK(f.engine->stats().claims_forgotten == 7);
}
