// What docs/patterns.md shows: its blocks of C++ stand here, word for word, and what they say
// holds. tests/tools/readme_test.py compares the two. Its table of policies is made here.
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/consume.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/patterns/guards.hpp"
#include "semel/patterns/json_key.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/rate_limit.hpp"
#include "semel/patterns/read_write_lock.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "semel/patterns/semaphore.hpp"
#include "semel/patterns/signed_request.hpp"
#include "semel/patterns/token_service.hpp"
#include "semel/patterns/trailing_debounce.hpp"

using namespace semel;

namespace {

std::string shown(Millis time) {
  const std::int64_t ms = time.count();
  const auto of = [&](std::int64_t unit) { return std::to_string(ms / unit); };
  if (ms == 86'400'000) return "1 day";
  if (ms % 86'400'000 == 0) return of(86'400'000) + " days";
  if (ms % 3'600'000 == 0) return of(3'600'000) + " h";
  return ms % 1'000 == 0 ? of(1'000) + " s" : of(1) + " ms";
}

/// The row of the page's table.
std::string row_of(const NamedPolicy& named) {
  const Policy& policy = named.policy;
  std::vector<std::string> others;
  if (policy.fair) others.emplace_back("fair");
  if (policy.issued) others.emplace_back("issued");
  if (policy.window > Millis{0}) others.push_back("window " + shown(policy.window));
  if (policy.ahead > Millis{0}) others.push_back("ahead " + shown(policy.ahead));
  if (policy.on_lease_end == Policy::OnLeaseEnd::in_doubt) others.emplace_back("in doubt");
  std::string row = "| `" + std::string{named.name} + "` | " + shown(policy.lease) + " | " +
                    shown(policy.result_ttl) + " | ";
  row += (policy.unique_ttl > Millis{0} ? shown(policy.unique_ttl) : "as result") + " | " +
         shown(policy.failure_ttl) + " | " + shown(policy.attempts_ttl) + " | " +
         (policy.attempts_max > 0 ? std::to_string(policy.attempts_max) : "any") + " |";
  for (std::size_t i = 0; i < others.size(); ++i) row += (i == 0 ? " " : ", ") + others[i];
  return row + " |\n";
}

struct Broker {
  void ack(Bytes id) { acked.emplace_back(id); }
  void requeue(Bytes id, Millis) { requeued.emplace_back(id); }
  void reject(Bytes id) { rejected.emplace_back(id); }
  std::vector<std::string> acked{};
  std::vector<std::string> requeued{};
  std::vector<std::string> rejected{};
};

struct FencedFile {
  void write(Epoch token, Bytes line) {
    if (fence.admit(token)) lines.emplace_back(line);
  }
  Fence fence{};
  std::vector<std::string> lines{};
};

}  // namespace

TEST_CASE("patterns_page: the table of policies has all of them, with their figures",
          "[patterns][docs]") {
  std::ifstream page{SEMEL_PATTERNS_PAGE};
  REQUIRE(page);
  std::stringstream text;
  text << page.rdbuf();
  std::string rows;
  for (const NamedPolicy& named : policies::all) rows += row_of(named);
  INFO(rows);
  CHECK(text.str().find("|---|---|---|---|---|---|---|---|\n" + rows + "\n") != std::string::npos);
}

