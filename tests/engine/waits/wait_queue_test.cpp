// The wait queue with attempts that are not claims: what a command like BLPOP needs of it.
// Words: take = a wait that takes the string of the first of its keys that has one;
//        watch = a wait that is answered by a number of its key that is large enough, and takes
//        nothing, as XREAD.
#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/api/engine_impl.hpp"
#include "engine/waits/wait_queue.hpp"
#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

using namespace semel;
using namespace std::chrono_literals;
using engine::Verdict;
using engine::WaitQueue;

namespace {

using Keys = std::vector<std::string>;

struct Fixture {
  ManualClock clock;
  std::unique_ptr<Engine> engine;

  explicit Fixture(Options options = {}) {
    options.clock = &clock;
    auto opened = Engine::open(options);
    REQUIRE(opened);
    engine = *std::move(opened);
  }
  [[nodiscard]] WaitQueue& queue() const { return engine::impl_of(*engine).wait_queue(); }
  void set(const std::string& key, const std::string& value) const {
    REQUIRE(engine->store().set(key, value).has_value());
    queue().check_invariants();
  }
  [[nodiscard]] bool has(const std::string& key) const {
    return engine->store().exists(key).value();
  }
  void pass(Millis time) {
    clock.advance(time);
    engine->advance();
    queue().check_invariants();
  }
};

/// How a wait went, shared with the test.
struct Log {
  std::vector<std::string> answers;  ///< "name=answer", in order
  std::vector<std::string> tried;    ///< "name:key"
};

class Pop : public engine::Attempt {
 public:
  Pop(Fixture& f, Log& log, std::string name, Keys keys)
      : f_(f), log_(log), name_(std::move(name)), keys_(std::move(keys)) {}

  [[nodiscard]] Verdict try_for(std::size_t key, engine::Seen& seen) override {
    log_.tried.push_back(name_ + ":" + keys_[key]);
    seen.now = f_.engine->now();
    const auto value = f_.engine->store().getdel(keys_[key]);
    if (!value.has_value() || !*value) return Verdict::waits;
    taken_ = {keys_[key], **value};
    answer = keys_[key] + ":" + **value;
    return Verdict::answered;
  }
  void give_up(ErrorCode why, Timestamp, const engine::Seen&) noexcept override {
    answer = why == ErrorCode::timed_out ? "timed out" : "closing";
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }
  void give_back() override {
    if (!taken_.first.empty()) f_.set(taken_.first, taken_.second);
  }
  void note() const { log_.answers.push_back(name_ + "=" + answer); }

  std::string answer;

 protected:
  Fixture& f_;
  Log& log_;
  const std::string name_;
  const Keys keys_;

 private:
  std::pair<std::string, std::string> taken_;
};

class Watch final : public Pop {
 public:
  Watch(Fixture& f, Log& log, std::string name, Keys keys, int least)
      : Pop(f, log, std::move(name), std::move(keys)), least_(least) {}

  [[nodiscard]] Verdict try_for(std::size_t key, engine::Seen& seen) override {
    seen.now = f_.engine->now();
    const auto value = f_.engine->store().get(keys_[key]);
    int number = 0;
    if (value.has_value() && *value) {
      std::from_chars((*value)->data(), (*value)->data() + (*value)->size(), number);
    }
    if (number < least_) return Verdict::passes;
    answer = std::to_string(number);
    return Verdict::answered;
  }
  void give_back() override {}

 private:
  const int least_;
};

class Told final : public engine::Receiver {
 public:
  explicit Told(const Pop& pop) noexcept : pop_(pop) {}
  void answered() override { pop_.note(); }

