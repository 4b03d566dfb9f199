// The engine in a real process: exceptions, threads that end, fork, the end of the process; a test
// for each sentence of docs/process-life.md that is not about waits (waiting_life_test.cpp).
// Words: child = what fork() makes; verdict = the exit code by which a child says what it saw.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/api/engine_impl.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/support/sanitized.hpp"

namespace semel::tests {

namespace {

/// What a child that runs `work` ends with; 255: it was ended by a signal, an alarm for one.
int verdict_of(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(work());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/// Calls `last` when the thread that made it ends, after the destructors of what was made later.
struct AtEnd {
  std::function<void()> last;
  ~AtEnd() {
    if (last) last();
  }
};

[[nodiscard]] engine::ThreadContext* context_in(Engine& engine) {
  return &engine::impl_of(engine).core().context();
}

}  // namespace

// --- threads that end ----------------------------------------------------------------------------

TEST_CASE("process: a thread_local object's destructor may call the engine, however late it runs",
          "[engine][process][race][attack][fault-18]") {
  EngineFixture f;
  bool worked = false;
  bool shared = true;
  std::thread{[&] {
    thread_local AtEnd late;
    late.last = [&] {
      engine::ThreadContext* const mine = context_in(*f.engine);
      worked = f.put("late", "1") && f.read("late") == "1";
      std::thread{[&] { shared = context_in(*f.engine) == mine; }}.join();
    };
    f.put("early", "1");
  }}.join();
  CHECK(worked);
  CHECK_FALSE(shared);  // a context that two threads use is memory that two threads use
  CHECK(broken_rules(*f.engine).empty());
}

TEST_CASE("process: a static object's destructor may call an engine that lives",
          "[engine][process][attack][fault-18]") {
  const int verdict = verdict_of([] {
    static AtEnd at_exit;  // made before the thread's first call
    static Engine* engine = nullptr;
    at_exit.last = [] {
      Store store = engine->store();
      bool fine = true;
      for (int i = 0; i < 5'000; ++i) {
        const std::string key = std::to_string(i % 500);
        fine = fine && store.set(key, key, {.expiry = Expiry::in(Millis{1 + i % 5})}).has_value();
      }
      _exit(fine && engine->size(0) <= 20'500 ? 7 : 8);
    };
    engine = Engine::open({.background = Millis{1}}).value().release();
    static_cast<void>(engine->store().set("k", "v"));
    std::exit(1);
    return 0;
  });
  CHECK(verdict == 7);
}

TEST_CASE("process: a thread does not begin with what an ended one left set",
          "[engine][process][race][attack][fault-18]") {
  EngineFixture f;
  std::thread{[&] { static_cast<void>(f.engine->host().set_no_wait(true)); }}.join();
  bool was = true;
  std::thread{[&] { was = f.engine->host().set_no_wait(false); }}.join();
  CHECK_FALSE(was);
}

// --- fork ---------------------------------------------------------------------------------------

namespace {

/// The calls of an engine, each with what it answers in a child.
std::vector<std::pair<const char*, bool>> answers_in_child(Engine& engine, Claims& ns) {
  const auto forked = [](const auto& result) { return code_of(result) == ErrorCode::forked; };
  std::vector<std::pair<const char*, bool>> seen;
  Store store = engine.store();
  const std::array<Bytes, 2> keys{"a", "b"};
  seen.emplace_back("get", forked(store.get("a")));
  seen.emplace_back("set", forked(store.set("a", "1")));
  seen.emplace_back("del", forked(store.del(keys)));
  seen.emplace_back("mget", forked(store.mget(keys)));
  seen.emplace_back("hash", forked(engine.hashes().hget("h", "f")));
  StoreOutcome outcome;
  engine.host().apply(StoreOp{.verb = Verb::get, .key = "a"}, outcome);
  seen.emplace_back("apply", outcome.error == ErrorCode::forked);
  seen.emplace_back("section", forked(engine.section({})));
  seen.emplace_back("scan", forked(engine.scan(0, {}, [](const ScanItem&) {})));
  seen.emplace_back("snapshot", forked(engine.host().snapshot([](const Mutation&) {})));
  seen.emplace_back("swap_db", forked(engine.swap_db(0, 1)));
  seen.emplace_back("confirm", forked(engine.confirm(Durability::memory)));
  seen.emplace_back("claims", forked(engine.claims("other", Policy{})));
  seen.emplace_back("flush", forked(engine.flush(std::nullopt)));
  seen.emplace_back("size", engine.size(0) == 0);
  seen.emplace_back("stats", engine.stats().records == 0);
  seen.emplace_back("advance", engine.advance(5) == 5);
  seen.emplace_back("claim", ns.claim({.key = "new"}).error == ErrorCode::forked);
  seen.emplace_back("claim_or_wait",
                    ns.claim_or_wait({.key = "k"}, no_end).error == ErrorCode::forked);
  seen.emplace_back("complete", ns.complete({.key = "k"}).error == ErrorCode::forked);
  seen.emplace_back("get claim", forked(ns.get("k")));
  seen.emplace_back("forget", forked(ns.forget("k")));
  std::array<ClaimRequest, 2> requests{{{.key = "x"}, {.key = "y"}}};
  std::array<ClaimOutcome, 2> outcomes;
  ns.claim(requests, outcomes);
  seen.emplace_back("batch", outcomes[1].error == ErrorCode::forked);
  seen.emplace_back("claim_all",
                    !ns.claim_all(requests, outcomes) && outcomes[0].error == ErrorCode::forked);
  seen.emplace_back("cancel_wait", !ns.cancel_wait("k", 1));
  return seen;
}

}  // namespace

TEST_CASE("process: in a child every call of the parent's engine answers forked, and none hangs",
          "[engine][process][race][attack][fault-21]") {
  EngineFixture f{{.background = Millis{1}}};
  Policy fair;
  fair.fair = true;
  Claims ns = f.claims("ns", fair);
  REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
  std::atomic<bool> stop{false};
  std::thread busy{[&] {  // so that the fork finds the engine in the middle of everything
    for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) {  // mo: relaxed: ends a loop
      f.put(std::to_string(i % 1'000), "x");
      static_cast<void>(f.engine->section({}));
      static_cast<void>(ns.claim_or_wait({.key = "k"}, f.clock.now()));
    }
  }};
  int all_fine = 0;
  constexpr int rounds = 20;
  for (int i = 0; i < rounds; ++i) {
    const std::size_t appended = f.journal.size();
    all_fine += verdict_of([&] {
                  for (const auto& [call, fine] : answers_in_child(*f.engine, ns)) {
                    if (fine) continue;
                    std::fprintf(stderr, "in a child: %s\n", call);
                    return 1;
                  }
                  f.engine.reset();  // ends nothing of the parent's
                  return 0;
                }) == 0;
    CHECK(f.journal.size() >= appended);
  }
  stop.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  busy.join();
  CHECK(all_fine == rounds);
  CHECK(f.put("after", "1"));  // the parent goes on
  CHECK(broken_rules(*f.engine).empty());
}

TEST_CASE("process: a child's own engine works, in its own children it answers forked",
          "[engine][process][attack][fault-21]") {
  EngineFixture f;
  f.put("k", "parent");
  const int verdict = verdict_of([&] {
    auto own = Engine::open();
    if (!own) return 1;
    Store store = (*own)->store();
    if (!store.set("k", "child").has_value() || store.get("k").value() != "child") return 2;
    const int grandchild = verdict_of([&] {
      return code_of(store.get("k")) == ErrorCode::forked &&
                     code_of(f.store().get("k")) == ErrorCode::forked
                 ? 0
                 : 1;
    });
    if (grandchild != 0) return 3;
    return store.get("k").value() == "child" ? 0 : 4;
  });
  CHECK(verdict == 0);
  CHECK(f.read("k") == "parent");
}

TEST_CASE("process: a section that the parent is in is the parent's to end",
          "[engine][process][attack][fault-21]") {
  EngineFixture f;
  auto section = f.engine->section({});
  REQUIRE(section.has_value());
  StoreOutcome outcome;
  section->apply(StoreOp{.verb = Verb::set, .key = "k", .value = "v"}, outcome);
  const int verdict = verdict_of([&] {
    section->apply(StoreOp{.verb = Verb::set, .key = "k", .value = "w"}, outcome);
    if (outcome.error != ErrorCode::forked) return 1;
    if (code_of(section->commit()) != ErrorCode::forked) return 2;
    const Section ended = *std::move(section);
    return 0;
  });
  CHECK(verdict == 0);
  CHECK(f.journal.size() == 0);
  CHECK(section->commit().has_value());
  CHECK(f.journal.size() == 1);
  CHECK(f.read("k") == "v");
}

// --- exceptions ---------------------------------------------------------------------------------

namespace {

/// Records the reports of exceptions.
struct Reports {
  std::vector<std::pair<Callback, std::string>> all;
  [[nodiscard]] Options options() {
    Options options;
    options.on_callback_exception = [this](Callback which, std::exception_ptr thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& one) {
        all.emplace_back(which, one.what());
      }
      throw std::logic_error{"the report's own"};  // is swallowed as well
    };
    return options;
  }
};

}  // namespace

TEST_CASE("process: a sink that throws does not stop other sinks, and leaves no lock",
          "[engine][process][attack][fault-18]") {
  Reports reports;
  EngineFixture f{reports.options()};
  int heard = 0;
  f.engine->subscribe_expired([](const ExpiredEvent&) { throw std::runtime_error{"sink"}; });
  f.engine->subscribe_expired([&](const ExpiredEvent&) { ++heard; });
  f.put("a", "1", Expiry::in(Millis{5}));
  f.put("b", "1", Expiry::in(Millis{5}));
  f.pass(Millis{10});
  CHECK(heard == 2);
  CHECK(reports.all ==
        std::vector<std::pair<Callback, std::string>>(2, {Callback::expired_sink, "sink"}));
  CHECK(f.engine->stats().callbacks_threw == 2);
  CHECK(f.engine->section({}).has_value());
  CHECK(f.put("a", "2"));
}

TEST_CASE("process: a visitor that throws ends its scan or snapshot with callback_threw, no more",
          "[engine][process][attack][fault-18]") {
  Reports reports;
  EngineFixture f{reports.options()};
  for (int i = 0; i < 100; ++i) f.put(std::to_string(i), "v");
  int visits = 0;
  const auto cut = f.engine->host().snapshot([&](const Mutation&) {
    if (++visits < 3) return;
    f.put("5", "written meanwhile");  // what the cut holds on to goes back all the same
    throw std::runtime_error{"visitor"};
  });
  CHECK(code_of(cut) == ErrorCode::callback_threw);
  CHECK(visits == 3);
  {
    engine::Core& core = engine::impl_of(*f.engine).core();
    CHECK(core.snapshot_cut().take().handles.empty());
  }
  const auto scanned =
      f.engine->scan(0, {.count = 10'000}, [](const ScanItem&) { throw std::bad_alloc{}; });
  CHECK(code_of(scanned) == ErrorCode::callback_threw);
  CHECK(reports.all.size() == 2);
  int records = 0;
  CHECK(f.engine->host().snapshot([&](const Mutation&) { ++records; }).has_value());
  CHECK(records >= 100);
  CHECK(f.put("5", "again"));
  CHECK(broken_rules(*f.engine).empty());
}

namespace {

/// A journal of a user who has not read that it must not throw.
class ThrowingJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override {
    if (throws) throw std::runtime_error{"append"};
    return ++newest_;
  }
  Status wait(Ticket ticket, Durability) override {
    if (throws) throw std::runtime_error{"wait"};
    if (ticket == 0) return Error{ErrorCode::outcome_unknown, {}};
    return Done{};
  }
  Ticket newest() const override {
    if (throws) throw std::runtime_error{"newest"};
    return newest_;
  }
  bool throws = true;

 private:
  Ticket newest_ = 0;
};

}  // namespace

TEST_CASE("process: a journal that throws makes an answer unknown, and blocks no thread",
          "[engine][process][attack][fault-18]") {
  ThrowingJournal journal;
  Options options;
  options.journal = &journal;
  options.durability = Durability::logged;
  EngineFixture f{options};
  CHECK(code_of(f.store().set("k", "v")) == ErrorCode::outcome_unknown);
  CHECK(code_of(f.store().get("k")) == ErrorCode::outcome_unknown);  // and does not spin
  auto section = f.engine->section({});
  StoreOutcome outcome;
  section->apply(StoreOp{.verb = Verb::set, .key = "k", .value = "w"}, outcome);
  CHECK(code_of(section->commit()) == ErrorCode::outcome_unknown);
  CHECK(code_of(f.engine->confirm(Durability::logged)) == ErrorCode::outcome_unknown);
  int answers = 0;
  f.engine->confirm_async(Durability::logged, [&](Status status) {
    CHECK(code_of(status) == ErrorCode::outcome_unknown);
    ++answers;
    throw std::runtime_error{"then"};
  });
  CHECK(answers == 1);
  CHECK(f.engine->stats().callbacks_threw >= 5);
  journal.throws = false;
  CHECK(f.store().set("k", "x").has_value());
  CHECK(f.read("k") == "x");
}

namespace {

/// Holds the first append until it is let go.
class StuckJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override {
    if (!met_.exchange(true, std::memory_order_seq_cst)) {  // mo: seq_cst: a test
      stuck.store(true, std::memory_order_seq_cst);         // mo: seq_cst: a test
      stuck.notify_all();
      go.wait(false, std::memory_order_seq_cst);  // mo: seq_cst: a test
    }
    return 1;
  }
  Status wait(Ticket, Durability) override { return Done{}; }
  Ticket newest() const override { return 1; }

  std::atomic<bool> stuck{false};
  std::atomic<bool> go{false};

 private:
  std::atomic<bool> met_{false};
};

}  // namespace

TEST_CASE("process: a thread stuck in the journal lets others be refused in bounded time",
          "[engine][process][race][attack][fault-18]") {
  StuckJournal journal;
  Options options;
  options.journal = &journal;
  options.memory_bytes = limits::memory_bytes_min;
  EngineFixture f{options};
  std::thread stuck{[&] { f.put("stuck", "1"); }};
  journal.stuck.wait(false, std::memory_order_seq_cst);  // mo: seq_cst: a test
  const std::string value(1'000, 'v');
  ErrorCode error = ErrorCode::ok;
  for (int i = 0; i < 1'000'000 && error == ErrorCode::ok; ++i) {
    error = code_of(f.store().set("same", value));
  }
  CHECK(error == ErrorCode::memory_full);
  journal.go.store(true, std::memory_order_seq_cst);  // mo: seq_cst: a test
  journal.go.notify_all();
  stuck.join();
  f.engine->host().quiesce();
  CHECK(f.put("same", value));
}

// --- beginnings ---------------------------------------------------------------------------------

TEST_CASE("process: without address space or threads open() answers, it does not end the process",
          "[engine][process][attack][fault-18]") {
  if (is_sanitized) return;  // a sanitizer needs the address space itself
  for (const std::size_t mb : {1U, 4U, 9U, 12U, 20U, 50U, 90U, 200U, 400U}) {
    const int verdict = verdict_of([mb] {
      std::size_t pages = 0;
      if (std::FILE* const file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
        if (std::fscanf(file, "%zu", &pages) != 1) return 9;
        std::fclose(file);
      }
      const rlim_t limit = pages * 4'096 + (mb << 20);
      const rlimit bound{limit, limit};
      if (setrlimit(RLIMIT_AS, &bound) != 0) return 8;
      const auto engine =
          Engine::open({.memory_bytes = std::size_t{64} << 20, .background = Millis{1}});
      if (engine) return 0;
      const ErrorCode code = engine.error().code;
      return code == ErrorCode::out_of_address_space || code == ErrorCode::no_thread ? 0 : 1;
    });
    INFO(mb << " MiB more than there is");
    CHECK(verdict == 0);
  }
}

TEST_CASE("process: times that mean for ever are refused where they cannot be kept, not wrapped",
          "[engine][process][attack][fault-21]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  CHECK(ns.claim({.key = "k", .lease = Millis::max()}).error == ErrorCode::bad_option);
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  CHECK(ns.renew({.key = "k", .epoch = epoch, .lease = Millis::max()}).error ==
        ErrorCode::bad_option);
  Policy policy;
  policy.lease = Millis::max();
  CHECK(code_of(f.engine->claims("ns2", policy)) == ErrorCode::bad_option);
  CHECK(code_of(f.store().set("s", "v", {.expiry = Expiry::in(Millis::max())})) ==
        ErrorCode::invalid_expire);
  CHECK(deadline_after(f.clock.now(), Millis::max()) == no_end);
  CHECK(deadline_after(f.clock.now(), Millis{5}) == f.clock.now() + Millis{5});
  CHECK(deadline_after(f.clock.now(), Millis{-5}) == f.clock.now());
  CHECK(deadline_after(no_end, Millis{1}) == no_end);
}

}  // namespace semel::tests