TEST_CASE("patterns_page: policies", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  semel::Policy orders = semel::policies::message;
  orders.lease = semel::Millis{300'000};
  auto claims = engine->claims("orders", orders).value();
  CHECK(claims.policy().lease == Millis{300'000});
  CHECK(claims.policy().attempts_max == 16);
}

TEST_CASE("patterns_page: once", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::policies::call).value();
  const auto charge = [&]() -> semel::Result<std::string> { return std::string{"receipt 12"}; };

  const auto receipt = semel::once(orders, "order-4711", charge);  // ran
  const auto again = semel::once(orders, "order-4711", charge);    // replayed: "receipt 12"
  CHECK(receipt.answer == OnceAnswer::ran);
  CHECK(again.answer == OnceAnswer::replayed);
  CHECK(again.value == "receipt 12");
}

TEST_CASE("patterns_page: once by parameters", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto calls = engine->claims("calls", semel::policies::call).value();
  int runs = 0;
  const auto transfer = [&] { ++runs; };
  const auto ask = [&](Bytes user, Bytes body) {
    const semel::Scope scope{
        .tenant = "acme", .user = user, .needs_tenant = true, .needs_user = true};
    const std::string call = semel::digest_key_sha256("/transfer", *semel::canonical_json(body));
    const auto key = semel::scoped_key(scope, call);  // an error if tenant or user is missing
    const auto moved = semel::once(calls, *key, transfer);
    return moved.answer;
  };
  CHECK(ask("u7", R"({"a":1,"b":2})") == OnceAnswer::ran);
  CHECK(ask("u7", R"({"b":2,"a":1.0})") == OnceAnswer::replayed);
  CHECK(ask("u8", R"({"a":1,"b":2})") == OnceAnswer::ran);
  CHECK(runs == 2);
}

TEST_CASE("patterns_page: once by an id of the client", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto calls = engine->claims("calls", semel::policies::call).value();
  const semel::Scope scope{.tenant = "acme", .user = "u7"};
  int runs = 0;
  const auto transfer = [&] { ++runs; };
  const auto ask = [&](Bytes body) {
    const auto key = semel::scoped_key(scope, "order-42");
    const semel::OnceCall call{.key = *key, .fingerprint = *semel::fingerprint_json(scope, body)};
    const auto moved = semel::once(calls, call, transfer);
    return moved.answer;
  };
  CHECK(ask(R"({"a":1,"b":2})") == OnceAnswer::ran);
  CHECK(ask(R"({"b":2,"a":1})") == OnceAnswer::replayed);
  CHECK(ask(R"({"b":3,"a":1})") == OnceAnswer::mismatch);
  CHECK(runs == 1);
}

TEST_CASE("patterns_page: consume once", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  Broker broker;
  const auto deliver = [&](Bytes id, auto handle) {
    auto messages = engine->claims("payments", semel::policies::message).value();
    const semel::Consumed consumed = semel::consume_once(messages, {.id = id}, handle);
    switch (consumed.verdict) {
      case semel::Verdict::ack:
      case semel::Verdict::ack_duplicate:
        broker.ack(id);
        break;
      case semel::Verdict::retry_later:
        broker.requeue(id, consumed.retry_after);
        break;
      case semel::Verdict::dead_letter:
        broker.reject(id);
        break;
      case semel::Verdict::unanswered:  // never of a call
        break;
    }
  };
  int handled = 0;
  for (int i = 0; i < 2; ++i) deliver("a", [&] { ++handled; });
  deliver("b", [] { return false; });
  deliver("c", [] { return Rejected{"not for us"}; });
  CHECK(handled == 1);
  CHECK(broker.acked == std::vector<std::string>{"a", "a"});
  CHECK(broker.requeued == std::vector<std::string>{"b"});
  CHECK(broker.rejected == std::vector<std::string>{"c"});
}

TEST_CASE("patterns_page: attempts", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  semel::Policy twice = semel::policies::message;
  twice.attempts_max = 2;
  auto mails = engine->claims("mails", twice).value();
  const auto refuses = [] { return false; };
  const auto first = semel::consume_once(mails, {.id = "m-1"}, refuses);   // retry_later
  const auto second = semel::consume_once(mails, {.id = "m-1"}, refuses);  // dead_letter
  CHECK(first.verdict == Verdict::retry_later);
  CHECK(second.verdict == Verdict::dead_letter);
  CHECK(second.attempts == 2);
}

TEST_CASE("patterns_page: batches", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto messages = engine->claims("payments", semel::policies::message).value();
  std::vector<std::string> handled;
  const std::vector<semel::Message> batch{{.id = "m-1"}, {.id = "m-2"}, {.id = "m-1"}};
  const auto verdicts = semel::consume_batch(messages, batch, [&](const semel::Message& one) {
    handled.emplace_back(one.id);  // m-1, m-2: the second m-1 is a duplicate
  });
  CHECK(handled == std::vector<std::string>{"m-1", "m-2"});
  CHECK(verdicts.at(2).verdict == Verdict::ack_duplicate);
}

TEST_CASE("patterns_page: steps", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::policies::call).value();
  int charged = 0;
  int mailed_after = 2;
  const auto charge = [&] { return "receipt " + std::to_string(++charged); };
  const auto mail = [&]() -> Status {
    if (--mailed_after > 0) return Error{ErrorCode::timed_out, "no mail today"};
    return Done{};
  };
  std::vector<OnceAnswer> answers;
  std::optional<std::string> value;
  const auto run = [&] {
    const auto shipped = semel::once(orders, "order-4711", [&](semel::Work& work) {
      const auto receipt = work.steps().run("charge", charge);  // run once, then remembered
      const auto mailed = work.steps().run("mail", mail);
      if (!mailed) return semel::Result<std::string>{mailed.error()};  // given back, memos stay
      return semel::Result<std::string>{*receipt};
    });  // done, and the memos are gone
    answers.push_back(shipped.answer);
    value = shipped.value;
  };
  for (int i = 0; i < 3; ++i) run();
  CHECK(answers ==
        std::vector<OnceAnswer>{OnceAnswer::failed, OnceAnswer::ran, OnceAnswer::replayed});
  CHECK(value == "receipt 1");
  CHECK(charged == 1);
}

TEST_CASE("patterns_page: one-time tokens", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto claims = engine->claims("tokens", semel::policies::token).value();
  auto tokens = semel::TokenService::open(claims).value();
  const std::string token = tokens.issue().value();  // into the form

  const auto failed = tokens.redeem(token, [&]() -> semel::Result<int> {
    return semel::Error{semel::ErrorCode::timed_out, "the bank is slow"};
  });  // failed, and the token is good still
  const auto paid = tokens.redeem(token, [&] { return 12; });       // ran
  const auto again = tokens.redeem(token, [&] { return 13; });      // replayed: 12
  const auto forged = tokens.redeem("forged", [&] { return 14; });  // unknown
  CHECK(failed.answer == OnceAnswer::failed);
  CHECK(paid.answer == OnceAnswer::ran);
  CHECK(again.value == 12);
  CHECK(forged.answer == OnceAnswer::unknown);
}

TEST_CASE("patterns_page: tokens that are counted", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto tokens =
      semel::TokenService::open(engine->claims("tokens", semel::policies::token).value()).value();
  const auto issued = tokens.count("7f3a");  // 1
  const auto first = tokens.count("7f3a");   // 2: run, then spend with this epoch
  const auto second = tokens.count("7f3a");  // 3
  const auto spent = tokens.spend("7f3a", first->epoch);
  CHECK(issued->count == 1);
  CHECK(first->count == 2);
  CHECK(second->count == 3);
  CHECK(spent.answer == OwnerAnswer::ok);
}

TEST_CASE("patterns_page: semaphore", "[patterns][docs]") {
  struct {
    void write(std::uint32_t slot, Epoch token, Bytes line) {
      if (fences.at(slot).admit(token)) lines.emplace_back(line);
    }
    std::array<Fence, 3> fences{};
    std::vector<std::string> lines{};
  } seats;
  const auto engine = semel::Engine::open().value();
  semel::Watchdog watchdog{*engine, semel::Millis{1'000}};
  auto pools = engine->claims("pools", semel::policies::lock).value();
  semel::Semaphore seat{pools, "reports", {.permits = 3, .watchdog = &watchdog}};
  if (seat.try_acquire_for(semel::Millis{5'000})) {
    seats.write(seat.slot(), seat.fencing_token(), "report 12");  // a fence for each slot
    static_cast<void>(seat.release());                            // or at the end of the scope
  }
  CHECK(seats.lines == std::vector<std::string>{"report 12"});
}

TEST_CASE("patterns_page: readers and a writer", "[patterns][docs]") {
  struct {
    std::string read(Epoch token) { return fence.admit_reader(token) ? text : ""; }
    void write(Epoch token, Bytes now) {
      if (fence.admit(token)) text = now;
    }
    Fence fence{};
    std::string text{"tea 3"};
  } prices;
  std::string shown;
  const auto engine = semel::Engine::open().value();
  semel::Watchdog watchdog{*engine, semel::Millis{1'000}};
  auto locks = engine->claims("locks", semel::policies::fair_lock).value();
  semel::ReadWriteLock reader{locks, "prices", {.watchdog = &watchdog}};
  if (reader.try_read_for(semel::Millis{5'000})) {
    shown = prices.read(reader.fencing_token());  // asks fence.admit_reader()
    static_cast<void>(reader.release());          // or at the end of the scope
  }
  semel::ReadWriteLock writer{locks, "prices", {.watchdog = &watchdog}};
  if (writer.try_write_for(semel::Millis{5'000})) {
    prices.write(writer.fencing_token(), "tea 4");  // asks fence.admit()
  }
  CHECK(shown == "tea 3");
  CHECK(prices.text == "tea 4");
}

TEST_CASE("patterns_page: rate limit", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  std::vector<std::string> served;
  std::vector<Millis> later;
  for (unsigned i = 0; i < 101; ++i) {
    semel::RateLimiter calls{*engine, {.limit = 100, .period = semel::Millis{60'000}}};
    const auto call = calls.take("calls:ada");
    if (call.ok() && call->allowed) {
      served.push_back("ada");
    } else if (call.ok()) {
      later.push_back(call->retry_after);  // it is available then, if no other call takes any
    }
  }
  CHECK(served.size() == 100);
  CHECK(later.size() == 1);
}

TEST_CASE("patterns_page: lock", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  FencedFile file;
  const Epoch before = engine->claims("others", policies::lock)->claim({.key = "k"}).epoch;
  {
    semel::Watchdog watchdog{*engine, semel::Millis{1'000}};  // renews while the work takes long
    auto locks = engine->claims("locks", semel::policies::lock).value();
    semel::Lock lock{locks, "invoices", {.watchdog = &watchdog}};
    if (lock.try_lock_for(semel::Millis{5'000})) {
      file.write(lock.fencing_token(), "invoice 12");  // refuses a token smaller than it has seen
      static_cast<void>(lock.unlock());                // or at the end of the scope
    }
  }
  CHECK(file.lines == std::vector<std::string>{"invoice 12"});
  file.write(before, "of somebody before");
  CHECK(file.lines.size() == 1);
}

TEST_CASE("patterns_page: in the order of arrival", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto locks = engine->claims("turns", semel::policies::fair_lock).value();
  semel::Lock lock{locks, "printer"};
  lock.lock();  // held, or std::system_error
  CHECK(lock.is_held());
}

TEST_CASE("patterns_page: debounce", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  int submitted = 0;
  const auto submit = [&] { ++submitted; };
  auto claims = engine->claims("clicks", semel::policies::debounce).value();
  semel::Debounce clicks{*engine, claims, {.interval = semel::Millis{45'000}}};
  const auto pressed = clicks.run("u7", submit);  // ran
  const auto twice = clicks.run("u7", submit);    // suppressed
  CHECK(pressed == DebounceAnswer::ran);
  CHECK(twice == DebounceAnswer::suppressed);
  CHECK(submitted == 1);
}

TEST_CASE("patterns_page: after the last call", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  const auto index = [](Bytes) { FAIL("it is not due"); };
  auto edited = engine->claims("edits", semel::policies::lock).value();
  semel::TrailingDebounce edits{
      edited, {.terms = {.quiet = semel::Millis{2'000}, .max_wait = semel::Millis{30'000}}}};
  static_cast<void>(edits.call("doc7", "a"));
  static_cast<void>(edits.call("doc7", "ab"));  // replaces it, and moves the time
  const auto early = edits.run("doc7", index);  // quiet: in early.due_in
  CHECK(early.answer == TrailingAnswer::quiet);
  CHECK(early.due_in > Millis{0});
}

TEST_CASE("patterns_page: seen before", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  semel::SeenBefore rows{engine->store(), "rows", semel::Millis{2'592'000'000}};  // 30 days
  const auto first = rows.is_first({"invoice", "17"});                            // true
  const auto second = rows.is_first({"invoice", "17"});                           // false
  CHECK(first.value());
  CHECK_FALSE(second.value());
}

TEST_CASE("patterns_page: guarded changes", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  Store store = engine->store();
  REQUIRE(store.set("stock:7", "10").ok());
  REQUIRE(store.set("balance:7", "300").ok());
  const auto seen = store.get_versioned("stock:7").value();
  const auto sold = store.compare_and_set("stock:7", seen->version, "9");   // stored
  const auto stale = store.compare_and_set("stock:7", seen->version, "8");  // not: it is 9 now
  const auto paid = semel::decrement_if_at_least(store, "balance:7", 300);  // taken, 0 left
  const auto over = semel::decrement_if_at_least(store, "balance:7", 300);  // not taken
  CHECK(sold->stored);
  CHECK_FALSE(stale->stored);
  CHECK(stale->current->value == "9");
  CHECK(paid->taken);
  CHECK(paid->left == 0);
  CHECK_FALSE(over->taken);
}

TEST_CASE("patterns_page: from state to state", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  Store store = engine->store();
  REQUIRE(store.set("order:7:state", "paid").ok());
  const auto sent = semel::transition(store, "order:7:state", "paid", "sent");        // moved
  const auto refund = semel::transition(store, "order:7:state", "paid", "refunded");  // no
  CHECK(sent->moved);
  CHECK_FALSE(refund->moved);
  CHECK(refund->state == "sent");
}

TEST_CASE("patterns_page: signed requests", "[patterns][docs]") {
  const semel::ManualClock clock;
  const auto engine = semel::Engine::open({.clock = &clock}).value();
  const std::string secret = "the shop's secret";
  SignedRequest request{.parameters = {}, .timestamp_unix_ms = clock.unix_ms(), .nonce = "9f2c1e"};
  const std::string signature = signature_of(request, secret);
  request.signature = signature;
  auto guard = semel::ReplayGuard::open(*engine, {.secrets = {secret}}).value();
  const auto first = guard.check(request);   // accepted
  const auto second = guard.check(request);  // replayed
  CHECK(first.answer == ReplayAnswer::accepted);
  CHECK(second.answer == ReplayAnswer::replayed);
}