 private:
  const Pop& pop_;
};

ErrorCode begin(Fixture& f, std::unique_ptr<Pop> pop, const Keys& keys, Timestamp deadline,
                WaitTicket& ticket) {
  std::vector<KeyRef> refs;
  for (const std::string& key : keys) refs.push_back({0, key});
  std::unique_ptr<engine::Receiver> told = std::make_unique<Told>(*pop);
  std::unique_ptr<engine::Attempt> attempt = std::move(pop);
  const ErrorCode why = f.queue().wait(attempt, told, refs, deadline, ticket);
  CHECK((why == ErrorCode::ok) == (attempt == nullptr));
  f.queue().check_invariants();
  return why;
}

WaitTicket take(Fixture& f, Log& log, const std::string& name, const Keys& keys,
                Timestamp deadline = no_end) {
  WaitTicket ticket = 0;
  REQUIRE(begin(f, std::make_unique<Pop>(f, log, name, keys), keys, deadline, ticket) ==
          ErrorCode::ok);
  return ticket;
}

void watch(Fixture& f, Log& log, const std::string& name, const Keys& keys, int least) {
  WaitTicket ticket = 0;
  REQUIRE(begin(f, std::make_unique<Watch>(f, log, name, keys, least), keys, no_end, ticket) ==
          ErrorCode::ok);
}

using Answers = std::vector<std::string>;

}  // namespace

TEST_CASE("wait queue: who waits for a key is served in order of arrival, one for each value",
          "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  take(f, log, "one", {"a"});
  take(f, log, "two", {"a"});
  f.set("a", "1");
  CHECK(log.answers == Answers{"one=a:1"});
  CHECK_FALSE(f.has("a"));
  f.set("b", "9");
  f.set("a", "2");
  CHECK(log.answers == Answers{"one=a:1", "two=a:2"});
  CHECK(f.engine->stats().waiters == 0);
  f.set("a", "3");
  CHECK(f.has("a"));
}

TEST_CASE("wait queue: a value that is there when the wait begins is taken", "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  f.set("b", "1");
  take(f, log, "one", {"a", "b"});
  CHECK(log.answers == Answers{"one=b:1"});
  CHECK(f.engine->stats().waiters == 0);
}

TEST_CASE("wait queue: a wait for two keys is answered once, by the key that changed",
          "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  take(f, log, "both", {"a", "b"});
  take(f, log, "next", {"b"});
  take(f, log, "last", {"b", "a"});
  CHECK(f.engine->stats().waiters == 3);
  SECTION("the second of them") {
    f.set("b", "1");
    CHECK(log.answers == Answers{"both=b:1"});
    f.set("b", "2");
    CHECK(log.answers == Answers{"both=b:1", "next=b:2"});
    f.set("a", "3");
    CHECK(log.answers == Answers{"both=b:1", "next=b:2", "last=a:3"});
  }
  SECTION("each line keeps its order") {
    f.set("a", "1");
    f.set("b", "2");
    f.set("b", "3");
    CHECK(log.answers == Answers{"both=a:1", "next=b:2", "last=b:3"});
  }
  SECTION("both change in one step, and the whole section is over before anyone is served") {
    const std::vector<KeyRef> keys{{0, "a"}, {0, "b"}};
    {
      auto section = f.engine->section(keys);
      REQUIRE(section);
      REQUIRE(f.engine->store().set("b", "1").has_value());
      REQUIRE(f.engine->store().set("a", "2").has_value());
      CHECK(log.answers.empty());
    }
    CHECK(log.answers.size() == 2);
    CHECK(std::count_if(log.answers.begin(), log.answers.end(),
                        [](const auto& each) { return each.starts_with("both="); }) == 1);
    CHECK_FALSE(f.has("a"));
    CHECK_FALSE(f.has("b"));
  }
  f.queue().check_invariants();
}

TEST_CASE("wait queue: the same key twice is one wait", "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  take(f, log, "twice", {"a", "a"});
  take(f, log, "next", {"a"});
  f.set("a", "1");
  f.set("a", "2");
  CHECK(log.answers == Answers{"twice=a:1", "next=a:2"});

  watch(f, log, "number", {"n", "n"}, 5);
  watch(f, log, "other", {"n", "n"}, 6);
  f.set("n", "5");
  f.set("n", "6");
  CHECK(log.answers == Answers{"twice=a:1", "next=a:2", "number=5", "other=6"});
}

