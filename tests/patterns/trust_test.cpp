// What must not happen whatever the work does: a second run after an exception that may have had
// its effect, a second run for a result that could not be kept, a lock that is not held.
#include <mutex>
#include <stdexcept>
#include <system_error>
#include "tests/support/catch.hpp"

#include "semel/patterns/lock.hpp"
#include "semel/patterns/once.hpp"
#include "semel/patterns/token_service.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

struct Unwritable {
  int number = 0;
  std::string encode() const { throw std::runtime_error{"no form for it"}; }
  static std::optional<Unwritable> decode(Bytes) { return std::nullopt; }
};

/// An engine whose values are short.
struct Small {
  explicit Small(const Policy& policy = policies::call)
      : engine(Engine::open({.clock = &clock,
                             .memory_bytes = limits::memory_bytes_min,
                             .key_bytes_max = 64,
                             .value_bytes_max = 262'144,
                             .shard_count = 1})
                   .value()),
        claims(engine->claims("small", policy).value()) {}
  ManualClock clock;
  std::unique_ptr<Engine> engine;
  Claims claims;
};

std::error_code code_of_lock(Lock& lock) {
  try {
    lock.lock();
  } catch (const std::system_error& refused) {
    return refused.code();
  }
  return {};
}

std::error_code lock_error(ErrorCode code) {
  return {static_cast<int>(code), error_category()};
}

}  // namespace

TEST_CASE("once: a payment that throws runs once, and is in doubt until it is resolved",
          "[patterns][once][attack][fault-13]") {
  Process process;
  Claims payments = process.claims("payments", policies::payment);
  int charged = 0;
  const auto charge = [&]() -> int {
    ++charged;
    throw std::runtime_error{"the connection broke"};
  };
  CHECK_THROWS_AS(once(payments, "p", charge), std::runtime_error);
  for (int i = 0; i < 3; ++i) {
    CHECK(once(payments, "p", charge).answer == OnceAnswer::in_doubt);
    process.clock().advance(Millis{3'600'000});
  }
  CHECK(payments.get("p")->state == ClaimState::in_doubt);
  process.restart();
  payments = process.claims("payments", policies::payment);
  CHECK(once(payments, "p", charge).answer == OnceAnswer::in_doubt);
  CHECK(charged == 1);
  SECTION("as done") {
    REQUIRE(*payments.resolve("p", Resolution::done, "7"));
    const auto repeat = once(payments, "p", charge);
    CHECK(repeat.answer == OnceAnswer::replayed);
    CHECK(repeat.value == 7);
    CHECK(charged == 1);
  }
  SECTION("as never done") {
    REQUIRE(*payments.resolve("p", Resolution::released));
    CHECK(once(payments, "p", [] { return 7; }).answer == OnceAnswer::ran);
  }
}

TEST_CASE("once: a payment that does not know its outcome is in doubt, and says what it knows",
          "[patterns][once][attack][fault-13]") {
  Process process;
  Claims payments = process.claims("payments", policies::payment);
  int charged = 0;
  const auto charge = [&]() -> Result<int> {
    ++charged;
    return unknown_outcome("504 from the bank");
  };
  const auto first = once(payments, "p", charge);
  CHECK(first.answer == OnceAnswer::in_doubt);
  CHECK(first.failure.find("504 from the bank") != std::string::npos);
  CHECK_FALSE(first.has_value());
  CHECK(once(payments, "p", charge).answer == OnceAnswer::in_doubt);
  CHECK(payments.get("p")->result.find("504 from the bank") != std::string::npos);
  CHECK(charged == 1);
  const auto pay_nothing = [&]() -> Status { return unknown_outcome(); };
  CHECK(once(payments, "q", pay_nothing).answer == OnceAnswer::in_doubt);
}

