// Steps: what part of some work has brought about is remembered until the work is over.
// Words: memo = what a step has brought about; charge = a step's effect that must not be there
//        twice; owner, stale, over and given back as in docs/semantics.md#claims.
#include "semel/patterns/steps.hpp"

#include <functional>

#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/patterns/consume.hpp"
#include "semel/patterns/once.hpp"
#include "semel/patterns/token_service.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using namespace std::chrono_literals;
using semel::tests::Process;

namespace {

/// What a process does between two attempts: nothing, or it ends and the next one has what the
/// journal has.
void perhaps_restart(Process& process, bool restarts) {
  if (restarts) process.restart();
}

/// What is over is forgotten long before attempts are.
Policy brief_policy() {
  Policy brief = policies::call;
  brief.result_ttl = brief.failure_ttl = 60s;
  return brief;
}

/// Work with the step "charge", as all of these tests have it.
class Charging {
 public:
  explicit Charging(Process& process) : process_(process) {}

  auto operator()(Bytes receipt, bool ends) {
    return [this, receipt, ends](Work& work) -> Result<std::string> {
      SEMEL_TRY(charged, work.steps().run("charge", [&] {
        process_.effect("charge");
        return std::string{receipt};
      }));
      if (!ends) return Error{ErrorCode::timed_out, "the mail"};
      return charged;
    };
  }
  [[nodiscard]] std::size_t times() const { return process_.count("charge"); }

 private:
  Process& process_;
};

}  // namespace

TEST_CASE("steps: a takeover continues where the previous owner stopped, from every step",
          "[patterns][steps][crash]") {
  const auto ship = [](Process& process) {
    Claims orders = process.claims("orders", policies::call);
    const auto run = once(orders, "order-1", [&](Work& work) -> Result<std::string> {
      SEMEL_TRY(charge, work.steps().run("charge", [&] {
        process.effect("charge");
        return 42;
      }));
      SEMEL_TRY(mail, work.steps().run("mail", [&] {
        process.effect("mail");
        return std::string{"sent"};
      }));
      return std::to_string(charge) + " " + mail;
    });
    return process.alive() && run.value == "42 sent";
  };
  std::uint64_t steps = 0;
  for (;; ++steps) {
    Process process{steps};
    if (ship(process)) break;
    const std::size_t charged = process.count("charge");
    const std::size_t mailed = process.count("mail");
    process.restart();
    REQUIRE(ship(process));
    // A step whose memo was written is not repeated; the one that the crash cut off is.
    CHECK(process.count("charge") == (charged == 1 && steps == 2 ? 2U : 1U));
    CHECK(process.count("mail") == (mailed == 1 && steps == 4 ? 2U : 1U));
  }
  CHECK(steps == 6);  // claim, effect, memo, effect, memo, done
}

