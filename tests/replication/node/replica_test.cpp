// Three replicas in one process: what is answered is on all of them, whoever ends and comes back.
#include "replication/node/replica.hpp"

#include <atomic>
#include <thread>

#include "semel/claims.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

Command set(Bytes key, Bytes value, Condition condition = Condition::always) {
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = key;
  command.op.value = value;
  command.op.condition = condition;
  return {command};
}

/// Asks whoever leads until it is answered. `unknown`: how often it was not known whether it was
/// applied.
Answer insist(Group& group, const Command& command, unsigned* unknown = nullptr) {
  for (;;) {
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    auto answer = group.node(leader).propose(command);
    if (answer.ok()) return *std::move(answer);
    if (answer.error().code == ErrorCode::outcome_unknown && unknown != nullptr) ++*unknown;
  }
}

std::string value_at(Group& group, NodeId id, Bytes key) {
  const auto found = group.node(id).engine().store().get(key);
  REQUIRE(found.ok());
  return found->value_or("(none)");
}

}  // namespace

TEST_CASE("replica: what is answered is applied on every node", "[replica_group]") {
  Group group{3};
  for (int i = 0; i < 300; ++i) {
    const std::string key = "key " + std::to_string(i);
    const Answer answer = insist(group, set(key, "one", Condition::if_absent));
    CHECK(std::get<StoreOutcome>(answer.what).applied);
  }
  const Answer again = insist(group, set("key 7", "two", Condition::if_absent));
  CHECK_FALSE(std::get<StoreOutcome>(again.what).applied);
  for (NodeId id = 1; id <= 3; ++id) {
    REQUIRE(group.wait_equal(id));
    CHECK(value_at(group, id, "key 7") == "one");
    CHECK(value_at(group, id, "key 299") == "one");
    CHECK(group.node(id).status().failed.empty());
  }
}

TEST_CASE("replica: only the leader takes proposals and reads", "[replica_group]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  const NodeId other = leader % 3 + 1;
  CHECK(group.node(other).propose(set("a", "b")).error().code == ErrorCode::not_leader);
  CHECK(group.node(other).read().error().code == ErrorCode::not_leader);
  CHECK(group.node(other).engine().store().set("a", "b").error().code == ErrorCode::refused);
  CHECK(group.node(leader).read());
  CHECK(group.node(other).status().leader == leader);
  CHECK(group.node(other).status().leader_address == group.address(leader));
}

TEST_CASE("replica: a leader that ends is followed by another, and nothing is lost",
          "[replica_group]") {
  Group group{3};
  unsigned applied = 0;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 50; ++i) {
      static_cast<void>(insist(group, set("n" + std::to_string(applied), "v")));
      ++applied;
    }
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    group.close(leader);
    static_cast<void>(insist(group, set("without", std::to_string(leader))));
    group.open(leader);
  }
  for (NodeId id = 1; id <= 3; ++id) {
    INFO(group.said());
    REQUIRE(group.wait_equal(id));
    for (unsigned i = 0; i < applied; ++i) {
      REQUIRE(value_at(group, id, "n" + std::to_string(i)) == "v");
    }
  }
}

