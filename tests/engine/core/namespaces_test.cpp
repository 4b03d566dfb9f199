// Namespaces as records: bounded by memory, declared, changed, dropped, listed, journalled.
// Words: terms = a policy as it was declared; twin = an engine a log was put back into.
#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "engine/core/namespace_terms.hpp"
#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using Catch::Contains;

namespace {

std::string nth(std::size_t i) {
  return "tenant-" + std::to_string(i);
}

/// All names by pages of `count`.
std::vector<std::string> listed(Engine& engine, std::size_t count) {
  std::vector<std::string> names;
  std::uint64_t cursor = 0;
  do {
    const auto next = engine.host().list_namespaces(
        cursor, count, [&](Bytes name, const Policy&) { names.emplace_back(name); });
    REQUIRE(next.ok());
    cursor = *next;
  } while (cursor != 0);
  return names;
}

Epoch grant(Claims& claims, Bytes key) {
  const ClaimOutcome outcome = claims.claim({.key = key});
  REQUIRE(outcome.answer == ClaimAnswer::granted);
  return outcome.epoch;
}

void finish(Claims& claims, Bytes key) {
  const OwnerCall done{.key = key, .epoch = grant(claims, key), .payload = "result"};
  REQUIRE(claims.complete(done).answer == OwnerAnswer::ok);
}

/// A mutation that owns its bytes.
struct Kept {
  explicit Kept(const Mutation& from) : mutation(from), key(from.key), value(from.value) {}
  [[nodiscard]] Mutation view() const {
    Mutation seen = mutation;
    seen.key = key;
    seen.value = value;
    return seen;
  }
  Mutation mutation;
  std::string key;
  std::string value;
};

std::vector<Kept> log_of(const MemoryJournal& journal) {
  std::vector<Kept> log;
  journal.replay([&](Ticket, const Mutation& mutation) {
    if (mutation.kind == Kind::name_space) log.emplace_back(mutation);
  });
  return log;
}

/// "name db lease" of each, in order of names.
std::vector<std::string> terms_of(Engine& engine) {
  std::vector<std::string> all;
  for (const std::string& name : engine.namespaces()) {
    const Policy policy = engine.claims(name)->policy();
    all.push_back(name + " " + std::to_string(policy.db) + " " +
                  std::to_string(policy.lease.count()));
  }
  return all;
}

void replay(const std::vector<Kept>& log, Engine& twin) {
  for (const Kept& kept : log) {
    const Status status = twin.host().restore(kept.view());
    if (!status) FAIL_CHECK(status.error().message());
  }
}

// What threads of a test tell each other.
void set(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_relaxed);  // mo: relaxed: nothing is read by it
}
template <class T>
T read(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);  // mo: relaxed: as above
}
int bump(std::atomic<int>& number, int by = 1) {
  return number.fetch_add(by, std::memory_order_relaxed);  // mo: relaxed: as above
}

}  // namespace

TEST_CASE("namespaces: a hundred thousand are declared, found, listed by pages and dropped",
          "[engine][claims][namespaces][attack][fault-8]") {
  constexpr std::size_t count = 100'000;
  ManualClock clock;
  auto engine = open_engine({.clock = &clock, .memory_bytes = std::size_t{256} << 20});
  const std::uint64_t before = engine->stats().bytes_used;
  for (std::size_t i = 0; i < count; ++i) REQUIRE(engine->claims(nth(i), {}).has_value());
  CHECK(engine->stats().namespaces == count);
  CHECK(engine->stats().bytes_namespaces > count * sizeof(Policy));
  CHECK(engine->stats().bytes_used >= before + engine->stats().bytes_namespaces);
  Claims last = engine->claims(nth(count - 1)).value();
  CHECK(last.claim({.key = "k"}).answer == ClaimAnswer::granted);

  std::vector<std::string> names = listed(*engine, 997);
  CHECK(names.size() == count);
  CHECK(names.front() == nth(0));
  CHECK(names.back() == nth(count - 1));
  std::sort(names.begin(), names.end());
  CHECK(names == engine->namespaces());

  constexpr std::size_t dropped = 1'000;
  const std::uint64_t bytes = engine->stats().bytes_namespaces;
  for (std::size_t i = 0; i < dropped; ++i) REQUIRE(engine->drop_namespace(nth(i * 10)));
  CHECK(engine->stats().namespaces == count - dropped);
  CHECK(engine->stats().namespaces_dropped == dropped);
  CHECK(engine->stats().bytes_namespaces < bytes);
  CHECK(code_of(engine->claims(nth(0))) == ErrorCode::bad_namespace);
  CHECK(code_of(engine->drop_namespace(nth(count - 1))) == ErrorCode::namespace_in_use);
  CHECK(engine->drop_namespace(nth(count - 1), DropRule::all)->held == 1);
}

