// DUMP and RESTORE: their words, and objects that go to a redis-server and come back.
#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"
#include "tests/net/rdb/packed_bytes.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests::packed {

namespace {

std::string bulk_of(const std::string& reply) {
  std::string_view rest{reply};
  const auto value = take_value(rest);
  REQUIRE(value);
  REQUIRE(value->type == RespValue::Type::bulk);
  return value->text;
}

std::string pick(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return std::to_string(static_cast<std::int64_t>(random()) >> random() % 64);
    case 1:
      return std::string(random() % 400, 'r');
    case 2: {
      std::string bytes(random() % 70, '\0');
      for (char& each : bytes) each = static_cast<char>(random());
      return bytes;
    }
    default:
      return "word " + std::to_string(random() % 1000);
  }
}

/// Without twins.
Items picks(std::mt19937_64& random, std::size_t count) {
  std::map<std::string, bool> seen;
  Items items;
  while (items.size() < count) {
    std::string item = pick(random);
    if (seen.emplace(item, true).second) items.push_back(std::move(item));
  }
  return items;
}

std::string score_text(std::mt19937_64& random) {
  constexpr const char* odd[] = {"inf", "-inf", "0", "1e300", "5e-324", "3", "-17.25"};
  if (random() % 2 == 0) return odd[random() % std::size(odd)];
  return std::to_string(static_cast<std::int64_t>(random() % 2'000'000) - 1'000'000);
}

/// What redis-server's command makes, at "k".
void make(RespClient& redis, std::mt19937_64& random, unsigned kind, std::size_t count) {
  const Items items = picks(random, count);
  constexpr const char* commands[] = {"SET", "RPUSH", "SADD", "SADD", "HSET", "ZADD"};
  Words words{commands[kind], "k"};
  for (const std::string& item : items) {
    if (kind == 0 && words.size() == 3) break;
    if (kind == 3) {
      words.push_back(std::to_string(static_cast<std::int64_t>(random()) >> random() % 64));
      continue;
    }
    if (kind == 5) words.push_back(score_text(random));
    words.push_back(item);
    if (kind == 4) words.push_back(pick(random));
  }
  REQUIRE(redis.call(words).type != RespValue::Type::error);
}

/// A payload of an earlier release.
std::string make_old(std::mt19937_64& random, unsigned form, std::size_t count) {
  const Items items = picks(random, 2 * count);
  Items scored;
  std::string with_texts = length(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string score = std::to_string(i) + ".5";
    scored.push_back(items[i]);
    scored.push_back(score);
    with_texts += prefixed(items[i]) + static_cast<char>(score.size()) + score;
  }
  switch (form) {
    case 0:
      return payload(3, with_texts, 6);
    case 1:
      return payload(9, prefixed(zipmap(items)), 6);
    case 2:
      return payload(10, prefixed(ziplist(items)), 6);
    case 3:
      return payload(12, prefixed(ziplist(scored)));
    case 4:
      return payload(13, prefixed(ziplist(items)));
    default:
      return payload(14, length(2) + prefixed(ziplist(items)) + prefixed(ziplist(items)));
  }
}

/// The digest of what a key of redis-server holds.
std::string digest(RespClient& redis, const std::string& key) {
  return redis.call({"DEBUG", "DIGEST-VALUE", key}).show();
}

}  // namespace

TEST_CASE("dump: a string, a hash and a set come back, with or without an end", "[net][objects]") {
  Conversation node;
  CHECK(node.call({"SET", "s", "12345"}) == "+OK\r\n");
  const std::string payload = bulk_of(node.call({"DUMP", "s"}));
  CHECK(payload == std::string{"\x00\xc1\x39\x30\x0a\x00\x9d\x94\xea\x27\x93\xfc\x08\xb9", 14});
  CHECK(node.call({"RESTORE", "t", "0", payload}) == "+OK\r\n");
  CHECK(node.call({"GET", "t"}) == "$5\r\n12345\r\n");
  CHECK(node.call({"PTTL", "t"}) == ":-1\r\n");
  CHECK(node.call({"RESTORE", "t", "5000", payload, "REPLACE"}) == "+OK\r\n");
  CHECK(node.call({"PTTL", "t"}) == ":5000\r\n");
  static_cast<void>(node.call({"HSET", "h", "f", "v", "g", ""}));
  CHECK(node.call({"RESTORE", "t", "0", bulk_of(node.call({"DUMP", "h"})), "replace"}) ==
        "+OK\r\n");
  CHECK(node.call({"HGETALL", "t"}) == node.call({"HGETALL", "h"}));
  static_cast<void>(node.call({"SADD", "set", "a", "7", ""}));
  const std::string set = bulk_of(node.call({"DUMP", "set"}));
  CHECK(node.call({"RESTORE", "t", "0", set, "REPLACE"}) == "+OK\r\n");
  CHECK(node.call({"TYPE", "t"}) == "+set\r\n");
  CHECK(node.call({"SREM", "t", "a", "7", ""}) == ":3\r\n");
  CHECK(node.call({"EXISTS", "t"}) == ":0\r\n");
  CHECK(node.call({"DUMP", "none"}) == "$-1\r\n");
}