TEST_CASE("steps: a stale owner runs no step, whatever has become of its work",
          "[patterns][steps][once-again-1]") {
  using After = std::function<void(Process&, Claims&, Epoch)>;
  const std::pair<const char*, After> cases[] = {
      {"held by another", [](Process&, Claims&, Epoch) {}},
      {"done",
       [](Process&, Claims& c, Epoch e) {
         CHECK(c.complete({.key = "k", .epoch = e}).answer == OwnerAnswer::ok);
       }},
      {"failed",
       [](Process&, Claims& c, Epoch e) {
         const OwnerCall call{.key = "k", .epoch = e, .on_failure = Policy::OnFailure::keep};
         CHECK(c.fail(call).answer == OwnerAnswer::ok);
       }},
      {"in doubt",
       [](Process&, Claims& c, Epoch e) {
         const OwnerCall call{.key = "k", .epoch = e, .on_failure = Policy::OnFailure::in_doubt};
         CHECK(c.fail(call).answer == OwnerAnswer::ok);
       }},
      {"given back",
       [](Process&, Claims& c, Epoch e) {
         CHECK(c.release({.key = "k", .epoch = e}).answer == OwnerAnswer::ok);
       }},
      {"forgotten", [](Process&, Claims& c, Epoch) { CHECK(c.forget("k").value()); }},
      {"resolved",
       [](Process&, Claims& c, Epoch) { CHECK(c.resolve("k", Resolution::released).value()); }},
      {"dropped",
       [](Process& p, Claims& c, Epoch) {
         CHECK(p.engine().drop_namespace("orders", DropRule::all).ok());
         c = p.claims("orders", policies::call);
       }},
      {"ended", [](Process& p, Claims&, Epoch) { p.clock().advance(Millis{100'000'000}); }},
  };
  for (const auto& [name, after] : cases) {
    for (const bool has_memo : {false, true}) {
      for (const bool restarts : {false, true}) {
        INFO(name << ", memo " << has_memo << ", restarts " << restarts);
        Process process;
        Claims orders = process.claims("orders", policies::call);
        const Epoch old = orders.claim({.key = "k", .session = SessionId{0}}).epoch;
        process.clock().advance(60s);
        const ClaimOutcome next = orders.claim({.key = "k", .session = SessionId{0}});
        REQUIRE(next.takeover);
        if (has_memo) REQUIRE(Steps(orders, "k", next.epoch).remember("charge", "1").has_value());
        after(process, orders, next.epoch);
        perhaps_restart(process, restarts);
        Claims now = process.claims("orders", policies::call);
        const bool still_held = Bytes{name} == "held by another";
        for (const Epoch epoch : {old, next.epoch, Epoch{0}, next.epoch + 1'000}) {
          if (still_held && epoch == next.epoch) continue;
          Steps steps{now, "k", epoch};
          const auto run = steps.run("charge", [&] {
            process.effect("charge");
            return 1;
          });
          CHECK(run.error().code == ErrorCode::not_owner);
          CHECK(steps.recall("charge").error().code == ErrorCode::not_owner);
          CHECK(steps.remember("charge", "x").error().code == ErrorCode::not_owner);
        }
        CHECK(process.effects().empty());
      }
    }
  }
}

TEST_CASE("steps: an owner whose lease is over runs no step until it holds the claim again",
          "[patterns][steps][once-again-1]") {
  for (const bool has_memo : {false, true}) {
    Process process;
    Claims orders = process.claims("orders", policies::call);
    const Epoch epoch = orders.claim({.key = "k"}).epoch;
    Steps steps{orders, "k", epoch};
    if (has_memo) REQUIRE(steps.remember("charge", "1").has_value());
    process.clock().advance(60s - 1ms);
    CHECK(steps.recall("charge").has_value());
    process.clock().advance(1ms);
    int ran = 0;
    CHECK(steps.run("charge", [&] { return ++ran; }).error().code == ErrorCode::not_owner);
    CHECK(ran == 0);
    const Epoch fresh = orders.claim({.key = "k"}).epoch;
    CHECK(Steps(orders, "k", fresh).run("charge", [&] { return ++ran; }).value() == 1);
    CHECK(ran == (has_memo ? 0 : 1));
  }
}

TEST_CASE("steps: a run that was paused while another finished its work charges nothing",
          "[patterns][steps][once-again-1]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  Charging charging{process};
  const auto late = once(orders, "o", [&](Work& work) -> Result<std::string> {
    process.clock().advance(61s);
    CHECK(once(orders, "o", charging("theirs", true)).answer == OnceAnswer::ran);
    return charging("mine", true)(work);
  });
  CHECK(late.answer == OnceAnswer::superseded);
  CHECK(late.error.code == ErrorCode::not_owner);
  CHECK(charging.times() == 1);
}

TEST_CASE("steps: an error of a step is passed on and not remembered", "[patterns][steps]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const ClaimOutcome claim = orders.claim({.key = "k"});
  Steps steps{orders, "k", claim.epoch};
  const auto fails = []() -> Result<int> { return Error{ErrorCode::timed_out, "bank"}; };
  CHECK(steps.run("charge", fails).error().code == ErrorCode::timed_out);
  CHECK(steps.run("charge", [] { return 5; }).value() == 5);
  CHECK(steps.run("charge", [] { return 6; }).value() == 5);
  CHECK(steps.run("charge", [] { return Nothing{}; }).has_value());
  REQUIRE(steps.remember("odd", "x").has_value());
  CHECK(steps.run("odd", [] { return 1; }).error().code == ErrorCode::bad_encoding);
}

// --- a memo lives as long as its claim -----------------------------------------------------------

TEST_CASE("steps: a doubt that is resolved after a day goes on from its memos",
          "[patterns][steps][once-again-2]") {
  for (const bool restarts : {false, true}) {
    Process process;
    Charging charging{process};
    Claims payments = process.claims("payments", policies::payment);
    const OnceCall call{.key = "o"};
    CHECK_THROWS(once(payments, call, [&](Work& work) -> Result<std::string> {
      static_cast<void>(charging("first", true)(work));
      throw std::runtime_error("the mail");
    }));
    process.clock().advance(25h);
    process.engine().advance();
    perhaps_restart(process, restarts);
    payments = process.claims("payments", policies::payment);
    CHECK(once(payments, call, charging("second", true)).answer == OnceAnswer::in_doubt);
    CHECK(payments.resolve("o", Resolution::released).value());
    perhaps_restart(process, restarts);
    payments = process.claims("payments", policies::payment);
    CHECK(once(payments, call, charging("third", true)).value == "first");
    CHECK(charging.times() == 1);
  }
}

TEST_CASE("steps: a token that was issued for an hour remembers them for an hour",
          "[patterns][steps][once-again-2]") {
  for (const bool restarts : {false, true}) {
    Process process;
    Charging charging{process};
    const auto open = [&] {
      return TokenService::open(process.claims("tokens", policies::token)).value();
    };
    auto tokens = open();
    const std::string token = tokens.issue(1h).value();
    CHECK(tokens.redeem(token, charging("first", false)).answer == OnceAnswer::failed);
    process.clock().advance(90s);
    process.engine().advance();
    perhaps_restart(process, restarts);
    auto again = open();
    CHECK(again.redeem(token, charging("second", true)).value == "first");
    CHECK(charging.times() == 1);
  }
}

TEST_CASE("steps: a lease that is renewed for long keeps them", "[patterns][steps][once-again-2]") {
  for (const bool restarts : {false, true}) {
    Process process;
    Charging charging{process};
    Policy policy = policies::message;
    policy.attempts_ttl = 10s;
    Claims queue = process.claims("queue", policy);
    const Epoch epoch = queue.claim({.key = "m", .session = SessionId{0}}).epoch;
    REQUIRE(Steps(queue, "m", epoch).remember("charge", "first").has_value());
    for (int i = 0; i < 12; ++i) {
      process.clock().advance(20s);
      process.engine().advance();
      REQUIRE(queue.renew({.key = "m", .epoch = epoch}).answer == OwnerAnswer::ok);
    }
    perhaps_restart(process, restarts);
    process.clock().advance(61s);
    queue = process.claims("queue", policy);
    const auto next = once(queue, "m", charging("second", true));
    CHECK(next.takeover);
    CHECK(next.value == "first");
    CHECK(charging.times() == 0);
  }
}

TEST_CASE("steps: memos end with the time in which the work can be taken over",
          "[patterns][steps]") {
  Process process;
  Policy policy = policies::call;
  policy.attempts_ttl = 1s;
  Claims orders = process.claims("orders", policy);
  const ClaimOutcome claim = orders.claim({.key = "k"});
  REQUIRE(Steps(orders, "k", claim.epoch).remember("a", "1").has_value());
  process.clock().advance(60'999ms);
  const ClaimOutcome next = orders.claim({.key = "k"});
  CHECK(next.takeover);
  CHECK(Steps(orders, "k", next.epoch).recall("a").value() == "1");
  process.clock().advance(61s);
  const ClaimOutcome anew = orders.claim({.key = "k"});
  CHECK_FALSE(anew.takeover);
  CHECK(Steps(orders, "k", anew.epoch).recall("a").value() == std::nullopt);
}

// --- and no longer -------------------------------------------------------------------------------

TEST_CASE("steps: the next work under the key runs its own, however the last one ended",
          "[patterns][steps][once-again-3]") {
  using End = std::function<void(Process&, Claims&)>;
  const auto hold = [](Process& process, Claims& claims) {
    const Epoch epoch = claims.claim({.key = "k"}).epoch;
    process.effect("charge");
    CHECK(Steps(claims, "k", epoch).remember("charge", "first").has_value());
    return epoch;
  };
  const auto fail_first = [](Process& process, Claims& claims) {
    CHECK(once(claims, "k", Charging{process}("first", false)).answer == OnceAnswer::failed);
  };
  const std::pair<const char*, End> ends[] = {
      {"an attempt that used no step",
       [&](Process& process, Claims& claims) {
         fail_first(process, claims);
         CHECK(once(claims, "k", [] {}).answer == OnceAnswer::ran);
       }},
      {"forget, while it is held",
       [&](Process& process, Claims& claims) {
         static_cast<void>(hold(process, claims));
         CHECK(claims.forget("k").value());
       }},
      {"forget, when it was given back",
       [&](Process& process, Claims& claims) {
         fail_first(process, claims);
         CHECK_FALSE(claims.forget("k").value());  // nobody has it, and its memos go all the same
       }},
      {"drop and redeclare",
       [&](Process& process, Claims& claims) {
         fail_first(process, claims);
         CHECK(process.engine().drop_namespace("n", DropRule::all).ok());
         claims = process.claims("n", brief_policy());
       }},
      {"resolve as done",
       [&](Process& process, Claims& claims) {
         static_cast<void>(hold(process, claims));
         CHECK(claims.resolve("k", Resolution::done, "by hand").value());
       }},
      {"a kept failure",
       [&](Process& process, Claims& claims) {
         const Epoch epoch = hold(process, claims);
         const OwnerCall call{.key = "k", .epoch = epoch, .on_failure = Policy::OnFailure::keep};
         CHECK(claims.fail(call).answer == OwnerAnswer::ok);
       }},
      {"a plain complete",
       [&](Process& process, Claims& claims) {
         const Epoch epoch = hold(process, claims);
         CHECK(claims.complete({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
       }},
  };
  for (const auto& [name, end] : ends) {
    for (const bool restarts : {false, true}) {
      INFO(name << ", restarts " << restarts);
      Process process;
      Claims claims = process.claims("n", brief_policy());
      end(process, claims);
      perhaps_restart(process, restarts);
      process.clock().advance(brief_policy().result_ttl);
      process.engine().advance();
      claims = process.claims("n", brief_policy());
      Charging charging{process};
      const auto next = once(claims, "k", charging("second", true));
      CHECK(next.answer == OnceAnswer::ran);
      CHECK(next.value == "second");
      CHECK(charging.times() == 2);
    }
  }
}

TEST_CASE("steps: a namespace whose work has begun is not dropped as finished",
          "[patterns][steps][once-again-3]") {
  Process process;
  Claims claims = process.claims("n", policies::call);
  Charging charging{process};
  CHECK(once(claims, "k", charging("first", false)).answer == OnceAnswer::failed);
  const auto kept = process.engine().drop_namespace("n", DropRule::finished);
  CHECK(kept.error().code == ErrorCode::namespace_in_use);
  CHECK(once(claims, "k", charging("second", true)).value == "first");
  const auto dropped = process.engine().drop_namespace("n", DropRule::finished);
  REQUIRE(dropped.ok());
  CHECK(dropped->finished == 1);
}

// --- payloads ------------------------------------------------------------------------------------

TEST_CASE("steps: payloads that take turns under one key are charged once each",
          "[patterns][steps][attack][fault-15][once-again-3]") {
  for (const bool restarts : {false, true}) {
    Process process;
    Charging charging{process};
    const auto run = [&](std::uint8_t payload, Bytes receipt, bool ends) {
      perhaps_restart(process, restarts);
      Claims orders = process.claims("orders", policies::call);
      Fingerprint fingerprint{.algorithm = 1};
      fingerprint.digest[0] = payload;
      return once(orders, {.key = "order", .fingerprint = fingerprint}, charging(receipt, ends));
    };
    CHECK(run(1, "a", false).answer == OnceAnswer::failed);
    CHECK(run(2, "b", false).answer == OnceAnswer::failed);
    CHECK(run(1, "a again", false).answer == OnceAnswer::failed);
    CHECK(run(2, "b again", false).answer == OnceAnswer::failed);
    CHECK(charging.times() == 2);
    CHECK(run(1, "a at last", true).value == "a");
    CHECK(charging.times() == 2);
  }
}

// --- runs without protection ---------------------------------------------------------------------

TEST_CASE("steps: an unguarded run has them, and they end with it",
          "[patterns][steps][once-again-3]") {
  Process process;
  Charging charging{process};
  const auto twice = [&](Work& work) -> Result<std::string> {
    CHECK(work.epoch() == 0);
    SEMEL_TRY(first, charging("receipt", true)(work));
    CHECK(work.steps().recall("charge").value() == "receipt");
    CHECK(work.steps().remember("other", "x").has_value());
    CHECK(work.steps().recall("other").value() == "x");
    CHECK(work.steps().recall("").error().code == ErrorCode::bad_option);
    return charging("not again", true)(work);
  };
  Claims calls = process.claims("calls", policies::call);
  const auto run = once(calls, {.without_key = true}, twice);
  CHECK(run.answer == OnceAnswer::unguarded);
  CHECK(run.value == "receipt");
  CHECK(charging.times() == 1);
  CHECK(once(calls, {.without_key = true}, twice).answer == OnceAnswer::unguarded);
  CHECK(charging.times() == 2);

  Claims queue = process.claims("queue", policies::message);
  const Consumed message = consume_once(queue, {.id = ""}, [&](Work& work) -> Status {
    SEMEL_TRY(receipt, twice(work));
    CHECK(receipt == "receipt");
    return Done{};
  });
  CHECK(message.verdict == Verdict::ack);
  CHECK(message.unguarded);
  CHECK(charging.times() == 3);

  Policy open = policies::call;
  open.fail_open = true;
  Claims full = process.claims("full", open);
  process.fill();
  const auto unprotected = once(full, "k", twice);
  CHECK(unprotected.answer == OnceAnswer::unguarded);
  CHECK(unprotected.value == "receipt");
  CHECK(charging.times() == 4);
  process.empty();
  CHECK(Steps::unguarded(calls).complete("x").answer == OwnerAnswer::unknown);
}

// --- bounds and errors ---------------------------------------------------------------------------

TEST_CASE("steps: a name that is empty or too long is an error before the step runs",
          "[patterns][steps][limits]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const Epoch epoch = orders.claim({.key = "k"}).epoch;
  int ran = 0;
  for (const bool is_guarded : {true, false}) {
    Steps steps = is_guarded ? Steps{orders, "k", epoch} : Steps::unguarded(orders);
    const auto with = [&](Bytes name) { return steps.run(name, [&] { return ++ran; }); };
    CHECK(with("").error().code == ErrorCode::bad_option);
    const auto too_long = with(std::string(limits::step_name_max + 1, 's'));
    CHECK(too_long.error().code == ErrorCode::bad_option);
    CHECK(too_long.error().detail.find("257") != std::string::npos);
    CHECK(too_long.error().detail.find("256") != std::string::npos);
    CHECK(ran == 0);
    CHECK(with(std::string(limits::step_name_max, 's')).value() == 1);
    CHECK(with(Bytes{"\0s", 2}).value() == 2);
    ran = 0;
  }
  CHECK(Steps(orders, "", epoch).recall("s").error().code == ErrorCode::key_empty);
}

TEST_CASE("steps: a memo that is too long is an error that says so, and the step has run",
          "[patterns][steps][limits]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const Epoch epoch = orders.claim({.key = "k"}).epoch;
  for (const bool is_guarded : {true, false}) {
    Steps steps = is_guarded ? Steps{orders, "k", epoch} : Steps::unguarded(orders);
    int ran = 0;
    const auto result = steps.run("s", [&] {
      ++ran;
      return std::string(limits::memos_bytes_max, 'x');
    });
    CHECK(ran == 1);
    CHECK(result.error().code == ErrorCode::value_too_long);
    CHECK(result.error().detail.find(std::to_string(limits::memos_bytes_max)) != std::string::npos);
    constexpr std::size_t head = 1 + 2 + 4 + 1;
    CHECK(steps.remember("s", std::string(limits::memos_bytes_max - head + 1, 'x')).error().code ==
          ErrorCode::value_too_long);
    CHECK(steps.remember("s", std::string(limits::memos_bytes_max - head, 'x')).has_value());
    // There is no room for another: said before it runs.
    CHECK(steps.run("t", [&] { return ++ran; }).error().code == ErrorCode::value_too_long);
    CHECK(ran == 1);
  }
}

TEST_CASE("steps: an owner that gave its work back remembers nothing more", "[patterns][steps]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const ClaimOutcome old = orders.claim({.key = "k"});
  process.clock().advance(60s);
  Steps late{orders, "k", old.epoch};
  CHECK(late.remember("a", "1").error().code == ErrorCode::not_owner);
  const ClaimOutcome fresh = orders.claim({.key = "k"});
  CHECK(late.remember("a", "1").error().code == ErrorCode::not_owner);
  Steps steps{orders, "k", fresh.epoch};
  CHECK(steps.remember("a", "1").has_value());
  CHECK(steps.recall("a").value() == "1");
  CHECK(steps.recall("b").value() == std::nullopt);
  REQUIRE(orders.release({.key = "k", .epoch = fresh.epoch}).answer == OwnerAnswer::ok);
  CHECK(steps.remember("a", "2").error().code == ErrorCode::not_owner);
  CHECK(orders.get("k")->state == ClaimState::absent);
}

TEST_CASE("steps: a former owner learns nothing of the present run",
          "[patterns][steps][attack][fault-15]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const Epoch old = orders.claim({.key = "k"}).epoch;
  process.clock().advance(60s);
  const Epoch now = orders.claim({.key = "k"}).epoch;
  REQUIRE(Steps(orders, "k", now).remember("s", "memo").has_value());
  CHECK(Steps(orders, "k", now).recall("s").value() == "memo");
  const auto late = Steps(orders, "k", old).recall("s");
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == ErrorCode::not_owner);
}

TEST_CASE("steps: a snapshot that is put back has them",
          "[patterns][steps][once-again-1][once-again-2][once-again-3]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  Charging charging{process};
  const Epoch held = orders.claim({.key = "held", .session = SessionId{0}}).epoch;
  REQUIRE(Steps(orders, "held", held).remember("charge", "h").has_value());
  CHECK(once(orders, "given back", charging("g", false)).answer == OnceAnswer::failed);
  CHECK(once(orders, "done", charging("d", true)).answer == OnceAnswer::ran);

  auto copy = Engine::open({.clock = &process.clock(), .background = std::nullopt}).value();
  REQUIRE(process.engine().host().snapshot(
      [&](const Mutation& mutation) { REQUIRE(copy->host().restore(mutation)); }));
  Claims there = copy->claims("orders", policies::call).value();
  CHECK(Steps(there, "held", held).recall("charge").value() == "h");
  CHECK(Steps(there, "held", held - 1).recall("none").error().code == ErrorCode::not_owner);
  CHECK(once(there, "given back", charging("again", true)).value == "g");
  CHECK(once(there, "done", charging("again", true)).value == "d");
  CHECK(charging.times() == 2);
}
