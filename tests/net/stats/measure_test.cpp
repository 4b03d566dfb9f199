// What a node counts: INFO, SLOWLOG, LATENCY.
#include <string>
#include "tests/support/catch.hpp"

#include "net/handlers/info.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string section(Conversation& node, const std::string& name) {
  return node.call({"INFO", name});
}

}  // namespace

TEST_CASE("measures: calls are counted by command, alone and together", "[net]") {
  Conversation node;
  node.ticks.step_ns = 3'000;
  static_cast<void>(node.call({"SET", "k", "v"}));
  std::string replies;
  node.connections[0]->receive(request_bytes({"GET", "k"}) + request_bytes({"GET", "k"}) +
                                   request_bytes({"GET", "x"}) + request_bytes({"INCR", "k"}) +
                                   request_bytes({"GET"}) + request_bytes({"nothing"}),
                               replies);
  const std::string stats = section(node, "commandstats");
  INFO(stats);
  CHECK(has(stats,
            "cmdstat_set:calls=1,usec=3,usec_per_call=3.00,rejected_calls=0,"
            "failed_calls=0\r\n"));
  // The four took 3 us together.
  CHECK(has(stats,
            "cmdstat_get:calls=3,usec=2,usec_per_call=0.67,rejected_calls=1,"
            "failed_calls=0\r\n"));
  CHECK(has(stats,
            "cmdstat_incr:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,"
            "failed_calls=1\r\n"));
  CHECK(has(section(node, "errorstats"), "errorstat_ERR:count=3\r\n"));
  const std::string info = section(node, "stats");
  CHECK(has(info, "total_error_replies:3\r\n"));
  CHECK(has(info, "total_commands_processed:7\r\n"));  // INFO itself two times
  CHECK(has(info, "total_connections_received:1\r\n"));
  CHECK(has(info, "keyspace_hits:"));
  CHECK(has(section(node, "latencystats"), "latency_percentiles_usec_set:p50=4.000,"));
}

TEST_CASE("measures: what is counted starts at 0 again after a reset", "[net]") {
  Conversation node;
  static_cast<void>(node.call({"SET", "k", "v"}));
  static_cast<void>(node.call({"nothing"}));
  node.node.stats.reset();
  static_cast<void>(node.call({"PING"}));
  const net::NodeTotals totals = node.node.stats.totals();
  CHECK(totals.calls == 1);
  CHECK(totals.error_replies == 0);
  CHECK(totals.errors.empty());
  CHECK(totals.bytes_received == request_bytes({"PING"}).size());
  CHECK(totals.bytes_sent == 7);
}

TEST_CASE("measures: commands of a transaction count beside its EXEC", "[net]") {
  Conversation node;
  static_cast<void>(node.call({"MULTI"}));
  static_cast<void>(node.call({"PING"}));
  static_cast<void>(node.call({"INCR", "k"}));
  CHECK(node.node.stats.totals().calls == 1);
  static_cast<void>(node.call({"EXEC"}));
  CHECK(node.node.stats.totals().calls == 4);
}

TEST_CASE("measures: INFO has the fields that clients look for, in sections", "[net]") {
  Conversation node{2};
  static_cast<void>(node.call({"SET", "k", "v"}));
  static_cast<void>(node.call({"SET", "t", "v", "EX", "100"}));
  const std::string info = node.call({"INFO"});
  for (const char* part : {"redis_version:7.2.4",
                           "server_name:semel",
                           "redis_mode:standalone",
                           "arch_bits:64",
                           "process_id:",
                           "tcp_port:0",
                           "uptime_in_seconds:0",
                           "connected_clients:2",
                           "blocked_clients:0",
                           "maxclients:10000",
                           "used_memory_human:",
                           "used_memory_rss:",
                           "used_memory_peak:",
                           "maxmemory_policy:noeviction",
                           "mem_fragmentation_ratio:",
                           "loading:0",
                           "aof_enabled:0",
                           "rdb_last_bgsave_status:ok",
                           "instantaneous_ops_per_sec:0",
                           "evicted_keys:0",
                           "role:master",
                           "connected_slaves:0",
                           "master_replid:",
                           "used_cpu_user:",
                           "cluster_enabled:0",
                           "db0:keys=2,expires=1,avg_ttl=0",
                           "# Semel",
                           "bytes_limit:"}) {
    INFO(part);
    CHECK(has(info, std::string{"\r\n"} + part));
  }
  CHECK_FALSE(has(info, "# Commandstats"));
  CHECK(has(node.call({"INFO", "all"}), "# Commandstats"));
  CHECK_FALSE(has(node.call({"INFO", "all"}), "# Modules"));
  CHECK(has(node.call({"INFO", "everything"}), "# Modules"));
  const std::string two = node.call({"INFO", "keyspace", "CLUSTER"});
  CHECK(has(two, "\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\ndb0:"));
}

