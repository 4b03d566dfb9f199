#include "net/follow/stream_runner.hpp"

#include <string>
#include <vector>

#include "net/follow/master_dialog.hpp"
#include "net/session/memory_guard.hpp"
#include "net/time/held_clock.hpp"
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using net::append_request;
using net::StreamRunner;
using Step = StreamRunner::Step;

namespace {

struct Stream {
  NodeFixture f;
  std::vector<std::string> refused;
  StreamRunner runner{*f.node, [this](std::string_view name, std::string_view error) {
                        refused.push_back(std::string{name} + ": " + std::string{error});
                      }};

  Stream() { runner.begin(100); }

  Step run(std::initializer_list<std::string_view> words) {
    std::string bytes;
    append_request(bytes, words);
    const Step step = runner.run(bytes);
    if (step == Step::ran) CHECK(runner.consumed() == bytes.size());
    return step;
  }
  std::string get(std::string_view key, std::uint8_t db = 0) {
    return f.engine->store(db).get(key)->value_or("none");
  }
};

std::int64_t size_of(std::initializer_list<std::string_view> words) {
  std::string bytes;
  append_request(bytes, words);
  return static_cast<std::int64_t>(bytes.size());
}

}  // namespace

TEST_CASE("stream: a command counts when it has run, a transaction with its EXEC",
          "[net][follow]") {
  Stream s;
  CHECK(s.run({"SET", "a", "1"}) == Step::ran);
  const std::int64_t first = 100 + size_of({"SET", "a", "1"});
  CHECK(s.runner.applied() == first);
  CHECK(s.run({"MULTI"}) == Step::ran);
  CHECK(s.run({"INCR", "a"}) == Step::ran);
  CHECK(s.runner.applied() == first);
  CHECK(s.get("a") == "1");
  // The link is cut off here: the transaction comes again.
  s.runner.go_on();
  CHECK(s.run({"MULTI"}) == Step::ran);
  CHECK(s.run({"INCR", "a"}) == Step::ran);
  CHECK(s.run({"EXEC"}) == Step::ran);
  CHECK(s.get("a") == "2");
  CHECK(s.runner.applied() ==
        first + size_of({"MULTI"}) + size_of({"INCR", "a"}) + size_of({"EXEC"}));
  CHECK(s.refused.empty());
}

TEST_CASE("stream: the database stays from one link to the next", "[net][follow]") {
  Stream s;
  CHECK(s.run({"SELECT", "3"}) == Step::ran);
  s.runner.go_on();
  CHECK(s.run({"SET", "a", "three"}) == Step::ran);
  CHECK(s.get("a", 3) == "three");
  CHECK(s.get("a", 0) == "none");
  CHECK(s.run({"SELECT", "16"}) == Step::lost);
  s.runner.begin(0);
  CHECK(s.run({"SET", "a", "zero"}) == Step::ran);
  CHECK(s.get("a", 0) == "zero");
}

TEST_CASE("stream: a part of a request is kept for later", "[net][follow]") {
  Stream s;
  std::string bytes;
  append_request(bytes, {"SET", "a", "1"});
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    REQUIRE(s.runner.run(std::string_view{bytes}.substr(0, size)) == Step::incomplete);
    REQUIRE(s.runner.consumed() == 0);
  }
  CHECK(s.runner.run(bytes) == Step::ran);
  CHECK(s.get("a") == "1");
  CHECK(s.runner.run("\r\n") == Step::ran);
  CHECK(s.runner.applied() == 100 + static_cast<std::int64_t>(bytes.size()) + 2);
}

TEST_CASE("stream: what the node refuses is reported, and the rest goes on", "[net][follow]") {
  Stream s;
  CHECK(s.run({"SET", "a", "text"}) == Step::ran);
  CHECK(s.run({"LPUSH", "a", "1"}) == Step::ran);
  CHECK(s.run({"NOSUCH", "a"}) == Step::ran);
  CHECK(s.run({"MULTI"}) == Step::ran);
  CHECK(s.run({"LPUSH", "a", "1"}) == Step::ran);
  CHECK(s.run({"SET", "b", "1"}) == Step::ran);
  CHECK(s.run({"EXEC"}) == Step::ran);
  CHECK(s.get("b") == "1");
  REQUIRE(s.refused.size() == 3);
  CHECK(s.refused[0].starts_with("LPUSH: WRONGTYPE"));
  CHECK(s.refused[1].starts_with("NOSUCH: ERR unknown command"));
  CHECK(s.refused[2].starts_with("EXEC: WRONGTYPE"));
}

TEST_CASE("stream: without memory a command waits, and is not skipped", "[net][follow]") {
  Stream s;
  const std::string large(100'000, 'x');
  Step step = Step::ran;
  int count = 0;
  for (; count < 10'000 && step == Step::ran; ++count) {
    step = s.run({"SET", std::to_string(count), large});
  }
  REQUIRE(step == Step::full);
  CHECK(s.runner.consumed() == 0);
  CHECK(s.runner.error().starts_with("OOM"));
  CHECK(s.refused.empty());
  const std::int64_t applied = s.runner.applied();
  CHECK(s.run({"DEL", "0", "1", "2"}) == Step::ran);
  CHECK(s.run({"SET", "later", large}) == Step::ran);
  CHECK(s.runner.applied() > applied);
}

TEST_CASE("stream: it is no place for anything but requests", "[net][follow]") {
  Stream s;
  CHECK(s.runner.run("SET a 1\r\n") == Step::bad);
  s.runner.begin(0);
  CHECK(s.runner.run("*1\r\n$-7\r\n") == Step::bad);
  s.runner.begin(0);
  CHECK(s.run({"REPLCONF", "GETACK", "*"}) == Step::asks_for_ack);
  CHECK(s.run({"REPLCONF", "other"}) == Step::ran);
  CHECK(s.run({"PING"}) == Step::ran);
}

TEST_CASE("stream: a client of a node that follows is refused, its master is not",
          "[net][follow]") {
  Stream s;
  s.f.node->role.become(net::NodeRole::State::follows);
  CHECK(s.run({"SET", "a", "1"}) == Step::ran);
  CHECK(s.refused.empty());
  CHECK(s.get("a") == "1");
}

TEST_CASE("stream: what the node copies is not evicted by the node", "[net][follow]") {
  Stream s;
  REQUIRE(s.f.node->services().memory.set(
      {.order = engine::EvictionOrder::lru, .databases = 1, .limit_bytes = 1}));
  s.f.node->role.become(net::NodeRole::State::follows);
  for (int i = 0; i < 100; ++i) REQUIRE(s.run({"SET", std::to_string(i), "v"}) == Step::ran);
  CHECK(s.refused.empty());
  CHECK(s.f.engine->stats().records == 100);
  s.f.node->role.become(net::NodeRole::State::master);
  REQUIRE(s.run({"SET", "more", "v"}) == Step::ran);
  CHECK(s.f.engine->stats().records < 100);
}

TEST_CASE("held clock: within a hold nothing ends, and absolute times stay", "[net][follow]") {
  ManualClock manual;
  const net::HeldClock clock{&manual};
  CHECK(clock.now() == manual.now());
  {
    const net::HeldClock::Hold none{false};
    CHECK(clock.now() == manual.now());
    const net::HeldClock::Hold hold;
    CHECK(clock.now() == Timestamp{Millis{1}});
    CHECK(clock.unix_ms() == manual.unix_ms());
    CHECK(clock.wall_offset_ms() == manual.wall_offset_ms());
  }
  CHECK(clock.now() == manual.now());
}

}  // namespace semel::tests
