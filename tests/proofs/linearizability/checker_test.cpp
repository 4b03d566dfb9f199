// The checker checked: planted bad histories must be refused, good ones accepted.
// Words: put, get, take (a claim), finish (complete), span (two moments).
#include "tests/proofs/linearizability/checker.hpp"

#include <random>
#include "tests/support/catch.hpp"

namespace {

using namespace semel;
using namespace semel::proofs;

struct Span {
  std::uint64_t invoked;
  std::uint64_t returned;
};

/// Builds a history of one key by hand.
class Story {
 public:
  Story() {
    history_.clock_values = {1000};
    history_.policy.lease = Millis{10};
  }

  Story& clock(std::vector<Ms> values) {
    history_.clock_values = std::move(values);
    return *this;
  }
  /// The clock's readings around the calls that follow.
  Story& at(Ms before, Ms after) {
    before_ = before;
    after_ = after;
    return *this;
  }
  Story& at(Ms now) { return at(now, now); }

  Story& put(Span span, const std::string& value, Version version, Expiry expiry = {}) {
    StoreStep step = store(Verb::set, version);
    step.call.value = value;
    step.call.op.expiry = expiry;
    step.seen.found = version > 1 && !next_put_is_on_absent_;
    step.seen.applied = true;
    next_put_is_on_absent_ = false;
    return add(span, {0, step});
  }
  Story& on_absent() {
    next_put_is_on_absent_ = true;
    return *this;
  }
  Story& put_if_absent(Span span, const std::string& value, bool stored, Version version) {
    StoreStep step = store(Verb::set, version);
    step.call.value = value;
    step.call.op.condition = Condition::if_absent;
    step.seen.found = !stored;
    step.seen.applied = stored;
    return add(span, {0, step});
  }
  Story& get(Span span, const std::string& value, Version version) {
    StoreStep step = store(Verb::get, version);
    step.seen.found = step.seen.has_value = true;
    step.seen.value = value;
    return add(span, {0, step});
  }
  Story& get_nothing(Span span) { return add(span, {0, store(Verb::get, 0)}); }
  Story& del(Span span, bool found, Version version) {
    StoreStep step = store(Verb::del, version);
    step.seen.found = step.seen.applied = found;
    return add(span, {0, step});
  }
  Story& add_one(Span span, std::int64_t result, Version version) {
    StoreStep step = store(Verb::incr_by, version);
    step.call.op.amount = 1;
    step.seen.number = result;
    step.seen.found = result > 1;
    step.seen.applied = true;
    return add(span, {0, step});
  }
  Story& take(Span span, Epoch epoch, std::uint32_t attempt = 1) {
    ClaimStep step;
    step.seen.answer = ClaimAnswer::granted;
    step.seen.epoch = step.seen.version = epoch;
    step.seen.attempt = attempt;
    step.seen.takeover = attempt > 1;
    return add(span, {0, step});
  }
  Story& take_in_vain(Span span, Version version, Ms remaining) {
    ClaimStep step;
    step.seen.answer = ClaimAnswer::in_flight;
    step.seen.version = version;
    step.seen.attempt = 1;
    step.seen.remaining = step.seen.retry_after = Millis{remaining};
    return add(span, {0, step});
  }
  Story& replay(Span span, const std::string& result, Version version) {
    ClaimStep step;
    step.seen.answer = ClaimAnswer::replay;
    step.seen.result = result;
    step.seen.version = version;
    return add(span, {0, step});
  }
  Story& owner(Span span, OwnerVerb verb, Epoch epoch, OwnerAnswer answer, Version version,
               const std::string& payload = "r") {
    OwnerStep step;
    step.call.verb = verb;
    step.call.call.epoch = epoch;
    step.call.payload = payload;
    step.seen.answer = answer;
    step.seen.version = version;
    return add(span, {0, step});
  }
  Story& session_ends(Span span, std::uint32_t session) {
    return add(span, {0, CloseSession{session}});
  }
  Story& shown(Span span, const std::string& value, Version version) {
    return add(span, {0, Shown{true, Kind::string, never, version, value}});
  }
  Story& add(Span span, Step step) { return add(span, std::vector<Step>{std::move(step)}); }
  Story& add(Span span, std::vector<Step> steps) {
    Call call;
    call.invoked = span.invoked;
    call.returned = span.returned;
    call.clock_before = before_;
    call.clock_after = after_;
    call.steps = std::move(steps);
    history_.calls.push_back(std::move(call));
    return *this;
  }
  Story& after_previous() {
    history_.calls.back().after = history_.calls.size() - 2;
    return *this;
  }

