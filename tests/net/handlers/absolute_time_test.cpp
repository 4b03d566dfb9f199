// Absolute times of a client: the end that it gave is the end that it is told, on every path.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "net/time/test_clock.hpp"
#include "semel/semel.hpp"
#include "tests/support/phase_clock.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

struct Fixture {
  explicit Fixture(const Clock& clock)
      : engine(std::move(Engine::open({.clock = &clock}).value())),
        node(*engine),
        connection(node, batch, nullptr, {.id = 1}) {}

  std::string call(const Words& words) {
    std::string reply;
    connection.receive(request_bytes(words), reply);
    return reply;
  }
  std::int64_t number(const Words& words) {
    const std::string reply = call(words);
    INFO(reply);
    REQUIRE(reply.starts_with(':'));
    return std::stoll(reply.substr(1));
  }

  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
  net::Connection connection;
};

std::string text(std::int64_t number) {
  return std::to_string(number);
}

}  // namespace

TEST_CASE("absolute times: each path that takes an end gives it back as it was given",
          "[net][ttl][once-again-20]") {
  PhaseClock clock;
  Fixture f{clock};
  const std::int64_t first = clock.unix_ms() / 1000 * 1000 + 3'600'000;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t end = first + i;
    const std::int64_t whole = first + i * 1000;
    INFO(end);
    const auto is = [&](const char* key, std::int64_t ms) {
      CHECK(f.number({"PEXPIRETIME", key}) == ms);
      CHECK(f.number({"EXPIRETIME", key}) == (ms + 500) / 1000);
    };
    f.call({"SET", "k", "v", "PXAT", text(end)});
    is("k", end);
    f.call({"SET", "k", "w", "KEEPTTL"});
    f.call({"APPEND", "k", "x"});
    is("k", end);
    f.call({"RENAME", "k", "l"});
    f.call({"COPY", "l", "m", "REPLACE"});
    is("l", end);
    is("m", end);
    f.call({"GETEX", "l", "PXAT", text(end + 7)});
    is("l", end + 7);
    f.call({"SET", "s", "v", "EXAT", text(whole / 1000)});
    is("s", whole);
    f.call({"GETEX", "s", "EXAT", text(whole / 1000 + 1)});
    is("s", whole + 1'000);
    f.call({"EXPIREAT", "s", text(whole / 1000)});
    is("s", whole);
    f.call({"PEXPIREAT", "s", text(end)});
    is("s", end);
    f.call({"HSET", "h", "f", "v"});
    f.call({"PEXPIREAT", "h", text(end)});
    is("h", end);
    f.call({"MSETEX", "2", "x", "1", "y", "2", "PXAT", text(end)});
    is("y", end);
    f.call({"INCREX", "i", "BYINT", "1", "PXAT", text(end)});
    is("i", end);
    is("m", end);  // untouched since
    const std::string in_script = f.call(
        {"EVAL",
         "redis.call('SET', KEYS[1], 'v', 'PXAT', ARGV[1]) "
         "return {redis.call('PEXPIRETIME', KEYS[1]), "
         "redis.call('PEXPIREAT', KEYS[1], ARGV[1], 'GT'), redis.call('PEXPIRETIME', KEYS[1])}",
         "1", "e", text(end)});
    CHECK(in_script == "*3\r\n:" + text(end) + "\r\n:0\r\n:" + text(end) + "\r\n");
    f.call({"MULTI"});
    f.call({"SET", "t", "v", "PXAT", text(end)});
    f.call({"PEXPIRETIME", "t"});
    CHECK(f.call({"EXEC"}) == "*2\r\n+OK\r\n:" + text(end) + "\r\n");
  }
}

TEST_CASE("absolute times: NX, XX, GT and LT compare the ends as they were given",
          "[net][ttl][once-again-20]") {
  PhaseClock clock;
  Fixture f{clock};
  const std::int64_t first = clock.unix_ms() + 3'600'000;
  for (std::int64_t end = first; end < first + 300; ++end) {
    INFO(end);
    f.call({"SET", "k", "v", "PXAT", text(end)});
    CHECK(f.number({"PEXPIREAT", "k", text(end), "GT"}) == 0);
    CHECK(f.number({"PEXPIREAT", "k", text(end), "LT"}) == 0);
    CHECK(f.number({"PEXPIREAT", "k", text(end - 1), "GT"}) == 0);
    CHECK(f.number({"PEXPIREAT", "k", text(end + 1), "LT"}) == 0);
    CHECK(f.number({"PEXPIREAT", "k", text(end), "NX"}) == 0);
    CHECK(f.number({"PEXPIREAT", "k", text(end), "XX"}) == 1);
    CHECK(f.number({"PEXPIREAT", "k", text(end + 1), "GT"}) == 1);
    CHECK(f.number({"PEXPIREAT", "k", text(end), "LT"}) == 1);
    CHECK(f.number({"PEXPIRETIME", "k"}) == end);
  }
}

