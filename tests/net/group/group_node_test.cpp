// GroupNode: the engine and the commands of one member, beside other members that embed one and
// beside nodes that settings describe.
#include "semel/group_node.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/group/node_group.hpp"
#include "semel/hashes.hpp"
#include "semel/patterns/once.hpp"
#include "tests/net/group/group_nodes.hpp"

namespace semel::tests {

TEST_CASE("group node: a claim of one member's engine is in flight for another's commands",
          "[net][group_node]") {
  GroupNodes nodes{3};
  nodes.open_all();
  Claims orders = nodes.claims(1, "orders");
  const ClaimOutcome work = orders.claim({.key = "1001"});
  REQUIRE(work.answer == ClaimAnswer::granted);

  const Reply second = nodes.redis(2).call({"SEMEL.CLAIM", "orders", "1001"});
  CHECK(field(second, "outcome") == "in_flight");
  CHECK(nodes.claims(3, "orders").claim({.key = "1001"}).answer == ClaimAnswer::in_flight);

  // The epoch is what counts, whoever has it.
  const Reply done =
      nodes.redis(3).call({"SEMEL.COMPLETE", "orders", "1001", std::to_string(work.epoch), "paid"});
  CHECK(field(done, "outcome") == "ok");
  const ClaimOutcome repeat = orders.claim({.key = "1001"});
  CHECK(repeat.answer == ClaimAnswer::replay);
  CHECK(repeat.result == "paid");
  CHECK(field(nodes.redis(2).call({"SEMEL.CLAIM", "orders", "1001"}), "result") == "paid");
}

TEST_CASE("group node: what commands write, engines read, and the other way round",
          "[net][group_node]") {
  GroupNodes nodes{3};
  nodes.open_all();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    CAPTURE(id);
    const std::uint64_t other = id % 3 + 1;
    const std::string key = "k" + std::to_string(id);
    CHECK(nodes.redis(id).call({"SET", key, "1"}).is_ok());
    CHECK(*nodes.engine(other).store().get(key) == "1");
    CHECK(*nodes.engine(other).store().incr_by(key, 4) == 5);
    CHECK(nodes.redis(id).call({"GET", key}).text == "5");
    CHECK(nodes.engine(id).hashes().hset("h" + key, "f", "v").ok());
    CHECK(nodes.redis(other).call({"HGET", "h" + key, "f"}).text == "v");
    CHECK(nodes.redis(other).call({"RPUSH", "l" + key, "a", "b"}).integer == 2);
    CHECK(nodes.redis(id).call({"LLEN", "l" + key}).integer == 2);
  }
}

TEST_CASE("group node: permits that do not wait share the entries of their pipeline",
          "[net][group_node]") {
  GroupNodes nodes{1};
  nodes.open_all();
  static_cast<void>(nodes.claims(1, "pools"));
  LocalRedis::Client client = nodes.redis(1).connect();
  const auto applied = [&] {
    const std::string info = client.call({"INFO", "replication"}).text;
    const std::string name = "master_repl_offset:";
    const std::size_t at = info.find(name);
    REQUIRE(at != std::string::npos);
    return std::stoull(info.substr(at + name.size()));
  };
  constexpr std::size_t count = 60;
  const std::vector<std::vector<std::string>> asked(count, {"SEMEL.PERMIT", "pools", "k", "64"});
  const auto before = applied();
  const std::vector<Reply> replies = client.pipeline(asked);
  REQUIRE(replies.size() == count);
  for (const Reply& reply : replies) CHECK(field(reply, "outcome") == "granted");
  CHECK(applied() - before < count / 2);
}