TEST_CASE("replica: everything is there after all nodes have ended", "[replica_group]") {
  Group group{3, 20'000};
  for (int i = 0; i < 500; ++i) {
    static_cast<void>(insist(group, set("n" + std::to_string(i), std::string(100, 'x'))));
  }
  for (NodeId id = 1; id <= 3; ++id) group.close(id);
  for (NodeId id = 1; id <= 3; ++id) group.open(id, false);
  static_cast<void>(insist(group, set("after", "it")));
  for (NodeId id = 1; id <= 3; ++id) {
    INFO(group.said());
    REQUIRE(group.wait_equal(id));
    CHECK(group.node(id).status().snapshot > 0);
    for (int i = 0; i < 500; ++i) {
      REQUIRE(value_at(group, id, "n" + std::to_string(i)) == std::string(100, 'x'));
    }
  }
}

TEST_CASE("replica: the log of a node that is restarted often does not grow for ever",
          "[replica_group]") {
  // Each life adds less than a snapshot is taken for.
  Group group{1, 20'000};
  for (int life = 0; life < 4; ++life) {
    for (int i = 0; i < 60; ++i) {
      static_cast<void>(insist(group, set("n" + std::to_string(i), std::string(100, 'x'))));
    }
    if (life == 0) CHECK(group.node(1).status().snapshot == 0);
    if (life == 3) break;
    group.close(1);
    group.open(1, false);
  }
  CHECK(Group::wait_for([&] { return group.node(1).status().snapshot > 0; }));
  CHECK(value_at(group, 1, "n59") == std::string(100, 'x'));
}

TEST_CASE("replica: one that was away for long gets a snapshot, and one that is added as well",
          "[replica_group]") {
  Group group{3, 20'000};
  static_cast<void>(insist(group, set("first", "one")));
  const NodeId leader = group.wait_leader();
  const NodeId away = leader % 3 + 1;
  group.close(away);
  for (int i = 0; i < 1'000; ++i) {
    static_cast<void>(insist(group, set("n" + std::to_string(i), std::string(100, 'x'))));
  }
  group.open(away);
  INFO(group.said());
  REQUIRE(group.wait_equal(away));
  CHECK(value_at(group, away, "n999") == std::string(100, 'x'));
  CHECK(value_at(group, away, "first") == "one");
  // A new member: it waits, is added, catches up, and votes.
  group.open(4, false);
  const NodeId now = group.wait_leader();
  REQUIRE(Group::wait_for([&] { return group.node(now).add(4, group.address(4)).ok(); }));
  REQUIRE(group.wait_equal(4));
  CHECK(value_at(group, 4, "n999") == std::string(100, 'x'));
  const Status early = group.node(now).promote(4);
  CHECK((early || early.error().code == ErrorCode::refused));
  REQUIRE(Group::wait_for([&] { return group.node(now).promote(4).ok(); }));
  static_cast<void>(insist(group, set("with four", "yes")));
  REQUIRE(Group::wait_for([&] { return group.node(now).remove(now % 3 + 1).ok(); }));
  static_cast<void>(insist(group, set("without one", "yes")));
  REQUIRE(group.wait_equal(4));
  CHECK(value_at(group, 4, "without one") == "yes");
}

TEST_CASE("replica: leadership is handed over", "[replica_group]") {
  Group group{3};
  for (int i = 0; i < 5; ++i) {
    const NodeId from = group.wait_leader();
    REQUIRE(from != 0);
    const NodeId to = from % 3 + 1;
    static_cast<void>(group.node(from).transfer(to));
    static_cast<void>(insist(group, set("n", std::to_string(i))));
  }
  CHECK(group.node(group.wait_leader()).transfer(99).error().code == ErrorCode::bad_option);
}

TEST_CASE("replica: many threads propose at once, and each is answered once", "[replica_group]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  std::atomic<int> won{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        // The same key for all threads: one of them is first.
        const auto answer = group.node(leader).propose(
            set("k" + std::to_string(i), std::to_string(t), Condition::if_absent));
        if (!answer.ok()) {
          failed.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
        } else if (std::get<StoreOutcome>(answer->what).applied) {
          won.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  INFO(group.said());
  // mo: relaxed: after join
  CHECK(failed.load(std::memory_order_relaxed) == 0);
  CHECK(won.load(std::memory_order_relaxed) == 300);
  CHECK(group.node(leader).status().syncs < 2'400);
}

TEST_CASE("replica: time goes on in an idle group", "[replica_group]") {
  Group group{3};
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = "short";
  command.op.value = "life";
  command.op.expiry = Expiry::in(Millis{200});
  static_cast<void>(insist(group, {command}));
  for (NodeId id = 1; id <= 3; ++id) {
    CHECK(Group::wait_for([&] { return value_at(group, id, "short") == "(none)"; }));
  }
}

TEST_CASE("replica: after its end every call is answered", "[replica_group]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  Replica& node = group.node(leader);
  node.stop();
  node.stop();
  CHECK(node.propose(set("a", "b")).error().code == ErrorCode::closing);
  CHECK(node.read().error().code == ErrorCode::closing);
  CHECK(node.add(9, "127.0.0.1:1").error().code == ErrorCode::closing);
  CHECK_FALSE(node.is_leader());
}

TEST_CASE("replica: what cannot be opened says why", "[replica_group]") {
  ReplicaOptions options;
  CHECK(Replica::open(options).error().code == ErrorCode::bad_option);
  Group group{1};
  REQUIRE(group.wait_leader() == 1);
  CHECK(insist(group, set("a", "b")).what.index() != 0);
  const std::string before = group.address(1);
  group.close(1);
  group.open(1);
  REQUIRE(group.wait_leader() == 1);
  CHECK(value_at(group, 1, "a") == "b");
}

}  // namespace semel::tests
