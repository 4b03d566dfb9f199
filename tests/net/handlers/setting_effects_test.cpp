// What CONFIG SET changes can be seen, or it is refused; and what was beside it in the answers.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/settings/settings.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

bool shows(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The value of a field of INFO.
std::string field(Conversation& one, const std::string& section, const std::string& name) {
  const std::string text = one.call({"INFO", section});
  const std::size_t at = text.find("\n" + name + ":");
  if (at == std::string::npos) return "absent";
  const std::size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find('\r', begin) - begin);
}

std::string set(Conversation& one, const std::string& name, const std::string& value) {
  return one.call({"CONFIG", "SET", name, value});
}

/// The bytes of a bulk string.
std::string bulk_in(const std::string& reply) {
  const std::size_t begin = reply.find('\n') + 1;
  return reply.substr(begin, reply.size() - begin - 2);
}

}  // namespace

TEST_CASE("latency-tracking: calls are counted by their time only while it is on",
          "[net][handlers][config][once-again-19]") {
  Conversation one;
  REQUIRE(set(one, "latency-tracking", "no") == "+OK\r\n");
  CHECK(one.call({"SET", "k", "v"}) == "+OK\r\n");
  CHECK_FALSE(shows(one.call({"INFO", "latencystats"}), "usec_set:"));
  REQUIRE(set(one, "latency-tracking", "yes") == "+OK\r\n");
  CHECK_FALSE(shows(one.call({"INFO", "latencystats"}), "usec_set:"));
  CHECK(one.call({"SET", "k", "v"}) == "+OK\r\n");
  CHECK(shows(one.call({"LATENCY", "HISTOGRAM", "set"}), "calls\r\n:1\r\n"));
  CHECK(shows(one.call({"INFO", "latencystats"}), "usec_set:p50=1.000,p99=1.000,p99.9=1.000\r\n"));
  CHECK(shows(one.call({"INFO", "commandstats"}), "cmdstat_set:calls=2,"));
}

TEST_CASE("latency-tracking-info-percentiles: INFO shows those that are named",
          "[net][handlers][config][once-again-19]") {
  Conversation one;
  REQUIRE(set(one, "latency-tracking-info-percentiles", "0 75 100") == "+OK\r\n");
  one.call({"SET", "k", "v"});
  CHECK(shows(one.call({"INFO", "latencystats"}), "usec_set:p0=1.000,p75=1.000,p100=1.000\r\n"));
  REQUIRE(set(one, "latency-tracking-info-percentiles", "") == "+OK\r\n");
  CHECK(shows(one.call({"INFO", "latencystats"}), "usec_set:\r\n"));
  CHECK(set(one, "latency-tracking-info-percentiles", "101").starts_with("-ERR CONFIG SET failed"));
}

TEST_CASE("acl-pubsub-default: what new users, selectors and resets may hear",
          "[net][handlers][config][acl][once-again-19]") {
  Conversation one;
  REQUIRE(set(one, "acl-pubsub-default", "allchannels") == "+OK\r\n");
  CHECK(one.call({"ACL", "SETUSER", "ann", "(+get ~a)"}) == "+OK\r\n");
  CHECK(shows(one.call({"ACL", "LIST"}), "user ann off &* -@all (~a &* -@all +get)"));
  REQUIRE(set(one, "acl-pubsub-default", "resetchannels") == "+OK\r\n");
  CHECK(one.call({"ACL", "SETUSER", "bob"}) == "+OK\r\n");
  CHECK(shows(one.call({"ACL", "LIST"}), "user bob off resetchannels -@all"));
  // Users that are there stay as they are, until a reset.
  CHECK(shows(one.call({"ACL", "LIST"}), "user ann off &* -@all"));
  CHECK(one.call({"ACL", "SETUSER", "ann", "reset"}) == "+OK\r\n");
  CHECK_FALSE(shows(one.call({"ACL", "LIST"}), "&* -@all (~a"));
}

