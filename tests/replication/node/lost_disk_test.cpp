// A node whose disk was lost and that is started by the same command: it is not the voter that its
// group counts on, and comes back as a new one.
#include <algorithm>
#include <filesystem>

#include "replication/node/replica.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace files = std::filesystem;

constexpr NodeId added = 4;

void set(Group& group, Bytes key) {
  REQUIRE(Group::wait_for([&] {
    StoreCommand command;
    command.op.verb = Verb::set;
    command.op.key = key;
    command.op.value = "there";
    const NodeId leader = group.wait_leader();
    return leader != 0 && group.node(leader).propose({command}).ok();
  }));
}

/// Asks the leader until it has done it.
template <class Change>
void insist(Group& group, Change&& change) {
  const bool is_done = Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    return leader != 0 && change(group.node(leader)).ok();
  });
  INFO(group.said());
  REQUIRE(is_done);
}

LogIdentity known_log(Group& group, NodeId id) {
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  for (const Member& each : group.node(leader).status().members) {
    if (each.id == id) return each.log;
  }
  return {};
}

/// In a new group nobody's log is known before all have met.
void wait_known(Group& group) {
  const bool are_known = Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    if (leader == 0) return false;
    const Configuration members = group.node(leader).status().members;
    return std::all_of(members.begin(), members.end(),
                       [](const Member& each) { return each.log.is_known(); });
  });
  INFO(group.said());
  REQUIRE(are_known);
}

void add(Group& group) {
  wait_known(group);
  insist(group, [&](Replica& leader) {
    const Status done = leader.add(added, group.address(added));
    // By an attempt before, perhaps, whose end was not known.
    return !done && done.error().code == ErrorCode::bad_option ? Status{Done{}} : done;
  });
  insist(group, [](Replica& leader) { return leader.promote(added); });
  REQUIRE(group.wait_equal(added));
}

void lose_disk(Group& group, NodeId id) {
  group.close(id);
  files::remove_all(group.directory(id));
  group.open(id, false);
}

bool is_refused(Group& group) {
  return group.said().find("the log of node 4 is not the one that the group knows") !=
         std::string::npos;
}

}  // namespace

TEST_CASE("replica: the logs of all members are known, and stay so",
          "[replica_group][between-10]") {
  Group group{3};
  set(group, "key");
  std::map<NodeId, LogIdentity> logs;
  REQUIRE(Group::wait_for([&] {
    for (NodeId id = 1; id <= 3; ++id) logs[id] = known_log(group, id);
    return logs[1].is_known() && logs[2].is_known() && logs[3].is_known();
  }));
  CHECK(logs[1] != logs[2]);
  CHECK(logs[2] != logs[3]);
  for (NodeId id = 1; id <= 3; ++id) group.close(id);
  for (NodeId id = 1; id <= 3; ++id) group.open(id, false);
  set(group, "another");
  for (NodeId id = 1; id <= 3; ++id) {
    CHECK(known_log(group, id) == logs[id]);
    CHECK(group.wait_equal(id));
  }
}

TEST_CASE("replica: no leader lets a member in that has lost its disk",
          "[replica_group][between-10]") {
  Group group{3};
  group.open(added, false);
  add(group);
  CHECK(known_log(group, added).is_known());
  set(group, "key");
  lose_disk(group, added);
  const bool is_told = Group::wait_for([&] {
    group.reopen_where_needed();
    return is_refused(group);
  });
  INFO(group.said());
  REQUIRE(is_told);
  // A new leader has no replies of it, and would begin to send it everything.
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  insist(group, [&](Replica& leads) { return leads.transfer(leader % 3 + 1); });
  for (int i = 0; i < 50; ++i) set(group, "key " + std::to_string(i));
  CHECK(group.node(added).status().last == 0);
  CHECK(group.node(added).status().members.empty());
}

