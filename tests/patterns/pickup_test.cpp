// A claim is looked at again before what it allows is done: by a caller that waited for it, and by
// a batch whose other handlers took their time. Issue Once again, 1, 10, 12 and 13.
#include <atomic>
#include <optional>
#include <string>
#include <system_error>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/consume.hpp"
#include "semel/patterns/lock.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using namespace std::chrono_literals;
using semel::tests::Process;

namespace {

/// What a caller that waited was answered: a grant, whose lease is 60 s.
ClaimOutcome granted(Claims& ns, Bytes key = "k") {
  ClaimOutcome outcome = ns.claim({.key = key});
  REQUIRE(outcome.answer == ClaimAnswer::granted);
  return outcome;
}
using Run = detail::GuardedRun;

}  // namespace

TEST_CASE("a grant whose lease is over when its caller looks is asked for again",
          "[patterns][once][once-again-1]") {
  Process process;
  Claims ns = process.claims("payments", policies::payment);
  ClaimOutcome waited = granted(ns);
  const Epoch first = waited.epoch;
  process.clock().advance(61s);
  const OnceCall call{.key = "k"};
  Run run{ns, call, std::move(waited), detail::Pickup::later};
  REQUIRE(run.runs());  // nothing had run: no doubt, no takeover, and no try is used up
  CHECK(run.claim().epoch > first);
  CHECK(run.report().attempt == 1);
  CHECK_FALSE(run.report().takeover);
  CHECK(ns.get("k")->lease_remaining == 60s);
  run.give_back();
}

TEST_CASE("a grant that is another's when its caller looks runs nothing",
          "[patterns][once][once-again-1]") {
  Process process;
  Claims ns = process.claims("orders", policies::call);
  const OnceCall call{.key = "k"};
  ClaimOutcome waited = granted(ns);
  process.clock().advance(61s);
  const ClaimOutcome other = granted(ns);
  {
    Run run{ns, call, ClaimOutcome{waited}, detail::Pickup::later};
    CHECK_FALSE(run.runs());
    CHECK(run.report().answer == OnceAnswer::in_flight);
  }
  CHECK(ns.get("k")->epoch == other.epoch);
  REQUIRE(ns.complete({.key = "k", .epoch = other.epoch, .payload = "theirs"}).error ==
          ErrorCode::ok);
  Run run{ns, call, std::move(waited), detail::Pickup::later};
  CHECK_FALSE(run.runs());
  CHECK(run.report().answer == OnceAnswer::replayed);
  CHECK(run.stored() == "theirs");
}

TEST_CASE("a payment whose grant was resolved as done meanwhile is not made",
          "[patterns][once][once-again-1]") {
  Process process;
  Claims ns = process.claims("payments", policies::payment);
  ClaimOutcome waited = granted(ns);
  process.clock().advance(61s);
  REQUIRE(*ns.resolve("k", Resolution::done));
  const OnceCall call{.key = "k"};
  const Run run{ns, call, std::move(waited), detail::Pickup::later};
  CHECK_FALSE(run.runs());
}

TEST_CASE("a lock that was granted while nobody looked is taken anew, or another's",
          "[patterns][lock][once-again-12]") {
  Process process;
  Claims ns = process.claims("locks", policies::lock);
  Lock mine{ns, "k", {.lease = 1s}};
  ClaimOutcome waited = ns.claim(mine.request());
  const Epoch first = waited.epoch;
  process.clock().advance(2s);
  CHECK(mine.take(std::move(waited)));
  CHECK(mine.fencing_token() > first);
  CHECK(mine.unlock());

  waited = ns.claim(mine.request());
  process.clock().advance(2s);
  Lock theirs{ns, "k"};
  REQUIRE(theirs.try_lock());
  CHECK_FALSE(mine.take(std::move(waited)));
  CHECK(mine.why_not().code == ErrorCode::timed_out);
  CHECK(mine.fencing_token() == 0);
  CHECK(theirs.is_held());
}

TEST_CASE("a batch looks at each claim before its handler, whatever has become of it",
          "[patterns][consume][once-again-13]") {
  Process process;
  Claims ns = process.claims("mq", policies::message);
  const std::vector<Message> batch{{.id = "m-1"}, {.id = "m-2"}};
  int second = 0;
  const auto story = [&](auto&& meanwhile) {
    second = 0;
    static_cast<void>(ns.forget("m-1"));
    static_cast<void>(ns.forget("m-2"));
    return consume_batch(ns, batch, [&](const Message& message) {
      message.id == "m-2" ? static_cast<void>(++second) : meanwhile();
    });
  };
  const auto other = [&] { consume_once(ns, {.id = "m-2"}, [&] { ++second; }); };

  CHECK(story([&] { static_cast<void>(ns.forget("m-2")), other(); })[1].verdict ==
        Verdict::ack_duplicate);
  CHECK(second == 1);
  story([&] { static_cast<void>(ns.resolve("m-2", Resolution::done)); });
  CHECK(second == 0);
  // The lease is the one of the grant, whatever the namespace says by now.
  story([&] {
    Policy longer = policies::message;
    longer.lease = 600s;
    REQUIRE(process.engine().change_namespace("mq", longer).ok());
    process.clock().advance(61s);
    other();
  });
  CHECK(second == 1);
  const auto dropped =
      story([&] { REQUIRE(process.engine().drop_namespace("mq", DropRule::all).ok()); });
  CHECK(second == 0);
  CHECK(dropped[1].verdict == Verdict::retry_later);
}

TEST_CASE("a watchdog keeps no claim that is over, or nobody's",
          "[patterns][watchdog][once-again-10]") {
  Process process;
  Claims ns = process.claims("orders", policies::call);
  Watchdog watchdog{process.engine()};
  const ClaimOutcome first = granted(ns);
  CHECK_FALSE(watchdog.keep(ns, "k", first.epoch).lost());
  process.clock().advance(61s);
  CHECK(watchdog.keep(ns, "k", first.epoch).lost());
  const ClaimOutcome second = granted(ns);
  CHECK(watchdog.keep(ns, "k", first.epoch).lost());
  CHECK_FALSE(watchdog.keep(ns, "k", second.epoch).lost());
  CHECK(watchdog.keep(ns, "never", 0).lost());
}

TEST_CASE("a lease that is over before its grant is known is no endless wait",
          "[patterns][lock][once-again-12]") {
  // A clock on which a lease of 1 ms is over at each look.
  struct Racing final : Clock {
    mutable std::atomic<std::int64_t> ms{1'000'000};
    Timestamp now() const noexcept override {
      return Timestamp{Millis{ms.fetch_add(2, std::memory_order_relaxed)}};
    }
    std::int64_t unix_ms() const noexcept override { return 1'700'000'000'000; }
  };
  const Racing clock;
  const auto engine = Engine::open({.clock = &clock}).value();
  Claims ns = engine->claims("locks", policies::lock).value();
  int runs = 0;
  const auto outcome = once(ns, {.key = "k", .lease = 1ms, .wait = Millis::max()}, [&] { ++runs; });
  CHECK(outcome.answer == OnceAnswer::in_flight);
  CHECK(outcome.error.code == ErrorCode::timed_out);
  CHECK(runs == 0);
  Lock lock{ns, "l", {.lease = 1ms}};
  CHECK_THROWS_AS(lock.lock(), std::system_error);
}
