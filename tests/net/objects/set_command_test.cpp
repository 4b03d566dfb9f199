// The commands of sets, where a dialogue with a redis-server does not look: order of integers,
// bounds, what stays after an error, groups.
#include "tests/support/catch.hpp"

#include <set>

#include "engine/replica/decision_scope.hpp"
#include "engine/types/object_limits.hpp"
#include "net/node/group_runner.hpp"
#include "semel/memory_journal.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

constexpr const char* wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

std::multiset<std::string> texts_of(std::string_view reply) {
  std::multiset<std::string> texts;
  const RespValue value = take_value(reply).value();
  for (const RespValue& item : value.items) texts.insert(item.text);
  return texts;
}

/// All that SSCAN returns.
std::multiset<std::string> scan(Conversation& node, const Words& options) {
  std::multiset<std::string> texts;
  std::string cursor = "0";
  do {
    Words words{"SSCAN", "s", cursor};
    words.insert(words.end(), options.begin(), options.end());
    const std::string reply = node.call(words);
    std::string_view rest{reply};
    const RespValue page = take_value(rest).value();
    REQUIRE(page.items.size() == 2);
    cursor = page.items[0].text;
    for (const RespValue& item : page.items[1].items) texts.insert(item.text);
  } while (cursor != "0");
  return texts;
}

void add_many(Conversation& node, const std::string& prefix, int from, int to) {
  Words words{"SADD", "s"};
  for (int i = from; i < to; ++i) words.push_back(prefix + std::to_string(i));
  CHECK(node.call(words) == ":" + std::to_string(to - from) + "\r\n");
}

/// A replica to which entries are applied, as each node of a group does it.
struct Replica {
  Replica()
      : engine(std::move(Engine::open({.clock = &clock, .replicated = true}).value())),
        node(*engine),
        runner(node) {}
  /// An entry of two requests. They come before all of the next entry.
  std::string apply(const std::vector<std::vector<std::string_view>>& requests, bool together) {
    net::GroupRequest request;
    request.requests = requests;
    request.is_transaction = together;
    const engine::DecisionScope scope{*engine,
                                      {.now = clock.now(),
                                       .unix_ms = 1,
                                       .first = next_version,
                                       .end = next_version + 1'000,
                                       .secret = 77 * next_version}};
    next_version += 1'000;
    const auto result = runner.run(request);
    CHECK(result.failures.empty());
    return result.replies;
  }

  ManualClock clock;
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::GroupRunner runner;
  Version next_version = 1'000;
};

}  // namespace

TEST_CASE("sets: integers come in the order of numbers, also from several sets",
          "[net][objects][set]") {
  Conversation node;
  CHECK(node.call({"SADD", "a", "10", "-1", "9", "200"}) == ":4\r\n");
  CHECK(node.call({"SADD", "b", "9", "10", "1000", "-20"}) == ":4\r\n");
  CHECK(node.call({"SMEMBERS", "a"}) == "*4\r\n$2\r\n-1\r\n$1\r\n9\r\n$2\r\n10\r\n$3\r\n200\r\n");
  CHECK(node.call({"SINTER", "a", "b"}) == "*2\r\n$1\r\n9\r\n$2\r\n10\r\n");
  CHECK(node.call({"SDIFF", "a", "b"}) == "*2\r\n$2\r\n-1\r\n$3\r\n200\r\n");
  CHECK(node.call({"SUNION", "a", "b", "a"}) ==
        "*6\r\n$3\r\n-20\r\n$2\r\n-1\r\n$1\r\n9\r\n$2\r\n10\r\n$3\r\n200\r\n$4\r\n1000\r\n");
}

