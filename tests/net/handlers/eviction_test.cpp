// maxmemory-policy and cache-databases over the protocol, and a maxmemory that is smaller than an
// engine can be.
#include <algorithm>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/api/eviction_calls.hpp"
#include "tests/net/conversation.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {
namespace {

constexpr const char* out_of_memory =
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

struct CacheNode : Conversation {
  explicit CacheNode(std::size_t count = 1) : Conversation(count) {}
  std::string set(const std::string& name, const std::string& value) {
    return call({"CONFIG", "SET", name, value});
  }
  void caches(const std::string& databases, const std::string& policy) {
    REQUIRE(call({"CONFIG", "SET", "cache-databases", databases, "maxmemory-policy", policy}) ==
            "+OK\r\n");
  }
  /// A number of INFO.
  std::uint64_t info(const std::string& name) {
    const std::string text = call({"INFO", "everything"});
    const std::size_t at = text.find("\r\n" + name + ":");
    REQUIRE(at != std::string::npos);
    return std::stoull(text.substr(at + name.size() + 3));
  }
  /// maxmemory is so much more than what is used now.
  void leave(std::uint64_t bytes) {
    pass(Millis{0});  // timers are in the wheel, and counted
    limit = info("used_memory") + bytes;
    REQUIRE(set("maxmemory", std::to_string(limit)) == "+OK\r\n");
  }
  std::uint64_t limit = 0;
};

std::string key_of(std::size_t i) {
  return "key:" + std::to_string(i);
}

}  // namespace

