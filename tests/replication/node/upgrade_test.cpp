// Releases with other levels of features in one group: nodes are upgraded one after the other, and
// none of them meets what it does not know.
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "replication/node/memory_gate.hpp"
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

/// Whose log is not synced while it is held.
class HeldLogDisk final : public storage::Disk {
 public:
  void hold(bool is_held) noexcept {
    is_held_.store(is_held, std::memory_order_relaxed);  // mo: relaxed: a switch
  }
  [[nodiscard]] Status sync(int descriptor, const std::string& path) override {
    wait(path);
    return Disk::sync(descriptor, path);
  }
  [[nodiscard]] Status sync_part(char* memory, const std::string& path, std::size_t from,
                                 std::size_t to) override {
    wait(path);
    return Disk::sync_part(memory, path, from, to);
  }

 private:
  void wait(const std::string& path) const {
    if (path.find("/log/") == std::string::npos) return;
    // mo: relaxed: as where it is set
    while (is_held_.load(std::memory_order_relaxed)) poll(nullptr, 0, 1);
  }

  std::atomic<bool> is_held_{false};
};

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

TEST_CASE("upgrade: a leader that begins anew does not raise the level that was decided",
          "[replica_group][upgrade]") {
  OldGroup group;
  REQUIRE(all_use(group, 1));
  for (NodeId id = 1; id <= 3; ++id) group.close(id);

  HeldLogDisk disk;
  std::array<std::atomic<bool>, 4> is_slow{};
  std::array<std::unique_ptr<Replica>, 4> replicas;
  for (NodeId id = 1; id <= 3; ++id) {
    ReplicaOptions options;
    options.cluster_id = 77;
    options.node_id = id;
    options.directory = group.directory(id);
    options.listen = group.address(id);
    options.segment_bytes = std::size_t{1} << 20;
    options.engine.memory_bytes = memory_reserve + (std::size_t{64} << 20);
    options.level = 2;
    options.disk = &disk;
    options.report = [&is_slow, id](const ReplicaEvent& event) {
      if (event.what != ReplicaEvent::What::disk_slow) return;
      is_slow[id].store(true, std::memory_order_relaxed);  // mo: relaxed: a flag alone
    };
    auto opened = Replica::open(options);
    REQUIRE(opened.ok());
    replicas[id] = *std::move(opened);
  }
  // One leads, its loop ticks, and nothing is committed in its term.
  disk.hold(true);
  for (NodeId id = 1; id <= 3; ++id) REQUIRE(replicas[id]->start());
  NodeId leader = 0;
  REQUIRE(Group::wait_for([&] {
    for (NodeId id = 1; id <= 3; ++id) {
      // mo: relaxed: a flag alone
      if (!is_slow[id].load(std::memory_order_relaxed) || !replicas[id]->is_leader()) continue;
      const auto peers = replicas[id]->status().peers;
      if (std::all_of(peers.begin(), peers.end(),
                      [](const auto& each) { return each.second.is_connected; })) {
        leader = id;
      }
    }
    return leader != 0;
  }));
  CHECK(replicas[leader]->status().level == 0);  // it has not applied the entry that says it
  disk.hold(false);
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = "after";
  command.op.value = "v";
  const ProposalTerms terms{.patience = Millis{20'000}, .forwards = true};
  for (int i = 0; i < 3; ++i) REQUIRE(replicas[leader]->propose({command}, terms).ok());
  CHECK(replicas[leader]->status().level == 1);
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
