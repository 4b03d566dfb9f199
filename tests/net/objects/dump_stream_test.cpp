// DUMP and RESTORE of streams, beside a redis-server, and streams that were made up.
#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/rdb/dump_reader.hpp"
#include "net/rdb/listpack_writer.hpp"
#include "tests/net/conversation.hpp"
#include "tests/net/rdb/packed_bytes.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests::packed {

namespace {

std::string bulk_text(const std::string& reply) {
  std::string_view rest{reply};
  const auto value = take_value(rest);
  REQUIRE(value);
  REQUIRE(value->type == RespValue::Type::bulk);
  return value->text;
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

/// Commands that make and change a stream at "k"; ids are given, times of deliveries too.
std::vector<Words> stream_requests(std::mt19937_64& random, std::size_t count) {
  std::vector<Words> requests{{"XGROUP", "CREATE", "k", "g0", "0", "MKSTREAM"}};
  std::uint64_t ms = random() % 1000;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < count; ++i) {
    const auto consumer = "c" + number(random() % 3);
    const auto group = "g" + number(random() % 3);
    const std::string some_id = ids.empty() ? "1-1" : ids[random() % ids.size()];
    switch (random() % 12) {
      case 0:
        requests.push_back({"XGROUP", "CREATE", "k", group, some_id});
        break;
      case 1:
        requests.push_back({"XGROUP", "CREATECONSUMER", "k", group, consumer});
        break;
      case 2:
        requests.push_back({"XCLAIM", "k", group, consumer, "0", some_id, "TIME",
                            number(1'700'000'000'000 + random() % 1000), "RETRYCOUNT",
                            number(random() % 300), "FORCE", "JUSTID"});
        break;
      case 3:
        requests.push_back({"XDEL", "k", some_id});
        break;
      case 4:
        requests.push_back({"XACK", "k", group, some_id});
        break;
      case 5:
        if (random() % 8 == 0) requests.push_back({"XTRIM", "k", "MAXLEN", number(random() % 50)});
        break;
      case 6:
        requests.push_back(
            {"XGROUP", "SETID", "k", group, some_id, "ENTRIESREAD", number(random() % 90)});
        break;
      default: {
        ms += random() % 3 == 0 ? random() % 100'000 : 1;
        ids.push_back(number(ms) + "-" + number(random() % 4));
        Words add{"XADD", "k", ids.back()};
        const std::size_t fields = random() % 5 == 0 ? 1 + random() % 5 : 2;
        for (std::size_t field = 0; field < fields; ++field) {
          add.push_back(random() % 20 == 0 ? number(random()) : "field " + number(field));
          add.push_back(random() % 3 == 0
                            ? number(random() % 70'000)
                            : std::string(random() % 90, static_cast<char>(random())));
        }
        if (random() % 60 == 0) add.back() = std::string(5000, 'L');
        requests.push_back(std::move(add));
      }
    }
  }
  return requests;
}

/// XINFO's facts that a dump carries.
std::string facts_of(const RespValue& value) {
  std::string facts;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const std::string& name = value.items[i].text;
    if (name.find("radix") == 0) continue;  // nodes are not the engine's
    facts += name + "=" + value.items[i + 1].show() + "\n";
  }
  return facts;
}

/// What clients can see of the stream at "k", without times since something.
template <class Call>
std::vector<std::string> looks(Call&& call) {
  std::vector<std::string> seen;
  for (const Words& look : {Words{"XLEN", "k"}, Words{"XRANGE", "k", "-", "+"}, Words{"TYPE", "k"},
                            Words{"XINFO", "GROUPS", "k"}}) {
    seen.push_back(call(look).show());
  }
  seen.push_back(facts_of(call({"XINFO", "STREAM", "k"})));
  for (const char* group : {"g0", "g1", "g2"}) {
    seen.push_back(call({"XPENDING", "k", group}).show());
    RespValue pending = call({"XPENDING", "k", group, "-", "+", "1000"});
    for (RespValue& each : pending.items) {
      if (each.items.size() == 4) each.items.erase(each.items.begin() + 2);
    }
    seen.push_back(pending.show());
  }
  return seen;
}

}  // namespace

TEST_CASE("dump: streams go to redis-server and come back, with groups and pending entries",
          "[net][objects][differential]") {
  const auto server = redis_or_skip({"--enable-debug-command", "yes"});
  if (server == nullptr) return;
  RespClient redis{server->socket_path()};
  Conversation node;
  std::mt19937_64 random{Catch::rngSeed()};
  constexpr std::size_t counts[] = {0, 1, 5, 60, 400, 1500};
  for (unsigned round = 0; round < 24; ++round) {
    const std::size_t count = counts[round % std::size(counts)];
    INFO("round " << round << ", " << count << " requests");
    static_cast<void>(redis.call({"FLUSHALL"}));
    static_cast<void>(node.call({"FLUSHALL"}));
    static_cast<void>(
        redis.call({"CONFIG", "SET", "stream-node-max-entries", random() % 2 == 0 ? "100" : "3"}));
    for (const Words& request : stream_requests(random, count)) {
      static_cast<void>(redis.call(request));
    }
    const auto there = [&](const Words& words) { return redis.call(words); };
    const auto here = [&](const Words& words) {
      const std::string reply = node.call(words);
      std::string_view rest{reply};
      return *take_value(rest);
    };
    const std::vector<std::string> seen = looks(there);
    const std::string theirs = redis.call({"DUMP", "k"}).text;
    const std::string digest = redis.call({"DEBUG", "DIGEST-VALUE", "k"}).show();
    REQUIRE(node.call({"RESTORE", "k", "0", theirs}) == "+OK\r\n");
    CHECK(looks(here) == seen);
    const std::string ours = bulk_text(node.call({"DUMP", "k"}));
    REQUIRE(redis.call({"RESTORE", "k", "0", ours, "REPLACE"}).show() == "+OK");
    REQUIRE(redis.call({"DEBUG", "DIGEST-VALUE", "k"}).show() == digest);
    CHECK(looks(there) == seen);
  }
}

