// Lists, sets, sorted sets and streams in a group: the level of features that they need, snapshots,
// and scripts that the nodes do not know.
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/object_api/whole_record.hpp"
#include "net/group/entry_runner.hpp"
#include "net/group/replicated_group.hpp"
#include "replication/state/feature_level.hpp"
#include "tests/net/claims/claims_fixture.hpp"
#include "tests/net/rdb/packed_bytes.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/stream_elements.hpp"

namespace semel::tests::object_group {  // names that other tests have as well
namespace {

using replication::feature_level_newest;
using replication::feature_level_objects;
using replication::NodeId;

constexpr NodeId first_nodes = 3;

/// Replicas with the nodes that run their entries.
class NodesOfGroup {
 public:
  explicit NodesOfGroup(replication::FeatureLevel level,
                        std::uint64_t snapshot_every = std::uint64_t{64} << 20)
      : replicas_(
            first_nodes, snapshot_every,
            [this](NodeId id, Engine& engine) { return make(id, engine); }, level, true) {
    for (NodeId id = 1; id <= first_nodes; ++id) join(id);
  }
  ~NodesOfGroup() {
    for (auto& [id, node] : nodes_) leave(id);
  }
  NodesOfGroup(const NodesOfGroup&) = delete;
  NodesOfGroup& operator=(const NodesOfGroup&) = delete;

  [[nodiscard]] Group& replicas() { return replicas_; }
  [[nodiscard]] net::Node& node(NodeId id) { return *nodes_.at(id).node; }
  [[nodiscard]] net::ReplicatedGroup& group(NodeId id) { return *nodes_.at(id).group; }
  [[nodiscard]] Engine& engine(NodeId id) { return replicas_.node(id).engine(); }

  void restart(NodeId id, replication::FeatureLevel level) {
    leave(id);
    replicas_.play_release(id, level);
    replicas_.open(id, false);
    join(id);
  }
  void add(NodeId id) {
    replicas_.open(id, false);
    join(id);
    const NodeId leader = replicas_.wait_leader();
    REQUIRE(replicas_.node(leader).add(id, replicas_.address(id)));
    // It has an engine of its own until the snapshot has come.
    REQUIRE(Group::wait_for([&] { return replicas_.node(id).status().needs_reopen; }));
    restart(id, feature_level_newest);
  }
  /// What one request of the log is answered with.
  std::string submit(NodeId id, const std::vector<std::string>& words) {
    net::GroupRequest request;
    request.dialect = 2;
    request.requests.emplace_back(words.begin(), words.end());
    std::atomic<bool> is_done{false};
    std::string reply;
    group(id).submit(std::move(request), net::MemoryUse::grows, [&](net::GroupReply answered) {
      reply = answered.error == ErrorCode::ok ? std::move(answered.replies)
                                              : std::string{name_of(answered.error)};
      is_done.store(true, std::memory_order_release);  // mo: release: the reply is written
    });
    // mo: acquire: as above
    REQUIRE(Group::wait_for([&] { return is_done.load(std::memory_order_acquire); }));
    return reply;
  }

 private:
  struct Part {
    std::unique_ptr<net::Node> node;
    std::unique_ptr<net::EntryRunner> runner;
    std::unique_ptr<net::ReplicatedGroup> group;
  };