TEST_CASE("measures: operations a second are those of the last samples", "[net]") {
  Conversation node;
  node.pass(Millis{100});
  for (int i = 0; i < 50; ++i) static_cast<void>(node.call({"PING"}));
  node.pass(Millis{100});
  CHECK(node.node.stats.calls_per_second() == 500);
  for (int i = 0; i < 20; ++i) node.pass(Millis{100});
  CHECK(node.node.stats.calls_per_second() == 0);
}

TEST_CASE("measures: memory is shown to people in units of 1024", "[net]") {
  CHECK(net::human_bytes(0) == "0B");
  CHECK(net::human_bytes(1'023) == "1023B");
  CHECK(net::human_bytes(1'024) == "1.00K");
  CHECK(net::human_bytes(1'572'864) == "1.50M");
  CHECK(net::human_bytes(std::uint64_t{3} << 30) == "3.00G");
}

TEST_CASE("measures: times fall into the bucket whose bound they reach", "[net]") {
  CHECK(net::time_bucket(0) == 0);
  CHECK(net::time_bucket(1'000) == 0);
  CHECK(net::time_bucket(1'001) == 1);
  CHECK(net::time_bucket(2'000) == 1);
  CHECK(net::time_bucket(2'001) == 2);
  CHECK(net::time_bucket(4'000) == 2);
  CHECK(net::time_bucket(std::int64_t{1} << 62) == net::time_buckets - 1);
}

TEST_CASE("measures: SLOWLOG keeps what took longer than its limit, shortened", "[net]") {
  Conversation node;
  static_cast<void>(node.call({"CLIENT", "SETNAME", "me"}));
  node.ticks.step_ns = 9'999'999;
  static_cast<void>(node.call({"ECHO", "fast"}));
  CHECK(node.call({"SLOWLOG", "LEN"}) == ":0\r\n");
  node.ticks.step_ns = 10'000'000;
  static_cast<void>(node.call({"ECHO", std::string(130, 'x')}));
  Words many{"DEL"};
  for (int i = 0; i < 40; ++i) many.push_back("k" + std::to_string(i));
  static_cast<void>(node.call(many));
  static_cast<void>(node.call({"GET", "k"}));
  node.ticks.step_ns = 0;
  const std::string seconds = std::to_string(node.clock.unix_ms() / 1000);
  CHECK(node.call({"SLOWLOG", "GET", "1"}) ==
        "*1\r\n*6\r\n:2\r\n:" + seconds +
            "\r\n:10000\r\n*2\r\n$3\r\nget\r\n$1\r\nk\r\n$14\r\n127.0.0.1:5000\r\n$2\r\nme\r\n");
  const std::string all = node.call({"SLOWLOG", "GET", "-1"});
  CHECK(has(all, "*32\r\n$3\r\nDEL\r\n"));
  CHECK(has(all, "... (10 more arguments)\r\n"));
  CHECK(has(all, std::string(128, 'x') + "... (2 more bytes)\r\n"));
  CHECK(node.call({"SLOWLOG", "RESET"}) == "+OK\r\n");
  CHECK(node.call({"SLOWLOG", "LEN"}) == ":0\r\n");
  node.ticks.step_ns = 10'000'000;
  node.node.slow_log.set_limit_us(-1);
  static_cast<void>(node.call({"PING"}));
  CHECK(node.node.slow_log.size() == 0);
  node.node.slow_log.set_limit_us(0);
  node.node.slow_log.set_length(2);
  for (int i = 0; i < 3; ++i) static_cast<void>(node.call({"PING"}));
  CHECK(node.node.slow_log.size() == 2);
}

TEST_CASE("measures: SLOWLOG has all words if it takes all commands", "[net]") {
  Conversation node;
  node.node.slow_log.set_limit_us(0);
  static_cast<void>(node.call({"GETSET", "k", "5"}));
  CHECK(node.node.slow_log.newest(1)[0].args == Words{"GETSET", "k", "5"});
}

TEST_CASE("measures: SLOWLOG has a command that waits when it ends", "[net]") {
  Conversation node{2};
  node.node.slow_log.set_limit_us(0);
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  CHECK(node.node.slow_log.size() == 0);
  static_cast<void>(node.call({"RPUSH", "l", "a"}));
  CHECK(node.node.slow_log.size() == 1);
  CHECK(node.collect(1) == "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
  CHECK(node.node.slow_log.newest(1)[0].args == Words{"BLPOP", "l", "0"});
}

TEST_CASE("measures: the error that ends a wait is counted once", "[net]") {
  Conversation node{2};
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  const std::string id = std::to_string(node.connections[1]->client().handle->origin.id);
  CHECK(node.call({"CLIENT", "UNBLOCK", id, "ERROR"}) == ":1\r\n");
  CHECK(node.collect(1).starts_with("-UNBLOCKED"));
  CHECK(has(section(node, "errorstats"), "errorstat_UNBLOCKED:count=1\r\n"));
  CHECK(has(section(node, "commandstats"), "cmdstat_blpop:calls=1,"));
  CHECK(has(section(node, "commandstats"), "rejected_calls=0,failed_calls=1\r\n"));
  CHECK(node.call({"BLPOP", "l", "0"}, 1).empty());
  static_cast<void>(node.call({"CLIENT", "UNBLOCK", id, "TIMEOUT"}));
  CHECK(node.collect(1) == "*-1\r\n");
  CHECK(has(section(node, "errorstats"), "errorstat_UNBLOCKED:count=1\r\n"));
}

TEST_CASE("measures: SLOWLOG shows no secrets", "[net]") {
  Conversation node;
  node.node.slow_log.set_limit_us(0);
  static_cast<void>(node.call({"HELLO", "2", "AUTH", "me", "secret", "SETNAME", "x"}));
  CHECK(has(node.call({"SLOWLOG", "GET"}),
            "*7\r\n$5\r\nHELLO\r\n$1\r\n2\r\n$4\r\nAUTH\r\n$10\r\n(redacted)\r\n"
            "$10\r\n(redacted)\r\n$7\r\nSETNAME\r\n"));
}

TEST_CASE("measures: a sweep that takes long is a latency event", "[net]") {
  Conversation node;
  node.node.latency.set_limit_ms(1);
  node.ticks.step_ns = 2'000'000;
  node.node.tick();
  node.ticks.step_ns = 0;
  CHECK(has(node.call({"LATENCY", "LATEST"}), "expire-cycle"));
}

TEST_CASE("measures: LATENCY keeps the worst of each second", "[net]") {
  Conversation node;
  CHECK(has(node.call({"LATENCY", "DOCTOR"}), "latency-monitor-threshold"));
  node.node.latency.set_limit_ms(2);
  node.ticks.step_ns = 3'000'000;
  static_cast<void>(node.call({"PING"}));
  node.ticks.step_ns = 5'000'000;
  static_cast<void>(node.call({"PING"}));
  node.clock.advance(Millis{1'000});
  node.ticks.step_ns = 4'000'000;
  static_cast<void>(node.call({"PING"}));
  static_cast<void>(node.call({"KEYS", "*"}));
  node.ticks.step_ns = 0;
  const std::string last = std::to_string(node.clock.unix_ms() / 1000);
  const std::string first = std::to_string(node.clock.unix_ms() / 1000 - 1);
  CHECK(node.call({"LATENCY", "LATEST"}) ==
        "*2\r\n*4\r\n$7\r\ncommand\r\n:" + last +
            "\r\n:4\r\n:4\r\n*4\r\n$12\r\nfast-command\r\n:" + last + "\r\n:4\r\n:5\r\n");
  CHECK(node.call({"LATENCY", "HISTORY", "fast-command"}) ==
        "*2\r\n*2\r\n:" + first + "\r\n:5\r\n*2\r\n:" + last + "\r\n:4\r\n");
  CHECK(has(node.call({"LATENCY", "GRAPH", "command"}), "command - high 4 ms, low 4 ms"));
  CHECK(has(node.call({"LATENCY", "DOCTOR"}), "fast-command: in 2 seconds"));
  CHECK(node.call({"LATENCY", "RESET", "command", "x"}) == ":1\r\n");
  CHECK(node.call({"LATENCY", "RESET"}) == ":1\r\n");
  CHECK(node.call({"LATENCY", "LATEST"}) == "*0\r\n");
}

TEST_CASE("measures: LATENCY HISTOGRAM adds up what each command took", "[net]") {
  Conversation node;
  node.ticks.step_ns = 3'000;
  static_cast<void>(node.call({"SET", "k", "v"}));
  static_cast<void>(node.call({"SET", "k", "v"}));
  node.ticks.step_ns = 100'000;
  static_cast<void>(node.call({"SET", "k", "v"}));
  CHECK(node.call({"LATENCY", "HISTOGRAM", "set"}) ==
        "*2\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n*4\r\n:4\r\n:2\r\n"
        ":128\r\n:3\r\n");
  static_cast<void>(node.call({"CLIENT", "ID"}));
  CHECK(has(node.call({"LATENCY", "HISTOGRAM", "client"}), "client|id"));
}

}  // namespace semel::tests
