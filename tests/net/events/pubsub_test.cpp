// Which messages a subscriber gets, and when, between its replies.
//
// Words: a *client* is a connection; what it *says* is a request, what it *hears* all it is sent.
#include "net/events/pubsub.hpp"
#include "base/ascii.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include "tests/support/catch.hpp"

#include "net/resp/text.hpp"
#include "tests/net/dialogue.hpp"

namespace semel::tests {
namespace {

std::string bulks(const Words& words) {
  std::string bytes;
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

/// As a RESP2 client hears it.
std::string message(const Words& words) {
  return "*" + std::to_string(words.size()) + "\r\n" + bulks(words);
}
/// As a RESP3 client hears it.
std::string push(const Words& words) {
  return ">" + std::to_string(words.size()) + "\r\n" + bulks(words);
}

}  // namespace

TEST_CASE("pubsub: a message goes to the channel's subscribers and to matching patterns",
          "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient other{local.node, local.batch, 2};
  NodeClient speaker{local.node, local.batch, 3};
  CHECK(speaker.say("PUBLISH a x") == ":0\r\n");
  CHECK(one.say("SUBSCRIBE a b") ==
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
        "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n");
  other.say("HELLO 3");
  CHECK(other.say("PSUBSCRIBE [a-c]") == ">3\r\n$10\r\npsubscribe\r\n$5\r\n[a-c]\r\n:1\r\n");
  CHECK(speaker.say("PUBLISH a x") == ":2\r\n");
  CHECK(speaker.say("PUBLISH c y") == ":1\r\n");
  CHECK(speaker.say("SPUBLISH a z") == ":0\r\n");
  CHECK(one.heard() == message({"message", "a", "x"}));
  CHECK(other.heard() ==
        push({"pmessage", "[a-c]", "a", "x"}) + push({"pmessage", "[a-c]", "c", "y"}));
  CHECK(one.heard().empty());
}

TEST_CASE("pubsub: channels of shards have names of their own", "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient speaker{local.node, local.batch, 2};
  CHECK(one.say("SSUBSCRIBE a") == "*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n");
  one.say("PSUBSCRIBE *");
  CHECK(speaker.say("SPUBLISH a x") == ":1\r\n");
  CHECK(one.heard() == message({"smessage", "a", "x"}));
  CHECK(speaker.say("PUBLISH a x") == ":1\r\n");
  CHECK(speaker.say("PUBSUB SHARDCHANNELS") == "*1\r\n$1\r\na\r\n");
  CHECK(speaker.say("PUBSUB SHARDNUMSUB a b") == "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:0\r\n");
  CHECK(speaker.say("PUBSUB CHANNELS") == "*0\r\n");
  CHECK(speaker.say("PUBSUB NUMPAT") == ":1\r\n");
}

TEST_CASE("pubsub: UNSUBSCRIBE without names ends all, and is answered even if there is none",
          "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  CHECK(one.say("UNSUBSCRIBE") == "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n");
  one.say("SUBSCRIBE b a");
  CHECK(one.say("UNSUBSCRIBE") ==
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n");
  CHECK(one.say("UNSUBSCRIBE x") == "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n");
  CHECK_FALSE(local.node.pubsub.any());
}

TEST_CASE("pubsub: a RESP2 client that listens takes commands of subscriptions only",
          "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  one.say("SUBSCRIBE a");
  CHECK(one.say("get x") ==
        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
        "are allowed in this context\r\n");
  CHECK(one.say("PUBSUB NUMPAT").starts_with("-ERR Can't execute 'pubsub|numpat': only "));
  CHECK(one.say("MULTI").starts_with("-ERR Can't execute 'multi': "));
  CHECK(one.say("PING") == "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  CHECK(one.say("PING x") == "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
  one.say("UNSUBSCRIBE a");
  CHECK(one.say("GET x") == "$-1\r\n");
  one.say("HELLO 3");
  one.say("SUBSCRIBE a");
  CHECK(one.say("GET x") == "_\r\n");
  CHECK(one.say("PING") == "+PONG\r\n");
}

TEST_CASE("pubsub: what a client publishes to itself stands before the reply", "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  one.say("HELLO 3");
  const std::string all =
      one.send(request_bytes({"SET", "k", "1"}) + request_bytes({"SUBSCRIBE", "a"}) +
               request_bytes({"PUBLISH", "a", "x"}) + request_bytes({"GET", "k"}));
  CHECK(all == "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + push({"message", "a", "x"}) +
                   ":1\r\n$1\r\n1\r\n");
  NodeClient speaker{local.node, local.batch, 2};
  speaker.say("PUBLISH a 1");
  CHECK(one.say("PUBLISH a 2") ==
        push({"message", "a", "1"}) + push({"message", "a", "2"}) + ":1\r\n");
}

TEST_CASE("pubsub: no message comes after the confirmation of an UNSUBSCRIBE", "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient speaker{local.node, local.batch, 2};
  one.say("SUBSCRIBE a");
  speaker.say("PUBLISH a x");
  CHECK(one.say("UNSUBSCRIBE a") ==
        message({"message", "a", "x"}) + "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n");
  CHECK(one.heard().empty());
}

TEST_CASE("pubsub: a transaction's messages come behind its reply and are counted at once",
          "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient other{local.node, local.batch, 2};
  one.say("HELLO 3");
  one.say("SUBSCRIBE a");
  other.say("SUBSCRIBE a b");
  one.say("MULTI");
  one.say("PUBLISH a 1");
  one.say("SUBSCRIBE b");
  one.say("PUBLISH b 2");
  one.say("UNSUBSCRIBE a");
  one.say("PUBLISH a 3");
  CHECK(other.heard().empty());
  CHECK(one.say("EXEC") ==
        "*5\r\n:2\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n:2\r\n"
        ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n:1\r\n" +
            push({"message", "a", "1"}) + push({"message", "b", "2"}));
  CHECK(other.heard() == message({"message", "a", "1"}) + message({"message", "b", "2"}) +
                             message({"message", "a", "3"}));
  one.say("MULTI");
  one.say("SSUBSCRIBE c");
  CHECK(one.say("EXEC") == "*1\r\n-ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client\r\n");
}

TEST_CASE("pubsub: a client that goes leaves no subscription", "[net][pubsub]") {
  LocalNode local;
  NodeClient speaker{local.node, local.batch, 2};
  {
    NodeClient one{local.node, local.batch, 1};
    one.say("SUBSCRIBE a");
    one.say("PSUBSCRIBE a*");
    one.say("SSUBSCRIBE a");
    CHECK(speaker.say("PUBLISH a x") == ":2\r\n");
  }
  CHECK(speaker.say("PUBLISH a x") == ":0\r\n");
  CHECK(speaker.say("PUBSUB NUMSUB a") == "*2\r\n$1\r\na\r\n:0\r\n");
  CHECK(speaker.say("PUBSUB NUMPAT") == ":0\r\n");
  CHECK_FALSE(local.node.pubsub.any());
}

TEST_CASE("pubsub: a dialect that changes holds for the messages behind it", "[net][pubsub]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient speaker{local.node, local.batch, 2};
  one.say("HELLO 3");
  one.say("SUBSCRIBE a");
  speaker.say("PUBLISH a 1");
  one.say("HELLO 2");
  speaker.say("PUBLISH a 2");
  CHECK(one.heard() == message({"message", "a", "2"}));
}

TEST_CASE("pubsub: subscriptions, names and their bytes have limits that errors name",
          "[net][pubsub][limits]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  const std::string longest(net::PubSub::name_bytes_max, 'n');
  CHECK(one.say({"SUBSCRIBE", longest}).ends_with(":1\r\n"));
  CHECK(one.say({"SUBSCRIBE", "x", longest + "n"}) ==
        "-ERR the name of a channel has 65537 bytes, the limit is 65536\r\n");
  CHECK(local.node.pubsub.channels(net::Topic::channel, std::nullopt).size() == 1);
  one.say("UNSUBSCRIBE");
  Words many{"SUBSCRIBE"};
  for (std::size_t i = 0; i < net::PubSub::subscriptions_max; ++i) {
    many.push_back(std::to_string(i));
  }
  CHECK(one.say(many).ends_with(":65536\r\n"));
  CHECK(one.say("SUBSCRIBE 1 2 3").ends_with(":65536\r\n"));
  CHECK(one.say("PSUBSCRIBE one more") ==
        "-ERR a client would have 65538 subscriptions, the limit is 65536\r\n");
  one.say("UNSUBSCRIBE");
  std::string name = longest;
  for (std::size_t i = 0; i < net::PubSub::names_bytes_max / name.size(); ++i) {
    name[0] = static_cast<char>('A' + i % 16);
    name[1] = static_cast<char>('A' + i / 16);
    REQUIRE(one.say({"SSUBSCRIBE", name}).ends_with(":" + std::to_string(i + 1) + "\r\n"));
  }
  CHECK(one.say("SUBSCRIBE x") ==
        "-ERR the names a client subscribes to would have 16777217 bytes, the limit is 16777216"
        "\r\n");
}

TEST_CASE("pubsub: a client that does not read its messages is closed", "[net][pubsub][limits]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient speaker{local.node, local.batch, 2};
  one.say("SUBSCRIBE a");
  const std::string text(std::size_t{1} << 20, 't');
  for (int i = 0; i < 32; ++i) speaker.say({"PUBLISH", "a", text});
  one.heard();
  CHECK(one.connection().closes());
}

TEST_CASE("pubsub: a transaction holds messages back up to a limit, and then sends them early",
          "[net][pubsub][limits]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  NodeClient other{local.node, local.batch, 2};
  other.say("SUBSCRIBE a");
  constexpr std::size_t text_bytes = std::size_t{1} << 20;
  constexpr std::size_t count = net::PubSub::held_bytes_max / text_bytes + 2;
  one.say("MULTI");
  for (std::size_t i = 0; i < count; ++i) {
    one.say({"PUBLISH", "a", std::string(text_bytes, static_cast<char>('a' + i))});
  }
  one.say("EXEC");
  const std::vector<std::string> heard = values_of(other.heard());
  REQUIRE(heard.size() == count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_next = heard[i].ends_with(std::string{static_cast<char>('a' + i)} + "\r\n");
    CHECK(is_next);
  }
}

TEST_CASE("pubsub: a client that publishes too much to itself in a transaction is closed",
          "[net][pubsub][limits]") {
  LocalNode local;
  NodeClient one{local.node, local.batch, 1};
  one.say("HELLO 3");
  one.say("SUBSCRIBE a");
  const std::string text(std::size_t{1} << 20, 't');
  for (const std::size_t count : {31U, 32U}) {  // each comes with a few bytes more
    one.say("MULTI");
    for (std::size_t i = 0; i < count; ++i) one.say({"PUBLISH", "a", text});
    one.say("EXEC");
    one.heard();
    CHECK(one.connection().closes() == (count == 32));
  }
}

TEST_CASE("pubsub: each gets every message once and in order while others come and go",
          "[net][pubsub][race]") {
  LocalNode local;
  constexpr int rounds = 3'000;
  std::atomic<int> publishing{2};
  const auto publish = [&](int number) {
    net::Batch batch;
    NodeClient speaker{local.node, batch, static_cast<std::uint64_t>(10 + number)};
    for (int i = 0; i < rounds; ++i) {
      if (i % 16 == 0) speaker.say("MULTI");
      speaker.say({"PUBLISH", "c" + std::to_string(number), std::to_string(i)});
      if (i % 16 == 8) speaker.say("EXEC");
    }
    speaker.say("EXEC");
    publishing.fetch_sub(1, std::memory_order_release);  // mo: release [pubsub_test.ended]
  };
  net::Batch batch;
  NodeClient listener{local.node, batch, 1};
  listener.say("SUBSCRIBE c0 c1");
  std::string heard;
  std::thread first{publish, 0};
  std::thread second{publish, 1};
  int comers = 0;
  // mo: acquire [pubsub_test.ended]: what was published before is collected below
  while (publishing.load(std::memory_order_acquire) != 0) {
    NodeClient comer{local.node, batch, 2};
    comer.say("PSUBSCRIBE c* [c]0");
    comer.say("SUBSCRIBE c0");
    if (++comers % 2 == 0) comer.say("PUNSUBSCRIBE c*");
    heard += listener.heard();
  }
  first.join();
  second.join();
  heard += listener.heard();
  int next[2] = {0, 0};
  for (const std::string& value : values_of(heard)) {
    const int from = value.find("c0") != std::string::npos ? 0 : 1;
    REQUIRE(value == message({"message", "c" + std::to_string(from), std::to_string(next[from])}));
    ++next[from];
  }
  CHECK(next[0] == rounds);
  CHECK(next[1] == rounds);
}

}  // namespace semel::tests