TEST_CASE("dump: errors come in the order of redis-server", "[net][objects]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "s", "v"}));
  const auto restore = [&](Words words) {
    words.insert(words.begin(), "RESTORE");
    return node.call(words);
  };
  CHECK(restore({"s", "abc", "xx"}) == "-BUSYKEY Target key name already exists.\r\n");
  CHECK(restore({"s", "0", "xx", "foo"}) == "-ERR syntax error\r\n");
  CHECK(restore({"n", "abc", "xx"}) == "-ERR value is not an integer or out of range\r\n");
  CHECK(restore({"n", "-1", "xx"}) == "-ERR Invalid TTL value, must be >= 0\r\n");
  const std::string wrong = "-ERR DUMP payload version or checksum are wrong\r\n";
  CHECK(restore({"n", "0", "xx"}) == wrong);
  CHECK(restore({"s", "0", "xx", "REPLACE"}) == wrong);
  CHECK(restore({"n", "0", ""}) == wrong);
  CHECK(restore({"n", "-1", "xx", "IDLETIME", "-3"}) ==
        "-ERR Invalid IDLETIME value, must be >= 0\r\n");
  CHECK(restore({"n", "0", "xx", "FREQ", "256"}) ==
        "-ERR Invalid FREQ value, must be >= 0 and <= 255\r\n");
  CHECK(restore({"n", "0", "xx", "FREQ", "3", "IDLETIME", "3"}) == "-ERR syntax error\r\n");
  CHECK(restore({"n", "0", "xx", "IDLETIME"}) == "-ERR syntax error\r\n");
  CHECK(restore({"n", "0", "xx", "IDLETIME", "a"}) ==
        "-ERR value is not an integer or out of range\r\n");
  CHECK(restore({"n", "0", payload(7, "x")}) == "-ERR Bad data format\r\n");
  CHECK(node.call({"EXISTS", "n"}) == ":0\r\n");
  CHECK(node.call({"GET", "s"}) == "$1\r\nv\r\n");
}

TEST_CASE("dump: members and fields that are there twice are refused", "[net][objects]") {
  Conversation node;
  const std::string twins = length(2) + prefixed("a") + prefixed("a");
  const std::string score(8, '\0');
  for (const std::string& each :
       {payload(2, twins),
        payload(4, length(2) + prefixed("a") + prefixed("1") + prefixed("a") + prefixed("2")),
        payload(5, length(2) + prefixed("a") + score + prefixed("a") + little(0x3ff0 << 16, 8))}) {
    CHECK(node.call({"RESTORE", "k", "0", each}) == "-ERR Bad data format\r\n");
  }
  CHECK(node.call({"RESTORE", "k", "0", payload(1, twins)}) == "+OK\r\n");  // a list may
  CHECK(node.call({"TYPE", "k"}) == "+list\r\n");
}

TEST_CASE("dump: an absolute end that has passed removes what was there", "[net][objects]") {
  Conversation node;
  const std::string value = payload(0, prefixed("v"));
  CHECK(node.call({"RESTORE", "k", "1", value, "ABSTTL"}) == "+OK\r\n");
  CHECK(node.call({"EXISTS", "k"}) == ":0\r\n");
  CHECK(node.call({"RESTORE", "k", "0", value}) == "+OK\r\n");
  CHECK(node.call({"RESTORE", "k", "1", value, "ABSTTL", "REPLACE"}) == "+OK\r\n");
  CHECK(node.call({"EXISTS", "k"}) == ":0\r\n");
  const std::string later = std::to_string(node.clock.unix_ms() + 1000);
  CHECK(node.call({"RESTORE", "k", later, value, "ABSTTL"}) == "+OK\r\n");
  CHECK(node.call({"PEXPIRETIME", "k"}) == ":" + later + "\r\n");
}