TEST_CASE("absolute times: a time from now ends in a script by the script's own TIME",
          "[net][ttl][once-again-20]") {
  PhaseClock clock;
  Fixture f{clock};
  for (int i = 0; i < 300; ++i) {
    CHECK(f.call({"EVAL",
                  "local t = redis.call('TIME') redis.call('SET', KEYS[1], 'v', 'PX', 60000) "
                  "return redis.call('PEXPIRETIME', KEYS[1]) - 60000 - t[1] * 1000 - "
                  "math.floor(t[2] / 1000)",
                  "1", "k"}) == ":0\r\n");
  }
}

TEST_CASE("absolute times: a step of the wall clock moves what is answered and no end",
          "[net][ttl][once-again-20]") {
  const Millis step = GENERATE(3'600'000ms, -3'600'000ms, 11ms, -11ms);
  PhaseClock clock{1'000'000'000, 0};  // time passes by advance() alone
  Fixture f{clock};
  const std::int64_t end = clock.unix_ms() + 10'000;
  f.call({"SET", "k", "v", "PXAT", text(end)});
  f.call({"SEMEL.CLAIM", "jobs", "j", "LEASE", "10000"});
  CHECK(f.number({"PTTL", "k"}) == 10'000);
  clock.step_wall(step);
  CHECK(f.number({"PTTL", "k"}) == 10'000);
  CHECK(f.number({"PEXPIRETIME", "k"}) == end + step.count());
  CHECK(f.number({"PEXPIREAT", "k", text(end + step.count()), "GT"}) == 0);
  clock.advance(9'999ms);
  CHECK(f.call({"EXISTS", "k"}) == ":1\r\n");
  CHECK(f.call({"SEMEL.CLAIM", "jobs", "j"}).find("in_flight") != std::string::npos);
  clock.advance(1ms);
  CHECK(f.call({"EXISTS", "k"}) == ":0\r\n");
  CHECK(f.call({"SEMEL.CLAIM", "jobs", "j"}).find("granted") != std::string::npos);
}

TEST_CASE("absolute times: small steps of the wall clock never add up",
          "[net][ttl][once-again-20]") {
  PhaseClock clock{1'000'000'000, 0};
  Fixture f{clock};
  for (int i = 0; i < 1'000; ++i) {
    clock.step_wall(3ms);
    const std::int64_t end = clock.unix_ms() + 10'000;
    f.call({"SET", "k", "v", "PXAT", text(end)});
    CHECK(f.number({"PEXPIRETIME", "k"}) == end);
    const std::int64_t off = f.number({"PTTL", "k"}) - 10'000;
    CHECK((off >= 0 && off <= Clock::wall_step_min.count()));
  }
}

TEST_CASE("absolute times: the clock of tests keeps them, frozen, advanced and let go",
          "[net][clock][ttl][once-again-20]") {
  PhaseClock system;
  net::TestClock clock{system};
  auto engine = Engine::open({.clock = &clock});
  REQUIRE(engine);
  net::Node node{**engine, &clock};
  net::Batch batch;
  net::Connection connection{node, batch, nullptr, {.id = 1}};
  const auto call = [&](const Words& words) {
    std::string reply;
    connection.receive(request_bytes(words), reply);
    return reply;
  };
  const auto time = [&] {
    const std::string reply = call({"SEMEL.CLOCK", "NOW"});
    return std::stoll(reply.substr(reply.find('\n') + 1));
  };
  for (int i = 0; i < 100; ++i) {
    const std::int64_t end = time() + 3'600'000 + i;
    const std::string expected = ":" + text(end) + "\r\n";
    call({"SET", "k", "v", "PXAT", text(end)});
    CHECK(call({"PEXPIRETIME", "k"}) == expected);
    call({"SEMEL.CLOCK", "FREEZE"});
    CHECK(call({"PEXPIRETIME", "k"}) == expected);
    const std::int64_t left = std::stoll(call({"PTTL", "k"}).substr(1));
    CHECK(time() + left == end);
    call({"SEMEL.CLOCK", "ADVANCE", "1000"});
    CHECK(call({"PEXPIRETIME", "k"}) == expected);
    CHECK(call({"PTTL", "k"}) == ":" + text(left - 1'000) + "\r\n");
    call({"SEMEL.CLOCK", "REAL"});
    CHECK(call({"PEXPIRETIME", "k"}) == expected);
  }
}

}  // namespace semel::tests