TEST_CASE("group node: entries are carried out by their own time, on each member alike",
          "[net][group_node]") {
  GroupNodes nodes{3};
  nodes.open_all();
  std::vector<std::string> ids;
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t at = 1 + static_cast<std::uint64_t>(i) % 3;
    ids.push_back(nodes.redis(at).call({"XADD", "s", "*", "f", std::to_string(i)}).text);
    CHECK(ids.back().find('-') != std::string::npos);
  }
  CHECK(nodes.redis(1).call({"SET", "k", "v", "PX", "100000"}).is_ok());
  const Reply end = nodes.redis(1).call({"PEXPIRETIME", "k"});
  for (std::uint64_t id = 1; id <= 3; ++id) {
    CAPTURE(id);
    LocalRedis::Client reader = nodes.redis(id).connect();
    CHECK(reader.call({"READONLY"}).is_ok());  // what this member itself has
    REQUIRE(Group::wait_for([&] { return reader.call({"XLEN", "s"}).integer == 50; }));
    const Reply all = reader.call({"XRANGE", "s", "-", "+"});
    REQUIRE(all.items.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(all.items[i].items[0].text == ids[i]);
    REQUIRE(Group::wait_for([&] { return reader.call({"EXISTS", "k"}).integer == 1; }));
    CHECK(reader.call({"PEXPIRETIME", "k"}) == end);
  }
}

TEST_CASE("group node: clients of one member have transactions, scripts, functions and messages",
          "[net][group_node]") {
  GroupNodes nodes{3};
  nodes.open_all();
  const std::uint64_t here = nodes.follower();
  const std::uint64_t leader = nodes.leader();
  LocalRedis& redis = nodes.redis(here);
  LocalRedis& other = nodes.redis(leader);

  CHECK(redis.call({"WATCH", "stock"}).is_ok());
  CHECK(redis.call({"MULTI"}).is_ok());
  CHECK(redis.call({"INCR", "stock"}).text == "QUEUED");
  CHECK(other.call({"SET", "stock", "7"}).is_ok());
  CHECK(redis.call({"EXEC"}).is_null());
  CHECK(redis.call({"GET", "stock"}).text == "7");

  CHECK(redis.call({"EVAL", "return redis.call('INCRBY', KEYS[1], ARGV[1])", "1", "stock", "3"})
            .integer == 10);
  CHECK(other
            .call({"FUNCTION", "LOAD",
                   "#!lua name=shop\nredis.register_function('add', function(keys, args) return "
                   "redis.call('INCRBY', keys[1], args[1]) end)"})
            .text == "shop");
  // A member that has not applied it yet answers as without it.
  Reply called;
  REQUIRE(Group::wait_for([&] {
    called = redis.call({"FCALL", "add", "1", "stock", "5"});
    return !called.is_error();
  }));
  CHECK(called.integer == 15);

  LocalRedis::Client listener = redis.connect();
  CHECK(to_text(listener.call({"SUBSCRIBE", "news"})).find("news") != std::string::npos);
  CHECK_FALSE(other.call({"PUBLISH", "news", "done"}).is_error());
  std::vector<Reply> heard;
  REQUIRE(Group::wait_for([&] {
    for (Reply& each : listener.pushed()) heard.push_back(std::move(each));
    return !heard.empty();
  }));
  CHECK(to_text(heard.front()) == R"(["message", "news", "done"])");
  CHECK(redis.connect().call({"HELLO", "3"}).type == Reply::Type::map);
  CHECK(to_text(redis.call({"SEMEL.GROUP", "STATUS"})).find("leader") != std::string::npos);
}

TEST_CASE("group node: a client that waits at one member is served by another's",
          "[net][group_node][waits]") {
  GroupNodes nodes{3};
  nodes.open_all();
  Reply popped;
  std::thread waits{[&popped, client = nodes.redis(1).connect()]() mutable {
    popped = client.call({"BLPOP", "q", "0"});
  }};
  // Whether it waits already or not: the element is there for it.
  CHECK(nodes.redis(2).call({"RPUSH", "q", "job"}).integer == 1);
  waits.join();
  CHECK(to_text(popped) == R"(["q", "job"])");
  CHECK(nodes.redis(3).connect().call({"BLPOP", "none", "0.05"}).is_null());

  const ClaimOutcome held = nodes.claims(1, "orders").claim({.key = "a"});
  REQUIRE(held.answer == ClaimAnswer::granted);
  ClaimOutcome waited;
  std::thread thread{
      [&] { waited = nodes.claims(2, "orders").claim_or_wait({.key = "a"}, no_end); }};
  const Reply done =
      nodes.redis(3).call({"SEMEL.COMPLETE", "orders", "a", std::to_string(held.epoch), "paid"});
  thread.join();
  CHECK(field(done, "outcome") == "ok");
  CHECK(waited.answer == ClaimAnswer::replay);
  CHECK(waited.result == "paid");
}