TEST_CASE("once: an exception means what the policy says, and an error value stays a failure",
          "[patterns][once][attack][fault-13]") {
  Process process;
  int runs = 0;
  const auto breaks = [&]() -> int {
    ++runs;
    throw 7;
  };
  const auto fails = [&]() -> Result<int> {
    ++runs;
    return Error{ErrorCode::syntax, "no such card"};
  };
  SECTION("release: the next one runs") {
    for (const NamedPolicy& one :
         {NamedPolicy{"a", policies::call}, NamedPolicy{"b", policies::message}}) {
      Claims calls = process.claims(one.name, one.policy);
      CHECK_THROWS_AS(once(calls, "k", breaks), int);
      CHECK(once(calls, "k", [] { return 1; }).answer == OnceAnswer::ran);
    }
  }
  SECTION("keep: it has failed for good") {
    Policy keeps = policies::call;
    keeps.on_exception = Policy::OnFailure::keep;
    Claims calls = process.claims("calls", keeps);
    CHECK_THROWS_AS(once(calls, "k", breaks), int);
    CHECK(once(calls, "k", breaks).answer == OnceAnswer::kept_failure);
    CHECK(runs == 1);
  }
  SECTION("in_doubt, also where a lease that ends is taken over") {
    Policy doubts = policies::call;
    doubts.on_exception = Policy::OnFailure::in_doubt;
    Claims calls = process.claims("calls", doubts);
    CHECK_THROWS_AS(once(calls, "k", breaks), int);
    process.clock().advance(Millis{10 * 86'400'000});
    CHECK(once(calls, "k", breaks).answer == OnceAnswer::in_doubt);
    CHECK(runs == 1);
    CHECK(once(calls, "l", fails).answer == OnceAnswer::failed);  // it knows: nothing was done
    CHECK(once(calls, "l", fails).answer == OnceAnswer::failed);
    CHECK(runs == 3);
  }
  SECTION("a token that was used by what threw is free again") {
    TokenService tokens = TokenService::open(process.claims("tokens", policies::token)).value();
    REQUIRE(*tokens.issue_as("t"));
    CHECK_THROWS_AS(tokens.redeem("t", breaks), int);
    CHECK(tokens.redeem("t", [] { return 1; }).answer == OnceAnswer::ran);
  }
  SECTION("an exception that cannot be reported: the policy's words are in range") {
    Policy wrong = policies::call;
    wrong.on_exception = static_cast<Policy::OnFailure>(3);
    CHECK(process.engine().claims("wrong", wrong).error().code == ErrorCode::bad_option);
  }
}

TEST_CASE("claims: an owner in doubt may still say how it ended",
          "[patterns][claims][attack][fault-13]") {
  Process process;
  Claims payments = process.claims("payments", policies::payment);
  const Epoch epoch = payments.claim({.key = "p"}).epoch;
  const OwnerCall doubt{
      .key = "p", .epoch = epoch, .payload = "504", .on_failure = Policy::OnFailure::in_doubt};
  REQUIRE(payments.fail(doubt).answer == OwnerAnswer::ok);
  CHECK(payments.fail(doubt).answer == OwnerAnswer::ok);
  CHECK(payments.renew({.key = "p", .epoch = epoch}).answer == OwnerAnswer::refused);
  CHECK(payments.complete({.key = "p", .epoch = epoch - 1}).answer == OwnerAnswer::stale_owner);
  CHECK(payments.complete({.key = "p", .epoch = epoch, .payload = "7"}).answer == OwnerAnswer::ok);
  CHECK(payments.claim({.key = "p"}).answer == ClaimAnswer::replay);
}