  replication::RequestRunner* make(NodeId id, Engine& engine) {
    Part& part = nodes_[id];
    part.runner.reset();
    part.node = std::make_unique<net::Node>(engine);
    part.runner = std::make_unique<net::EntryRunner>(*part.node);
    return part.runner.get();
  }
  /// The replica's thread uses the node, and the node the replica's engine.
  void leave(NodeId id) {
    replicas_.node(id).stop();
    nodes_.at(id) = {};
    replicas_.close(id);
  }
  void join(NodeId id) {
    Part& part = nodes_.at(id);
    const Millis patience{5'000};
    part.group = std::make_unique<net::ReplicatedGroup>(
        replicas_.node(id), net::GroupTerms{.cluster_id = 1,
                                            .node_id = id,
                                            .forwards = true,
                                            .calls = {.patience = patience, .asks_again = patience},
                                            .client_port = "0"});
    part.node->set_group(*part.group);
  }

  std::map<NodeId, Part> nodes_;
  Group replicas_;
};

/// The reply to a line, however long the group takes.
std::string answer(Client& client, std::string_view line) {
  std::string reply = client.say(line);
  while (reply == "(waits)" || reply == "(nothing)") reply = client.hear_when_woken();
  return reply;
}

bool all_use(NodesOfGroup& nodes, replication::FeatureLevel level) {
  return Group::wait_for([&] {
    for (NodeId id = 1; id <= first_nodes; ++id) {
      if (nodes.replicas().node(id).status().level != level) return false;
    }
    return true;
  });
}

const std::string lacks =
    "needs feature level 5, the group uses 4: when all of its nodes have this release, `semel "
    "cluster upgrade` (a new group does it by itself when all of its members have met)";

constexpr std::array object_kinds{Kind::list, Kind::set, Kind::sorted_set, Kind::stream};

/// The bytes of an object as an engine has them.
std::string bytes_of(Kind kind, int elements) {
  engine::ObjectEdit object{kind};
  for (int i = 0; i < elements; ++i) {
    const std::string number = std::to_string(100 + i);
    if (kind == Kind::list) object.insert_at(object.size(), number);
    if (kind == Kind::set) object.put(engine::member_key(number));
    if (kind == Kind::sorted_set) object.put("8 bytes." + number);
    if (kind == Kind::stream) put_stream_element(object, i);
  }
  std::string bytes;
  object.write(bytes);
  return bytes;
}

std::size_t size_of(Engine& engine, Bytes key, Kind kind) {
  std::size_t size = 0;
  const auto read = engine::read_whole(engine, {0, key});
  if (!read.ok() || !*read || (*read)->kind != kind) return 0;
  size = engine::ObjectReader{(*read)->value, kind}.size();
  return size;
}

}  // namespace

TEST_CASE("object group: below the level of objects their commands are refused",
          "[net][group][object]") {
  NodesOfGroup nodes{feature_level_objects - 1};
  REQUIRE(all_use(nodes, feature_level_objects - 1));
  const NodeId leader = nodes.replicas().wait_leader();
  const NodeId follower = leader % first_nodes + 1;
  for (const NodeId at : {leader, follower}) {
    Client client{nodes.node(at)};
    CHECK(answer(client, "SADD s a") == "-ERR 'sadd' " + lacks);
    // A read of a node that forwards is an entry of the log as well.
    CHECK(answer(client, "SCARD s") == "-ERR 'scard' " + lacks);
    CHECK(answer(client, "MULTI") == "+OK");
    CHECK(answer(client, "SET k v") == "+QUEUED");
    CHECK(answer(client, "SADD s a") == "-ERR 'sadd' " + lacks);
    CHECK(answer(client, "EXEC").starts_with("-EXECABORT"));
    CHECK_THAT(answer(client, "EVAL 'return redis.call(\"SADD\",KEYS[1],\"a\")' 1 s"),
               Catch::Contains(lacks));
    CHECK_THAT(
        answer(client, "EVAL 'local n = redis.call(\"SADD\",KEYS[1],\"a\") return n + 1' 1 s"),
        Catch::Contains(lacks));
    CHECK(answer(client, "SEMEL.NAMESPACE jobs Sliding-Max 86400000") ==
          "-ERR 'semel.namespace' " + lacks);
    CHECK(answer(client, "SEMEL.NAMESPACE jobs LEASE 1000") == "+OK");
    CHECK(answer(client, "EXISTS k s") == "0");
    CHECK(answer(client, "SET k v") == "+OK");
    CHECK(answer(client, "DEL k") == "1");
  }
  for (NodeId id = 1; id <= first_nodes; ++id) nodes.restart(id, feature_level_newest);
  CHECK(Group::wait_for([&] {
    const NodeId now = nodes.replicas().wait_leader();
    return now != 0 && nodes.replicas().node(now).upgrade();
  }));
  REQUIRE(all_use(nodes, feature_level_newest));
  for (NodeId id = 1; id <= first_nodes; ++id) {
    Client client{nodes.node(id)};
    CHECK(answer(client, "SADD s m" + std::to_string(id)) == "1");
    CHECK(answer(client, "SCARD s") == std::to_string(id));
    CHECK(answer(client, "SEMEL.NAMESPACE sliding SLIDING-MAX 86400000") == "+OK");
  }
}

TEST_CASE("object group: a pipeline of writes of both sorts keeps its order",
          "[net][group][object]") {
  NodesOfGroup nodes{feature_level_newest};
  REQUIRE(all_use(nodes, feature_level_newest));
  const NodeId leader = nodes.replicas().wait_leader();
  Client client{nodes.node(leader)};
  CHECK(answer(client, "SADD s a b") == "2");
  CHECK(answer(client, "SREM s a b") == "2");
  CHECK(answer(client, "EXISTS s") == "0");
}

TEST_CASE("object group: a record as a whole is put by the log alone, and only if it is sound",
          "[net][group][object]") {
  NodesOfGroup nodes{feature_level_newest};
  REQUIRE(all_use(nodes, feature_level_newest));
  const NodeId leader = nodes.replicas().wait_leader();
  const NodeId follower = leader % first_nodes + 1;
  const std::string refused = "-ERR 'semel.putrecord' is only for the log of a group";
  for (const NodeId at : {leader, follower}) {
    Client client{nodes.node(at)};
    CHECK(answer(client, "SEMEL.PUTRECORD k string -1 v") == refused);
    CHECK(answer(client, "MULTI") == "+OK");
    CHECK(answer(client, "SEMEL.PUTRECORD k string -1 v") == refused);
    CHECK(answer(client, "EXEC").starts_with("-EXECABORT"));
    CHECK_THAT(
        answer(client,
               "EVAL 'return redis.call(\"SEMEL.PUTRECORD\",KEYS[1],\"set\",\"-1\",\"\")' 1 k"),
        Catch::Contains("not allowed from script"));
    CHECK(answer(client, "EXISTS k") == "0");
  }
  for (const Kind kind : object_kinds) {
    const std::string name{name_of(kind)};
    INFO(name);
    CHECK(nodes.submit(leader, {"SEMEL.PUTRECORD", name, name, "-1", bytes_of(kind, 200)}) ==
          "+OK\r\n");
    CHECK(nodes.submit(follower, {"SEMEL.PUTRECORD", "wrong", name, "-1", "text"})
              .starts_with("-ERR"));
    CHECK(nodes.submit(follower, {"SEMEL.PUTRECORD", "wrong", name, "-2", bytes_of(kind, 1)})
              .starts_with("-ERR syntax"));
  }
  CHECK(nodes.submit(leader, {"SEMEL.PUTRECORD", "wrong", "claim", "-1", "x"}).starts_with("-ERR"));
  CHECK(
      nodes.submit(leader, {"SEMEL.PUTRECORD", "wrong", "no kind", "-1", "x"}).starts_with("-ERR"));
  for (NodeId id = 1; id <= first_nodes; ++id) {
    REQUIRE(nodes.replicas().wait_equal(id));
    CHECK(nodes.replicas().node(id).status().failed.empty());
    for (const Kind kind : object_kinds) {
      CHECK(size_of(nodes.engine(id), name_of(kind), kind) == 200);
    }
    CHECK_FALSE(nodes.engine(id).store().exists("wrong").value());
  }
}

TEST_CASE("object group: a node that joins by a snapshot has the objects", "[net][group][object]") {
  NodesOfGroup nodes{feature_level_newest, 8'192};
  REQUIRE(all_use(nodes, feature_level_newest));
  const NodeId leader = nodes.replicas().wait_leader();
  for (const Kind kind : object_kinds) {
    const std::string name{name_of(kind)};
    REQUIRE(nodes.submit(leader, {"SEMEL.PUTRECORD", name, name, "-1", bytes_of(kind, 200)}) ==
            "+OK\r\n");
  }
  Client client{nodes.node(leader)};
  CHECK(answer(client, "PEXPIRE set 100000000") == "1");
  REQUIRE(Group::wait_for([&] {
    static_cast<void>(answer(client, "SET filler " + std::string(1000, 'f')));
    return nodes.replicas().node(leader).status().first > 10;  // the log begins behind them
  }));
  constexpr NodeId joins = first_nodes + 1;
  nodes.add(joins);
  REQUIRE(nodes.replicas().wait_equal(joins));
  for (const Kind kind : object_kinds) {
    INFO(name_of(kind));
    CHECK(size_of(nodes.engine(joins), name_of(kind), kind) == 200);
  }
  CHECK(nodes.engine(joins).store().ttl("set").value().has_ttl);
  CHECK_FALSE(nodes.engine(joins).store().ttl("list").value().has_ttl);
}

TEST_CASE("object group: a restored value is the same on all nodes, and ends at the same time",
          "[net][group][object]") {
  NodesOfGroup nodes{feature_level_newest};
  REQUIRE(all_use(nodes, feature_level_newest));
  const NodeId leader = nodes.replicas().wait_leader();
  constexpr int fields = 100;  // they have an index, whose seed is the entry's
  std::string hash = packed::length(fields);
  for (int i = 0; i < fields; ++i) {
    hash += packed::prefixed("f" + std::to_string(i)) + packed::prefixed("v");
  }
  const std::string set = packed::length(1) + packed::prefixed("m");
  CHECK(nodes.submit(leader, {"RESTORE", "hash", "100000", packed::payload(4, hash)}) == "+OK\r\n");
  CHECK(nodes.submit(leader % first_nodes + 1,
                     {"RESTORE", "set", "100000", packed::payload(2, set)}) == "+OK\r\n");
  CHECK(nodes.submit(leader, {"RESTORE", "set", "0", packed::payload(2, set)})
            .starts_with("-BUSYKEY"));
  for (const char* key : {"hash", "set"}) {
    INFO(key);
    const auto first = engine::read_whole(nodes.engine(leader), {0, key});
    REQUIRE(first.ok());
    REQUIRE(*first);
    CHECK((*first)->due != no_end);
    for (NodeId id = 1; id <= first_nodes; ++id) {
      REQUIRE(nodes.replicas().wait_equal(id));
      const auto here = engine::read_whole(nodes.engine(id), {0, key});
      REQUIRE(here.ok());
      REQUIRE(*here);
      CHECK((*here)->value == (*first)->value);
      CHECK((*here)->due == (*first)->due);
      CHECK((*here)->version == (*first)->version);
    }
  }
}

TEST_CASE("object group: what a script that no node knows does to a set is the same everywhere",
          "[net][group][object][script]") {
  NodesOfGroup nodes{feature_level_newest};
  REQUIRE(all_use(nodes, feature_level_newest));
  const NodeId leader = nodes.replicas().wait_leader();
  const NodeId follower = leader % first_nodes + 1;
  const auto same = [&](const std::string& line, const std::string& wanted) {
    for (NodeId id = 1; id <= first_nodes; ++id) {
      REQUIRE(nodes.replicas().wait_equal(id));
      Client client{nodes.node(id)};
      INFO(line << " at " << id);
      CHECK(answer(client, line) == wanted);
    }
  };
  for (const NodeId at : {leader, follower}) {
    Client client{nodes.node(at)};
    CHECK(answer(
              client,
              "EVAL 'redis.call(\"SADD\",KEYS[1],\"a\",\"b\",7) redis.call(\"SREM\",KEYS[1],\"a\") "
              "return redis.call(\"SCARD\",KEYS[1])' 1 s") == "2");
    same("SCARD s", "2");
    same("TYPE s", "+set");
    same("PTTL s", "-1");
    // A part of it, with an end; then another record in its place, and back.
    CHECK(answer(client,
                 "EVAL 'redis.call(\"SREM\",KEYS[1],\"b\") redis.call(\"PEXPIRE\",KEYS[1],ARGV[1]) "
                 "return redis.call(\"SCARD\",KEYS[1])' 1 s 100000000") == "1");
    same("SCARD s", "1");
    Client other{nodes.node(at % first_nodes + 1)};
    CHECK(answer(other, "EXPIRE s 200000000 NX") == "0");  // it has one
    CHECK(answer(client, "EVAL 'redis.call(\"SET\",KEYS[1],\"v\") return 1' 1 s") == "1");
    same("TYPE s", "+string");
    CHECK(answer(
              client,
              "EVAL 'redis.call(\"DEL\",KEYS[1]) return redis.call(\"SADD\",KEYS[1],\"x\")' 1 s") ==
          "1");
    same("TYPE s", "+set");
    same("PTTL s", "-1");
    CHECK(
        answer(
            client,
            "EVAL 'redis.call(\"DEL\",KEYS[1]) return redis.call(\"HSET\",KEYS[1],\"f\",\"v\")' 1 "
            "s") == "1");
    same("TYPE s", "+hash");
    CHECK(answer(client,
                 "EVAL 'redis.call(\"DEL\",KEYS[1]) redis.call(\"SADD\",KEYS[1],\"x\") return "
                 "redis.call(\"SREM\",KEYS[1],\"x\")' 1 s") == "1");
    same("EXISTS s", "0");
  }
}

}  // namespace semel::tests::object_group