TEST_CASE("group node: a claim bound to a client ends with it, the patterns stand on the engine",
          "[net][group_node]") {
  GroupNodes nodes{3};
  nodes.open_all();
  static_cast<void>(nodes.claims(1, "bound"));
  {
    LocalRedis::Client owner = nodes.redis(nodes.follower()).connect();
    const Reply bound = owner.call({"SEMEL.CLAIM", "bound", "k", "BIND"});
    CHECK(field(bound, "outcome") == "granted");
    CHECK(nodes.claims(1, "bound").claim({.key = "k"}).answer == ClaimAnswer::in_flight);
  }
  CHECK(Group::wait_for(
      [&] { return nodes.claims(1, "bound").claim({.key = "k"}).answer == ClaimAnswer::granted; }));

  int runs = 0;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const auto done = once(nodes.engine(id), {"mail", Policy{}}, {.key = "m1"}, [&] {
      ++runs;
      return std::string{"sent"};
    });
    REQUIRE(done.has_value());
    CHECK(*done.value == "sent");
  }
  CHECK(runs == 1);
}

TEST_CASE("group node: the leader ends, the others go on, and it comes back", "[net][group_node]") {
  GroupNodes nodes{3};
  nodes.open_all();
  const std::uint64_t first = nodes.leader();
  REQUIRE(first != 0);
  const std::uint64_t here = first % 3 + 1;
  const std::uint64_t other = here % 3 + 1;
  CHECK(nodes.redis(here).call({"INCR", "n"}).integer == 1);
  std::atomic<bool> ends{false};
  std::atomic<int> counted{0};
  std::thread counts{[&, client = nodes.redis(here).connect()]() mutable {
    // mo: relaxed: a switch and a figure
    while (!ends.load(std::memory_order_relaxed)) {
      const Reply reply = client.call({"INCR", "n"});
      if (reply.type == Reply::Type::integer) counted.fetch_add(1, std::memory_order_relaxed);
    }
  }};
  const auto go_on = [&](int more) {
    const int goal = counted.load(std::memory_order_relaxed) + more;  // mo: relaxed: a figure
    return Group::wait_for([&] {
      return counted.load(std::memory_order_relaxed) >= goal;  // mo: relaxed: a figure
    });
  };
  CHECK(go_on(20));
  nodes.close(first);
  CHECK(go_on(20));
  Claims claims = nodes.claims(other, "orders");
  const ClaimOutcome work = claims.claim({.key = "a"});
  CHECK(work.answer == ClaimAnswer::granted);
  nodes.open(first);
  CHECK(go_on(20));
  ends.store(true, std::memory_order_relaxed);  // mo: relaxed: a switch
  counts.join();
  REQUIRE(nodes.wait_ready());
  INFO(nodes.said());
  // Each was made once: no answer was an error, and none was counted twice.
  // mo: relaxed: its writer has ended
  const int all = counted.load(std::memory_order_relaxed) + 1;
  CHECK(nodes.redis(first).call({"GET", "n"}).text == std::to_string(all));
  CHECK(nodes.claims(first, "orders").claim({.key = "a"}).answer == ClaimAnswer::in_flight);
}

TEST_CASE("group node: without a majority calls end within their patience, READONLY reads go on",
          "[net][group_node]") {
  GroupNodes nodes{3, Millis{300}};
  nodes.open_all();
  Reply set;
  REQUIRE(Group::wait_for([&] {
    set = nodes.redis(1).call({"SET", "k", "v"});
    return set.is_ok();
  }));
  LocalRedis::Client reader = nodes.redis(1).connect();
  CHECK(reader.call({"READONLY"}).is_ok());
  REQUIRE(Group::wait_for([&] { return reader.call({"GET", "k"}).text == "v"; }));
  nodes.close(2);
  nodes.close(3);
  REQUIRE(Group::wait_for([&] { return nodes.at(1).group().status().leader == 0; }));
  CHECK(nodes.redis(1).call({"SET", "k", "w"}).text.starts_with("CLUSTERDOWN"));
  CHECK(nodes.redis(1).call({"GET", "k"}).text.starts_with("CLUSTERDOWN"));
  CHECK(nodes.engine(1).store().get("k").error().code == ErrorCode::not_leader);
  CHECK(nodes.engine(1).store().set("k", "w").error().code == ErrorCode::not_leader);
  CHECK(reader.call({"GET", "k"}).text == "v");
  CHECK(nodes.at(1).group().ready().error().code == ErrorCode::not_leader);
  nodes.open(2);
  REQUIRE(nodes.wait_ready());
  REQUIRE(Group::wait_for([&] { return nodes.redis(1).call({"SET", "k", "x"}).is_ok(); }));
  CHECK(*nodes.engine(1).store().get("k") == "x");
}

