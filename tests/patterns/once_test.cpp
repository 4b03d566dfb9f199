// once(): a function runs once under a key, and its result is replayed.
#include "semel/patterns/once.hpp"

#include <stdexcept>
#include <thread>
#include "tests/support/catch.hpp"

#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

struct Receipt {
  int number = 0;
  std::string encode() const { return "receipt " + std::to_string(number); }
  static std::optional<Receipt> decode(Bytes bytes) {
    if (!bytes.starts_with("receipt ")) return std::nullopt;
    const auto number = Codec<int>::decode(bytes.substr(8));
    return number ? std::optional{Receipt{*number}} : std::nullopt;
  }
};
enum class Colour : std::uint8_t { red = 1, blue = 7 };

}  // namespace

TEST_CASE("once: the first call runs, the next ones get its result", "[patterns][once]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  int runs = 0;
  const auto pay = [&] {
    ++runs;
    return std::string{"paid"};
  };
  const auto first = once(orders, "order-1", pay);
  CHECK(first.answer == OnceAnswer::ran);
  CHECK(first.value == "paid");
  CHECK(first.attempt == 1);
  CHECK(first.epoch != 0);
  const auto second = once(orders, "order-1", pay);
  CHECK(second.answer == OnceAnswer::replayed);
  CHECK(second.value == "paid");
  CHECK(runs == 1);
  CHECK(once(orders, "order-2", pay).answer == OnceAnswer::ran);
}

TEST_CASE("once: results of all kinds come back as they were", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto twice = [&](Bytes key, auto function) {
    static_cast<void>(once(calls, key, function));
    return once(calls, key, function);
  };
  CHECK(twice("void", [] {}).value == Nothing{});
  CHECK(twice("bool", [] { return true; }).value == true);
  CHECK(twice("int", [] { return -7; }).value == -7);
  CHECK(twice("big", [] { return std::uint64_t{18'446'744'073'709'551'615U}; }).value ==
        18'446'744'073'709'551'615U);
  CHECK(twice("double", [] { return 0.1; }).value == 0.1);
  CHECK(twice("enum", [] { return Colour::blue; }).value == Colour::blue);
  CHECK(twice("bytes", [] { return std::string{"a\0b", 3}; }).value == std::string{"a\0b", 3});
  CHECK(twice("own", [] { return Receipt{12}; }).value->number == 12);
  CHECK(twice("status", []() -> Status { return Done{}; }).value == Nothing{});
}

TEST_CASE("once: a result that is read as another type is an error, not a guess",
          "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  REQUIRE(once(calls, "k", [] { return std::string{"twelve"}; }).has_value());
  const auto read = once(calls, "k", [] { return 12; });
  CHECK(read.answer == OnceAnswer::replayed);
  CHECK_FALSE(read.has_value());
  CHECK(read.error.code == ErrorCode::bad_encoding);
}

TEST_CASE("once: an error gives the claim back, and the next call runs", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto failed = once(calls, "k", []() -> Result<int> {
    return Error{ErrorCode::timed_out, "the bank is slow"};
  });
  CHECK(failed.answer == OnceAnswer::failed);
  CHECK_FALSE(failed.has_value());
  CHECK(failed.error.code == ErrorCode::timed_out);
  CHECK(failed.failure == "the deadline passed while waiting: the bank is slow");
  CHECK(once(calls, "k", []() -> Result<int> { return 3; }).answer == OnceAnswer::ran);
}

TEST_CASE("once: a kept failure is the answer to all later calls", "[patterns][once]") {
  Process process;
  Policy keeps = policies::call;
  keeps.on_failure = Policy::OnFailure::keep;
  Claims calls = process.claims("calls", keeps);
  const auto fails = []() -> Result<int> { return Error{ErrorCode::syntax, "no such card"}; };
  CHECK(once(calls, "k", fails).answer == OnceAnswer::failed);
  const auto later = once(calls, "k", fails);
  CHECK(later.answer == OnceAnswer::kept_failure);
  CHECK(later.failure == "syntax error: no such card");
}

TEST_CASE("once: a function that throws gives the claim back", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto bad = [](bool goes_wrong) {
    if (goes_wrong) throw std::runtime_error{"gone"};
    return 1;
  };
  CHECK_THROWS_WITH(once(calls, "k", [&] { return bad(true); }), "gone");
  CHECK(once(calls, "k", [&] { return bad(false); }).answer == OnceAnswer::ran);
}