TEST_CASE("namespaces: a list shows one that stays exactly once, whatever comes and goes",
          "[engine][claims][namespaces]") {
  EngineFixture f;
  for (std::size_t i = 0; i < 100; ++i) static_cast<void>(f.claims(nth(i)));
  std::multiset<std::string> seen;
  std::uint64_t cursor = 0;
  std::size_t round = 0;
  do {
    const auto next =
        f.engine->host().list_namespaces(cursor, 7, [&](Bytes name, const Policy& policy) {
          CHECK(policy.lease == Policy{}.lease);
          seen.emplace(name);
        });
    REQUIRE(next.ok());
    cursor = *next;
    if (round < 5) {  // behind and before the cursor
      REQUIRE(f.engine->drop_namespace(nth(round * 2 + 1)));
      REQUIRE(f.engine->drop_namespace(nth(90 + round)));
      static_cast<void>(f.claims("new-" + std::to_string(round)));
    }
    ++round;
  } while (cursor != 0);
  for (std::size_t i = 10; i < 90; ++i) CHECK(seen.count(nth(i)) == 1);
  const auto refused = [&](std::size_t count) {
    return code_of(f.engine->host().list_namespaces(0, count, [](Bytes, const Policy&) {}));
  };
  CHECK(refused(0) == ErrorCode::bad_option);
  CHECK(refused(limits::namespace_list_max) == ErrorCode::ok);
  CHECK(refused(limits::namespace_list_max + 1) == ErrorCode::bad_option);
}

