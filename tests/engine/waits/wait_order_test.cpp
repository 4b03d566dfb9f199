// The order in which the wait queue tries: kinds in one line, a place that is kept, changes that
// are held until their command has been finished.
// Words: take = a wait that takes the string of its key, if it begins with the letter of its kind.
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/api/engine_impl.hpp"
#include "engine/waits/wait_queue.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

using namespace semel;
using engine::Verdict;
using engine::WaitKind;
using engine::WaitQueue;

namespace {

using Answers = std::vector<std::string>;

struct Fixture {
  ManualClock clock;
  Answers answers;
  int tried = 0;
  // Behind what its end still writes to: it answers the waits that are left.
  std::unique_ptr<Engine> engine = std::move(Engine::open({.clock = &clock})).value();

  [[nodiscard]] WaitQueue& queue() const { return engine::impl_of(*engine).wait_queue(); }
  void set(const std::string& key, const std::string& value) const {
    REQUIRE(engine->store().set(key, value).has_value());
  }
};

struct Taken {
  std::string name;
  std::string key;
  WaitKind kind = WaitKind::list;
  std::string passes_to{};  ///< the key that gets what was taken
};

class Take final : public engine::Attempt {
 public:
  Take(Fixture& f, Taken what) : f_(f), what_(std::move(what)) {}

  [[nodiscard]] WaitKind kind() const noexcept override { return what_.kind; }
  [[nodiscard]] Verdict try_for(std::size_t, engine::Seen& seen) override {
    ++f_.tried;
    seen.now = f_.engine->now();
    const auto value = f_.engine->store().get(what_.key);
    const char letter = what_.kind == WaitKind::list ? 'l' : 'z';
    if (!value.ok() || !*value || (*value)->front() != letter) return Verdict::waits;
    CHECK(f_.engine->store().del(std::vector<Bytes>{what_.key}).value() == 1);
    if (!what_.passes_to.empty()) f_.set(what_.passes_to, **value);
    return Verdict::answered;
  }
  void give_up(ErrorCode, Timestamp, const engine::Seen&) noexcept override {}
  void give_back() override {}
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }
  void note() { f_.answers.push_back(what_.name); }

 private:
  Fixture& f_;
  const Taken what_;
};

class Note final : public engine::Receiver {
 public:
  explicit Note(Take& take) noexcept : take_(take) {}
  void answered() override { take_.note(); }

 private:
  Take& take_;
};

WaitTicket take(Fixture& f, const Taken& what, WaitTicket arrival = 0) {
  auto made = std::make_unique<Take>(f, what);
  std::unique_ptr<engine::Receiver> receiver = std::make_unique<Note>(*made);
  std::unique_ptr<engine::Attempt> attempt = std::move(made);
  const KeyRef key{0, what.key};
  WaitTicket ticket = 0;
  REQUIRE(f.queue().wait(attempt, receiver, {&key, 1}, no_end, ticket, arrival) == ErrorCode::ok);
  f.queue().check_invariants();
  return ticket;
}

}  // namespace

TEST_CASE("wait order: one kind does not hold back another in the same line", "[engine][waits]") {
  Fixture f;
  take(f, {"list 1", "k"});
  take(f, {"list 2", "k"});
  take(f, {"sorted 1", "k", WaitKind::sorted_set});
  take(f, {"list 3", "k"});
  take(f, {"sorted 2", "k", WaitKind::sorted_set});
  f.set("k", "z");
  CHECK(f.answers == Answers{"sorted 1"});
  f.set("k", "l");
  CHECK(f.answers == Answers{"sorted 1", "list 1"});
  f.set("k", "z");
  f.set("k", "l");
  f.set("k", "l");
  CHECK(f.answers == Answers{"sorted 1", "list 1", "sorted 2", "list 2", "list 3"});
  f.queue().check_invariants();
}

TEST_CASE("wait order: of each kind one is tried in vain, however many wait", "[engine][waits]") {
  Fixture f;
  for (int i = 0; i < 50; ++i) {
    take(f, {"list", "k"});
    take(f, {"sorted", "k", WaitKind::sorted_set});
  }
  f.tried = 0;
  f.set("k", "other");
  CHECK(f.tried == 2);
}

TEST_CASE("wait order: one that comes back has the place that it had", "[engine][waits]") {
  Fixture f;
  const WaitTicket first = take(f, {"first", "k"});
  take(f, {"second", "k"});
  const WaitTicket third = take(f, {"third", "k"});
  take(f, {"fourth", "k"});
  REQUIRE(f.queue().cancel(third));
  REQUIRE(f.queue().cancel(first));
  take(f, {"third again", "k"}, third);
  take(f, {"first again", "k"}, first);
  take(f, {"fifth", "k"});
  for (int i = 0; i < 5; ++i) f.set("k", "l");
  CHECK(f.answers == Answers{"first again", "second", "third again", "fourth", "fifth"});
}

TEST_CASE("wait order: held changes are tried when the outermost hold ends, in their order",
          "[engine][waits]") {
  Fixture f;
  take(f, {"a", "a"});
  take(f, {"b", "b"});
  take(f, {"c", "c"});
  {
    const WaitQueue::Hold outer{f.queue()};
    {
      const WaitQueue::Hold inner{f.queue()};
      f.set("b", "l");
    }
    f.set("a", "l");
    CHECK(f.answers.empty());
  }
  CHECK(f.answers == Answers{"b", "a"});
  f.set("c", "l");
  CHECK(f.answers == Answers{"b", "a", "c"});
}

TEST_CASE("wait order: what a served wait changes is tried behind all that was changed before",
          "[engine][waits]") {
  Fixture f;
  take(f, {"a", "a", WaitKind::list, "c"});
  take(f, {"b", "b"});
  take(f, {"c", "c", WaitKind::list, "d"});
  take(f, {"d", "d"});
  {
    const WaitQueue::Hold hold{f.queue()};
    f.set("a", "l");
    f.set("b", "l");
  }
  CHECK(f.answers == Answers{"a", "b", "c", "d"});
  // Without a hold as well.
  take(f, {"e", "e", WaitKind::list, "f"});
  take(f, {"f", "f"});
  f.set("e", "l");
  CHECK(f.answers == Answers{"a", "b", "c", "d", "e", "f"});
  f.queue().check_invariants();
}