TEST_CASE("sets: a stored result may replace what it was made of", "[net][objects][set]") {
  Conversation node;
  static_cast<void>(node.call({"SADD", "a", "1", "2", "x"}));
  static_cast<void>(node.call({"SADD", "b", "2", "y"}));
  CHECK(node.call({"PEXPIRE", "a", "60000"}) == ":1\r\n");
  CHECK(node.call({"SUNIONSTORE", "a", "a", "b"}) == ":4\r\n");
  CHECK(node.call({"PTTL", "a"}) == ":-1\r\n");
  CHECK(node.call({"SDIFFSTORE", "a", "a", "a"}) == ":0\r\n");
  CHECK(node.call({"EXISTS", "a"}) == ":0\r\n");
  static_cast<void>(node.call({"SET", "str", "v"}));
  CHECK(node.call({"SINTERSTORE", "str", "b", "str"}) == wrong_type);
  CHECK(node.call({"GET", "str"}) == "$1\r\nv\r\n");
  CHECK(node.call({"SINTERSTORE", "str", "b"}) == ":2\r\n");
  CHECK(node.call({"TYPE", "str"}) == "+set\r\n");
}

TEST_CASE("sets: a claim is no destination and no set", "[net][objects][set]") {
  Conversation node;
  static_cast<void>(node.call({"SEMEL.CLAIM", "jobs", "a"}));
  static_cast<void>(node.call({"SADD", "s", "1"}));
  CHECK(node.call({"SUNIONSTORE", "jobs:a", "s"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"SORT", "s", "STORE", "jobs:a"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"SMOVE", "s", "jobs:a", "1"}).starts_with("-WRONGTYPE "));
  CHECK(node.call({"SMEMBERS", "s"}) == "*1\r\n$1\r\n1\r\n");
  CHECK(node.call({"SORT", "s", "GET", "jobs:*"}) == "*1\r\n$-1\r\n");
}