TEST_CASE("wait queue: at its deadline a wait ends, and the next in line stays",
          "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  take(f, log, "soon", {"a", "b"}, f.clock.now() + 100ms);
  take(f, log, "later", {"b"}, f.clock.now() + 200ms);
  f.pass(99ms);
  CHECK(log.answers.empty());
  f.pass(1ms);
  CHECK(log.answers == Answers{"soon=timed out"});
  f.set("b", "1");
  CHECK(log.answers == Answers{"soon=timed out", "later=b:1"});
  CHECK(f.engine->stats().waiters == 0);
  f.set("a", "1");
  CHECK(f.has("a"));
}

TEST_CASE("wait queue: a cancelled wait takes nothing", "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  const WaitTicket gone = take(f, log, "gone", {"a", "b"});
  take(f, log, "next", {"b"});
  CHECK(f.queue().cancel(gone));
  CHECK_FALSE(f.queue().cancel(gone));
  f.queue().check_invariants();
  f.set("a", "1");
  f.set("b", "2");
  CHECK(f.has("a"));
  CHECK(log.answers == Answers{"next=b:2"});
}

TEST_CASE("wait queue: what a wait took as it was cancelled is given back, and the next has it",
          "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  WaitTicket gone = 0;
  class Leaves final : public Pop {
   public:
    Leaves(Fixture& f, Log& log, WaitTicket& ticket) : Pop(f, log, "gone", {"a"}), t_(ticket) {}
    [[nodiscard]] Verdict try_for(std::size_t key, engine::Seen& seen) override {
      const Verdict verdict = Pop::try_for(key, seen);
      if (verdict == Verdict::answered) CHECK(f_.queue().cancel(t_));
      return verdict;
    }

   private:
    WaitTicket& t_;
  };
  REQUIRE(begin(f, std::make_unique<Leaves>(f, log, gone), {"a"}, no_end, gone) == ErrorCode::ok);
  take(f, log, "next", {"a"});
  f.set("a", "1");
  CHECK(log.answers == Answers{"next=a:1"});
  CHECK(f.engine->stats().waiters == 0);
}

TEST_CASE("wait queue: one that wants something else does not hold up the next",
          "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  watch(f, log, "ten", {"n"}, 10);
  watch(f, log, "five", {"n"}, 5);
  watch(f, log, "also five", {"n"}, 5);
  f.set("n", "3");
  CHECK(log.answers.empty());
  f.set("n", "7");
  CHECK(log.answers == Answers{"five=7", "also five=7"});
  f.set("n", "10");
  CHECK(log.answers == Answers{"five=7", "also five=7", "ten=10"});
}

TEST_CASE("wait queue: claims and others wait in one line", "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  auto claims = f.engine->claims("ns", Policy{});
  REQUIRE(claims);
  const ClaimOutcome held = claims->claim({.key = "k", .owner = "me"});
  watch(f, log, "other", {"ns:k"}, 1);
  std::vector<ClaimAnswer> answers;
  claims->claim_or_wait({.key = "k"}, no_end,
                        [&](ClaimOutcome&& outcome) { answers.push_back(outcome.answer); });
  CHECK(f.engine->stats().waiters == 2);
  REQUIRE(claims->release({.key = "k", .epoch = held.epoch}).answer == OwnerAnswer::ok);
  CHECK(answers == std::vector{ClaimAnswer::granted});
  CHECK(log.answers.empty());
}