  History& history() { return history_; }
  [[nodiscard]] bool holds() const {
    const Verdict verdict = check(history_);
    REQUIRE_FALSE(verdict.gave_up);
    return verdict.linearizable;
  }

 private:
  static StoreStep store(Verb verb, Version version) {
    StoreStep step;
    step.call.op.verb = verb;
    step.seen.version = version;
    return step;
  }

  History history_;
  Ms before_ = 1000;
  Ms after_ = 1000;
  bool next_put_is_on_absent_ = false;
};

TEST_CASE("checker: a read during a write may see the old or the new value", "[proofs][checker]") {
  CHECK(Story{}.put({1, 2}, "a", 1).put({3, 8}, "b", 2).get({4, 5}, "a", 1).holds());
  CHECK(Story{}.put({1, 2}, "a", 1).put({3, 8}, "b", 2).get({4, 5}, "b", 2).holds());
  CHECK_FALSE(Story{}
                  .put({1, 2}, "a", 1)
                  .put({3, 9}, "b", 2)
                  .get({4, 5}, "b", 2)
                  .get({6, 7}, "a", 1)
                  .holds());
}

TEST_CASE("checker: a stale read is refused", "[proofs][checker]") {
  CHECK_FALSE(Story{}.put({1, 2}, "a", 1).put({3, 4}, "b", 2).get({5, 6}, "a", 1).holds());
  CHECK_FALSE(Story{}.put({1, 2}, "a", 1).get_nothing({3, 4}).holds());
}

TEST_CASE("checker: a lost update is refused", "[proofs][checker]") {
  CHECK(Story{}.add_one({1, 4}, 1, 1).add_one({2, 3}, 2, 2).holds());
  CHECK_FALSE(Story{}.add_one({1, 4}, 1, 1).add_one({2, 3}, 1, 2).holds());
}

TEST_CASE("checker: two grants of one lease are refused", "[proofs][checker]") {
  CHECK(Story{}.take({1, 4}, 1).take_in_vain({2, 3}, 1, 10).holds());
  CHECK_FALSE(Story{}.take({1, 4}, 1).take({2, 3}, 2).holds());
  CHECK_FALSE(Story{}.take({1, 4}, 1).take({2, 3}, 2, 2).holds());
  CHECK_FALSE(
      Story{}.put_if_absent({1, 4}, "a", true, 1).put_if_absent({2, 3}, "b", true, 2).holds());
}

TEST_CASE("checker: two grants at the end of one lease are refused", "[proofs][checker]") {
  Story story;
  story.clock({1000, 1010}).at(1000).take({1, 2}, 1).at(1010).take({3, 6}, 2, 2);
  CHECK(story.holds());
  CHECK_FALSE(story.take({4, 5}, 3, 3).holds());
}

TEST_CASE("checker: a lease ends at its millisecond and not before", "[proofs][checker]") {
  const auto taken_over_at = [](Ms now) {
    Story story;
    return story.clock({1000, 1009, 1010})
        .at(1000)
        .take({1, 2}, 1)
        .at(now)
        .take({3, 4}, 2, 2)
        .holds();
  };
  CHECK_FALSE(taken_over_at(1009));
  CHECK(taken_over_at(1010));
}

TEST_CASE("checker: a call may have read the clock at any time while it ran", "[proofs][checker]") {
  Story story;
  story.clock({1000, 1010, 1020}).at(1000).take({1, 2}, 1).at(1000, 1020);
  SECTION("late enough to take over") {
    CHECK(story.take({3, 4}, 2, 2).holds());
  }
  SECTION("early enough to find it held") {
    CHECK(story.take_in_vain({3, 4}, 1, 10).holds());
  }
  SECTION("but not at a time the clock never showed") {
    CHECK_FALSE(story.take_in_vain({3, 4}, 1, 5).holds());
  }
}

TEST_CASE("checker: a value that ended is not seen again", "[proofs][checker]") {
  const Expiry ten = Expiry::in(Millis{10});
  Story story;
  story.clock({1000, 1010}).at(1000).put({1, 2}, "a", 1, ten).at(1010);
  SECTION("early expiry") {
    CHECK_FALSE(story.at(1000).get_nothing({3, 4}).holds());
  }
  SECTION("late expiry") {
    CHECK_FALSE(story.get({3, 4}, "a", 1).holds());
  }
  SECTION("in time") {
    CHECK(story.get_nothing({3, 4}).holds());
  }
  SECTION("an old reading of the clock may still see it") {
    CHECK(story.get_nothing({3, 6}).at(1000, 1010).get({4, 7}, "a", 1).holds());
  }
}

TEST_CASE("checker: a deleted value that comes back is refused", "[proofs][checker]") {
  Story story;
  story.put({1, 2}, "a", 1).del({3, 4}, true, 2);
  CHECK(story.get_nothing({5, 6}).holds());
  CHECK_FALSE(story.get({7, 8}, "a", 1).holds());
}

TEST_CASE("checker: a value that was never written is refused", "[proofs][checker]") {
  CHECK_FALSE(Story{}.put({1, 4}, "aaaa", 1).get({2, 3}, "aabb", 1).holds());
}

TEST_CASE("checker: versions and epochs of a key grow", "[proofs][checker]") {
  CHECK_FALSE(Story{}.put({1, 2}, "a", 5).put({3, 4}, "b", 4).holds());
  CHECK_FALSE(
      Story{}.put({1, 2}, "a", 5).del({3, 4}, true, 6).on_absent().put({5, 6}, "b", 6).holds());
  Story story;
  story.take({1, 2}, 7).owner({3, 4}, OwnerVerb::release, 7, OwnerAnswer::ok, 8);
  SECTION("growing") {
    CHECK(story.take({5, 6}, 9).holds());
  }
  SECTION("repeated") {
    CHECK_FALSE(story.take({5, 6}, 7).holds());
  }
  SECTION("falling") {
    CHECK_FALSE(story.take({5, 6}, 3).holds());
  }
}

TEST_CASE("checker: a stale owner that completes is refused", "[proofs][checker]") {
  Story story;
  story.clock({1000, 1010}).at(1000).take({1, 2}, 1).at(1010).take({3, 4}, 2, 2);
  SECTION("refused") {
    CHECK(story.owner({5, 6}, OwnerVerb::complete, 1, OwnerAnswer::stale_owner, 2).holds());
  }
  SECTION("accepted") {
    CHECK_FALSE(story.owner({5, 6}, OwnerVerb::complete, 1, OwnerAnswer::ok, 3).holds());
  }
}

TEST_CASE("checker: a completion is replayed with its own bytes", "[proofs][checker]") {
  Story story;
  story.take({1, 2}, 1).owner({3, 4}, OwnerVerb::complete, 1, OwnerAnswer::ok, 2, "done");
  CHECK(story.replay({5, 6}, "done", 2).holds());
  CHECK_FALSE(story.replay({7, 8}, "gone", 2).holds());
}

TEST_CASE("checker: a dead session's claim is free at once, another's is not",
          "[proofs][checker]") {
  Story story;
  story.take({1, 2}, 1);
  std::get<ClaimStep>(story.history().calls[0].steps[0].what).call.session = 3;
  SECTION("free") {
    CHECK(story.session_ends({3, 4}, 3).take({5, 6}, 2, 2).holds());
  }
  SECTION("while it closes") {
    CHECK(story.session_ends({3, 7}, 3).take({5, 6}, 2, 2).holds());
  }
  SECTION("not before") {
    CHECK_FALSE(story.take({3, 4}, 2, 2).session_ends({5, 6}, 3).holds());
  }
  SECTION("another") {
    CHECK_FALSE(story.session_ends({3, 4}, 2).take({5, 6}, 2, 2).holds());
  }
}

TEST_CASE("checker: a section over two keys is one instant", "[proofs][checker]") {
  const auto put = [](std::uint32_t key, const char* value, Version version, bool found) {
    StoreStep step;
    step.call.op.verb = Verb::set;
    step.call.value = value;
    step.seen.applied = true;
    step.seen.found = found;
    step.seen.version = version;
    return Step{key, step};
  };
  const auto get = [](std::uint32_t key, const char* value, Version version) {
    StoreStep step;
    step.call.op.verb = Verb::get;
    step.seen.found = step.seen.has_value = true;
    step.seen.value = value;
    step.seen.version = version;
    return Step{key, step};
  };
  Story story;
  story.history().key_count = 2;
  story.add({1, 2}, {put(0, "x1", 1, false), put(1, "y1", 1, false)});
  story.add({3, 9}, {put(0, "x2", 2, true), put(1, "y2", 2, true)});
  SECTION("before") {
    CHECK(story.add({4, 5}, {get(0, "x1", 1), get(1, "y1", 1)}).holds());
  }
  SECTION("after") {
    CHECK(story.add({4, 5}, {get(0, "x2", 2), get(1, "y2", 2)}).holds());
  }
  SECTION("half") {
    CHECK_FALSE(story.add({4, 5}, {get(0, "x2", 2), get(1, "y1", 1)}).holds());
  }
  SECTION("half, in two reads") {
    CHECK_FALSE(story.add({4, 5}, get(0, "x2", 2)).add({6, 7}, get(1, "y1", 1)).holds());
  }
}

TEST_CASE("checker: the operations of a batch keep their order", "[proofs][checker]") {
  CHECK(Story{}.add_one({1, 5}, 1, 1).add_one({2, 6}, 2, 2).after_previous().holds());
  CHECK_FALSE(Story{}.add_one({1, 5}, 2, 2).add_one({2, 6}, 1, 1).after_previous().holds());
}

TEST_CASE("checker: a snapshot shows one instant", "[proofs][checker]") {
  CHECK(Story{}.put({1, 2}, "a", 1).put({3, 4}, "b", 2).shown({5, 6}, "b", 2).holds());
  CHECK_FALSE(Story{}.put({1, 2}, "a", 1).put({3, 4}, "b", 2).shown({5, 6}, "a", 1).holds());
}

/// A sequential run of a counter and its reads, spread into overlapping spans.
Story random_story(std::mt19937_64& random, std::size_t count) {
  Story story;
  std::int64_t value = 0;
  Version version = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::uint64_t instant = i * 1'000'000;
    const std::uint64_t before = (random() % 4'000) * 1'000 + i % 1'000;
    const std::uint64_t after = (random() % 4'000) * 1'000 + i % 1'000 + 1;
    const Span span{instant > before ? instant - before : i, instant + after};
    switch (random() % 4) {
      case 0:
        story.add_one(span, ++value, ++version);
        break;
      case 1:
        story.del(span, value != 0, value != 0 ? ++version : 0);
        value = 0;
        break;
      default:
        if (value == 0) {
          story.get_nothing(span);
        } else {
          story.get(span, std::to_string(value), version);
        }
    }
  }
  return story;
}

TEST_CASE("checker: every spread of a sequential run is accepted", "[proofs][checker][random]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    CHECK(random_story(random, 200).holds());
  }
}

TEST_CASE("checker: one wrong answer in a random run is refused", "[proofs][checker][random]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    Story story = random_story(random, 200);
    std::vector<Call>& calls = story.history().calls;
    std::size_t victim = random() % calls.size();
    const auto step_of = [&](std::size_t i) -> StoreStep& {
      return std::get<StoreStep>(calls[i].steps[0].what);
    };
    while (step_of(victim).call.op.verb != Verb::incr_by) victim = (victim + 1) % calls.size();
    step_of(victim).seen.number += 1;
    CHECK_FALSE(story.holds());
  }
}

}  // namespace
