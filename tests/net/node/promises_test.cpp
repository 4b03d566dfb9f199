// Commands do what their OK says: ends of keys, events, random keys, cursors, pauses, and replies
// that every driver can read.
#include <cmath>
#include <map>
#include <set>
#include "tests/support/catch.hpp"

#include "semel/memory_journal.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

constexpr std::int64_t year_ms = std::int64_t{365} * 24 * 3600 * 1000;
constexpr std::int64_t ttl_most = 500 * year_ms;

/// Reads one reply off the front; integers inside of it are counted.
void count_types(std::string_view& rest, std::map<char, int>& types) {
  const std::size_t end = rest.find("\r\n");
  REQUIRE(end != std::string_view::npos);
  const char type = rest[0];
  const int number = std::atoi(std::string{rest.substr(1, end - 1)}.c_str());
  rest.remove_prefix(end + 2);
  ++types[type];
  if (type == '$' && number >= 0) rest.remove_prefix(static_cast<std::size_t>(number) + 2);
  for (int i = 0; type == '*' && i < number; ++i) count_types(rest, types);
}

}  // namespace

TEST_CASE("ends: one rule for every command that sets one", "[net][attack][fault-22]") {
  Conversation f;
  const std::int64_t now = f.clock.unix_ms();
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  struct Case {
    std::string name;
    Words before;
    std::int64_t most;
    Words behind;
  };
  const std::int64_t most_s = ttl_most / 1000;
  const std::int64_t last_ms = ttl_most + now;
  const std::vector<Case> cases{
      {"expire", {"EXPIRE", "k"}, most_s, {}},
      {"pexpire", {"PEXPIRE", "k"}, ttl_most, {}},
      {"expireat", {"EXPIREAT", "k"}, last_ms / 1000, {}},
      {"pexpireat", {"PEXPIREAT", "k"}, last_ms, {}},
      {"setex", {"SETEX", "k"}, most_s, {"v"}},
      {"psetex", {"PSETEX", "k"}, ttl_most, {"v"}},
      {"set", {"SET", "k", "v", "EX"}, most_s, {}},
      {"set", {"SET", "k", "v", "PX"}, ttl_most, {}},
      {"set", {"SET", "k", "v", "EXAT"}, last_ms / 1000, {}},
      {"set", {"SET", "k", "v", "PXAT"}, last_ms, {}},
      {"getex", {"GETEX", "k", "EX"}, most_s, {}},
      {"getex", {"GETEX", "k", "PXAT"}, last_ms, {}},
      {"msetex", {"MSETEX", "1", "k", "v", "PX"}, ttl_most, {}},
      {"semel.cas", {"SEMEL.CAS", "new", "0", "v", "PX"}, ttl_most, {}},
  };
  for (const Case& each : cases) {
    for (const std::int64_t over : {0, 1}) {
      f.call({"FLUSHALL"});
      f.call({"SET", "k", "1"});
      Words words = each.before;
      words.push_back(text(each.most + over));
      words.insert(words.end(), each.behind.begin(), each.behind.end());
      INFO(words[0] << " " << each.before.back() << " + " << over);
      const std::string reply = f.call(words);
      const std::string key = words[0] == "SEMEL.CAS" ? "new" : "k";
      const std::string left = f.call({"PTTL", key});
      if (over == 0) {
        CHECK_FALSE(reply.starts_with("-"));
        const std::int64_t ms = std::stoll(left.substr(1));
        CHECK(ms > ttl_most - 2'000);
        CHECK(ms <= ttl_most);
      } else {
        CHECK(reply == "-ERR invalid expire time in '" + each.name + "' command\r\n");
        CHECK(left == (key == "k" ? ":-1\r\n" : ":-2\r\n"));
      }
    }
  }
  // The year 2527 was where ends vanished before.
  f.call({"SET", "k", "1"});
  CHECK(f.call({"PEXPIREAT", "k", "17592186044416"}).starts_with("-ERR invalid expire time") ==
        (17'592'186'044'416 > last_ms));
  CHECK(f.call({"INCREX", "k", "PX", text(ttl_most + 1)}).starts_with("-ERR invalid expire time"));
  CHECK(f.call({"GET", "k"}) == "$1\r\n1\r\n");
}

TEST_CASE("FLUSHALL: says OK only when everything is gone", "[net][attack][fault-22]") {
  MemoryJournal journal;
  auto engine = Engine::open({.journal = &journal}).value();
  net::Node node{*engine};
  net::Batch batch;
  net::Connection client{node, batch, nullptr, {.id = 1}};
  const auto call = [&](const std::vector<std::string>& words) {
    std::string reply;
    client.receive(request_bytes(words), reply);
    return reply;
  };
  REQUIRE(call({"SET", "k", "v"}) == "+OK\r\n");
  journal.set_accepts_writes(false);
  CHECK(call({"FLUSHALL"}).starts_with("-MISCONF "));
  CHECK(call({"FLUSHDB", "ASYNC"}).starts_with("-MISCONF "));
  CHECK(call({"DBSIZE"}) == ":1\r\n");
  journal.set_accepts_writes(true);
  CHECK(call({"FLUSHALL"}) == "+OK\r\n");
  CHECK(call({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("MISCONF: on a full disk the commands that free are accepted, alone and in MULTI",
          "[net][node]") {
  MemoryJournal journal;
  auto engine = Engine::open({.journal = &journal}).value();
  net::Node node{*engine};
  net::Batch batch;
  net::Connection client{node, batch, nullptr, {.id = 1}};
  const auto call = [&](const std::vector<std::string>& words) {
    std::string reply;
    client.receive(request_bytes(words), reply);
    return reply;
  };
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) {
    REQUIRE(call({"SET", key, "v"}) == "+OK\r\n");
  }
  REQUIRE(call({"HSET", "h", "x", "1", "y", "2"}) == ":2\r\n");
  journal.set_accepts_writes(false);
  journal.set_accepts_frees(true);
  CHECK(call({"SET", "n", "v"}).starts_with("-MISCONF "));
  CHECK(call({"PERSIST", "a"}) == ":0\r\n");  // changes nothing
  CHECK(call({"RENAME", "a", "b"}).starts_with("-MISCONF "));
  CHECK(call({"DEL", "a"}) == ":1\r\n");
  CHECK(call({"UNLINK", "b", "c"}) == ":2\r\n");
  CHECK(call({"GETDEL", "d"}) == "$1\r\nv\r\n");
  CHECK(call({"EXPIRE", "e", "0"}) == ":1\r\n");
  CHECK(call({"HDEL", "h", "x"}) == ":1\r\n");
  REQUIRE(call({"MULTI"}) == "+OK\r\n");
  REQUIRE(call({"DEL", "f"}) == "+QUEUED\r\n");
  REQUIRE(call({"GET", "g"}) == "+QUEUED\r\n");
  CHECK(call({"EXEC"}) == "*2\r\n:1\r\n$1\r\nv\r\n");
  REQUIRE(call({"MULTI"}) == "+OK\r\n");
  REQUIRE(call({"DEL", "g"}) == "+QUEUED\r\n");
  REQUIRE(call({"SET", "n", "v"}) == "+QUEUED\r\n");
  const std::string mixed = call({"EXEC"});
  CHECK(mixed.starts_with("*2\r\n-MISCONF "));  // not half of it
  CHECK(call({"GET", "g"}) == "$1\r\nv\r\n");
  CHECK(call({"FLUSHALL"}) == "+OK\r\n");
  CHECK(call({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("commands: what frees is a write that Redis does not deny when memory is full",
          "[net][node]") {
  int count = 0;
  for (const net::CommandRow& row : net::all_commands()) {
    if (!row.has(net::fact_frees)) continue;
    ++count;
    INFO(row.name);
    CHECK(row.is(net::flag_write));
    CHECK_FALSE(row.is(net::flag_denyoom));
  }
  CHECK(count == 39);
}

TEST_CASE("TIME: in microseconds on the system's clock, whole milliseconds on others",
          "[net][attack][fault-22]") {
  Conversation manual;
  CHECK(has(manual.call({"TIME"}), std::to_string(manual.clock.unix_ms() % 1000 * 1000) + "\r\n"));
  auto engine = Engine::open({}).value();
  net::Node node{*engine};
  net::Batch batch;
  net::Connection client{node, batch, nullptr, {.id = 1}};
  // A script sees one time, however long it runs.
  const std::string script =
      "local a = redis.call('TIME') for i = 1, 1000 do end local b = redis.call('TIME') "
      "if a[1] ~= b[1] or a[2] ~= b[2] then return {'0', '0'} end return a";
  bool is_fine = false;
  bool is_fine_inside = false;
  std::int64_t last = 0;
  for (int i = 0; i < 1'000; ++i) {
    std::string reply;
    const bool inside = i % 2 != 0;
    client.receive(inside ? request_bytes({"EVAL", script, "0"}) : request_bytes({"TIME"}), reply);
    const std::size_t seconds = reply.find("\r\n", 4) + 2;
    const std::size_t head = reply.find("\r\n", seconds) + 2;
    const std::size_t behind = reply.find("\r\n", head) + 2;
    const std::int64_t us =
        std::stoll(reply.substr(seconds)) * 1'000'000 + std::stoll(reply.substr(behind));
    CHECK(us >= last);
    (inside ? is_fine_inside : is_fine) |= us % 1000 != 0;
    last = us;
  }
  CHECK(is_fine);
  CHECK(is_fine_inside);
  CHECK(last > 0);
}

TEST_CASE("SCAN: a table with one key is done in few calls", "[net][attack][fault-22]") {
  Conversation f;
  f.call({"SET", "only", "1"});
  std::string cursor = "0";
  int calls = 0;
  bool is_found = false;
  do {
    const std::string reply = f.call({"SCAN", cursor});
    is_found = is_found || has(reply, "only");
    const std::size_t begin = reply.find("\r\n", 4) + 2;
    cursor = reply.substr(begin, reply.find("\r\n", begin) - begin);
    REQUIRE(++calls < 10);
  } while (cursor != "0");
  CHECK(is_found);
  CHECK(calls <= 2);
}

TEST_CASE("SCAN: COUNT still bounds what a call brings", "[net][attack][fault-22]") {
  Conversation f;
  for (int i = 0; i < 5'000; ++i) f.call({"SET", "k" + std::to_string(i), "1"});
  std::string cursor = "0";
  std::set<std::string> seen;
  int calls = 0;
  do {
    const std::string reply = f.call({"SCAN", cursor, "COUNT", "10"});
    std::size_t begin = reply.find("\r\n", 4) + 2;
    cursor = reply.substr(begin, reply.find("\r\n", begin) - begin);
    std::size_t keys = 0;
    for (std::size_t at = reply.find("\r\nk"); at != std::string::npos;
         at = reply.find("\r\nk", at + 1)) {
      ++keys;
      seen.insert(reply.substr(at + 2, reply.find("\r\n", at + 2) - at - 2));
    }
    CHECK(keys <= 100);
    REQUIRE(++calls < 5'000);
  } while (cursor != "0");
  CHECK(seen.size() == 5'000);
}

TEST_CASE("RANDOMKEY: every key is drawn, about as often as another", "[net][attack][fault-22]") {
  for (const int keys : {1, 7, 300, 20'000}) {
    INFO(keys);
    Conversation f;
    for (int i = 0; i < keys; ++i) f.call({"SET", "key:" + std::to_string(i), "1"});
    // Into 50 classes at most, so that each is drawn 100 times about.
    const int classes = std::min(keys, 50);
    const int draws = 100 * classes;
    std::vector<int> drawn(static_cast<std::size_t>(classes));
    std::set<std::string> seen;
    for (int i = 0; i < draws; ++i) {
      const std::string reply = f.call({"RANDOMKEY"});
      const std::size_t at = reply.find("key:");
      REQUIRE(at != std::string::npos);
      const std::string key = reply.substr(at + 4, reply.size() - at - 6);
      seen.insert(key);
      ++drawn[static_cast<std::size_t>(std::stoi(key) % classes)];
    }
    double distance = 0;
    for (const int each : drawn) distance += (each - 100.0) * (each - 100.0) / 100.0;
    // Of a uniform draw: classes - 1 in the mean, and six times its deviation beyond by chance once
    // in a billion; twice that for segments of two depths.
    CHECK(distance < 2 * (classes + 6 * std::sqrt(2.0 * classes)));
    if (keys <= 50) CHECK(seen.size() == static_cast<std::size_t>(keys));
    if (keys > 300) CHECK(seen.size() > static_cast<std::size_t>(draws * 3 / 4));
  }
  Conversation none;
  CHECK(none.call({"RANDOMKEY"}) == "$-1\r\n");
  none.call({"SELECT", "1"});
  none.call({"SET", "elsewhere", "1"});
  none.call({"SELECT", "0"});
  CHECK(none.call({"RANDOMKEY"}) == "$-1\r\n");
}

TEST_CASE("events: MSETEX and INCREX publish what SET, EXPIRE and INCR publish",
          "[net][attack][fault-22]") {
  Conversation f{2};
  REQUIRE(f.call({"CONFIG", "SET", "notify-keyspace-events", "EAn"}) == "+OK\r\n");
  f.call({"PSUBSCRIBE", "__keyevent@0__:*"}, 1);
  f.collect(1);
  const auto events_of = [&](const Words& words) {
    f.call(words);
    const std::string heard = f.collect(1);
    std::string events;
    for (std::size_t at = heard.find("@0__:"); at != std::string::npos;
         at = heard.find("@0__:", at + 1)) {
      const std::size_t end = heard.find("\r\n", at);
      if (heard[at + 5] == '*') continue;
      const std::size_t key = heard.find("\r\n", end + 2) + 2;
      events += (events.empty() ? "" : " ") + heard.substr(at + 5, end - at - 5) + ":" +
                heard.substr(key, heard.find("\r\n", key) - key);
    }
    return events;
  };
  CHECK(events_of({"MSETEX", "2", "a", "1", "b", "2"}) == "new:a set:a new:b set:b");
  CHECK(events_of({"MSETEX", "2", "a", "1", "c", "2", "EX", "100"}) ==
        "set:a expire:a new:c set:c expire:c");
  CHECK(events_of({"MSETEX", "2", "a", "1", "d", "2", "NX"}).empty());
  CHECK(events_of({"MSETEX", "1", "a", "1", "XX", "KEEPTTL"}) == "set:a");
  CHECK(events_of({"INCREX", "n"}) == "new:n incrby:n");
  CHECK(events_of({"INCREX", "n", "BYFLOAT", "1.5"}) == "incrbyfloat:n");
  CHECK(events_of({"INCREX", "m", "EX", "100"}) == "new:m incrby:m expire:m");
  CHECK(events_of({"INCREX", "m", "EX", "100", "ENX"}) == "incrby:m");
  CHECK(events_of({"INCREX", "m", "PERSIST"}) == "incrby:m persist:m");
  CHECK(events_of({"INCREX", "m", "PERSIST"}) == "incrby:m");
  CHECK(events_of({"INCREX", "m", "EX", "100", "ENX"}) == "incrby:m expire:m");
  CHECK(events_of({"INCREX", "m", "UBOUND", "0"}).empty());
  CHECK(events_of({"SET", "x", "1"}) == "new:x set:x");
  CHECK(events_of({"SET", "x", "1", "EX", "100"}) == "set:x expire:x");
}

TEST_CASE("CLIENT PAUSE WRITE: what says it does not write goes on", "[net][attack][fault-22]") {
  Conversation f{2};
  const std::string reads = "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])";
  const std::string writes = "#!lua\nreturn redis.call('SET', KEYS[1], 'x')";
  const std::string silent = "return redis.call('GET', KEYS[1])";
  f.call({"SET", "k", "v"});
  const std::string digest = f.call({"SCRIPT", "LOAD", reads});
  const std::string sha = digest.substr(5, 40);
  f.call({"SCRIPT", "FLUSH"});
  f.call(
      {"FUNCTION", "LOAD",
       "#!lua name=l\n"
       "redis.register_function{function_name='r', flags={'no-writes'}, callback=function(keys) "
       "return redis.call('GET', keys[1]) end}\n"
       "redis.register_function('w', function(keys) return redis.call('SET', keys[1], 'x') end)"});
  REQUIRE(f.call({"CLIENT", "PAUSE", "100000", "WRITE"}) == "+OK\r\n");
  CHECK(f.call({"EVAL", reads, "1", "k"}, 1) == "$1\r\nv\r\n");
  CHECK(f.call({"EVALSHA", sha, "1", "k"}, 1) == "$1\r\nv\r\n");
  CHECK(f.call({"FCALL", "r", "1", "k"}, 1) == "$1\r\nv\r\n");
  CHECK(f.call({"EVAL_RO", silent, "1", "k"}, 1) == "$1\r\nv\r\n");
  f.call({"MULTI"}, 1);
  f.call({"EVAL", reads, "1", "k"}, 1);
  CHECK(f.call({"EXEC"}, 1) == "*1\r\n$1\r\nv\r\n");
  for (const Words& held : std::vector<Words>{{"EVAL", writes, "1", "k"},
                                              {"EVAL", silent, "1", "k"},
                                              {"FCALL", "w", "1", "k"},
                                              {"SET", "k", "x"}}) {
    INFO(held[0] << " " << held[1]);
    const std::size_t client = f.connections.size();
    f.connect("127.0.0.1:7000");
    CHECK(f.call(held, client).empty());
    CHECK(f.connections[client]->waits());
  }
  CHECK(f.call({"GET", "k"}, 1) == "$1\r\nv\r\n");
  f.call({"CLIENT", "UNPAUSE"});
}

TEST_CASE("SEMEL: in RESP2 every reply is made of bulk strings",
          "[net][claims][attack][fault-22]") {
  Conversation f;
  f.call({"SET", "text", "v"});
  f.call({"SEMEL.NAMESPACE", "tokens", "AS", "token"});
  const std::string granted = f.call({"SEMEL.CLAIM", "ns", "a"});
  const std::size_t at = granted.find("epoch\r\n");
  const std::size_t begin = granted.find("\r\n", at + 7) + 2;
  const std::string epoch = granted.substr(begin, granted.find("\r\n", begin) - begin);
  const std::vector<Words> all{{"SEMEL.CLAIM", "ns", "b"},
                               {"SEMEL.CLAIM", "ns", "b", "OWNER", "x"},
                               {"SEMEL.CLAIMS", "ns", "KEYS", "3", "a", "c", "c"},
                               {"SEMEL.CLAIMALL", "ns", "KEYS", "2", "a", "d"},
                               {"SEMEL.CLAIMALL", "ns", "KEYS", "2", "e", "g"},
                               {"SEMEL.LIMIT", "limit", "FIXED", "1", "1000"},
                               {"SEMEL.LIMIT", "limit", "FIXED", "1", "1000"},
                               {"SEMEL.PERMIT", "ns", "s", "1"},
                               {"SEMEL.PERMIT", "ns", "s", "1"},
                               {"SEMEL.PERMITS", "ns", "s"},
                               {"SEMEL.RWLOCK", "ns", "s", "WRITE"},
                               {"SEMEL.RWLOCK", "ns", "s", "READ"},
                               {"SEMEL.RWLOCKS", "ns", "s"},
                               {"SEMEL.RENEW", "ns", "a", epoch},
                               {"SEMEL.GETCLAIM", "ns", "a"},
                               {"SEMEL.INFLIGHT", "ns"},
                               {"SEMEL.COMPLETE", "ns", "a", epoch, "r"},
                               {"SEMEL.COMPLETES", "ns", "1", "a", epoch, "r"},
                               {"SEMEL.GETCLAIM", "ns", "a"},
                               {"SEMEL.CLAIM", "ns", "a"},
                               {"SEMEL.CLAIM", "ns", "a", "FIRST-SENT", "1"},
                               {"SEMEL.GETCLAIM", "ns", "none"},
                               {"SEMEL.RELEASE", "ns", "a", epoch},
                               {"SEMEL.FAIL", "ns", "a", epoch},
                               {"SEMEL.WAIT", "10", "ns", "a"},
                               {"SEMEL.ISSUE", "tokens", "t"},
                               {"SEMEL.GETCLAIM", "tokens", "t"},
                               {"SEMEL.FORGET", "ns", "a"},
                               {"SEMEL.RESOLVE", "ns", "a", "RELEASED"},
                               {"SEMEL.NAMESPACE", "ns"},
                               {"SEMEL.NAMESPACES"},
                               {"SEMEL.GET", "text"},
                               {"SEMEL.CAS", "text", "1", "x"},
                               {"SEMEL.CAS", "new", "0", "x"}};
  for (const Words& words : all) {
    INFO(words[0] << " " << words.back());
    const std::string reply = f.call(words);
    std::map<char, int> types;
    std::string_view rest{reply};
    count_types(rest, types);
    CHECK(rest.empty());
    for (const auto& [type, count] : types) {
      INFO(type);
      CHECK((type == '*' || type == '$'));
    }
  }
}

}  // namespace semel::tests
