// Releases with other levels of features in one group: nodes are upgraded one after the other, and
// none of them meets what it does not know.
#include "replication/node/replica.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

void write(Group& group, const std::string& key) {
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = key;
  command.op.value = "v";
  for (;;) {
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    if (group.node(leader).propose({command}).ok()) return;
  }
}

/// Asks whoever leads, until it is not too early.
Status upgrade(Group& group) {
  Status last{Done{}};
  static_cast<void>(Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    last = group.node(leader).upgrade();
    return last.ok() ||
           (last.error().code != ErrorCode::not_leader && last.error().code != ErrorCode::refused);
  }));
  return last;
}

bool all_use(Group& group, FeatureLevel level) {
  return Group::wait_for([&] {
    for (NodeId id = 1; id <= 3; ++id) {
      if (!group.is_open(id) || group.node(id).status().level != level) return false;
    }
    return true;
  });
}

/// Three nodes of a release that knows no more.
struct OldGroup : Group {
  OldGroup() : Group(3, std::uint64_t{64} << 20, {}, 1) {}
};

void restart(Group& group, NodeId id, FeatureLevel level) {
  group.close(id);
  group.play_release(id, level);
  group.open(id, false);
}

}  // namespace

TEST_CASE("upgrade: one node after the other, and then the level", "[replica_group][upgrade]") {
  OldGroup group;
  write(group, "before");
  // It was founded by an earlier release: its level is decided.
  REQUIRE(all_use(group, 1));
  for (NodeId id = 1; id <= 3; ++id) {
    restart(group, id, 2);
    write(group, "during " + std::to_string(id));
    REQUIRE(group.wait_equal(id));
    // Until the last one is there, each may go back: the level that all know is in use already.
    if (id < 3) CHECK(upgrade(group));
    CHECK(all_use(group, 1));
    CHECK(group.node(id).status().level_newest == 2);
  }
  INFO(group.said());
  REQUIRE(upgrade(group));
  REQUIRE(all_use(group, 2));
  REQUIRE(upgrade(group));  // again: without effect
  write(group, "after");
  for (NodeId id = 1; id <= 3; ++id) {
    REQUIRE(group.wait_equal(id));
    CHECK(group.node(id).engine().store().get("during 1")->has_value());
  }

  SECTION("a node that goes back stops, and the others go on") {
    const NodeId back = group.wait_leader() % 3 + 1;
    restart(group, back, 1);
    REQUIRE(Group::wait_for([&] { return !group.node(back).status().failed.empty(); }));
    CHECK(group.node(back).status().failed.find(
              "the group uses feature level 2, this release knows 1") != std::string::npos);
    write(group, "without it");
    restart(group, back, 2);
    REQUIRE(group.wait_equal(back));
    CHECK(group.node(back).engine().store().get("without it")->has_value());
    CHECK(all_use(group, 2));
  }
  SECTION("a new one of an earlier release is not let in") {
    group.play_release(4, 1);
    group.open(4, false);
    const NodeId leader = group.wait_leader();
    REQUIRE(group.node(leader).add(4, group.address(4)));
    REQUIRE(Group::wait_for([&] {
      return group.said().find("it knows feature level 1, the group uses 2") != std::string::npos;
    }));
    CHECK(group.node(4).status().applied == 0);
    write(group, "beside it");
  }
}

TEST_CASE("upgrade: not before all members are there", "[replica_group][upgrade]") {
  OldGroup group;
  REQUIRE(all_use(group, 1));
  for (NodeId id = 1; id <= 3; ++id) restart(group, id, 2);
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  const NodeId away = leader % 3 + 1;
  group.close(away);
  Status refused{Done{}};
  REQUIRE(Group::wait_for([&] {
    const NodeId now = group.wait_leader();
    REQUIRE(now != 0);
    // Until then it counts, as what it was: it knows the level.
    if (group.node(now).status().peers[away].is_connected) return false;
    refused = group.node(now).upgrade();
    return !refused.ok() && refused.error().code == ErrorCode::refused;
  }));
  CHECK(refused.error().detail ==
        "node " + std::to_string(away) + " is not connected: what it knows is not known");
  // What it is when it comes back decides.
  group.play_release(away, 1);
  group.open(away, false);
  REQUIRE(upgrade(group));
  CHECK(all_use(group, 1));
  REQUIRE(group.wait_equal(away));
  CHECK(group.node(away).status().failed.empty());
  const NodeId follower = group.wait_leader() % 3 + 1;
  CHECK(group.node(follower).upgrade().error().code == ErrorCode::not_leader);
}

}  // namespace semel::tests