TEST_CASE("dump: within a transaction and a script", "[net][objects]") {
  Conversation node(2);
  const std::string value = payload(2, length(1) + prefixed("m"));
  CHECK(node.call({"MULTI"}) == "+OK\r\n");
  CHECK(node.call({"RESTORE", "k", "0", value}) == "+QUEUED\r\n");
  CHECK(node.call({"RESTORE", "k", "0", value}) == "+QUEUED\r\n");
  CHECK(node.call({"SCARD", "k"}) == "+QUEUED\r\n");
  CHECK(node.call({"EXEC"}) == "*3\r\n+OK\r\n-BUSYKEY Target key name already exists.\r\n:1\r\n");
  CHECK(node.call({"EVAL", "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]))",
                   "2", "k", "l"}) == "+OK\r\n");
  CHECK(node.call({"SCARD", "l"}) == ":1\r\n");
  CHECK(node.call({"WATCH", "k"}, 1) == "+OK\r\n");
  CHECK(node.call({"RESTORE", "k", "0", value, "REPLACE"}) == "+OK\r\n");
  CHECK(node.call({"MULTI"}, 1) == "+OK\r\n");
  CHECK(node.call({"SET", "x", "y"}, 1) == "+QUEUED\r\n");
  CHECK(node.call({"EXEC"}, 1) == "*-1\r\n");
}

TEST_CASE("dump: a record that only a group's log may put is refused", "[net][objects]") {
  Conversation node;
  CHECK(node.call({"SEMEL.PUTRECORD", "k", "string", "-1", "v"}) ==
        "-ERR 'semel.putrecord' is only for the log of a group\r\n");
  CHECK(node.call({"EXISTS", "k"}) == ":0\r\n");
}

TEST_CASE("dump: objects of redis-server come here and go back, in all encodings",
          "[net][objects][differential]") {
  const auto server = redis_or_skip({"--enable-debug-command", "yes"});
  if (server == nullptr) return;
  RespClient redis{server->socket_path()};
  Conversation node;
  std::mt19937_64 random{Catch::rngSeed()};
  constexpr unsigned kinds = 6;
  constexpr unsigned old_forms = 6;
  constexpr std::size_t counts[] = {1, 2, 7, 40, 300};
  for (unsigned round = 0; round < 30 * (kinds + old_forms); ++round) {
    const unsigned what = round % (kinds + old_forms);
    INFO("round " << round << " of " << what);
    const std::string small = random() % 2 == 0 ? "0" : "512";
    static_cast<void>(redis.call({"FLUSHALL"}));
    for (const char* setting :
         {"hash-max-listpack-entries", "zset-max-listpack-entries", "set-max-intset-entries"}) {
      static_cast<void>(redis.call({"CONFIG", "SET", setting, small}));
    }
    static_cast<void>(
        redis.call({"CONFIG", "SET", "list-compress-depth", small == "0" ? "0" : "1"}));
    const std::size_t count = counts[random() % std::size(counts)];
    if (what < kinds) {
      make(redis, random, what, count);
    } else {
      const std::string old = make_old(random, what - kinds, std::min<std::size_t>(count, 100));
      REQUIRE(redis.call({"RESTORE", "k", "0", old}).show() == "+OK");
      REQUIRE(node.call({"RESTORE", "old", "0", old, "REPLACE"}) == "+OK\r\n");
      const std::string back = bulk_of(node.call({"DUMP", "old"}));
      REQUIRE(redis.call({"RESTORE", "old", "0", back}).show() == "+OK");
      REQUIRE(digest(redis, "old") == digest(redis, "k"));
    }
    const RespValue theirs = redis.call({"DUMP", "k"});
    REQUIRE(theirs.type == RespValue::Type::bulk);
    REQUIRE(node.call({"RESTORE", "k", "0", theirs.text, "REPLACE"}) == "+OK\r\n");
    const std::string ours = bulk_of(node.call({"DUMP", "k"}));
    REQUIRE(redis.call({"RESTORE", "back", "0", ours}).show() == "+OK");
    REQUIRE(digest(redis, "back") == digest(redis, "k"));
    CHECK("+" + redis.call({"TYPE", "k"}).text + "\r\n" == node.call({"TYPE", "k"}));
  }
}

}  // namespace semel::tests::packed