TEST_CASE("once: a result that is too long is dropped, and the work is done",
          "[patterns][once][attack][fault-12]") {
  Small small;
  int charged = 0;
  const auto charge = [&] {
    ++charged;
    return std::string(262'145, 'x');
  };
  const auto first = once(small.claims, "k", charge);
  CHECK(first.answer == OnceAnswer::ran);
  CHECK(first.error.code == ErrorCode::result_not_kept);
  REQUIRE(first.has_value());
  CHECK(first.value->size() == 262'145);
  for (int i = 0; i < 3; ++i) {
    CHECK(once(small.claims, "k", charge).answer == OnceAnswer::expired);
    small.clock.advance(policies::call.lease);
  }
  CHECK(charged == 1);
  const auto longest = [] { return std::string(262'144, 'x'); };  // the limit itself is kept
  CHECK(once(small.claims, "l", longest).error.code == ErrorCode::ok);
  CHECK(once(small.claims, "l", longest).value->size() == 262'144);
}

TEST_CASE("once: the same where it has remembered steps", "[patterns][once][attack][fault-12]") {
  Small small;
  int charged = 0;
  const auto charge = [&](Work& work) -> Result<std::string> {
    SEMEL_TRY(step, work.steps().run("charge", [&] { return ++charged; }));
    static_cast<void>(step);
    return std::string(300'000, 'x');
  };
  const auto first = once(small.claims, "k", charge);
  CHECK(first.answer == OnceAnswer::ran);
  CHECK(first.error.code == ErrorCode::result_not_kept);
  CHECK(once(small.claims, "k", charge).answer == OnceAnswer::expired);
  CHECK(charged == 1);
}

TEST_CASE("once: a result whose encode() throws is dropped, and the work is done",
          "[patterns][once][attack][fault-12]") {
  for (const Policy& policy : {policies::call, policies::payment}) {
    Process process;
    Claims calls = process.claims("calls", policy);
    int charged = 0;
    const auto charge = [&] { return Unwritable{++charged}; };
    const auto first = once(calls, "k", charge);
    CHECK(first.answer == OnceAnswer::ran);
    CHECK(first.error.message().find("no form for it") != std::string::npos);
    REQUIRE(first.has_value());
    CHECK(first.value->number == 1);
    CHECK(once(calls, "k", charge).answer == OnceAnswer::expired);
    CHECK(calls.get("k")->state == ClaimState::done);
    CHECK(charged == 1);
  }
}

TEST_CASE("once: in a full engine the work is done, with its result or without",
          "[patterns][once][attack][fault-12]") {
  Small small;
  int charged = 0;
  const auto charge = [&] {
    ++charged;
    const std::string filler(262'144, 'f');
    for (int i = 0; small.engine->store().set("f" + std::to_string(i), filler).ok();) ++i;
    return std::string(262'144, 'x');
  };
  const auto first = once(small.claims, "k", charge);
  CHECK(first.answer == OnceAnswer::ran);
  const bool kept = first.error.code == ErrorCode::ok;
  CHECK((kept || first.error.code == ErrorCode::result_not_kept));
  CHECK(once(small.claims, "k", charge).answer ==
        (kept ? OnceAnswer::replayed : OnceAnswer::expired));
  CHECK(charged == 1);
}

TEST_CASE("tokens: one that is spent with too long a result is spent",
          "[patterns][tokens][attack][fault-12]") {
  Small small{policies::token};
  TokenService tokens = TokenService::open(small.claims).value();
  REQUIRE(*tokens.issue_as("t"));
  const TokenOutcome reserved = tokens.reserve("t");
  const OwnerOutcome spent = tokens.spend("t", reserved.epoch, std::string(300'000, 'x'));
  CHECK(spent.answer == OwnerAnswer::ok);
  CHECK(spent.dropped == ErrorCode::value_too_long);
  CHECK(tokens.redeem("t", [] { return 1; }).answer == OnceAnswer::expired);
}

TEST_CASE("claims: a completion says whether its result may be dropped",
          "[patterns][claims][attack][fault-12]") {
  Small small;
  Claims& claims = small.claims;
  const std::string large(300'000, 'x');
  const Epoch epoch = claims.claim({.key = "k"}).epoch;
  OwnerCall call{.key = "k", .epoch = epoch, .payload = large};
  CHECK(claims.complete(call).error == ErrorCode::value_too_long);
  CHECK(claims.get("k")->state == ClaimState::held);
  call.keeping = ResultKeeping::optional;
  CHECK(claims.complete(call).dropped == ErrorCode::value_too_long);
  CHECK(claims.complete(call).answer == OwnerAnswer::ok);  // its answer was lost
  call.payload = "another";
  CHECK(claims.complete(call).answer == OwnerAnswer::conflict);
  const ClaimOutcome again = claims.claim({.key = "k"});
  CHECK(again.answer == ClaimAnswer::replay);
  CHECK(again.result_expired);
  CHECK(again.result.empty());

  // In a batch as alone.
  const Epoch other = claims.claim({.key = "l"}).epoch;
  const OwnerCall calls[] = {
      {.key = "l", .epoch = other, .payload = large, .keeping = ResultKeeping::optional}};
  OwnerOutcome outcomes[1];
  claims.complete(calls, outcomes);
  CHECK(outcomes[0].answer == OwnerAnswer::ok);
  CHECK(outcomes[0].dropped == ErrorCode::value_too_long);
}

TEST_CASE("lock: lock() returns with the lock, or throws and says why",
          "[patterns][lock][attack][fault-11]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  const std::string long_key(limits::key_bytes_max + 1, 'k');
  Lock empty{locks, ""};
  CHECK(code_of_lock(empty) == lock_error(ErrorCode::key_empty));
  CHECK_FALSE(empty.try_lock());
  CHECK(empty.why_not().code == ErrorCode::key_empty);
  CHECK_FALSE(empty.try_lock_for(Millis{1}));
  CHECK(empty.why_not().code == ErrorCode::key_empty);
  Lock too_long{locks, long_key};
  CHECK(code_of_lock(too_long) == lock_error(ErrorCode::key_too_long));
  REQUIRE(process.engine().store().set("locks:s", "a string").ok());
  Lock wrong{locks, "s"};
  CHECK(code_of_lock(wrong) == lock_error(ErrorCode::wrong_kind));
  Lock no_lease{locks, "n", {.lease = Millis{0}}};
  CHECK(code_of_lock(no_lease) == lock_error(ErrorCode::bad_option));

  Lock done{locks, "d"};
  const Epoch epoch = locks.claim({.key = "d"}).epoch;
  REQUIRE(locks.complete({.key = "d", .epoch = epoch}).answer == OwnerAnswer::ok);
  CHECK(code_of_lock(done) == lock_error(ErrorCode::not_owner));

  bool entered = false;
  const auto enter = [&] {
    const std::lock_guard guard{empty};
    entered = true;
  };
  CHECK_THROWS_AS(enter(), std::system_error);
  CHECK_FALSE(entered);
  Lock good{locks, "g"};
  {
    const std::lock_guard guard{good};
    CHECK(good.is_held());
    CHECK(good.why_not().code == ErrorCode::ok);
  }
  CHECK_FALSE(good.is_held());
}

TEST_CASE("lock: without memory lock() throws, also where the policy fails open",
          "[patterns][lock][attack][fault-11]") {
  for (const bool fail_open : {false, true}) {
    Policy policy = policies::lock;
    policy.fail_open = fail_open;
    Small small{policy};
    std::vector<std::unique_ptr<Lock>> locks;
    std::error_code code;
    while (!code && locks.size() < 1'000'000) {
      locks.push_back(std::make_unique<Lock>(small.claims, "lock" + std::to_string(locks.size())));
      code = code_of_lock(*locks.back());
      CHECK((locks.back()->fencing_token() == 0) == static_cast<bool>(code));
    }
    CHECK(code == lock_error(ErrorCode::memory_full));
    CHECK_FALSE(locks.back()->is_held());
  }
}

TEST_CASE("lock: try_lock says that another has it, and an endless wait is none of no time",
          "[patterns][lock][attack][fault-11][fault-21]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock mine{locks, "l"};
  Lock other{locks, "l"};
  REQUIRE(mine.try_lock_for(Millis::max()));
  CHECK_FALSE(other.try_lock());
  CHECK(other.why_not().code == ErrorCode::timed_out);
  CHECK(other.why().answer == ClaimAnswer::in_flight);
  CHECK_FALSE(other.try_lock_for(Millis::min()));
  CHECK(other.why_not().code == ErrorCode::timed_out);
  CHECK(deadline_after(Timestamp{Millis{5}}, Millis::max()) == no_end);
  CHECK(deadline_after(Timestamp{Millis{5}}, Millis::min()) == Timestamp{Millis{5}});
  CHECK(deadline_after(Timestamp{Millis{5}}, Millis{3}) == Timestamp{Millis{8}});
  CHECK(deadline_after(no_end, Millis{3}) == no_end);
}

TEST_CASE("lock: a hold that was lost is not locked again under its owner",
          "[patterns][lock][attack][fault-11]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock mine{locks, "l"};
  mine.lock();
  process.clock().advance(Millis{30'000});
  CHECK(code_of_lock(mine) == lock_error(ErrorCode::not_owner));  // free, but not his any more
  CHECK_FALSE(mine.unlock());
  CHECK_FALSE(code_of_lock(mine));
  CHECK(mine.is_held());
}

TEST_CASE("lock: a lease that its watchdog cannot keep is refused",
          "[patterns][lock][attack][fault-11]") {
  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Watchdog watchdog{process.engine(), Millis{3'600'000}};
  CHECK_FALSE(watchdog.can_keep(Millis{7'199'999}));
  CHECK(watchdog.can_keep(Millis{7'200'000}));
  Lock lock{locks, "l", {.lease = Millis{7'199'999}, .watchdog = &watchdog}};
  CHECK(code_of_lock(lock) == lock_error(ErrorCode::bad_option));
  CHECK_FALSE(lock.try_lock());
  CHECK(lock.why_not().code == ErrorCode::bad_option);
  Lock enough{locks, "l", {.lease = Millis{7'200'000}, .watchdog = &watchdog}};
  CHECK(enough.try_lock());
  bool ran = false;
  const OnceCall call{.key = "o", .lease = Millis{1'000}, .watchdog = &watchdog};
  const auto refused = once(locks, call, [&] { ran = true; });
  CHECK(refused.answer == OnceAnswer::refused);
  CHECK(refused.error.code == ErrorCode::bad_option);
  CHECK_FALSE(ran);
  Watchdog by_hand{process.engine()};
  CHECK(by_hand.can_keep(Millis{1}));
}

TEST_CASE("results: no Result of an answer can be asked in an if",
          "[patterns][result][attack][fault-17]") {
  static_assert(!std::is_constructible_v<bool, Result<bool>>);
  static_assert(!std::is_constructible_v<bool, Result<ClaimState>>);
  static_assert(!std::is_constructible_v<bool, Result<std::int64_t>>);
  static_assert(!std::is_constructible_v<bool, Result<std::optional<std::string>>>);
  static_assert(!std::is_constructible_v<bool, Result<SetResult>>);
  static_assert(std::is_constructible_v<bool, Result<std::string>>);
  Process process;
  Store store = process.engine().store();
  const Result<bool> first = store.setnx("k", "v");
  const Result<bool> second = store.setnx("k", "v");
  CHECK((first.ok() && *first));
  CHECK((second.ok() && !*second));  // it went well, and the answer is no
}