TEST_CASE("acllog-max-len: ACL LOG keeps so many entries",
          "[net][handlers][config][acl][once-again-19]") {
  Conversation one;
  const auto refuse = [&](const std::string& name) { one.call({"AUTH", name, "wrong"}); };
  REQUIRE(set(one, "acllog-max-len", "2") == "+OK\r\n");
  for (const char* name : {"a", "b", "c"}) refuse(name);
  CHECK(one.call({"ACL", "LOG"}).starts_with("*2\r\n"));
  REQUIRE(set(one, "acllog-max-len", "1") == "+OK\r\n");
  CHECK(one.call({"ACL", "LOG"}).starts_with("*1\r\n"));
  REQUIRE(set(one, "acllog-max-len", "0") == "+OK\r\n");
  refuse("d");
  CHECK(one.call({"ACL", "LOG"}) == "*0\r\n");
  CHECK(set(one, "acllog-max-len", "10000") == "+OK\r\n");
  CHECK(set(one, "acllog-max-len", "10001").starts_with("-ERR CONFIG SET failed"));
}

TEST_CASE("hash-max-listpack: OBJECT ENCODING goes by both settings",
          "[net][handlers][config][once-again-19]") {
  Conversation one;
  const auto encoding = [&] { return bulk_in(one.call({"OBJECT", "ENCODING", "h"})); };
  one.call({"HSET", "h", "a", std::string(64, 'v'), "b", "2"});
  CHECK(encoding() == "listpack");
  REQUIRE(set(one, "hash-max-listpack-value", "63") == "+OK\r\n");
  CHECK(encoding() == "hashtable");
  REQUIRE(set(one, "hash-max-ziplist-value", "64") == "+OK\r\n");
  REQUIRE(set(one, "hash-max-listpack-entries", "1") == "+OK\r\n");
  CHECK(encoding() == "hashtable");
  REQUIRE(set(one, "hash-max-ziplist-entries", "2") == "+OK\r\n");
  CHECK(encoding() == "listpack");
}