TEST_CASE("namespaces: a change of policy leaves nothing behind, however many come",
          "[engine][claims][namespaces][attack][fault-8]") {
  ManualClock clock;
  auto engine = open_engine({.clock = &clock, .memory_bytes = limits::memory_bytes_min});
  Claims jobs = engine->claims("jobs", {.lease = 1ms}).value();
  const std::uint64_t bytes = engine->stats().bytes_used;
  for (int lease = 2; lease <= 20'000; ++lease) {
    const auto changed = engine->change_namespace("jobs", {.lease = Millis{lease}});
    REQUIRE(changed);
    REQUIRE(*changed == "lease " + std::to_string(lease - 1) + " -> " + std::to_string(lease));
  }
  CHECK(jobs.policy().lease == 20'000ms);
  CHECK(engine->stats().bytes_used == bytes);
}

TEST_CASE("namespaces: full memory refuses a declaration, and nothing of it is there",
          "[engine][claims][namespaces][attack][fault-8]") {
  EngineFixture f{{.memory_bytes = limits::memory_bytes_min}};
  Claims first = f.claims("first");
  const Epoch epoch = grant(first, "held");
  std::size_t count = 0;
  Error error{ErrorCode::ok, {}};
  for (; error.code == ErrorCode::ok; ++count) {
    const auto made = f.engine->claims(nth(count), {});
    if (!made) error = made.error();
    REQUIRE(count < 100'000);
  }
  CHECK(error.code == ErrorCode::memory_full);
  CHECK(retry_of(error.code) == Retry::later);
  const std::string refused = nth(count - 1);
  CHECK(code_of(f.engine->claims(refused)) == ErrorCode::bad_namespace);
  CHECK(listed(*f.engine, 1'000).size() == count);  // the first, and count - 1 others
  for (const Kept& kept : log_of(f.journal)) REQUIRE(kept.key != refused);
  CHECK(f.engine->stats().bytes_used <= limits::memory_bytes_min);
  CHECK(f.engine->stats().refused > 0);
  // What was granted can be completed, and what is there can be declared, changed and dropped.
  const OwnerCall done{.key = "held", .epoch = epoch, .payload = "r"};
  CHECK(first.complete(done).answer == OwnerAnswer::ok);
  CHECK(f.engine->claims(nth(3), {}).has_value());
  CHECK(f.engine->change_namespace(nth(3), {.lease = 7ms}).has_value());
  // The completion has taken a span of the reserve, which comes first.
  for (std::size_t i = 0; i < 500; ++i) REQUIRE(f.engine->drop_namespace(nth(i)));
  CHECK(f.engine->claims(refused, {}).has_value());
}

TEST_CASE("namespaces: one that is declared again with other terms stays as it is",
          "[engine][claims][namespaces][attack][fault-15]") {
  EngineFixture f;
  Policy policy;
  policy.issued = true;
  Claims jobs = f.claims("jobs", policy);
  CHECK(f.engine->claims("jobs", policy).has_value());
  const auto refusal = [&](auto change, std::string_view says) {
    Policy other = policy;
    change(other);
    const auto again = f.engine->claims("jobs", other);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::namespace_differs);
    CHECK(again.error().detail == "jobs is declared with other terms: " + std::string{says});
    CHECK(engine::differences(jobs.policy(), policy).empty());
  };
  refusal([](Policy& p) { p.lease = 5ms; }, "lease 60000 -> 5");
  refusal([](Policy& p) { p.result_ttl = 5ms; }, "result_ttl 86400000 -> 5");
  refusal([](Policy& p) { p.unique_ttl = 5ms; }, "unique_ttl 0 -> 5");
  refusal([](Policy& p) { p.sliding_max = p.result_ttl; }, "sliding_max 0 -> 86400000");
  refusal([](Policy& p) { p.failure_ttl = 5ms; }, "failure_ttl 86400000 -> 5");
  refusal([](Policy& p) { p.attempts_ttl = 5ms; }, "attempts_ttl 86400000 -> 5");
  refusal([](Policy& p) { p.window = 5ms; }, "window 0 -> 5");
  refusal([](Policy& p) { p.ahead = 5ms; }, "ahead 0 -> 5");
  refusal([](Policy& p) { p.retry_after_max = 5ms; }, "retry_after_max 1000 -> 5");
  refusal([](Policy& p) { p.attempts_max = 5; }, "attempts_max 0 -> 5");
  refusal([](Policy& p) { p.on_lease_end = Policy::OnLeaseEnd::in_doubt; },
          "on_lease_end retry -> in_doubt");
  refusal([](Policy& p) { p.on_failure = Policy::OnFailure::keep; }, "on_failure release -> keep");
  refusal([](Policy& p) { p.on_exception = Policy::OnFailure::in_doubt; },
          "on_exception release -> in_doubt");
  refusal([](Policy& p) { p.strict = true; }, "strict no -> yes");
  refusal([](Policy& p) { p.fail_open = true; }, "fail_open no -> yes");
  refusal([](Policy& p) { p.issued = false; }, "issued yes -> no");
  refusal([](Policy& p) { p.fair = true; }, "fair no -> yes");
  refusal([](Policy& p) { p.db = 3; }, "db 0 -> 3");
  refusal([](Policy& p) { p.lease = 5ms, p.db = 3; }, "lease 60000 -> 5, db 0 -> 3");
}

TEST_CASE("namespaces: a change holds for existing handles, and one that would forget is refused",
          "[engine][claims][namespaces][attack][fault-15]") {
  EngineFixture f;
  Policy policy;
  policy.issued = true;
  policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Claims jobs = f.claims("jobs", policy);
  REQUIRE(jobs.issue("token").value());
  finish(jobs, "token");
  const auto refusal = [&](auto change, std::string_view says) {
    Policy other = policy;
    other.lease = 9ms;
    change(other);
    const auto changed = f.engine->change_namespace("jobs", other);
    REQUIRE_FALSE(changed);
    CHECK(changed.error().code == ErrorCode::namespace_differs);
    CHECK_THAT(changed.error().detail, Contains(std::string{says}));
    CHECK(jobs.policy().lease == policy.lease);
  };
  refusal([](Policy& p) { p.db = 3; }, "live in database 0, not 3");
  refusal([](Policy& p) { p.issued = false; }, "never issued would be free");
  refusal([](Policy& p) { p.on_lease_end = Policy::OnLeaseEnd::retry; }, "in doubt");
  // What was done is still known, by old handles and new ones.
  CHECK(jobs.claim({.key = "token"}).answer == ClaimAnswer::replay);
  CHECK(f.claims("jobs", policy).claim({.key = "token"}).answer == ClaimAnswer::replay);

  Policy other = policy;
  other.lease = 9ms;
  other.strict = true;
  CHECK(f.engine->change_namespace("jobs", other).value() == "lease 60000 -> 9, strict no -> yes");
  CHECK(f.engine->change_namespace("jobs", other).value().empty());
  CHECK(jobs.policy().strict);
  CHECK(jobs.policy().lease == 9ms);
  CHECK(code_of(f.engine->change_namespace("unknown", other)) == ErrorCode::bad_namespace);
  other.lease = 0ms;
  CHECK(code_of(f.engine->change_namespace("jobs", other)) == ErrorCode::bad_option);
}

TEST_CASE("namespaces: a drop refuses what its rule does not name, and changes nothing then",
          "[engine][claims][namespaces][attack][fault-8]") {
  EngineFixture f;
  Claims jobs = f.claims("jobs", {.failure_ttl = 10'000ms, .issued = true});
  const auto code = [&](DropRule rule) { return code_of(f.engine->drop_namespace("jobs", rule)); };
  REQUIRE(jobs.issue("k").value());
  CHECK(code(DropRule::unused) == ErrorCode::namespace_in_use);  // issued and unclaimed
  const Epoch epoch = grant(jobs, "k");
  CHECK(code(DropRule::unused) == ErrorCode::namespace_in_use);
  CHECK(code(DropRule::finished) == ErrorCode::namespace_in_use);
  CHECK_THAT(f.engine->drop_namespace("jobs", DropRule::finished).error().detail,
             Contains("jobs: there is a claim that is held or in doubt"));
  const OwnerCall done{.key = "k", .epoch = epoch, .payload = "r"};
  CHECK(jobs.complete(done).answer == OwnerAnswer::ok);
  CHECK(code(DropRule::unused) == ErrorCode::namespace_in_use);
  CHECK(jobs.claim({.key = "k"}).result == "r");
  const auto dropped = f.engine->drop_namespace("jobs", DropRule::finished);
  REQUIRE(dropped);
  CHECK(dropped->finished == 1);
  CHECK(dropped->held == 0);
  CHECK(f.engine->size(0) == 0);
  CHECK(code(DropRule::all) == ErrorCode::bad_namespace);
}

TEST_CASE("namespaces: a drop of all ends held claims, and answers their owners and waiters",
          "[engine][claims][namespaces]") {
  EngineFixture f;
  Claims jobs = f.claims("jobs");
  finish(jobs, "done");
  const Epoch epoch = grant(jobs, "held");
  std::optional<ClaimOutcome> answered;
  jobs.claim_or_wait({.key = "held"}, no_end, [&](ClaimOutcome&& outcome) { answered = outcome; });
  REQUIRE_FALSE(answered);
  const auto dropped = f.engine->drop_namespace("jobs", DropRule::all);
  REQUIRE(dropped);
  CHECK(dropped->finished == 1);
  CHECK(dropped->held == 1);
  REQUIRE(answered);
  CHECK(answered->error == ErrorCode::namespace_dropped);

  // Every call of an old handle says so, and makes nothing.
  CHECK(jobs.is_dropped());
  CHECK(jobs.name() == "jobs");
  const OwnerCall call{.key = "held", .epoch = epoch, .payload = "r"};
  for (const OwnerOutcome& outcome :
       {jobs.complete(call), jobs.fail(call), jobs.renew(call), jobs.release(call)}) {
    CHECK(outcome.answer == OwnerAnswer::refused);
    CHECK(outcome.error == ErrorCode::namespace_dropped);
  }
  const ClaimRequest request{.key = "k"};
  CHECK(jobs.claim(request).error == ErrorCode::namespace_dropped);
  CHECK(jobs.claim(request).answer == ClaimAnswer::busy);
  CHECK(jobs.claim_or_wait(request, no_end).error == ErrorCode::namespace_dropped);
  CHECK(code_of(jobs.get("k")) == ErrorCode::namespace_dropped);
  CHECK(code_of(jobs.forget("k")) == ErrorCode::namespace_dropped);
  CHECK(code_of(jobs.issue("k")) != ErrorCode::ok);
  CHECK(code_of(jobs.resolve("k", Resolution::done)) == ErrorCode::namespace_dropped);
  std::vector<ClaimOutcome> outcomes(2);
  const std::vector<ClaimRequest> requests{{.key = "a"}, {.key = "b"}};
  jobs.claim(requests, outcomes);
  for (const ClaimOutcome& outcome : outcomes) CHECK(outcome.error == ErrorCode::namespace_dropped);
  CHECK_FALSE(jobs.claim_all(requests, outcomes));
  for (const ClaimOutcome& outcome : outcomes) CHECK(outcome.error == ErrorCode::namespace_dropped);
  std::vector<OwnerOutcome> owners(1);
  const std::vector<OwnerCall> calls{call};
  jobs.complete(calls, owners);
  CHECK(owners[0].error == ErrorCode::namespace_dropped);
  CHECK(f.engine->size(0) == 0);

  // One that is declared anew begins with none, in whatever database.
  Claims anew = f.claims("jobs", {.db = 3});
  CHECK(anew.claim({.key = "done"}).answer == ClaimAnswer::granted);
  CHECK(anew.claim({.key = "held"}).epoch > epoch);
  CHECK(jobs.claim(request).error == ErrorCode::namespace_dropped);
  CHECK(f.engine->size(0) == 0);
  CHECK(broken_rules(*f.engine).empty());
}

TEST_CASE("namespaces: a drop takes the claims of that name, and nothing else",
          "[engine][claims][namespaces]") {
  EngineFixture f;
  const std::string longest(limits::namespace_name_max, 'n');
  Claims a = f.claims("a");
  Claims ab = f.claims("a-b");
  Claims longer = f.claims(longest);
  Claims other_db = f.claims("b", {.db = 1});
  for (Claims* claims : {&a, &ab, &longer, &other_db}) finish(*claims, "k");
  finish(a, "b:k");  // "a:b:k": of a, whatever is called b
  REQUIRE(f.put("a:string", "stays"));
  REQUIRE(f.put("a:k", "stays", Expiry::clear(), 1));
  CHECK(f.engine->drop_namespace("a", DropRule::all)->finished == 2);
  CHECK(f.engine->size(0) == 3);
  CHECK(f.engine->size(1) == 2);
  CHECK(f.read("a:string") == "stays");
  for (Claims* claims : {&ab, &longer, &other_db}) {
    CHECK(claims->claim({.key = "k"}).answer == ClaimAnswer::replay);
  }
  CHECK(code_of(f.engine->drop_namespace("", DropRule::all)) == ErrorCode::bad_namespace);
  CHECK(code_of(f.engine->drop_namespace(longest + "n")) == ErrorCode::bad_namespace);
  CHECK(f.engine->drop_namespace(longest, DropRule::finished).has_value());
  {
    auto section = f.engine->section({});
    CHECK(code_of(f.engine->drop_namespace("b", DropRule::all)) == ErrorCode::bad_option);
  }
  // What has ended is not in the way.
  f.pass(Policy{}.result_ttl);
  CHECK(f.engine->drop_namespace("b").has_value());
}

TEST_CASE("namespaces: no key and no flush meets them", "[engine][claims][namespaces]") {
  EngineFixture f;
  Claims jobs = f.claims("jobs");
  CHECK(f.engine->size(0) == 0);
  CHECK(contents_of(*f.engine).empty());
  CHECK(f.put("jobs", "a string of that name"));
  finish(jobs, "k");
  REQUIRE(f.engine->flush(std::nullopt).ok());
  CHECK(f.engine->size(0) == 0);
  CHECK(f.engine->namespaces() == std::vector<std::string>{"jobs"});
  CHECK(jobs.claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("namespaces: a handle may outlive its namespace and its engine",
          "[engine][claims][namespaces]") {
  std::optional<Claims> kept;
  {
    EngineFixture f;
    kept = f.claims("a-name-that-does-not-fit-into-a-short-string");
    REQUIRE(f.engine->drop_namespace("a-name-that-does-not-fit-into-a-short-string"));
    CHECK(kept->is_dropped());
  }
  CHECK(kept->name() == "a-name-that-does-not-fit-into-a-short-string");
}

TEST_CASE("namespaces: what the journal has of them makes the same, in whatever order",
          "[engine][claims][namespaces][journal]") {
  EngineFixture f;
  static_cast<void>(f.claims("changed", {.lease = 1ms, .db = 5}));
  REQUIRE(f.engine->change_namespace("changed", {.lease = 2ms, .db = 5}));
  REQUIRE(f.engine->change_namespace("changed", {.lease = 3ms, .db = 5}));
  static_cast<void>(f.claims("dropped"));
  REQUIRE(f.engine->drop_namespace("dropped"));
  static_cast<void>(f.claims("anew", {.db = 1}));
  REQUIRE(f.engine->drop_namespace("anew"));
  static_cast<void>(f.claims("anew", {.lease = 8ms, .db = 2}));
  const std::vector<std::string> wanted{"anew 2 8", "changed 5 3"};
  REQUIRE(terms_of(*f.engine) == wanted);

  std::vector<Kept> log = log_of(f.journal);
  CHECK(log.size() == 8);
  for (int order = 0; order < 50; ++order) {
    EngineFixture twin;
    replay(log, *twin.engine);
    CHECK(terms_of(*twin.engine) == wanted);
    CHECK(twin.journal.size() == 0);  // what is restored is not journalled again
    // And versions go on behind them.
    REQUIRE(twin.engine->drop_namespace("anew"));
    replay(log, *twin.engine);
    CHECK(twin.engine->claims("changed").has_value());
    CHECK(log_of(twin.journal).back().mutation.version > log.back().mutation.version);
    std::rotate(log.begin(), log.begin() + 3, log.end());
    std::swap(log[static_cast<std::size_t>(order) % log.size()], log.front());
  }
}

TEST_CASE("namespaces: a snapshot holds them", "[engine][claims][namespaces][snapshot]") {
  EngineFixture f;
  for (std::size_t i = 0; i < 1'000; ++i) static_cast<void>(f.claims(nth(i), {.lease = 7ms}));
  EngineFixture twin;
  REQUIRE(f.engine->host().snapshot([&](const Mutation& mutation) {
    if (!twin.engine->host().restore(mutation)) FAIL_CHECK("a mutation is not taken");
  }));
  CHECK(terms_of(*twin.engine) == terms_of(*f.engine));
}

TEST_CASE("namespaces: a journal that takes no writes refuses each change of them",
          "[engine][claims][namespaces]") {
  EngineFixture f;
  static_cast<void>(f.claims("jobs"));
  f.journal.set_accepts_writes(false);
  CHECK(code_of(f.engine->claims("other", {})) == ErrorCode::refused);
  CHECK(code_of(f.engine->change_namespace("jobs", {.lease = 1ms})) == ErrorCode::refused);
  CHECK(code_of(f.engine->drop_namespace("jobs")) == ErrorCode::refused);
  CHECK(f.engine->claims("jobs", {}).has_value());
  CHECK(f.engine->namespaces() == std::vector<std::string>{"jobs"});
  f.journal.set_accepts_writes(true);
  CHECK(f.claims("jobs").claim({.key = "k"}).answer == ClaimAnswer::granted);
}

TEST_CASE("namespaces: terms that cannot be read are refused, not guessed",
          "[engine][claims][namespaces]") {
  EngineFixture f;
  const std::string good = engine::encode_policy({.lease = 300ms, .attempts_max = 16, .db = 3});
  const auto restored = [&](Bytes name, Bytes value) {
    Mutation mutation;
    mutation.kind = Kind::name_space;
    mutation.db = engine::namespace_db;
    mutation.version = 7;
    mutation.key = name;
    mutation.value = value;
    return code_of(f.engine->host().restore(mutation));
  };
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(restored("jobs", Bytes{good}.substr(0, size)) == ErrorCode::storage_damaged);
  }
  CHECK(restored("jobs", good + "x") == ErrorCode::storage_damaged);
  std::string newer = good;
  newer[0] = 2;
  CHECK(restored("jobs", newer) == ErrorCode::storage_damaged);
  CHECK(restored("no blanks", good) == ErrorCode::bad_namespace);
  CHECK(f.engine->namespaces().empty());
  CHECK(restored("jobs", good) == ErrorCode::ok);
  CHECK(f.engine->claims("jobs", {.lease = 300ms, .attempts_max = 16, .db = 3}).has_value());
}

TEST_CASE("namespaces: declared, dropped and claimed in by many at once, nothing runs twice",
          "[engine][claims][namespaces][race]") {
  constexpr int rounds = 300;
  EngineFixture f;
  std::atomic<int> running{0};
  std::atomic<bool> twice{false};
  std::atomic<bool> over{false};
  std::atomic<int> grants{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        Result<Claims> claims = f.engine->claims("jobs", {});
        if (!claims) continue;  // is being dropped
        const ClaimOutcome outcome = claims->claim({.key = "one"});
        if (outcome.answer != ClaimAnswer::granted) continue;
        if (bump(running) != 0) set(twice);
        bump(grants);
        bump(running, -1);
        // It is held, so no drop by `finished` can have come between.
        const OwnerCall done{.key = "one", .epoch = outcome.epoch, .payload = "r"};
        if (claims->complete(done).answer != OwnerAnswer::ok) set(twice);
      }
    });
  }
  threads.emplace_back([&] {
    while (!read(over)) {
      static_cast<void>(f.engine->drop_namespace("jobs", DropRule::finished));
      static_cast<void>(f.engine->change_namespace("jobs", {}));
      static_cast<void>(listed(*f.engine, 3));
    }
  });
  for (int t = 0; t < 4; ++t) threads[static_cast<std::size_t>(t)].join();
  set(over);
  threads.back().join();
  CHECK_FALSE(read(twice));
  CHECK(read(grants) > 0);
  CHECK(broken_rules(*f.engine).empty());
}

TEST_CASE("namespaces: a policy is read whole while it is changed",
          "[engine][claims][namespaces][race]") {
  EngineFixture f;
  Claims jobs = f.claims("jobs", {.lease = 1ms, .result_ttl = 1ms, .retry_after_max = 1ms});
  std::atomic<bool> over{false};
  std::atomic<bool> torn{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!read(over)) {
        const Policy seen = jobs.policy();
        if (seen.lease != seen.result_ttl || seen.lease != seen.retry_after_max) set(torn);
      }
    });
  }
  for (int ms = 2; ms < 3'000; ++ms) {
    const Millis time{ms};
    const Policy next{.lease = time, .result_ttl = time, .retry_after_max = time};
    REQUIRE(f.engine->change_namespace("jobs", next));
  }
  set(over);
  for (std::thread& reader : readers) reader.join();
  CHECK_FALSE(read(torn));
}

TEST_CASE("namespaces: sixteen threads declare the same thousands, each is made once",
          "[engine][claims][namespaces][race][attack][fault-8]") {
  constexpr std::size_t count = 2'000;
  EngineFixture f;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (!f.engine->claims(nth(i), {})) bump(failed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(read(failed) == 0);
  CHECK(f.engine->stats().namespaces == count);
  CHECK(log_of(f.journal).size() == count);
}

}  // namespace semel::tests