TEST_CASE("replica: a member that has lost its disk comes back as a new one, while one node leads",
          "[replica_group][between-10][between-13]") {
  Group group{3};
  group.open(added, false);
  add(group);
  set(group, "key");
  const LogIdentity before = known_log(group, added);
  lose_disk(group, added);
  insist(group, [](Replica& leader) { return leader.remove(added); });
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  add(group);
  const LogIdentity now = known_log(group, added);
  CHECK(now.is_known());
  CHECK(now != before);
  CHECK(group.node(added).engine().store().get("key")->value_or("") == "there");
}

TEST_CASE("replica: a directory without its log has a new identity",
          "[replica_group][between-10]") {
  Group group{3};
  group.open(added, false);
  add(group);
  group.close(added);
  const std::string directory = group.directory(added);
  const bool keeps_vote = GENERATE(true, false);
  for (const char* const each : {"log", "tail"}) files::remove_all(directory + "/" + each);
  if (!keeps_vote) files::remove(directory + "/vote");
  group.open(added, false);
  const bool is_told = Group::wait_for([&] {
    group.reopen_where_needed();
    return is_refused(group);
  });
  INFO(group.said());
  CHECK(is_told);
}

TEST_CASE("replica: a node that was away follows a leader that its configuration does not know",
          "[replica_group][between-10]") {
  Group group{3};
  group.open(added, false);
  const bool is_replaced = GENERATE(false, true);  // under its number, which has another log then
  CAPTURE(is_replaced);
  if (is_replaced) {
    add(group);
    insist(group, [](Replica& leader) { return leader.demote(added); });
  }
  wait_known(group);
  const NodeId away = group.wait_leader() % 3 + 1;
  REQUIRE(group.wait_equal(away));
  group.close(away);
  if (is_replaced) {
    lose_disk(group, added);
    insist(group, [](Replica& leader) { return leader.remove(added); });
  }
  add(group);
  const bool leads = Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    if (leader != 0 && leader != added) static_cast<void>(group.node(leader).transfer(added));
    return leader == added;
  });
  REQUIRE(leads);
  group.open(away, false);
  const bool is_equal = group.wait_equal(away);
  INFO(group.said());
  CHECK(is_equal);
}

TEST_CASE("replica: before the upgrade a node may go back to a release that knows no logs",
          "[replica_group][between-10]") {
  Group group{3, std::uint64_t{64} << 20, {}, feature_level_identities - 1};
  // Else it would be decided by what the releases below know.
  REQUIRE(Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    return leader != 0 && group.node(leader).status().level == feature_level_identities - 1;
  }));
  const auto play = [&](NodeId id, FeatureLevel level) {
    group.play_release(id, level);
    group.close(id);
    group.open(id, false);
    set(group, "of node " + std::to_string(id));
    const bool is_equal = group.wait_equal(id);
    INFO("node " << id << " at level " << level << '\n' << group.said());
    REQUIRE(is_equal);
  };
  for (NodeId id = 1; id <= 3; ++id) play(id, feature_level_newest);
  const NodeId follower = group.wait_leader() % 3 + 1;
  play(follower, feature_level_identities - 1);
}

TEST_CASE("replica: a group of an earlier release learns its members' logs when it is upgraded",
          "[replica_group][between-10]") {
  Group group{3, std::uint64_t{64} << 20, {}, feature_level_identities - 1};
  set(group, "key");
  CHECK_FALSE(known_log(group, 1).is_known());
  for (NodeId id = 1; id <= 3; ++id) {
    group.play_release(id, feature_level_newest);
    group.close(id);
    group.open(id, false);
    set(group, "key " + std::to_string(id));
    CHECK_FALSE(known_log(group, 1).is_known());
  }
  insist(group, [](Replica& leader) { return leader.upgrade(); });
  for (NodeId id = 1; id <= 3; ++id) {
    CHECK(Group::wait_for([&] { return known_log(group, id).is_known(); }));
  }
  set(group, "another");
}

}  // namespace semel::tests
