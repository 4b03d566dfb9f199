// Requests that come together, in whatever pieces, are answered as if each came alone.
#include <random>
#include <string>
#include "tests/support/catch.hpp"

#include "base/ascii.hpp"
#include "net/node/connection.hpp"
#include "semel/clock.hpp"
#include "semel/semel.hpp"
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {

TEST_CASE("pipelines: what is pipelined is answered in order, whatever pieces it comes in",
          "[net]") {
  auto engine = Engine::open({});
  REQUIRE(engine);
  net::Node node{**engine};
  net::Batch batch;
  net::Connection whole{node, batch, nullptr, {.id = 1}};
  const std::string bytes = request_bytes({"SET", "k", "1"}) + request_bytes({"INCR", "k"}) +
                            "GET k\r\n" + request_bytes({"ECHO", std::string(5'000, 'e')}) +
                            request_bytes({"QUIT"}) + request_bytes({"GET", "k"});
  std::string expected;
  whole.receive(bytes, expected);
  CHECK(whole.closes());
  for (std::size_t piece = 1; piece < 300; ++piece) {
    net::Connection connection{node, batch, nullptr, {.id = 2}};
    std::string replies;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      connection.receive(std::string_view{bytes}.substr(at, piece), replies);
    }
    REQUIRE(replies == expected);
  }
}

TEST_CASE("pipelines: many requests at once are answered as one after the other", "[net]") {
  ManualClock clock;
  const Options options{.clock = &clock, .hash_seed = 1};
  const auto one = Engine::open(options);
  const auto other = Engine::open(options);
  net::Node one_node{**one};
  net::Node other_node{**other};
  net::Batch batch;
  net::Connection together{one_node, batch, nullptr, {.id = 1}};
  net::Connection apart{other_node, batch, nullptr, {.id = 1}};
  std::mt19937_64 random{Catch::rngSeed()};
  RandomRequests generator{Catch::rngSeed(), profile_named("commands")};
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    std::string expected;
    std::string story;
    for (std::size_t i = 1 + random() % 200; i > 0; --i) {
      Words words = generator.next();
      if (base::lower_of(words[0]) == "hrandfield") words = {"PING"};  // by chance
      bytes += request_bytes(words);
      for (const std::string& word : words) story += printable(word) + " ";
      story += "\n";
      apart.receive(request_bytes(words), expected);
    }
    std::string reply;
    together.receive(bytes, reply);
    INFO(story);
    REQUIRE(reply == expected);
    clock.advance(Millis{random() % 1'000});
  }
}

TEST_CASE("pipelines: after a protocol error nothing more is read", "[net]") {
  auto engine = Engine::open({});
  REQUIRE(engine);
  net::Node node{**engine};
  net::Batch batch;
  net::Connection connection{node, batch, nullptr, {.id = 1}};
  std::string replies;
  connection.receive("PING\r\n*1\r\nPING\r\nPING\r\n", replies);
  CHECK(replies == "+PONG\r\n-ERR Protocol error: expected '$', got 'P'\r\n");
  CHECK(connection.closes());
}

}  // namespace semel::tests