TEST_CASE("wait queue: a full line refuses, and the other lines of that wait are as before",
          "[engine][waits]") {
  Log log;  // outlives the waits
  Fixture f;
  for (std::size_t i = 0; i < limits::waiters_per_key_max; ++i) take(f, log, "w", {"full"});
  WaitTicket ticket = 0;
  const Keys keys{"free", "full"};
  CHECK(begin(f, std::make_unique<Pop>(f, log, "late", keys), keys, no_end, ticket) ==
        ErrorCode::waiters_full);
  CHECK(f.engine->stats().waiters == limits::waiters_per_key_max);
  CHECK_FALSE(f.queue().has_waiters_for(0, "free"));
}

TEST_CASE("wait queue: a wait counts towards the memory limit with each of its keys",
          "[engine][waits]") {
  Log log;
  Fixture f{{.memory_bytes = limits::memory_bytes_min}};
  CHECK(f.queue().cancel(take(f, log, "first", {"x"})));  // what the thread takes once
  const auto used = [&] { return f.engine->stats().bytes_used; };
  const std::uint64_t before = used();
  const std::string far(20'000, 'k');
  const WaitTicket one = take(f, log, "one", {far + "a", far + "b", far + "c"});
  CHECK(used() >= before + 3 * far.size());
  CHECK(f.queue().cancel(one));
  CHECK(used() == before);

  ErrorCode why = ErrorCode::ok;
  std::vector<WaitTicket> tickets;
  for (int i = 0; why == ErrorCode::ok && i < 10'000; ++i) {
    const Keys keys{far + std::to_string(i), "y"};
    WaitTicket ticket = 0;
    why = begin(f, std::make_unique<Pop>(f, log, "many", keys), keys, no_end, ticket);
    if (why == ErrorCode::ok) tickets.push_back(ticket);
  }
  CHECK(why == ErrorCode::memory_full);
  CHECK(used() <= limits::memory_bytes_min);
  for (const WaitTicket each : tickets) CHECK(f.queue().cancel(each));
  CHECK(used() == before);
}

TEST_CASE("wait queue: a closing engine answers all", "[engine][waits]") {
  Log log;
  Fixture f;
  take(f, log, "one", {"a", "b"});
  take(f, log, "two", {"b"}, f.clock.now() + 10ms);
  f.engine.reset();
  CHECK(log.answers == Answers{"one=closing", "two=closing"});
}

TEST_CASE("wait queue: values of many keys reach one wait each while waits come and go",
          "[engine][waits][race]") {
  Fixture f;
  constexpr int values = 2'000;
  const Keys both{"a", "b"};
  const std::vector<KeyRef> refs{{0, both[0]}, {0, both[1]}};
  std::vector<int> seen[2];
  const auto serve = [&](std::vector<int>& got, const std::string& first) {
    Log log;
    const Keys keys = first == "a" ? both : Keys{both[1], both[0]};
    std::vector<KeyRef> own;
    for (const std::string& key : keys) own.push_back({0, key});
    for (;;) {
      Pop pop{f, log, first, keys};
      if (f.queue().wait(pop, own, no_end, f.clock) != ErrorCode::ok) return;
      const int value = std::stoi(pop.answer.substr(2));
      if (value < 0) return;
      got.push_back(value);
    }
  };
  std::thread one{[&] { serve(seen[0], "a"); }};
  std::thread two{[&] { serve(seen[1], "b"); }};
  const auto put = [&](const std::string& key, int value) {
    while (!f.engine->store().setnx(key, std::to_string(value)).value()) std::this_thread::yield();
  };
  std::thread other{[&] {
    for (int i = 1; i < values; i += 2) put("b", i);
  }};
  for (int i = 0; i < values; i += 2) put("a", i);
  other.join();
  put("a", -1);
  put("b", -1);
  one.join();
  two.join();
  std::vector<int> all = seen[0];
  all.insert(all.end(), seen[1].begin(), seen[1].end());
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == values);
  for (int i = 0; i < values; ++i) REQUIRE(all[static_cast<std::size_t>(i)] == i);
  f.queue().check_invariants();
}