TEST_CASE("eviction: maxmemory-policy evicts keys of caches and of no other database",
          "[net][handlers][eviction]") {
  CacheNode one;
  const std::string policy =
      GENERATE("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
               "volatile-random", "volatile-ttl");
  const bool is_volatile = policy.starts_with("volatile");
  INFO(policy);
  one.caches("1 3", policy);
  CHECK(one.call({"INFO", "memory"}).find("maxmemory_policy:" + policy) != std::string::npos);
  one.leave(200'000);
  REQUIRE(one.call({"SEMEL.CLAIM", "ns", "job"}).find("granted") != std::string::npos);
  const std::string value(100, 'v');
  for (std::size_t i = 0; i < 100; ++i) REQUIRE(one.call({"SET", key_of(i), value}) == "+OK\r\n");
  one.call({"SELECT", "1"});
  for (std::size_t i = 0; i < 50; ++i) {
    REQUIRE(one.call({"SET", "stays:" + key_of(i), value}) == "+OK\r\n");
  }
  one.call({"SELECT", "3"});
  for (std::size_t i = 0; i < 3'000; ++i) {
    REQUIRE(one.call({"SETEX", key_of(i), "1000", value}) == "+OK\r\n");
  }
  CHECK(one.info("used_memory") <= one.limit + 4'096);
  CHECK(one.info("evicted_keys") > 1'000);
  one.call({"SELECT", "0"});
  CHECK(one.call({"DBSIZE"}) == ":101\r\n");
  CHECK(one.call({"SEMEL.CLAIM", "ns", "job"}).find("in_flight") != std::string::npos);
  one.call({"SELECT", "1"});
  if (is_volatile) CHECK(one.call({"DBSIZE"}) == ":50\r\n");
  // Back: nothing more goes.
  CHECK(one.set("maxmemory", "0") == "+OK\r\n");
  const std::uint64_t gone = one.info("evicted_keys");
  for (std::size_t i = 0; i < 3'000; ++i) one.call({"SET", key_of(i), value});
  CHECK(one.info("evicted_keys") == gone);
}

TEST_CASE("eviction: where nothing may go a write is refused, and room that comes is seen at once",
          "[net][handlers][eviction]") {
  CacheNode one;
  const std::string policy = GENERATE("noeviction", "volatile-lru", "volatile-ttl");
  one.caches("all", policy);
  // A key without a ttl, whatever its fields have.
  REQUIRE(one.call({"HSET", "hash", "f", "v"}) == ":1\r\n");
  REQUIRE(one.call({"HEXPIRE", "hash", "10", "FIELDS", "1", "f"}) == "*1\r\n:1\r\n");
  one.leave(100'000);
  std::size_t count = 0;
  while (one.call({"SET", key_of(count), "v"}) == "+OK\r\n") ++count;
  REQUIRE(count > 10);
  CHECK(one.call({"SET", "more", "v"}) == out_of_memory);
  CHECK(one.call({"SET", key_of(0), "v"}) == out_of_memory);
  CHECK(one.call({"LPUSH", "list", "v"}) == out_of_memory);
  CHECK(one.call({"GET", key_of(0)}) == "$1\r\nv\r\n");
  CHECK(one.info("evicted_keys") == 0);
  if (policy == "noeviction") {
    for (std::size_t i = 0; i < 50; ++i) CHECK(one.call({"DEL", key_of(i)}) == ":1\r\n");
  } else {
    CHECK(one.call({"EXPIRE", key_of(0), "100"}) == ":1\r\n");
  }
  CHECK(one.call({"SET", "more", "v"}) == "+OK\r\n");
  CHECK(one.info("evicted_keys") == (policy == "noeviction" ? 0 : 1));
}

TEST_CASE("eviction: an evicted key is told of as evicted, to trackers and to WATCH",
          "[net][handlers][eviction]") {
  CacheNode one{3};
  one.caches("all", "allkeys-random");
  one.set("notify-keyspace-events", "Ee");
  one.call({"SUBSCRIBE", "__keyevent@0__:evicted"}, 1);
  one.call({"HELLO", "3"}, 2);
  REQUIRE(one.call({"SET", "k", "v"}) == "+OK\r\n");
  REQUIRE(one.call({"CLIENT", "TRACKING", "ON"}, 2) == "+OK\r\n");
  one.call({"GET", "k"}, 2);
  REQUIRE(one.call({"WATCH", "k"}) == "+OK\r\n");
  REQUIRE(one.call({"CONFIG", "SET", "maxmemory", "1"}, 2).find("OK") != std::string::npos);
  // Some keys may go, and no room comes of it.
  // The message comes before the reply, as from redis-server.
  CHECK(one.call({"GET", "k"}, 2) == ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n_\r\n");
  CHECK(one.info("evicted_keys") == 1);
  REQUIRE(one.call({"CONFIG", "SET", "maxmemory", "0"}, 2).find("OK") != std::string::npos);
  REQUIRE(one.call({"MULTI"}) == "+OK\r\n");
  REQUIRE(one.call({"SET", "k", "mine"}) == "+QUEUED\r\n");
  CHECK(one.call({"EXEC"}) == "*-1\r\n");
  CHECK(one.collect(1).find("$1\r\nk\r\n") != std::string::npos);
}

TEST_CASE("eviction: OBJECT IDLETIME and FREQ answer as the policy notes uses",
          "[net][handlers][eviction]") {
  CacheNode one;
  constexpr const char* no_lfu =
      "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
      "that when switching between policies at runtime LRU and LFU data will take some time to "
      "adjust.\r\n";
  constexpr const char* is_lfu =
      "-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
      "switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n";
  REQUIRE(one.set("cache-databases", "0") == "+OK\r\n");
  one.call({"SET", "k", "v"});
  one.call({"RPUSH", "l", "a"});
  one.pass(Millis{12'000});
  // Also under noeviction.
  CHECK(one.call({"OBJECT", "IDLETIME", "k"}) == ":12\r\n");
  CHECK(one.call({"OBJECT", "FREQ", "k"}) == no_lfu);
  for (const Words& looks : std::vector<Words>{{"TTL", "k"},
                                               {"TYPE", "k"},
                                               {"EXISTS", "k"},
                                               {"OBJECT", "ENCODING", "k"},
                                               {"MEMORY", "USAGE", "k"},
                                               {"OBJECT", "ENCODING", "l"},
                                               {"MEMORY", "USAGE", "l"}}) {
    one.call(looks);
    INFO(looks[0]);
    CHECK(one.call({"OBJECT", "IDLETIME", looks.back()}) == ":12\r\n");
  }
  CHECK(one.call({"LLEN", "l"}) == ":1\r\n");
  CHECK(one.call({"OBJECT", "IDLETIME", "l"}) == ":0\r\n");
  REQUIRE(one.call({"CLIENT", "NO-TOUCH", "on"}) == "+OK\r\n");
  CHECK(one.call({"GET", "k"}) == "$1\r\nv\r\n");
  CHECK(one.call({"OBJECT", "IDLETIME", "k"}) == ":12\r\n");
  CHECK(one.call({"TOUCH", "k"}) == ":1\r\n");
  CHECK(one.call({"OBJECT", "IDLETIME", "k"}) == ":0\r\n");
  REQUIRE(one.call({"CLIENT", "NO-TOUCH", "off"}) == "+OK\r\n");
  const std::string dumped = one.call({"DUMP", "k"});
  const std::size_t begin = dumped.find("\r\n") + 2;
  const std::string payload = dumped.substr(begin, dumped.size() - begin - 2);
  REQUIRE(one.call({"RESTORE", "r", "0", payload, "IDLETIME", "1000"}) == "+OK\r\n");
  CHECK(one.call({"OBJECT", "IDLETIME", "r"}) == ":1000\r\n");
  REQUIRE(one.set("maxmemory-policy", "allkeys-lfu") == "+OK\r\n");
  CHECK(one.call({"OBJECT", "IDLETIME", "k"}) == is_lfu);
  REQUIRE(one.call({"RESTORE", "r", "0", payload, "REPLACE", "FREQ", "100"}) == "+OK\r\n");
  CHECK(one.call({"OBJECT", "FREQ", "r"}) == ":100\r\n");
  CHECK(one.call({"OBJECT", "FREQ", "none"}) == "$-1\r\n");
  one.call({"SELECT", "1"});
  one.call({"SET", "k", "v"});
  one.pass(Millis{3'000});
  CHECK(one.call({"OBJECT", "FREQ", "k"}) == ":0\r\n");
}

TEST_CASE("eviction: lfu-log-factor and lfu-decay-time are those of redis-server",
          "[net][handlers][eviction]") {
  CacheNode one;
  one.caches("all", "volatile-lfu");
  const auto frequency_after = [&](int uses) {
    one.call({"DEL", "k"});
    one.call({"SET", "k", "v"});
    for (int i = 0; i < uses; ++i) one.call({"GET", "k"});
    return std::stoi(one.call({"OBJECT", "FREQ", "k"}).substr(1));
  };
  REQUIRE(one.set("lfu-log-factor", "0") == "+OK\r\n");
  CHECK(frequency_after(50) == 55);
  REQUIRE(one.set("lfu-log-factor", "100") == "+OK\r\n");
  const int seldom = frequency_after(1'000);
  CHECK(seldom >= 6);
  CHECK(seldom <= 15);
  REQUIRE(one.set("lfu-log-factor", "0") == "+OK\r\n");
  REQUIRE(one.set("lfu-decay-time", "2") == "+OK\r\n");
  CHECK(frequency_after(10) == 15);
  one.pass(Millis{600'000});
  CHECK(one.call({"OBJECT", "FREQ", "k"}) == ":10\r\n");
  REQUIRE(one.set("lfu-decay-time", "0") == "+OK\r\n");
  one.pass(Millis{600'000});
  CHECK(one.call({"OBJECT", "FREQ", "k"}) == ":15\r\n");
}

TEST_CASE("eviction: maxmemory-samples: with many, the nearest end goes first of all",
          "[net][handlers][eviction]") {
  const auto wrong_with = [](const std::string& samples) {
    CacheNode one{2};
    one.caches("all", "volatile-ttl");
    REQUIRE(one.set("maxmemory-samples", samples) == "+OK\r\n");
    constexpr std::size_t count = 400;
    for (std::size_t i = 0; i < count; ++i) {
      one.call({"SETEX", key_of(i), std::to_string(1'000 + i * 10), std::string(1'000, 'v')});
    }
    one.pass(Millis{0});  // timers are in the wheel, and counted
    REQUIRE(one.set("maxmemory", std::to_string(one.info("used_memory") - 200'000)) == "+OK\r\n");
    one.call({"GET", "none"});
    std::size_t wrong = 0;  // keys that went although they had more time than the median of all
    for (std::size_t i = count / 2; i < count; ++i) {
      if (one.call({"EXISTS", key_of(i)}) == ":0\r\n") ++wrong;
    }
    REQUIRE(one.info("evicted_keys") > 150);
    return wrong;
  };
  const std::size_t one = wrong_with("1");
  const std::size_t many = wrong_with("64");
  INFO("with one " << one << ", with many " << many);
  CHECK(many < 20);
  CHECK(one > many);
}

TEST_CASE("eviction: settings that contradict each other are refused, with what to set",
          "[net][handlers][eviction]") {
  CacheNode one;
  const std::string refused = one.set("maxmemory-policy", "allkeys-lru");
  CHECK(refused.starts_with("-ERR CONFIG SET failed"));
  CHECK(refused.find("cache-databases names no database") != std::string::npos);
  CHECK(one.set("maxmemory-policy", "noeviction") == "+OK\r\n");
  CHECK(one.set("cache-databases", "1 16").starts_with("-ERR CONFIG SET failed"));
  CHECK(one.set("cache-databases", "x").starts_with("-ERR CONFIG SET failed"));
  REQUIRE(one.set("cache-databases", "3 1 3") == "+OK\r\n");
  CHECK(one.call({"CONFIG", "GET", "cache-databases"}).ends_with("$3\r\n1 3\r\n"));
  REQUIRE(one.set("maxmemory-policy", "ALLKEYS-LRU") == "+OK\r\n");
  CHECK(one.call({"CONFIG", "GET", "maxmemory-policy"}).ends_with("$11\r\nallkeys-lru\r\n"));
  CHECK(one.set("cache-databases", "").starts_with("-ERR CONFIG SET failed"));
  CHECK(one.call({"CONFIG", "SET", "cache-databases", "", "maxmemory-policy", "noeviction"}) ==
        "+OK\r\n");
}

TEST_CASE("eviction: a pipeline evicts as it goes", "[net][handlers][eviction]") {
  CacheNode one;
  one.caches("0", "allkeys-lru");
  one.leave(100'000);
  std::string requests;
  for (std::size_t i = 0; i < 2'000; ++i) {
    requests += request_bytes({"SET", key_of(i), std::string(200, 'v')});
  }
  std::string replies;
  one.connections[0]->receive(requests, replies);
  CHECK(replies.find('-') == std::string::npos);
  CHECK(one.info("evicted_keys") > 1'000);
  // A batch may hold some keys more.
  CHECK(one.info("used_memory") <= one.limit + 64 * 300);
}

namespace {

Words script(const char* text) {
  return {"EVAL", text, "1", "a"};
}

/// After CONFIG SET maxmemory 1.
const std::vector<Words> asked_without_room{
    {"SET", "a", "1"},
    {"CONFIG", "SET", "maxmemory", "1"},
    {"CONFIG", "GET", "maxmemory"},
    {"SET", "a", "2"},
    {"SET", "a"},
    {"GET", "a"},
    {"INCR", "n"},
    {"EXPIRE", "a", "1000"},
    {"PERSIST", "a"},
    {"LPUSH", "l", "x"},
    {"BLPOP", "l", "x"},
    {"MSET", "a", "b"},
    {"MULTI"},
    {"SET", "a", "2"},
    {"EXEC"},
    {"MULTI"},
    {"GET", "a"},
    {"DISCARD"},
    {"MULTI"},
    {"PING"},
    {"EXEC"},
    {"WATCH", "a"},
    {"UNWATCH"},
    {"MULTI"},
    {"EXEC"},
    script("return redis.call('set', 'a', '1')"),
    script("return redis.pcall('set', 'a', '1')"),
    script("return redis.call('get', 'a')"),
    script("redis.call('del', 'gone') return redis.call('set', 'a', '1')"),
    script("#!lua\nreturn redis.call('get', 'a')"),
    script("#!lua flags=allow-oom\nreturn redis.call('set', 'a', '5')"),
    script("#!lua flags=no-writes\nreturn redis.call('get', 'a')"),
    {"EVAL_RO", "return redis.call('get', 'a')", "1", "a"},
    {"EVAL_RO", "#!lua\nreturn redis.call('get', 'a')", "1", "a"},
    {"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end)"},
    {"RESTORE", "x", "0", "abc"},
    {"PUBLISH", "a", "b"},
    {"APPEND", "a", "x"},
    {"GETSET", "a", "x"},
    {"SORT", "l"},
    {"DEL", "a"},
    {"FLUSHALL"},
    {"SET", "a", "2"},
    {"CONFIG", "SET", "maxmemory", "1gb"},
    {"CONFIG", "GET", "maxmemory"},
    {"SET", "a", "2"},
    {"FUNCTION", "LOAD",
     "#!lua name=l\nredis.register_function('f', function() return "
     "redis.call('get', 'a') end)"},
    {"FUNCTION", "LOAD",
     "#!lua name=o\nredis.register_function{function_name='o', "
     "callback=function() return redis.call('set', 'a', '7') end, "
     "flags={'allow-oom'}}"},
    {"FUNCTION", "LOAD",
     "#!lua name=r\nredis.register_function{function_name='r', "
     "callback=function() return redis.call('get', 'a') end, "
     "flags={'no-writes'}}"},
    {"MULTI"},
    {"SET", "a", "3"},
    {"CONFIG", "SET", "maxmemory", "1"},
    {"EXEC"},
    {"FCALL", "f", "0"},
    {"FCALL", "o", "0"},
    {"FCALL", "r", "0"},
    {"FCALL", "none", "0"},
    {"OBJECT", "FREQ", "a"},
    {"CONFIG", "SET", "maxmemory", "-1"},
    {"CONFIG", "SET", "maxmemory", "10x"},
    {"CONFIG", "SET", "maxmemory-policy", "foo"},
    {"CONFIG", "SET", "maxmemory-samples", "0"},
    {"CONFIG", "SET", "lfu-log-factor", "-1"},
    {"CONFIG", "SET", "maxmemory", "0"},
    {"SET", "a", "2"},
    {"FUNCTION", "FLUSH"}};

}  // namespace

TEST_CASE("eviction: a maxmemory of 1 refuses what redis-server refuses",
          "[net][handlers][eviction][redis]") {
  const auto server = redis_or_skip();
  if (!server) return;
  for (const char* dialect : {"2", "3"}) {
    RespClient theirs{server->socket_path()};
    Conversation ours;
    for (const Words& words : {Words{"FLUSHALL"}, {"FUNCTION", "FLUSH"}, {"HELLO", dialect}}) {
      static_cast<void>(theirs.call(words));
    }
    static_cast<void>(ours.call({"HELLO", dialect}));
    for (const Words& words : asked_without_room) {
      std::string text;
      for (const std::string& word : words) text += word + ' ';
      INFO("RESP" << dialect << ": " << text);
      const std::string reply = ours.call(words);
      std::string_view rest = reply;
      const auto value = take_value(rest);
      REQUIRE((value && rest.empty()));
      CHECK(value->show() == theirs.call(words).show());
    }
  }
}

}  // namespace semel::tests