TEST_CASE("sets: SSCAN brings small sets at once and large ones whole over its calls",
          "[net][objects][set]") {
  Conversation node;
  constexpr int most = static_cast<int>(limits::set_scan_whole_max);
  add_many(node, "m", 0, most);
  CHECK(node.call({"SSCAN", "s", "0", "COUNT", "1"}).starts_with("*2\r\n$1\r\n0\r\n*512\r\n"));
  CHECK(node.call({"SSCAN", "s", "18446744073709551615", "COUNT", "1"})
            .starts_with("*2\r\n$1\r\n0\r\n*512\r\n"));
  CHECK(node.call({"SSCAN", "s", "0", "MATCH", "m1?"}).starts_with("*2\r\n$1\r\n0\r\n*10\r\n"));
  add_many(node, "", 0, 500);
  CHECK_FALSE(node.call({"SSCAN", "s", "0", "COUNT", "1"}).starts_with("*2\r\n$1\r\n0\r\n"));
  const auto all = scan(node, {"COUNT", "3"});
  CHECK(all.size() == 1'012);
  CHECK(all == texts_of(node.call({"SMEMBERS", "s"})));
  CHECK(scan(node, {"MATCH", "*7"}).size() == 51 + 50);
}

TEST_CASE("sets: an asterisk matches the empty member in SSCAN", "[net][objects][set]") {
  Conversation node;
  static_cast<void>(node.call({"SADD", "s", ""}));
  const std::string whole = "*2\r\n$1\r\n0\r\n*1\r\n$0\r\n\r\n";
  const std::string nothing = "*2\r\n$1\r\n0\r\n*0\r\n";
  CHECK(node.call({"SSCAN", "s", "0", "MATCH", "*"}) == whole);
  CHECK(node.call({"SSCAN", "s", "0", "MATCH", "x", "MATCH", "*"}) == whole);
  CHECK(node.call({"SSCAN", "s", "0", "MATCH", "?"}) == nothing);
}

TEST_CASE("sets: SSCAN returns each member that stays while others come and go",
          "[net][objects][set]") {
  Conversation node;
  add_many(node, "stay", 0, 1'500);
  std::set<std::string> seen;
  std::string cursor = "0";
  int round = 0;
  do {
    const std::string reply = node.call({"SSCAN", "s", cursor, "COUNT", "20"});
    std::string_view rest{reply};
    const RespValue page = take_value(rest).value();
    cursor = page.items[0].text;
    for (const RespValue& item : page.items[1].items) seen.insert(item.text);
    const std::string number = std::to_string(round++);
    static_cast<void>(node.call({"SADD", "s", "go" + number, number, "x" + number}));
    static_cast<void>(node.call({"SREM", "s", "x" + number, std::to_string(round - 3)}));
  } while (cursor != "0" && round < 10'000);
  std::erase_if(seen, [](const std::string& member) { return !member.starts_with("stay"); });
  CHECK(seen.size() == 1'500);
}

TEST_CASE("sets: SRANDMEMBER draws as many as its limit, and not one more", "[net][objects][set]") {
  Conversation node;
  static_cast<void>(node.call({"SADD", "s", "a"}));
  const std::string most = std::to_string(limits::set_picks_max);
  CHECK(node.call({"SRANDMEMBER", "s", "-" + most}).starts_with("*" + most + "\r\n$1\r\na\r\n"));
  const std::string more = std::to_string(limits::set_picks_max + 1);
  CHECK(node.call({"SRANDMEMBER", "s", "-" + more}) == "-ERR value is out of range\r\n");
  CHECK(node.call({"SRANDMEMBER", "s", "-9223372036854775807"}) ==
        "-ERR value is out of range\r\n");
  CHECK(node.call({"SRANDMEMBER", "none", "-9223372036854775807"}) == "*0\r\n");
  // Together too many bytes, and just enough.
  static_cast<void>(node.call({"SADD", "large", std::string(1 << 18, 'x')}));
  const std::size_t fits = limits::set_picks_bytes_max / ((1 << 18) + 1);
  CHECK(node.call({"SRANDMEMBER", "large", "-" + std::to_string(fits)}).starts_with("*"));
  CHECK(node.call({"SRANDMEMBER", "large", "-" + std::to_string(fits + 1)}) ==
        "-ERR value is out of range\r\n");
}

TEST_CASE("sets: SPOP and SRANDMEMBER reach every member", "[net][objects][set]") {
  Conversation node;
  std::set<std::string> drawn;
  static_cast<void>(node.call({"SADD", "s", "a", "b", "3", ""}));
  // Chance misses one of four in 400 draws less than once in 10^49 runs.
  for (int i = 0; i < 400; ++i) drawn.insert(node.call({"SRANDMEMBER", "s"}));
  CHECK(drawn.size() == 4);
  std::multiset<std::string> popped;
  for (int i = 0; i < 4; ++i) popped.insert(node.call({"SPOP", "s"}));
  CHECK(std::set<std::string>{popped.begin(), popped.end()} == drawn);
  CHECK(node.call({"SPOP", "s"}) == "$-1\r\n");
  CHECK(node.call({"EXISTS", "s"}) == ":0\r\n");
}

TEST_CASE("sets: nodes of a group pop the same members", "[net][objects][set][group]") {
  Replica one;
  Replica other;
  std::vector<std::vector<std::string_view>> fill(1);
  std::vector<std::string> members;
  for (int i = 0; i < 100; ++i) members.push_back("m" + std::to_string(i));
  fill[0] = {"SADD", "s"};
  fill[0].insert(fill[0].end(), members.begin(), members.end());
  std::set<std::string> popped;
  for (Replica* replica : {&one, &other}) static_cast<void>(replica->apply(fill, false));
  for (const bool together : {false, true}) {
    const std::vector<std::vector<std::string_view>> pops{
        {"SPOP", "s"}, {"SPOP", "s", "5"}, {"SPOP", "s"}};
    const std::string reply = one.apply(pops, together);
    CHECK(reply == other.apply(pops, together));
    popped.insert(reply);
  }
  CHECK(popped.size() == 2);
  const std::vector<std::vector<std::string_view>> look{{"SMEMBERS", "s"}, {"SCARD", "s"}};
  const std::string left = one.apply(look, false);
  CHECK(left == other.apply(look, false));
  CHECK(left.ends_with(":86\r\n"));
}

TEST_CASE("sets: one entry does not pop the same rank over and over",
          "[net][objects][set][group]") {
  // With one random number for a whole entry, 40 sets of two would all lose the same member.
  Replica replica;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("s" + std::to_string(i));
  std::vector<std::vector<std::string_view>> fill;
  std::vector<std::vector<std::string_view>> pops;
  for (const std::string& name : names) {
    fill.push_back({"SADD", name, "a", "b"});
    pops.push_back({"SPOP", name});
  }
  static_cast<void>(replica.apply(fill, false));
  const std::string replies = replica.apply(pops, false);
  CHECK(replies.find("\r\na\r\n") != std::string::npos);
  CHECK(replies.find("\r\nb\r\n") != std::string::npos);
}

TEST_CASE("sets: OBJECT ENCODING and MEMORY USAGE know sets", "[net][objects][set]") {
  Conversation node;
  const auto encoding = [&] { return node.call({"OBJECT", "ENCODING", "s"}); };
  add_many(node, "", 0, 512);
  CHECK(encoding() == "$6\r\nintset\r\n");
  CHECK(node.call({"SADD", "s", "512"}) == ":1\r\n");
  CHECK(encoding() == "$9\r\nhashtable\r\n");
  CHECK(node.call({"CONFIG", "SET", "set-max-intset-entries", "513"}) == "+OK\r\n");
  CHECK(encoding() == "$6\r\nintset\r\n");
  CHECK(node.call({"SADD", "s", "01"}) == ":1\r\n");
  CHECK(encoding() == "$9\r\nhashtable\r\n");
  const std::string usage = node.call({"MEMORY", "USAGE", "s"});
  CHECK(usage.starts_with(":"));
  CHECK(std::stoi(usage.substr(1)) > 514 * 2);
}

TEST_CASE("sets: a member that does not fit leaves both sets as they were", "[net][objects][set]") {
  MemoryJournal journal;  // an object that it gets has a limit
  Conversation node{1, &journal};
  const std::string large(600'000, 'x');
  CHECK(node.call({"SADD", "s", large, "a"}) == ":2\r\n");
  CHECK(node.call({"SADD", "t", std::string(600'000, 'y')}) == ":1\r\n");
  CHECK(node.call({"SMOVE", "s", "t", large}).starts_with("-ERR value exceeds the limit"));
  CHECK(node.call({"SCARD", "s"}) == ":2\r\n");
  CHECK(node.call({"SCARD", "t"}) == ":1\r\n");
  CHECK(node.call({"SUNIONSTORE", "a", "s", "t"}).starts_with("-ERR value exceeds the limit"));
  CHECK(node.call({"EXISTS", "a"}) == ":0\r\n");
}

TEST_CASE("sets: WATCH sees what changes a set, and nothing else", "[net][objects][set]") {
  const auto runs = [](const Words& change) {
    Conversation node{2};
    static_cast<void>(node.call({"SADD", "s", "a", "b"}));
    static_cast<void>(node.call({"SADD", "t", "c"}));
    static_cast<void>(node.call({"WATCH", "s"}));
    static_cast<void>(node.call(change, 1));
    static_cast<void>(node.call({"MULTI"}));
    return node.call({"EXEC"}) == "*0\r\n";
  };
  CHECK_FALSE(runs({"SPOP", "s"}));
  CHECK_FALSE(runs({"SMOVE", "s", "t", "a"}));
  CHECK_FALSE(runs({"SMOVE", "t", "s", "c"}));
  CHECK_FALSE(runs({"SDIFFSTORE", "s", "s", "t"}));
  CHECK_FALSE(runs({"SORT", "t", "ALPHA", "STORE", "s"}));
  CHECK(runs({"SPOP", "s", "0"}));
  CHECK(runs({"SMOVE", "s", "t", "z"}));
  CHECK(runs({"SADD", "s", "a"}));
  CHECK(runs({"SUNION", "s", "t"}));
  CHECK(runs({"SORT", "t", "ALPHA", "STORE", "u"}));
}

}  // namespace semel::tests