namespace {

/// What `semel node` is made of, without its sockets for clients.
class SettingsNode {
 public:
  SettingsNode(const GroupNodes& nodes, std::uint64_t id) {
    using net::Setting;
    std::string peers;
    for (const auto& [peer, address] : nodes.peers()) {
      peers += (peers.empty() ? "" : " ") + std::to_string(peer) + "=" + address;
    }
    const std::pair<Setting, std::string> texts[] = {
        {Setting::node_id, std::to_string(id)},
        {Setting::cluster_id, "5e3e1"},
        {Setting::peer, peers},
        {Setting::dir, nodes.path() + "/" + std::to_string(id)},
        {Setting::cluster_forward, "yes"},
        {Setting::cluster_election_timeout, "150"},
        {Setting::cluster_heartbeat, "30"}};
    for (const auto& [setting, text] : texts) REQUIRE(settings_.assign(setting, text, {}));
    GroupNodes::found_once(nodes.options(id));
    Options engine;
    engine.memory_bytes = std::size_t{32} << 20;
    engine.value_bytes_max = limits::value_bytes_max;
    REQUIRE(group_.open(engine, [](const net::NodeGroup::Event&) {}));
    node_.emplace(group_.engine(), settings_);
    REQUIRE(group_.start(*node_));
  }
  ~SettingsNode() { group_.stop(); }
  [[nodiscard]] bool is_ready() const { return group_.ready().ok(); }
  SettingsNode(const SettingsNode&) = delete;
  SettingsNode& operator=(const SettingsNode&) = delete;

 private:
  net::Settings settings_;
  net::NodeGroup group_{settings_};
  std::optional<net::Node> node_;
};

}  // namespace

TEST_CASE("group node: it is a member of a group of nodes that settings describe",
          "[net][group_node]") {
  GroupNodes nodes{3};
  const SettingsNode second{nodes, 2};
  const SettingsNode third{nodes, 3};
  nodes.open(1);
  REQUIRE(nodes.wait_ready());
  LocalRedis& redis = nodes.redis(1);
  const std::string large(std::size_t{3} << 20, 'x');  // more than an engine takes by default
  CHECK(redis.call({"SET", "large", large}).is_ok());
  CHECK(redis.call({"STRLEN", "large"}).integer == static_cast<std::int64_t>(large.size()));
  Claims claims = nodes.claims(1, "orders");
  const ClaimOutcome work = claims.claim({.key = "a"});
  REQUIRE(work.answer == ClaimAnswer::granted);
  CHECK(claims.complete({.key = "a", .epoch = work.epoch, .payload = "paid"}).answer ==
        OwnerAnswer::ok);
  CHECK(field(redis.call({"SEMEL.CLAIM", "orders", "a"}), "result") == "paid");
  CHECK(redis.call({"EVAL", "return redis.call('RPUSH', KEYS[1], 'a', 'b')", "1", "l"}).integer ==
        2);
  CHECK(nodes.at(1).group().status().failed.empty());

  // Its directory is that of a node, too.
  nodes.close(1);
  {
    const SettingsNode first{nodes, 1};
    CHECK(Group::wait_for([&] { return first.is_ready(); }));
  }
  nodes.open(1);
  REQUIRE(nodes.wait_ready());
  CHECK(nodes.claims(1, "orders").claim({.key = "a"}).result == "paid");
}

}  // namespace semel::tests