TEST_CASE("list-max-listpack-size and list-compress-depth: kept as set, and a list stays quicklist",
          "[net][handlers][config][lists]") {
  Conversation one;
  const auto shown = [&](const std::string& name) { return one.call({"CONFIG", "GET", name}); };
  const auto pair = [](const std::string& name, const std::string& value) {
    const auto bulk = [](const std::string& text) {
      return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    };
    return "*2\r\n" + bulk(name) + bulk(value);
  };
  CHECK(shown("list-max-listpack-size") == pair("list-max-listpack-size", "-2"));
  CHECK(shown("list-compress-depth") == pair("list-compress-depth", "0"));
  REQUIRE(one.call({"RPUSH", "l", "a", std::string(10'000, 'v'), "b"}) == ":3\r\n");
  for (const char* size : {"-2147483648", "-5", "0", "1", "2147483647"}) {
    REQUIRE(set(one, "list-max-ziplist-size", size) == "+OK\r\n");
    CHECK(shown("list-max-listpack-size") == pair("list-max-listpack-size", size));
    CHECK(bulk_in(one.call({"OBJECT", "ENCODING", "l"})) == "quicklist");
  }
  for (const char* depth : {"0", "1", "2147483647"}) {
    REQUIRE(set(one, "list-compress-depth", depth) == "+OK\r\n");
    CHECK(shown("list-compress-depth") == pair("list-compress-depth", depth));
    CHECK(one.call({"RPUSH", "l", "c"}).starts_with(":"));
    CHECK(bulk_in(one.call({"OBJECT", "ENCODING", "l"})) == "quicklist");
  }
  for (const char* size : {"-2147483649", "2147483648", "", "x", "1.5"}) {
    CHECK(set(one, "list-max-listpack-size", size).starts_with("-ERR CONFIG SET failed"));
  }
  for (const char* depth : {"-1", "2147483648"}) {
    CHECK(set(one, "list-compress-depth", depth).starts_with("-ERR CONFIG SET failed"));
  }
  CHECK(shown("list-max-listpack-size") == pair("list-max-listpack-size", "2147483647"));
}

TEST_CASE("stream-node-max: XTRIM with ~ takes whole nodes, which end by both settings",
          "[net][handlers][config][streams]") {
  Conversation one;
  const auto trimmed = [&] {
    one.call({"DEL", "s"});
    for (int i = 1; i <= 25; ++i) {
      one.call({"XADD", "s", "1-" + std::to_string(i), "f", std::string(50, 'v')});
    }
    return one.call({"XTRIM", "s", "MAXLEN", "~", "2"});
  };
  CHECK(trimmed() == ":0\r\n");
  REQUIRE(set(one, "stream-node-max-entries", "10") == "+OK\r\n");
  CHECK(trimmed() == ":20\r\n");
  REQUIRE(set(one, "stream-node-max-entries", "0") == "+OK\r\n");
  CHECK(trimmed() == ":0\r\n");
  REQUIRE(set(one, "stream-node-max-bytes", "1") == "+OK\r\n");
  CHECK(trimmed() == ":23\r\n");
}

TEST_CASE("maxmemory: below what is held new keys are refused, and taken again when there is room",
          "[net][handlers][config][once-again-19]") {
  Conversation one;
  const std::string value(10'000, 'v');
  const auto key = [](int i) { return "key:" + std::to_string(i); };
  constexpr int count = 1'000;
  for (int i = 0; i < count; ++i) REQUIRE(one.call({"SET", key(i), value}) == "+OK\r\n");
  REQUIRE(one.call({"SEMEL.CLAIM", "ns", "job"}).find("granted") != std::string::npos);
  CHECK(set(one, "maxmemory", "-1").starts_with("-ERR CONFIG SET failed"));
  REQUIRE(set(one, "maxmemory", "4194304") == "+OK\r\n");
  CHECK(field(one, "memory", "maxmemory") == "4194304");
  // New work is refused, small or large; what lives is read, changed, completed and removed.
  CHECK(one.call({"SET", "new", "v"}).starts_with("-OOM"));
  CHECK(one.call({"SEMEL.CLAIM", "ns", "other"}).find("granted") == std::string::npos);
  CHECK(bulk_in(one.call({"GET", key(0)})) == value);
  CHECK(one.call({"SET", key(0), "short"}) == "+OK\r\n");
  CHECK(one.call({"EXPIRE", key(1), "100"}) == ":1\r\n");
  for (int i = 0; i < count; ++i) CHECK(one.call({"DEL", key(i)}) == ":1\r\n");
  for (int i = 0; i < 64; ++i) one.pass(Millis{10});
  CHECK(one.call({"SET", "new", "v"}) == "+OK\r\n");
  // It can be raised again, but not beyond the address space that was reserved.
  CHECK(set(one, "maxmemory", "8388608") == "+OK\r\n");
  CHECK(set(one, "maxmemory", "274877906944").starts_with("-ERR CONFIG SET failed"));
  CHECK(field(one, "memory", "maxmemory") == "8388608");
  CHECK(shows(one.call({"CONFIG", "GET", "maxmemory"}), "8388608"));
}

TEST_CASE("slow log: its threshold and its length", "[net][handlers][config][once-again-19]") {
  Conversation one;
  one.ticks.step_ns = 50'000;
  REQUIRE(set(one, "slowlog-log-slower-than", "1000000") == "+OK\r\n");
  one.call({"SLOWLOG", "RESET"});
  one.call({"SET", "a", "1"});
  CHECK(one.call({"SLOWLOG", "LEN"}) == ":0\r\n");
  REQUIRE(set(one, "slowlog-log-slower-than", "0") == "+OK\r\n");
  for (int i = 0; i < 5; ++i) one.call({"SET", "a", "1"});
  REQUIRE(set(one, "slowlog-max-len", "2") == "+OK\r\n");
  CHECK(one.call({"SLOWLOG", "LEN"}) == ":2\r\n");
  CHECK(set(one, "slowlog-max-len", "1048577").starts_with("-ERR CONFIG SET failed"));
}

TEST_CASE("client-query-buffer-limit: a request has no more bytes than this",
          "[net][handlers][config][once-again-19]") {
  Conversation one;
  const std::string value(600'000, 'v');
  REQUIRE(set(one, "client-query-buffer-limit", "1048576") == "+OK\r\n");
  CHECK(one.call({"MSET", "a", value}) == "+OK\r\n");
  CHECK(one.call({"MSET", "a", value, "b", value}).starts_with("-ERR"));
}

namespace {

/// Where the effect of a setting that changes at run time is shown.
struct Shown {
  net::Setting setting;
  std::string_view file;
  std::string_view words;  ///< of the test
};
using net::Setting;
constexpr std::string_view here = "net/handlers/setting_effects_test.cpp";
constexpr std::string_view of_limits = "net/server/server_limits_test.cpp";
constexpr std::string_view of_tls = "net/server/tls_test.cpp";
const std::vector<Shown> all_shown{
    {Setting::bind, "attacks/once_again_19_listening.py", "change_bind"},
    {Setting::port, "attacks/once_again_19_listening.py", "change_port"},
    {Setting::maxclients, of_limits, "one client over maxclients"},
    {Setting::timeout, of_limits, "idle for longer than allowed"},
    {Setting::tcp_keepalive, "net/server/listening_test.cpp", "tcp-keepalive holds"},
    {Setting::request_deadline, of_limits, "limits can be changed while it runs"},
    {Setting::client_query_buffer_limit, here, "client-query-buffer-limit: a request"},
    {Setting::proto_max_bulk_len, "net/session/client_memory_test.cpp", "proto-max-bulk-len"},
    {Setting::client_output_buffer_limit, of_limits, "over the hard limit ends the connection"},
    {Setting::protected_mode, "attacks/fault_04_protected_mode.py", "protected-mode"},
    {Setting::maxmemory, here, "maxmemory: below what is held"},
    {Setting::cache_databases, "net/handlers/eviction_test.cpp", "of caches and of no other"},
    {Setting::maxmemory_policy, "net/handlers/eviction_test.cpp", "of caches and of no other"},
    {Setting::maxmemory_samples, "net/handlers/eviction_test.cpp", "maxmemory-samples"},
    {Setting::lfu_log_factor, "net/handlers/eviction_test.cpp", "lfu-log-factor"},
    {Setting::lfu_decay_time, "net/handlers/eviction_test.cpp", "lfu-decay-time"},
    {Setting::maxmemory_clients, "net/session/client_memory_test.cpp", "maxmemory-clients"},
    {Setting::hash_max_listpack_entries, here, "hash-max-listpack: OBJECT ENCODING"},
    {Setting::hash_max_listpack_value, here, "hash-max-listpack: OBJECT ENCODING"},
    {Setting::zset_max_listpack_entries, "net/objects/zset_test.cpp", "zset-max-listpack-entries"},
    {Setting::zset_max_listpack_value, "net/objects/zset_test.cpp", "zset-max-ziplist-value"},
    {Setting::set_max_intset_entries, "net/objects/set_command_test.cpp", "set-max-intset-entries"},
    {Setting::list_max_listpack_size, here, "list-max-listpack-size and list-compress-depth"},
    {Setting::list_compress_depth, here, "list-max-listpack-size and list-compress-depth"},
    {Setting::stream_node_max_bytes, here, "stream-node-max: XTRIM"},
    {Setting::stream_node_max_entries, here, "stream-node-max: XTRIM"},
    {Setting::hll_sparse_max_bytes, "net/objects/hyperloglog_command_test.cpp",
     "hll-sparse-max-bytes: it says which"},
    {Setting::tracking_table_max_keys, "net/session/tracking_test.cpp", "tracking-table-max-keys"},
    {Setting::exit_on_storage_failure, "tools/node_storage_test.py", "exit-on-storage-failure"},
    {Setting::backup_rate, "tools/node_storage_test.py", "backup-rate"},
    {Setting::backup_copies, "tools/node_storage_test.py", "backup-copies"},
    {Setting::bgsave_keep, "storage/backup/backup_place_test.cpp", "keep_newest_backups"},
    {Setting::cluster_ready_lag, "replication/failover/runbook_test.py", "cluster-ready-lag"},
    {Setting::requirepass, "net/commands/access_test.cpp", "requirepass"},
    {Setting::acl_pubsub_default, here, "acl-pubsub-default: what new users"},
    {Setting::acllog_max_len, here, "acllog-max-len: ACL LOG keeps"},
    {Setting::tls_cert_file, "tools/node_test.py", "tls-cert-file"},
    {Setting::tls_key_file, "tools/node_test.py", "tls-key-file"},
    {Setting::tls_key_file_pass, of_tls, "a key may have a password"},
    {Setting::tls_ca_cert_file, of_tls, "must show a certificate gets in with a right one only"},
    {Setting::tls_ca_cert_dir, of_tls, "authorities may lie in a directory"},
    {Setting::tls_auth_clients, of_tls, "a certificate that may be shown must be right"},
    {Setting::tls_auth_clients_user, "net/server/node_session_test.cpp", "tls-auth-clients-user"},
    {Setting::tls_protocols, of_tls, "versions and ciphers are those that were chosen"},
    {Setting::tls_ciphers, of_tls, "versions and ciphers are those that were chosen"},
    {Setting::tls_ciphersuites, of_tls, "versions and ciphers are those that were chosen"},
    {Setting::tls_prefer_server_ciphers, of_tls, "versions and ciphers are those that were chosen"},
    {Setting::tls_reload, "tools/node_test.py", "tls-reload"},
    {Setting::namespace_creation, "net/claims/namespaces_command_test.cpp", "namespace-creation"},
    {Setting::notify_keyspace_events, "net/differential/profiles.cpp", "notify-keyspace-events"},
    {Setting::slowlog_log_slower_than, here, "slow log: its threshold and its length"},
    {Setting::slowlog_max_len, here, "slow log: its threshold and its length"},
    {Setting::latency_tracking, here, "latency-tracking: calls are counted"},
    {Setting::latency_tracking_info_percentiles, here, "latency-tracking-info-percentiles: INFO"},
    {Setting::latency_monitor_threshold, "net/stats/measure_test.cpp", "latency-monitor-threshold"},
    {Setting::log_level, "tools/node_test.py", "loglevel"},
    {Setting::log_keys, "net/admin/admin_log_test.cpp",
     "a key is a hash unless keys are asked for"},
    {Setting::scripts, "net/scripts/script_busy_test.cpp", "scripts"},
    {Setting::script_unknown_commands, "net/scripts/script_check_test.cpp",
     "script-unknown-commands"},
    {Setting::busy_reply_threshold, "net/scripts/script_busy_test.cpp", "busy-reply-threshold"},
    {Setting::script_time_max, "net/scripts/script_busy_test.cpp", "script-time-max"},
    {Setting::script_steps_max, "scripts/hostile/run.py", "script-steps-max"},
    {Setting::script_memory_max, "scripts/hostile/run.py", "script-memory-max"},
    {Setting::masteruser, "net/follow/follow_test.py", "masterauth"},
    {Setting::masterauth, "net/follow/follow_test.py", "masterauth"},
    {Setting::replica_read_only, "net/follow/follow_test.py", "replica-read-only"},
    {Setting::replica_serve_stale_data, here, "replica-serve-stale-data: without"},
    {Setting::repl_timeout, "net/follow/follow_test.py", "repl-timeout"},
    {Setting::monitor, "net/events/monitor_test.cpp", "monitor"},
};

}  // namespace

TEST_CASE("settings: each that CONFIG SET changes has a test that shows its effect",
          "[net][config][once-again-19]") {
  for (std::size_t i = 0; i < net::setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const net::SettingRow& row = net::row_of(setting);
    if (row.has_one_value() || row.is_protected() || !row.changes_at_run_time()) continue;
    INFO(row.name);
    const auto found = std::find_if(all_shown.begin(), all_shown.end(),
                                    [&](const Shown& shown) { return shown.setting == setting; });
    REQUIRE(found != all_shown.end());
    std::ifstream file{SEMEL_TESTS "/" + std::string{found->file}};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    INFO(found->file);
    CHECK(shows(text, found->words));
  }
}

TEST_CASE("bind and port: a process that listens on nothing refuses to change them",
          "[net][handlers][config][once-again-19]") {
  Conversation one;
  CHECK(shows(set(one, "port", "7000"), "this process cannot change it"));
  CHECK(shows(set(one, "bind", "*"), "this process cannot change it"));
}

TEST_CASE("replica-serve-stale-data: without its master a replica answers, or does not",
          "[net][handlers][config]") {
  Conversation one;
  REQUIRE(one.call({"SET", "k", "v"}) == "+OK\r\n");
  one.node.role.become(net::NodeRole::State::follows);
  CHECK(one.call({"GET", "k"}) == "$1\r\nv\r\n");
  REQUIRE(set(one, "replica-serve-stale-data", "no") == "+OK\r\n");
  CHECK(shows(one.call({"GET", "k"}), "-MASTERDOWN Link with MASTER is down"));
  // A script that does not say that it bears it, and one that does, with what it calls.
  CHECK(shows(one.call({"EVAL", "return 1", "0"}), "-MASTERDOWN Link with MASTER is down"));
  CHECK(shows(one.call({"EVAL", "#!lua flags=no-writes\nreturn 1", "0"}), "-MASTERDOWN"));
  const std::string bears = "#!lua flags=no-writes,allow-stale\n";
  CHECK(one.call({"EVAL", bears + "return redis.call('echo', 'a')", "0"}) == "$1\r\na\r\n");
  CHECK(shows(one.call({"EVAL", bears + "return redis.call('get', 'k')", "1", "k"}),
              "-ERR Can not execute the command on a stale replica"));
  CHECK(shows(one.call({"EVAL", "#!lua\nreturn 1", "0"}), "-READONLY You can't write"));
  CHECK(one.call({"PING"}) ==
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data "
        "is set to 'no'.\r\n");
  one.node.role.set_linked(true);
  CHECK(one.call({"GET", "k"}) == "$1\r\nv\r\n");
}

TEST_CASE("databases: SELECT, MOVE, COPY and SWAPDB end at the setting",
          "[net][handlers][config][once-again-19]") {
  ManualClock clock;
  const auto engine = std::move(Engine::open({.clock = &clock})).value();
  net::Settings settings;
  REQUIRE(settings.assign(net::Setting::databases, "2", {}).ok());
  CHECK_FALSE(settings.assign(net::Setting::databases, "0", {}).ok());
  CHECK_FALSE(settings.assign(net::Setting::databases, "17", {}).ok());
  net::Node node{*engine, settings};
  net::Batch batch;
  net::Connection client{node, batch, nullptr, {.id = node.next_client_id(), .address = "a:1"}};
  const auto call = [&](const Words& words) {
    std::string reply;
    client.receive(request_bytes(words), reply);
    return reply;
  };
  const std::string refused = "-ERR DB index is out of range\r\n";
  CHECK(call({"SET", "k", "v"}) == "+OK\r\n");
  CHECK(call({"SELECT", "2"}) == refused);
  CHECK(call({"MOVE", "k", "2"}) == refused);
  CHECK(call({"COPY", "k", "l", "DB", "2"}) == refused);
  CHECK(call({"SWAPDB", "0", "2"}) == refused);
  CHECK(call({"MOVE", "k", "1"}) == ":1\r\n");
  CHECK(call({"SELECT", "1"}) == "+OK\r\n");
  CHECK(call({"CONFIG", "GET", "databases"}) == "*2\r\n$9\r\ndatabases\r\n$1\r\n2\r\n");
}

TEST_CASE("CLIENT PAUSE: while writes are held back nothing is removed, and what ended is not read",
          "[net][handlers][once-again-19]") {
  for (const std::string kind : {"WRITE", "ALL"}) {
    INFO(kind);
    Conversation one;
    one.call({"SET", "k", "v", "PX", "10"});
    one.call({"SET", "stays", "v"});
    CHECK(one.call({"CLIENT", "PAUSE", "1000", kind}) == "+OK\r\n");
    for (int i = 0; i < 10; ++i) one.pass(Millis{10});
    CHECK(one.engine->stats().expired == 0);
    CHECK(one.engine->stats().records == 2);
    if (kind == "WRITE") {
      CHECK(one.call({"GET", "k"}) == "$-1\r\n");
      CHECK(one.call({"MEMORY", "PURGE"}) == "+OK\r\n");
      CHECK(one.engine->stats().records == 2);
    }
    one.pass(Millis{1'000});
    one.pass(Millis{1});
    CHECK(one.engine->stats().expired == 1);
    CHECK(one.engine->stats().records == 1);
  }
}

TEST_CASE("INFO: it counts changes since the last save, as Redis does",
          "[net][handlers][once-again-19]") {
  Conversation one;
  const auto changes = [&] { return field(one, "persistence", "rdb_changes_since_last_save"); };
  CHECK(changes() == "0");
  one.call({"SET", "a", "1"});
  one.call({"SET", "a", "2", "NX"});
  one.call({"DEL", "missing"});
  one.call({"GET", "a"});
  CHECK(changes() == "1");
  one.call({"EVAL", "redis.call('incr', KEYS[1]) redis.call('incr', KEYS[2])", "2", "a", "b"});
  CHECK(changes() == "3");
  one.call({"FLUSHALL"});
  CHECK(changes() == "5");
}

TEST_CASE("INFO: figures of allocators and of the main thread are there and agree",
          "[net][handlers][once-again-21]") {
  Conversation one;
  for (int i = 0; i < 100; ++i) one.call({"SET", std::to_string(i), std::string(1'000, 'v')});
  const auto number = [&](const std::string& section, const std::string& name) {
    const std::string text = field(one, section, name);
    INFO(name << " = " << text);
    REQUIRE(text != "absent");
    return std::stod(text);
  };
  CHECK(number("memory", "allocator_allocated") > 100'000);
  CHECK(number("memory", "allocator_allocated") <= number("memory", "allocator_active"));
  CHECK(number("memory", "allocator_frag_bytes") ==
        number("memory", "allocator_active") - number("memory", "allocator_allocated"));
  CHECK(number("memory", "allocator_frag_ratio") >= 1);
  CHECK(number("memory", "allocator_resident") > 0);
  CHECK(number("memory", "allocator_rss_ratio") > 0);
  CHECK(number("memory", "allocator_rss_bytes") > -1e12);
  CHECK(number("memory", "rss_overhead_ratio") >= 1);
  CHECK(number("memory", "rss_overhead_bytes") >= 0);
  CHECK(number("cpu", "used_cpu_user_main_thread") >= 0);
  CHECK(number("cpu", "used_cpu_sys_main_thread") >= 0);
}

TEST_CASE("SETRANGE and APPEND: too long a result is named with its length and the limit",
          "[net][handlers][once-again-21]") {
  Conversation one;
  const std::string redis = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
  CHECK(one.call({"SETRANGE", "k", "16777216", "xy"}) ==
        redis + ": 16777218 bytes, at most 1048576\r\n");
  CHECK(one.call({"SETRANGE", "k", "9223372036854775807", "xy"}) ==
        redis + ": 9223372036854775807 bytes, at most 1048576\r\n");
  CHECK(one.call({"SETRANGE", "k", "1048575", "x"}) == ":1048576\r\n");
  CHECK(one.call({"APPEND", "k", "x"}) == redis + ": 1048577 bytes, at most 1048576\r\n");
}

TEST_CASE("OBJECT ENCODING: a value that grew is raw until another is set",
          "[net][handlers][once-again-19]") {
  Conversation one;
  const auto encoding = [&](const std::string& key) {
    return bulk_in(one.call({"OBJECT", "ENCODING", key}));
  };
  one.call({"SET", "n", "12"});
  CHECK(encoding("n") == "int");
  one.call({"APPEND", "n", "3"});
  CHECK(encoding("n") == "raw");
  one.call({"EXPIRE", "n", "100"});
  one.call({"GETEX", "n", "EX", "50"});
  one.call({"PERSIST", "n"});
  CHECK(encoding("n") == "raw");
  one.call({"RENAME", "n", "m"});
  CHECK(encoding("m") == "raw");
  one.call({"COPY", "m", "c"});
  CHECK(encoding("c") == "raw");
  one.call({"INCR", "m"});
  CHECK(encoding("m") == "int");
  one.call({"SETRANGE", "m", "0", "9"});
  CHECK(encoding("m") == "raw");
  one.call({"SET", "m", "9"});
  CHECK(encoding("m") == "int");
  one.call({"APPEND", "new", "5"});
  CHECK(encoding("new") == "int");
  one.call({"SETRANGE", "made", "0", "5"});
  CHECK(encoding("made") == "raw");
}

}  // namespace semel::tests
