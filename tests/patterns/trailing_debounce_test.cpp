// TrailingDebounce and its steps. Words: a call stores a payload, a run takes the last one; it is
// due when the quiet time behind the last call, or the longest wait behind the first, is over.
#include "semel/patterns/trailing_debounce.hpp"

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

constexpr TrailingTerms terms{.quiet = Millis{100}, .max_wait = Millis{250}, .keep = Millis{1'000}};

struct Edits {
  explicit Edits(std::size_t memory = limits::memory_bytes_default)
      : process(Process::never, memory), claims(process.claims("edits", policies::lock)) {}

  void pass(int ms) {
    process.clock().advance(Millis{ms});
    process.engine().advance();
  }
  Millis call(Bytes payload) {
    const auto stored = call_trailing(claims, "doc", payload, terms);
    REQUIRE(stored.ok());
    return stored->due_in;
  }
  /// What is run now; else why not.
  std::string take() {
    const auto turn = take_trailing(claims, {.key = "doc"});
    REQUIRE(turn.ok());
    switch (turn->state) {
      case TrailingState::idle:
        return "idle";
      case TrailingState::quiet:
        return "quiet " + std::to_string(turn->due_in.count());
      case TrailingState::running:
        if (turn->claim.answer != ClaimAnswer::granted) return "runs";
        epoch = turn->claim.epoch;
        return turn->payload;
      default:
        return "?";
    }
  }
  OwnerAnswer end(TrailingEnd how = TrailingEnd::done) {
    return end_trailing(claims, "doc", epoch, how).answer;
  }
  void restart() {
    process.restart();
    claims = process.claims("edits", policies::lock);
  }

  Process process;
  Claims claims;
  Epoch epoch = 0;
};

}  // namespace

TEST_CASE("trailing debounce: one run, with the last payload, when the quiet time is over",
          "[patterns][debounce][trailing]") {
  Edits f;
  CHECK(f.take() == "idle");
  CHECK(f.call("a") == Millis{100});
  f.pass(60);
  CHECK(f.take() == "quiet 40");
  CHECK(f.call("b") == Millis{100});
  f.pass(99);
  CHECK(f.take() == "quiet 1");
  f.pass(1);
  CHECK(f.take() == "b");
  CHECK(f.take() == "runs");
  CHECK(f.end() == OwnerAnswer::ok);
  CHECK(f.take() == "idle");
  CHECK(f.end() != OwnerAnswer::ok);  // it had ended
}

TEST_CASE("trailing debounce: a steady stream runs when the longest wait is over",
          "[patterns][debounce][trailing]") {
  Edits f;
  CHECK(f.call("0") == Millis{100});
  f.pass(90);
  CHECK(f.call("1") == Millis{100});
  f.pass(90);
  CHECK(f.call("2") == Millis{70});  // of 250
  f.pass(69);
  CHECK(f.take() == "quiet 1");
  CHECK(f.call("3") == Millis{1});
  f.pass(1);
  CHECK(f.call("4") == Millis{0});  // due already, and not taken: it replaces the payload
  CHECK(f.take() == "4");
  CHECK(f.end() == OwnerAnswer::ok);
  CHECK(f.call("5") == Millis{100});  // of the next wait
}

TEST_CASE("trailing debounce: a call during a run begins the next quiet time, runs do not overlap",
          "[patterns][debounce][trailing]") {
  Edits f;
  f.call("a");
  f.pass(100);
  CHECK(f.take() == "a");
  CHECK(f.call("b") == Millis{100});
  CHECK(f.take() == "quiet 100");
  f.pass(100);
  CHECK(f.take() == "runs");
  CHECK(f.call("c") == Millis{100});
  CHECK(f.end() == OwnerAnswer::ok);  // of a: what came meanwhile stays
  CHECK(f.take() == "quiet 100");
  f.pass(100);
  CHECK(f.take() == "c");
  CHECK(f.end() == OwnerAnswer::ok);
  CHECK(f.take() == "idle");
}

TEST_CASE("trailing debounce: a run whose owner is silent comes again, also behind restarts",
          "[patterns][debounce][trailing]") {
  Edits f;
  f.call("a");
  f.restart();
  f.pass(100);
  CHECK(f.take() == "a");
  const Epoch lost = f.epoch;
  f.restart();  // a dead owner's lease is over
  CHECK(f.take() == "a");
  CHECK(f.epoch > lost);
  CHECK(end_trailing(f.claims, "doc", lost, TrailingEnd::done).answer != OwnerAnswer::ok);
  CHECK(f.take() == "runs");
  f.pass(30'000);  // its lease
  CHECK(f.take() == "a");
  CHECK(f.end() == OwnerAnswer::ok);
  CHECK(f.take() == "idle");
}

TEST_CASE("trailing debounce: what failed comes again after a quiet time, unless it was replaced",
          "[patterns][debounce][trailing]") {
  Edits f;
  f.call("a");
  f.pass(100);
  CHECK(f.take() == "a");
  CHECK(f.end(TrailingEnd::again) == OwnerAnswer::ok);
  CHECK(f.take() == "quiet 100");
  f.pass(100);
  CHECK(f.take() == "a");
  f.call("b");
  CHECK(f.end(TrailingEnd::again) == OwnerAnswer::ok);
  f.pass(100);
  CHECK(f.take() == "b");
}

TEST_CASE("trailing debounce: what no run takes is forgotten when it was kept for so long",
          "[patterns][debounce][trailing]") {
  Edits f;
  f.call("a");
  f.pass(1'099);
  CHECK(debounces(f.claims, 10)->size() == 1);
  CHECK(debounces(f.claims, 10)->front().state == TrailingState::due);
  f.pass(1);
  CHECK(debounces(f.claims, 10)->empty());
  CHECK(f.take() == "idle");
}

TEST_CASE("trailing debounce: a list has what is due longest, however long it is kept",
          "[patterns][debounce][trailing]") {
  Edits f;
  TrailingTerms kept = terms;
  kept.keep = Millis{1'000'000};
  REQUIRE(call_trailing(f.claims, "first", "a", kept).ok());
  f.pass(1);
  REQUIRE(call_trailing(f.claims, "second", "b", terms).ok());
  const auto one = debounces(f.claims, 1);
  REQUIRE(one.ok());
  REQUIRE(one->size() == 1);
  CHECK(one->front().key == "first");
}

TEST_CASE("trailing debounce: a run that outlives its lease and KEEP can come again",
          "[patterns][debounce][trailing]") {
  Edits f;
  f.call("a");
  f.pass(100);
  REQUIRE(f.take() == "a");
  for (unsigned i = 0; i < 10; ++i) {  // its lease is 30 s, and a payload is kept for 1 s
    f.pass(20'000);
    REQUIRE(f.claims.renew({.key = trailing_run_key("doc"), .epoch = f.epoch}).answer ==
            OwnerAnswer::ok);
  }
  CHECK(f.end(TrailingEnd::again) == OwnerAnswer::ok);
  f.pass(100);
  CHECK(f.take() == "a");
  CHECK(f.end() == OwnerAnswer::ok);
  CHECK(f.take() == "idle");
}

TEST_CASE("trailing debounce: a claim id gets its run again", "[patterns][debounce][trailing]") {
  Edits f;
  ClaimId id{};
  id[0] = 7;
  f.call("a");
  f.pass(100);
  const ClaimRequest request{.key = "doc", .claim_id = id};
  const auto first = take_trailing(f.claims, request);
  const auto again = take_trailing(f.claims, request);
  REQUIRE(first.ok());
  REQUIRE(again.ok());
  CHECK(again->claim.answer == ClaimAnswer::regranted);
  CHECK(again->claim.epoch == first->claim.epoch);
  CHECK(again->payload == "a");
}

TEST_CASE("trailing debounce: all that can be wrong", "[patterns][debounce][trailing]") {
  Edits f;
  const auto code = [&](const TrailingTerms& given, Bytes key = "doc", Bytes payload = "p") {
    const auto stored = call_trailing(f.claims, key, payload, given);
    return stored.ok() ? ErrorCode::ok : stored.error().code;
  };
  const Millis most = limits::debounce_max;
  CHECK(code({.quiet = Millis{0}}) == ErrorCode::bad_option);
  CHECK(code({.quiet = Millis{10}, .max_wait = Millis{9}}) == ErrorCode::bad_option);
  CHECK(code({.quiet = most + Millis{1}, .max_wait = most + Millis{1}}) == ErrorCode::bad_option);
  CHECK(code({.keep = Millis{0}}) == ErrorCode::bad_option);
  CHECK(code({.quiet = most, .max_wait = most, .keep = most}) == ErrorCode::ok);
  CHECK(code(terms, "") == ErrorCode::key_empty);
  CHECK(code(terms, std::string(100'000, 'k')) == ErrorCode::key_too_long);
  CHECK(code(terms, "big", std::string(limits::value_bytes_max, 'x')) == ErrorCode::value_too_long);
  CHECK(code(terms, "binary", std::string("\0\n \xff", 4)) == ErrorCode::ok);
  CHECK(code(terms, "empty", "") == ErrorCode::ok);
  Store store = f.process.engine().store();
  for (const char* const other :
       {"", "x", "trail/1 ", "trail/1 w 1 1 1 0", "trail/1 x 1 1 1 0\n", "trail/1 w -1 1 1 0\n",
        "trail/1 w 1 1 99999999999999999999 0\n", "trail/1 w 1 99999999999999 1 0\n"}) {
    REQUIRE(store.set("edits:{doc}#last", other).ok());
    CHECK(code(terms) == ErrorCode::wrong_type);
    CHECK(take_trailing(f.claims, {.key = "doc"}).error().code == ErrorCode::wrong_type);
    CHECK(end_trailing(f.claims, "doc", 1, TrailingEnd::done).error == ErrorCode::wrong_type);
  }
  CHECK(debounces(f.claims, 10)->size() == 2);  // of ours
  CHECK(take_trailing(f.claims, {.key = ""}).error().code == ErrorCode::key_empty);
  CHECK(end_trailing(f.claims, "", 1, TrailingEnd::done).error == ErrorCode::key_empty);
  CHECK(end_trailing(f.claims, "none", 1, TrailingEnd::done).answer == OwnerAnswer::unknown);
  CHECK_FALSE(debounces(f.claims, 0).ok());
  CHECK_FALSE(debounces(f.claims, limits::debounces_max + 1).ok());
}

TEST_CASE("trailing debounce: the end of a record that a user moved, or a clock that is behind",
          "[patterns][debounce][trailing]") {
  Edits f;
  f.call("a");
  Store store = f.process.engine().store();
  REQUIRE(store.persist("edits:{doc}#last").value());
  CHECK(f.take() == "quiet 100");     // it counts as one of now
  CHECK(f.call("b") == Millis{100});  // and is written anew
  f.pass(100);
  CHECK(f.take() == "b");
}

TEST_CASE("trailing debounce: full memory refuses a call, and a run can end",
          "[patterns][debounce][trailing][memory]") {
  Edits f{std::size_t{8} << 20};
  f.call("a");
  f.pass(100);
  f.process.fill();
  const auto refused = call_trailing(f.claims, "other", std::string(1'000, 'p'), terms);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::memory_full);
  const auto turn = take_trailing(f.claims, {.key = "doc"});
  if (turn.ok() && turn->claim.answer == ClaimAnswer::granted) {
    CHECK(end_trailing(f.claims, "doc", turn->claim.epoch, TrailingEnd::done).answer ==
          OwnerAnswer::ok);
  } else {  // nothing was taken
    f.process.empty();
    CHECK(f.take() == "a");
  }
}

TEST_CASE("trailing debounce: the object runs a function and says what became of it",
          "[patterns][debounce][trailing]") {
  Edits f;
  Watchdog watchdog{f.process.engine()};
  TrailingDebounce edits{f.claims, {.terms = terms, .watchdog = &watchdog}};
  std::vector<std::string> ran;
  const auto work = [&](Bytes payload) { ran.emplace_back(payload); };
  CHECK(edits.run("doc", work).answer == TrailingAnswer::idle);
  REQUIRE(edits.call("doc", "a").ok());
  const TrailingRun early = edits.run("doc", work);
  CHECK(early.answer == TrailingAnswer::quiet);
  CHECK(early.due_in == Millis{100});
  f.pass(100);
  const TrailingRun outer = edits.run("doc", [&](Bytes payload) {
    ran.emplace_back(payload);
    CHECK(edits.run("doc", work).answer == TrailingAnswer::running);
    return false;
  });
  CHECK(outer.answer == TrailingAnswer::failed);
  CHECK_FALSE(outer.lost);
  f.pass(100);
  CHECK_THROWS_AS(edits.run("doc", [](Bytes) { throw 1; }), int);
  f.pass(100);
  CHECK(edits.run("doc", work).answer == TrailingAnswer::ran);
  CHECK(ran == std::vector<std::string>{"a", "a"});
  CHECK(edits.run("", work).answer == TrailingAnswer::refused);
}

TEST_CASE("trailing debounce: threads that call and run at once lose no last payload",
          "[patterns][debounce][trailing][race]") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::unique_ptr<Engine> engine = Engine::open().value();
  Claims claims = engine->claims("edits", policies::lock).value();
  constexpr TrailingTerms quick{.quiet = Millis{1}, .max_wait = Millis{2}};
  std::atomic<int> called{0};
  std::atomic<int> inside{0};
  std::atomic<bool> overlap{false};
  std::atomic<int> last{0};
  std::atomic<bool> stops{false};
  std::vector<std::thread> runners;
  for (unsigned i = 0; i < 3; ++i) {
    runners.emplace_back([&] {
      TrailingDebounce edits{claims};
      // mo: relaxed: a switch
      while (!stops.load(std::memory_order_relaxed)) {
        static_cast<void>(edits.run("doc", [&](Bytes payload) {
          if (inside.fetch_add(1, std::memory_order_relaxed) != 0)
            overlap.store(true, std::memory_order_relaxed);
          last.store(std::stoi(std::string{payload}), std::memory_order_relaxed);
          inside.fetch_sub(1, std::memory_order_relaxed);
        }));
        std::this_thread::yield();
      }
    });
  }
  std::mt19937 random{seed};
  for (int i = 1; i <= 3'000; ++i) {
    called.store(i, std::memory_order_relaxed);
    CHECK(call_trailing(claims, "doc", std::to_string(i), quick).ok());
    if (random() % 64 == 0) std::this_thread::yield();
  }
  while (!debounces(claims, 1)->empty()) std::this_thread::yield();
  stops.store(true, std::memory_order_relaxed);
  for (std::thread& each : runners) each.join();
  CHECK_FALSE(overlap.load(std::memory_order_relaxed));
  CHECK(last.load(std::memory_order_relaxed) == called.load(std::memory_order_relaxed));
}
