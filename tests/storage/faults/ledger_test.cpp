// The ledger of the fault proofs: what may be found after a failure and what not.
#include "tests/storage/faults/ledger.hpp"

#include "tests/support/catch.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp at(int ms) {
  return Timestamp{Millis{ms}};
}
constexpr std::int64_t now = 1'700'000'000'000;

}  // namespace

TEST_CASE("ledger: what was acknowledged for certain or asked later may be found, nothing older",
          "[ledger]") {
  const auto judge = [](const std::string& found) {
    History history;
    history.ask("old");
    history.acknowledge(true, at(1));
    history.ask("kept");
    history.acknowledge(true, at(2));
    history.ask("asked");
    return history.judge(found, now, now, Timestamp{});
  };
  CHECK(judge("kept").right);
  CHECK(judge("asked").right);
  CHECK_FALSE(judge("old").right);
  CHECK_FALSE(judge(absent).right);
  CHECK_FALSE(judge("other").right);
  CHECK(judge("other").expected == "kept or asked");
}

TEST_CASE("ledger: an uncertain acknowledgement must be found up to the horizon", "[ledger]") {
  const auto judge = [](const std::string& found, Timestamp horizon) {
    History history;
    history.ask("first");
    history.acknowledge(false, at(10));
    history.ask("second");
    history.acknowledge(false, at(20));
    return history.judge(found, now, now, horizon);
  };
  CHECK(judge(absent, at(9)).right);
  CHECK(judge(absent, at(9)).oldest_lost == at(10));
  CHECK_FALSE(judge(absent, at(10)).right);
  CHECK(judge("first", at(10)).right);
  CHECK(judge("first", at(19)).oldest_lost == at(20));
  CHECK_FALSE(judge("first", at(20)).right);
  CHECK(judge("first", at(20)).is_older);
  CHECK(judge("second", at(20)).right);
  CHECK(judge("second", at(20)).oldest_lost == Timestamp{});
}

TEST_CASE("ledger: what was confirmed is certain, what was refused did not happen", "[ledger]") {
  History history;
  history.ask("first");
  history.acknowledge(false, at(10));
  history.make_certain();
  history.ask("refused");
  history.withdraw();
  CHECK(history.newest() == "first");
  CHECK_FALSE(History{history}.judge(absent, now, now, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge("refused", now, now, Timestamp{}).right);
  CHECK(history.judge("first", now, now, Timestamp{}).right);
}

TEST_CASE("ledger: what somebody was shown must stay", "[ledger]") {
  History history;
  history.ask("first");
  history.ask("second");
  history.ask("third");
  history.show("second");
  CHECK_FALSE(History{history}.judge("first", now, now, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge(absent, now, now, Timestamp{}).right);
  CHECK(History{history}.judge("second", now, now, Timestamp{}).right);
  CHECK(History{history}.judge("third", now, now, Timestamp{}).right);
}

TEST_CASE("ledger: what has ended is absent, and what it replaced does not come back", "[ledger]") {
  History history;
  history.ask("old");
  history.acknowledge(true, at(1));
  history.ask("short", now - 5'000, 5'000ms);
  history.begun_by(now - 5'000);
  history.acknowledge(true, at(2));
  CHECK(History{history}.judge("short", now - 1'000, now - 1'000, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge(absent, now - 1'000, now - 1'000, Timestamp{}).right);
  CHECK(History{history}.judge(absent, now + 1'000, now + 1'000, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge("short", now + 1'000, now + 1'000, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge("old", now + 1'000, now + 1'000, Timestamp{}).right);
}

TEST_CASE("ledger: where a boot may lose time, what was absent by its end may be there again",
          "[ledger]") {
  History history;
  history.ask("old");
  history.acknowledge(true, at(1));
  history.ask("short", now, 5'000ms);
  history.begun_by(now);
  history.acknowledge(true, at(2));
  history.ask(absent);  // and power went
  constexpr std::int64_t anywhen = 0;
  REQUIRE(history.judge(absent, anywhen, now + 5'000, Timestamp{}).right);
  CHECK(history.may_be_absent(now + 5'000));
  CHECK_FALSE(History{history}.judge("old", anywhen, now + 6'000, Timestamp{}).right);
  CHECK(History{history}.judge("short", anywhen, now + 6'000, Timestamp{}).right);
  CHECK(History{history}.judge(absent, anywhen, now + 6'000, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge("short", now + 6'000, now + 6'000, Timestamp{}).right);
  REQUIRE(history.judge("short", anywhen, now + 6'000, Timestamp{}).right);
  CHECK(history.judge(absent, anywhen, now + 7'000, Timestamp{}).right);
}

TEST_CASE("ledger: a delete finds nothing if nothing was kept, or from its end on", "[ledger]") {
  History history;
  CHECK(history.may_be_absent(now));
  history.ask("kept");
  CHECK(history.may_be_absent(now));  // it may not have happened
  history.acknowledge(true, at(1));
  CHECK_FALSE(history.may_be_absent(now));
  history.ask("short", now, 5'000ms);
  history.begun_by(now);
  history.acknowledge(true, at(2));
  CHECK_FALSE(history.may_be_absent(now + 4'000));
  CHECK(history.may_be_absent(now + 5'000));
}

TEST_CASE("ledger: a ttl begins when it is asked for, or up to the moment of the image",
          "[ledger]") {
  History history;
  history.ask("short", now, 700ms);
  // The clock went on by 10 s, and the power failed before an answer.
  history.begun_by(now + 10'000);
  CHECK(History{history}.judge("short", now + 5'000, now + 5'000, Timestamp{}).right);
  CHECK(History{history}.judge(absent, now + 5'000, now + 5'000, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge("short", now + 11'000, now + 11'000, Timestamp{}).right);
  CHECK(history.judge("short", now + 5'000, now + 5'000, Timestamp{}).right);
  CHECK_FALSE(history.judge("short", now + 11'000, now + 11'000, Timestamp{}).right);
}

TEST_CASE("ledger: after a verdict what was found is all that may be found", "[ledger]") {
  History history;
  history.ask("a*");
  CHECK(history.judge("a7", now, now, Timestamp{}).right);
  CHECK(History{history}.judge("a7", now, now, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge("a8", now, now, Timestamp{}).right);
  CHECK_FALSE(History{history}.judge(absent, now, now, Timestamp{}).right);
}

TEST_CASE("ledger: a copy has what was acknowledged before it began, and may have what came since",
          "[ledger]") {
  const auto judge = [](const std::string& found) {
    History history;
    history.keep_all();
    history.ask("old");
    history.acknowledge(true, at(1));
    history.ask("kept");
    history.acknowledge(true, at(2));
    history.ask("since");
    history.acknowledge(true, at(3));
    history.ask("newest");
    history.acknowledge(true, at(4));
    History copy{history};
    copy.as_of(at(3), now);
    CHECK(history.judge("newest", now, now, Timestamp{}).right);
    return copy.judge(found, now, now, Timestamp::max());
  };
  CHECK(judge("kept").right);
  CHECK(judge("since").right);
  CHECK(judge("newest").right);
  CHECK_FALSE(judge("old").right);
  CHECK_FALSE(judge(absent).right);
}

}  // namespace semel::faults