namespace {

std::string raw_id(std::uint64_t ms, std::uint64_t seq) {
  const std::string bytes = little(seq, 8) + little(ms, 8);
  return {bytes.rbegin(), bytes.rend()};
}

/// One entry 5-1 with f=v, and what is behind the nodes.
std::string one_entry(const std::string& rest, std::int64_t count = 1, std::int64_t back = 4) {
  net::ListpackWriter node;
  for (const std::int64_t each : {count, std::int64_t{0}, std::int64_t{1}}) node.number(each);
  node.text("f");
  for (const std::int64_t each : {0, 2, 0, 0}) node.number(each);
  node.text("v");
  node.number(back);
  return payload(15, length(1) + prefixed(raw_id(5, 1)) + prefixed(node.take()) + rest);
}

}  // namespace

TEST_CASE("dump: streams that were made up are refused", "[net][objects]") {
  Conversation node;
  const std::string bad = "-ERR Bad data format\r\n";
  const auto restore = [&](const std::string& payload) {
    return node.call({"RESTORE", "k", "0", payload, "REPLACE"});
  };
  const std::string last = length(5) + length(1);
  const std::string none = length(0);
  CHECK(restore(one_entry(length(1) + last + none)) == "+OK\r\n");
  CHECK(node.call({"XLEN", "k"}) == ":1\r\n");
  CHECK(restore(one_entry(length(2) + last + none)) == bad);  // so many are not there
  CHECK(restore(one_entry(length(1) + length(5) + none + none)) ==
        bad);                                                       // the last id is before it
  CHECK(restore(one_entry(length(1) + last + none, 2)) == bad);     // nor in the node
  CHECK(restore(one_entry(length(1) + last + none, 1, 3)) == bad);  // items are miscounted
  CHECK(restore(one_entry(length(1) + last + none, 1, std::int64_t{1} << 62)) == bad);
  const std::string pending = raw_id(5, 1) + little(1, 8) + length(1);
  const std::string consumer = prefixed("c") + little(1, 8);
  const auto group = [&](const std::string& rest) {
    return one_entry(length(1) + last + length(1) + prefixed("g") + last + rest);
  };
  CHECK(restore(group(length(1) + pending + length(1) + consumer + length(1) + raw_id(5, 1))) ==
        "+OK\r\n");
  CHECK(restore(group(length(1) + pending + none)) == bad);  // with nobody
  CHECK(restore(group(length(1) + pending + length(2) + consumer + length(1) + raw_id(5, 1) +
                      prefixed("d") + little(1, 8) + length(1) + raw_id(5, 1))) ==
        bad);  // with two
  CHECK(restore(group(none + length(1) + consumer + length(1) + raw_id(5, 1))) == bad);
  CHECK(restore(group(length(2) + pending + pending + none)) == bad);
  CHECK(restore(group(none + length(2) + consumer + none + consumer + none)) == bad);  // twins
  CHECK(restore(payload(15, none + none + none + none + none)) ==
        "+OK\r\n");  // an empty one exists
  CHECK(node.call({"XLEN", "k"}) == ":0\r\n");
  const std::string huge = "\x81" + std::string(8, '\x7f');
  CHECK(restore(payload(15, huge)) == bad);
  CHECK(restore(payload(15, none + none + none + none + huge)) == bad);
  CHECK(restore(group(huge)) == bad);
}

TEST_CASE("dump: a stream whose every entry repeats a long field is refused, not unpacked",
          "[net][objects]") {
  net::ListpackWriter node;
  constexpr std::int64_t entries = 5000;
  for (const std::int64_t each : {entries, std::int64_t{0}, std::int64_t{1}}) node.number(each);
  node.text(std::string(100'000, 'f'));
  node.number(0);
  for (std::int64_t i = 0; i < entries; ++i) {
    for (const std::int64_t each : {std::int64_t{2}, i, std::int64_t{0}}) node.number(each);
    node.text("");
    node.number(4);
  }
  const std::string bytes = node.take();
  const std::string value = length(1) + prefixed(raw_id(5, 1)) + prefixed(bytes) + length(entries) +
                            length(9999) + length(0) + length(0);
  net::DumpValue read;
  CHECK(net::read_dump(payload(15, value), std::size_t{16} << 20, read) ==
        net::DumpFault::too_large);
  CHECK(read.items.bytes() < std::size_t{64} << 20);
}

}  // namespace semel::tests::packed