TEST_CASE("once: while it runs, others get in_flight and the owner", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  OnceOutcome<int> inner;
  const auto outer = once(calls, OnceCall{.key = "k", .owner = "first"}, [&] {
    inner = once(calls, "k", [] { return 2; });
    return 1;
  });
  CHECK(outer.value == 1);
  CHECK(inner.answer == OnceAnswer::in_flight);
  CHECK(inner.retry_after == Millis{1'000});
  CHECK_FALSE(inner.has_value());
}

TEST_CASE("once: a waiter gets the result of the run", "[patterns][once][race]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  OnceOutcome<std::string> waited;
  std::thread other;
  const auto first = once(calls, "k", [&] {
    std::atomic<bool> begun{false};
    other = std::thread{[&] {
      Claims mine = calls;
      begun.store(true, std::memory_order_release);  // mo: release: read below
      waited = once(mine, OnceCall{.key = "k", .wait = Millis{60'000}},
                    [] { return std::string{"second"}; });
    }};
    while (!begun.load(std::memory_order_acquire)) std::this_thread::yield();  // mo: as above
    return std::string{"first"};
  });
  other.join();
  CHECK(first.value == "first");
  CHECK(waited.answer == OnceAnswer::replayed);
  CHECK(waited.value == "first");
}

TEST_CASE("once: another payload under the same key is a mismatch", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto call = [&](std::uint8_t digest) {
    OnceCall with{.key = "k", .fingerprint = {.algorithm = 1}};
    with.fingerprint.digest[0] = digest;
    return once(calls, with, [] { return 1; }).answer;
  };
  CHECK(call(1) == OnceAnswer::ran);
  CHECK(call(2) == OnceAnswer::mismatch);
  CHECK(call(1) == OnceAnswer::replayed);
}

TEST_CASE("once: an owner that was taken over cannot store its result (case B)",
          "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  OnceOutcome<std::string> newer;
  const auto slow = once(calls, "k", [&] {
    process.clock().advance(Millis{60'000});
    newer = once(calls, "k", [] { return std::string{"newer"}; });
    return std::string{"slow"};
  });
  CHECK(newer.answer == OnceAnswer::ran);
  CHECK(newer.takeover);
  CHECK(newer.attempt == 2);
  CHECK(newer.epoch > slow.epoch);
  CHECK(slow.answer == OnceAnswer::superseded);
  CHECK(slow.value == "newer");
  CHECK(once(calls, "k", [] { return std::string{"third"}; }).value == "newer");
}

TEST_CASE("once: a late result counts without a takeover, on both sides of the lease's end",
          "[patterns][once]") {
  for (const int beyond : {-1, 0}) {
    Process process;
    Claims calls = process.claims("calls", policies::call);
    const auto run = once(calls, "k", [&] {
      process.clock().advance(Millis{60'000 + beyond});
      return 1;
    });
    CHECK(run.answer == OnceAnswer::ran);
    CHECK(run.late == (beyond == 0));
  }
}

TEST_CASE("once: a strict namespace does not store a late result", "[patterns][once]") {
  Process process;
  Policy strict = policies::call;
  strict.strict = true;
  Claims calls = process.claims("calls", strict);
  const auto run = once(calls, "k", [&] {
    process.clock().advance(Millis{60'000});
    return 1;
  });
  CHECK(run.answer == OnceAnswer::unrecorded);
  CHECK(run.value == 1);
}

TEST_CASE("once: the result is replayed until its time is over, to the millisecond",
          "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  REQUIRE(once(calls, "k", [] { return 1; }).has_value());
  process.clock().advance(Millis{3'599'999});
  CHECK(once(calls, "k", [] { return 2; }).value == 1);
  process.clock().advance(Millis{1});
  CHECK(once(calls, "k", [] { return 2; }).value == 2);
}

TEST_CASE("once: a key that outlives its result is expired, and runs not again",
          "[patterns][once]") {
  Process process;
  Claims rows = process.claims("rows", policies::dedup);
  REQUIRE(once(rows, "k", [] { return 1; }).has_value());
  process.clock().advance(Millis{86'400'000});
  const auto later = once(rows, "k", [] { return 2; });
  CHECK(later.answer == OnceAnswer::expired);
  CHECK_FALSE(later.has_value());
}

TEST_CASE("once: without a key it is refused, or runs unguarded where the caller says so",
          "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  int runs = 0;
  const auto run = [&] { return ++runs; };
  const auto refused = once(calls, "", run);
  CHECK(refused.answer == OnceAnswer::refused);
  CHECK(refused.error.code == ErrorCode::key_empty);
  CHECK(runs == 0);
  for (int i = 1; i <= 2; ++i) {
    const auto open = once(calls, OnceCall{.key = "", .without_key = true}, run);
    CHECK(open.answer == OnceAnswer::unguarded);
    CHECK(open.value == i);
    CHECK(open.epoch == 0);
  }
}

TEST_CASE("once: a full machine refuses, and a namespace that fails open says unguarded (case H)",
          "[patterns][once]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock, .memory_bytes = limits::memory_bytes_min}).value();
  Store store = engine->store();
  const std::string large(100'000, 'x');
  for (int i = 0; store.set("fill" + std::to_string(i), large).has_value(); ++i) {
  }
  for (int i = 0; store.set("s" + std::to_string(i), "x").has_value(); ++i) {
  }
  Policy open = policies::call;
  open.fail_open = true;
  int runs = 0;
  Claims closed_calls = engine->claims("closed", policies::call).value();
  const auto refused = once(closed_calls, "k", [&] { return ++runs; });
  CHECK(refused.answer == OnceAnswer::busy);
  CHECK(refused.error.code == ErrorCode::memory_full);
  CHECK(runs == 0);
  Claims open_calls = engine->claims("open", open).value();
  const auto unguarded = once(open_calls, "k", [&] { return ++runs; });
  CHECK(unguarded.answer == OnceAnswer::unguarded);
  CHECK(unguarded.value == 1);
}

TEST_CASE("once: the same claim_id is given its own grant again (case C)", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const ClaimId id{1, 2, 3};
  // The reply to this claim is lost on its way.
  REQUIRE(calls.claim({.key = "k", .claim_id = id}).answer == ClaimAnswer::granted);
  CHECK(once(calls, "k", [] { return 1; }).answer == OnceAnswer::in_flight);
  CHECK(once(calls, OnceCall{.key = "k", .claim_id = id}, [] { return 1; }).answer ==
        OnceAnswer::ran);
}

TEST_CASE("once: what went silent stays in doubt where the policy says so", "[patterns][once]") {
  Process process;
  Claims payments = process.claims("payments", policies::payment);
  REQUIRE(payments.claim({.key = "k"}).answer == ClaimAnswer::granted);
  process.clock().advance(Millis{60'000});
  CHECK(once(payments, "k", [] { return 1; }).answer == OnceAnswer::in_doubt);
  REQUIRE(payments.resolve("k", Resolution::done, "7").value());
  CHECK(once(payments, "k", [] { return 1; }).value == 7);
}

TEST_CASE("once: what was first sent outside of the window does not run (case G)",
          "[patterns][once]") {
  Process process;
  Policy windowed = policies::nonce;
  Claims calls = process.claims("calls", windowed);
  const std::int64_t now = process.clock().unix_ms();
  const auto sent = [&](Bytes key, std::int64_t when) {
    return once(calls, OnceCall{.key = key, .first_sent_unix_ms = when}, [] {}).answer;
  };
  CHECK(sent("a", now - 60'000) == OnceAnswer::too_old);
  CHECK(sent("a", now - 59'999) == OnceAnswer::ran);
  CHECK(sent("b", now + 60'001) == OnceAnswer::too_new);
  CHECK(sent("b", now + 60'000) == OnceAnswer::ran);
}

TEST_CASE("once: with a policy the namespace is declared on the way", "[patterns][once]") {
  Process process;
  const NamedPolicy orders{"orders", policies::call};
  CHECK(once(process.engine(), orders, "k", [] { return 1; }).answer == OnceAnswer::ran);
  CHECK(once(process.engine(), orders, "k", [] { return 2; }).value == 1);
  const auto refused =
      once(process.engine(), NamedPolicy{"no such name", {}}, "k", [] { return 1; });
  CHECK(refused.answer == OnceAnswer::refused);
  CHECK(refused.error.code == ErrorCode::bad_namespace);
}

TEST_CASE("once: the function may know its epoch, attempt and lease", "[patterns][once]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto run = once(calls, "k", [&](Work& work) {
    CHECK(work.key() == "k");
    CHECK(work.attempt() == 1);
    CHECK_FALSE(work.takeover());
    process.clock().advance(Millis{59'999});
    CHECK(work.renew());
    process.clock().advance(Millis{60'000});
    CHECK_FALSE(work.renew());  // over: a lost lease is not revived
    return work.epoch();
  });
  CHECK(run.value == run.epoch);
}

TEST_CASE("once: a crash at every step, then the same call again (cases A, D, I)",
          "[patterns][once][crash]") {
  // A step is a change in the journal, or the effect. After the crash, and its restart, the call is
  // made until it returns a result.
  const auto charge = [](Process& process, bool& saw_takeover) {
    Claims calls = process.claims("calls", policies::call);
    const auto run = once(calls, "order-1", [&](Work& work) {
      saw_takeover = saw_takeover || (process.alive() && work.takeover());
      process.effect("charged");
      return std::string{"receipt"};
    });
    return process.alive() && run.has_value() && run.value == "receipt";
  };
  int crashes = 0;
  for (std::uint64_t steps = 0;; ++steps) {
    Process process{steps};
    bool saw_takeover = false;
    const bool at_once = charge(process, saw_takeover);
    const bool effect_before = process.count("charged") == 1;
    if (at_once) break;
    ++crashes;
    process.restart();
    REQUIRE(charge(process, saw_takeover));
    REQUIRE(charge(process, saw_takeover));  // a replay
    // Once; or, when the crash came between the effect and its mark, again, and the second run
    // knows that it takes over: it can ask downstream.
    const std::size_t count = process.count("charged");
    CHECK(count == (effect_before && steps == 2 ? 2U : 1U));
    if (count == 2) CHECK(saw_takeover);
  }
  CHECK(crashes == 3);  // before the claim, before the effect, before the mark
}

TEST_CASE("once: mark-done that fails is retried, and reported when it keeps failing (case D)",
          "[patterns][once]") {
  class Stubborn final : public Journal {
   public:
    Ticket append(std::span<const Mutation>) override { return ++newest_; }
    Status wait(Ticket ticket, Durability) override {
      // The first ticket is the namespace's, the second the claim's.
      if (ticket < 3 || fails_ == 0) return Done{};
      --fails_;
      return Error{ErrorCode::outcome_unknown, "the disk does not answer"};
    }
    Ticket newest() const override { return newest_; }
    int fails_ = 0;
    Ticket newest_ = 0;
  };
  for (const int fails : {2, 3}) {
    ManualClock clock;
    Stubborn journal;
    journal.fails_ = fails;
    auto engine =
        Engine::open({.clock = &clock, .journal = &journal, .durability = Durability::logged})
            .value();
    Claims calls = engine->claims("calls", policies::call).value();
    const auto run = once(calls, "k", [] { return 1; });
    CHECK(run.value == 1);
    CHECK(run.answer == (fails == 2 ? OnceAnswer::ran : OnceAnswer::unrecorded));
    CHECK((run.error.code == ErrorCode::outcome_unknown) == (fails == 3));
  }
}

TEST_CASE("once: the same claim id twice at the same time runs once",
          "[patterns][once][attack][fault-15]") {
  Process process;
  Claims claims = process.claims("orders", policies::call);
  ClaimId id{};
  id.fill(7);
  const OnceCall call{.key = "k", .claim_id = id};
  OnceAnswer inner = OnceAnswer::refused;
  int runs = 0;
  const auto outer = once(claims, call, [&] {
    ++runs;
    inner = once(claims, call, [&] { return ++runs; }).answer;
    return runs;
  });
  CHECK(outer.answer == OnceAnswer::ran);
  CHECK(inner == OnceAnswer::in_flight);
  CHECK(runs == 1);
  CHECK(once(claims, call, [&] { return ++runs; }).answer == OnceAnswer::replayed);
  // A claim that is granted but not run here is run: the answer to the first request was lost.
  const OnceCall lost{.key = "lost", .claim_id = id};
  REQUIRE(claims.claim({.key = "lost", .claim_id = id}).answer == ClaimAnswer::granted);
  CHECK(once(claims, lost, [&] { return ++runs; }).answer == OnceAnswer::ran);
}
