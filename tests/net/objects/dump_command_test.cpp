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

TEST_CASE("dump: ends of fields come back with their hash", "[net][objects]") {
  Conversation node;
  const auto count = GENERATE(std::size_t{3}, std::size_t{70}, std::size_t{3'000});
  const auto key_ttl = GENERATE(as<std::string>{}, "0", "90000");
  INFO(count << " fields, ttl " << key_ttl);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string field = "f" + std::to_string(i);
    REQUIRE(node.call({"HSET", "h", field, "v" + field}) == ":1\r\n");
    if (i % 3 == 0) continue;
    const std::string ttl = std::to_string(1'000 + 500 * (i % 60));
    REQUIRE(node.call({"HPEXPIRE", "h", ttl, "FIELDS", "1", field}) == "*1\r\n:1\r\n");
  }
  if (key_ttl != "0") REQUIRE(node.call({"PEXPIRE", "h", key_ttl}) == ":1\r\n");
  const std::string dump = bulk_of(node.call({"DUMP", "h"}));
  CHECK(dump.substr(dump.size() - 10, 2) == std::string_view{"\x0c\0", 2});
  REQUIRE(node.call({"RESTORE", "back", key_ttl, dump}) == "+OK\r\n");
  const Words fields{"FIELDS", "4", "f0", "f1", "f2", "none"};
  const auto same = [&](Words words) {
    const std::string name = words[0];
    words.insert(words.begin() + 1, "h");
    const std::string of_original = node.call(words);
    words[1] = "back";
    INFO(name);
    CHECK(node.call(words) == of_original);
  };
  Words ends{"HPEXPIRETIME"};
  ends.insert(ends.end(), fields.begin(), fields.end());
  same(ends);
  same({"PEXPIRETIME"});
  same({"HLEN"});
  // Fields that end are gone from both; the last ones take a key without other fields with them.
  node.pass(Millis{1'500});
  same({"HLEN"});
  same(ends);
  CHECK(bulk_of(node.call({"DUMP", "h"})).size() < dump.size());
  node.pass(Millis{60'000});
  same({"HLEN"});
  // No field has an end any more: redis-server 7.0 takes it.
  const std::string plain = bulk_of(node.call({"DUMP", "back"}));
  CHECK(plain.substr(plain.size() - 10, 2) == std::string_view{"\x0a\0", 2});
  node.pass(Millis{60'000});
  CHECK(node.call({"EXISTS", "back"}) == (key_ttl == "0" ? ":1\r\n" : ":0\r\n"));
}

TEST_CASE("dump: hashes of redis-server 7.4 whose fields have ends, and damaged ones",
          "[net][objects]") {
  Conversation node;
  const auto now = static_cast<std::uint64_t>(node.clock.unix_ms());
  const auto restore = [&](const std::string& bytes) {
    static_cast<void>(node.call({"DEL", "k"}));
    return node.call({"RESTORE", "k", "0", bytes});
  };
  const auto hash = [&](std::uint64_t first, const std::string& pairs) {
    return payload(24, little(first, 8) + pairs, 12);
  };
  const std::string field = prefixed("f") + prefixed("v");
  REQUIRE(restore(hash(now + 5'000, length(2) + length(1'001) + field + length(0) + prefixed("g") +
                                        prefixed("w"))) == "+OK\r\n");
  CHECK(node.call({"HPTTL", "k", "FIELDS", "2", "f", "g"}) == "*2\r\n:6000\r\n:-1\r\n");
  // Fields whose end has passed are not there, nor is a hash of such fields alone.
  REQUIRE(restore(hash(1, length(2) + length(1) + field + length(0) + prefixed("g") +
                              prefixed("w"))) == "+OK\r\n");
  CHECK(node.call({"HGETALL", "k"}) == "*2\r\n$1\r\ng\r\n$1\r\nw\r\n");
  REQUIRE(restore(hash(1, length(1) + length(1) + field)) == "+OK\r\n");
  CHECK(node.call({"EXISTS", "k"}) == ":0\r\n");
  // Ends beyond all times are far ones, or none.
  const std::string huge = "\x81" + std::string(8, '\xff');
  CHECK(restore(hash(~std::uint64_t{0}, length(1) + huge + field)) == "+OK\r\n");
  CHECK(restore(hash(now, length(1) + huge + field)) == "+OK\r\n");
  CHECK(restore(hash(std::uint64_t{1} << 62, length(1) + length(5) + field)) == "+OK\r\n");
  CHECK(node.call({"HGET", "k", "f"}) == "$1\r\nv\r\n");
  // The same packed.
  const auto packed_hash = [&](const std::string& entries, std::size_t count) {
    const std::string list = little(7 + entries.size(), 4) + little(count, 2) + entries + "\xff";
    return payload(25, little(now, 8) + prefixed(list), 12);
  };
  const auto text = [](std::string_view bytes) {
    const auto size = static_cast<char>(bytes.size());
    return std::string{static_cast<char>(0x80 | size)} + std::string{bytes} +
           static_cast<char>(size + 1);
  };
  const std::string later = "\xf4" + little(now + 7'000, 8) + "\x09";
  REQUIRE(restore(packed_hash(
              text("f") + text("v") + later + text("g") + text("w") + std::string{"\0\x01", 2},
              6)) == "+OK\r\n");
  CHECK(node.call({"HPTTL", "k", "FIELDS", "2", "f", "g"}) == "*2\r\n:7000\r\n:-1\r\n");
  constexpr const char* bad = "-ERR Bad data format\r\n";
  CHECK(restore(packed_hash(text("f") + text("v"), 2)) == bad);
  CHECK(restore(packed_hash(text("f") + text("v") + text("x"), 3)) == bad);
  CHECK(restore(packed_hash("", 0)) == bad);
  CHECK(restore(hash(now, length(0))) == bad);
  CHECK(restore(hash(now, length(2) + length(1) + field + length(1) + field)) == bad);
  CHECK(restore(payload(24, little(now, 4), 12)) == bad);
  CHECK(restore(hash(now, length(1'000'000) + length(1) + field)) == bad);
  CHECK(node.call({"EXISTS", "k"}) == ":0\r\n");
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
