// One node of a lost group goes on alone: with all that it had, and with nothing by halves.
#include "replication/node/recovery.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "replication/node/replica.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace files = std::filesystem;

constexpr std::uint64_t old_cluster = 77;  // of Group
constexpr std::uint64_t new_cluster = 78;
constexpr std::size_t segment_bytes = std::size_t{1} << 20;
constexpr int keys = 200;

std::string key_of(int i) {
  return "key " + std::to_string(i);
}

void fill(Group& group) {
  const std::string value(1000, 'v');
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  for (int i = 0; i < keys; ++i) {
    const std::string key = key_of(i);
    StoreCommand command;
    command.op.verb = Verb::set;
    command.op.key = key;
    command.op.value = value;
    // Beside other work leaders change: then it is asked again.
    const ProposalTerms waits{.patience = Millis{20'000}, .forwards = true};
    REQUIRE(group.node(leader).propose({command}, waits).ok());
  }
  REQUIRE(group.wait_equal(3));
}

/// The directory of node 3 of a group that has ended.
struct Lost {
  explicit Lost(std::uint64_t snapshot_every = std::uint64_t{64} << 20) : group(3, snapshot_every) {
    fill(group);
    for (NodeId id = 1; id <= 3; ++id) group.close(id);
  }
  [[nodiscard]] RecoveryOptions options() const {
    return {
        .directory = group.directory(3), .cluster_id = new_cluster, .segment_bytes = segment_bytes};
  }
  Group group;
};

ReplicaOptions replica_options(const std::string& directory, std::uint64_t cluster, NodeId id = 3) {
  ReplicaOptions options;
  options.cluster_id = cluster;
  options.node_id = id;
  options.directory = directory;
  options.listen = "127.0.0.1:0";
  options.election = Millis{50};
  options.heartbeat = Millis{10};
  options.segment_bytes = segment_bytes;
  options.engine.memory_bytes = std::size_t{64} << 20;
  options.accepts_copy = true;  // the test's are
  return options;
}

/// It leads alone, and has everything.
void check_recovered(const std::string& directory, NodeId id = 3) {
  auto opened = Replica::open(replica_options(directory, new_cluster, id));
  INFO((opened.ok() ? "" : opened.error().detail));
  REQUIRE(opened.ok());
  Replica& replica = **opened;
  REQUIRE(replica.start());
  REQUIRE(Group::wait_for([&] { return replica.is_leader() && replica.read(); }));
  CHECK(replica.status().members.size() == 1);
  int found = 0;
  for (int i = 0; i < keys; ++i) {
    const auto value = replica.engine().store().get(key_of(i));
    if (value.ok() && *value) ++found;
  }
  CHECK(found == keys);
}

/// Ends the process in front of one of its steps, as a kill does.
class KillingDisk final : public storage::Disk {
 public:
  static constexpr int killed = 7;
  explicit KillingDisk(int steps) : left_(steps) {}
  Result<int> create(const std::string& path, std::size_t bytes) override {
    return step(), Disk::create(path, bytes);
  }
  Status sync(int descriptor, const std::string& path) override {
    return step(), Disk::sync(descriptor, path);
  }
  Status sync_file(const std::string& path) override { return step(), Disk::sync_file(path); }
  Status rewrite_file(const std::string& path, std::uint64_t from) override {
    return step(), Disk::rewrite_file(path, from);
  }
  Status sync_part(char* memory, const std::string& path, std::size_t from,
                   std::size_t to) override {
    return step(), Disk::sync_part(memory, path, from, to);
  }
  Status remove(const std::string& path) override { return step(), Disk::remove(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return step(), Disk::rename(from, to);
  }

 private:
  void step() {
    if (left_-- == 0) _exit(killed);
  }
  int left_;
};

/// recover_single() in a process that is killed. False: it had come to its end before.
bool recover_killed(RecoveryOptions options, int steps) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    KillingDisk disk{steps};
    options.disk = &disk;
    const auto recovered = recover_single(options);
    if (!recovered.ok()) std::fprintf(stderr, "recovery: %s\n", recovered.error().detail.c_str());
    _exit(recovered.ok() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KillingDisk::killed));
  return WEXITSTATUS(status) == KillingDisk::killed;
}

/// The old state, or what says how to go on; then a further call ends it.
void check_killed(const RecoveryOptions& options, bool& saw_old, bool& saw_begun) {
  const bool is_begun = is_recovery_begun(options.directory);
  const auto old = Replica::open(replica_options(options.directory, old_cluster));
  const auto next = Replica::open(replica_options(options.directory, new_cluster));
  if (is_begun) {
    saw_begun = true;
    REQUIRE(!old.ok());
    REQUIRE(!next.ok());
    CHECK(old.error().detail.find("recover") != std::string::npos);
    RecoveryOptions other = options;
    other.cluster_id = new_cluster + 1;
    CHECK(recover_single(other).error().code == ErrorCode::bad_option);
  } else if (old.ok()) {
    saw_old = true;
    CHECK(!next.ok());
  } else {
    REQUIRE(next.ok());
    return;  // it was done
  }
}

void kill_at_each_step(std::uint64_t snapshot_every) {
  const Lost lost{snapshot_every};
  const std::string copy = lost.group.directory(3) + "-copy";
  bool saw_old = false;
  bool saw_begun = false;
  int steps = 0;
  for (bool is_killed = true; is_killed; ++steps) {
    INFO("killed before step " << steps);
    files::remove_all(copy);
    files::copy(lost.group.directory(3), copy, files::copy_options::recursive);
    RecoveryOptions options = lost.options();
    options.directory = copy;
    is_killed = recover_killed(options, steps);
    check_killed(options, saw_old, saw_begun);
    const auto again = recover_single(options);
    const bool was_done = !again.ok() && again.error().detail.find("another") != std::string::npos;
    REQUIRE((again.ok() || was_done));
    check_recovered(copy);
  }
  CHECK(saw_old);
  CHECK(saw_begun);
  CHECK(steps > 10);
}

}  // namespace

TEST_CASE("recovery: the node that is left leads alone and has everything", "[replica_recovery]") {
  const Lost lost;
  RecoveryOptions options = lost.options();
  const auto before = look_before_recovery(options);
  REQUIRE(before.ok());
  CHECK(before->cluster_id == old_cluster);
  CHECK(before->node_id == 3);
  CHECK(before->members.size() == 3);
  CHECK(before->last >= 1);
  CHECK(before->address == lost.group.address(3));
  REQUIRE(Replica::open(replica_options(options.directory, old_cluster)).ok());  // nothing changed
  REQUIRE(recover_single(options).ok());
  CHECK(!Replica::open(replica_options(options.directory, old_cluster)).ok());
  check_recovered(options.directory);
  check_recovered(options.directory);  // and again, from what that has left
}

TEST_CASE("recovery: a snapshot belongs to the new group as well", "[replica_recovery]") {
  const Lost lost{std::uint64_t{32} << 10};
  const auto done = recover_single(lost.options());
  REQUIRE(done.ok());
  CHECK(done->snapshot > 0);
  check_recovered(lost.group.directory(3));
}

TEST_CASE("recovery: a node without a vote can be the one that is left", "[replica_recovery]") {
  Group group{3};
  fill(group);
  group.open(4, false);
  REQUIRE(Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    const auto& members = group.node(leader).status().members;
    return members.size() == 4 || (group.node(leader).add(4, group.address(4)) && false);
  }));
  REQUIRE(group.wait_equal(4));
  // The history of its log has a member that was removed, and itself as one that only follows.
  const NodeId gone = group.wait_leader() == 1 ? 2 : 1;
  REQUIRE(Group::wait_for([&] {
    const NodeId leader = group.wait_leader();
    const auto& members = group.node(leader).status().members;
    return members.size() == 3 || (group.node(leader).remove(gone) && false);
  }));
  REQUIRE(group.wait_equal(4));
  for (NodeId id = 1; id <= 4; ++id) group.close(id);
  RecoveryOptions options{
      .directory = group.directory(4), .cluster_id = new_cluster, .segment_bytes = segment_bytes};
  const auto done = recover_single(options);
  REQUIRE(done.ok());
  CHECK(done->node_id == 4);
  CHECK(done->members.size() == 3);
  check_recovered(options.directory, 4);
  // One that was removed has no address any more.
  options.directory = group.directory(gone);
  const auto removed = look_before_recovery(options);
  if (!removed.ok()) {
    CHECK(removed.error().detail.find("address") != std::string::npos);
    options.address = group.address(gone);
  }
  REQUIRE(recover_single(options).ok());
  check_recovered(options.directory, gone);
}

TEST_CASE("recovery: killed at any step it leaves one state or the other", "[replica_recovery]") {
  kill_at_each_step(std::uint64_t{64} << 20);
}

TEST_CASE("recovery: the same with a snapshot", "[replica_recovery]") {
  kill_at_each_step(std::uint64_t{32} << 10);
}

TEST_CASE("recovery: what it must not be done to is left as it is", "[replica_recovery]") {
  Lost lost;
  const RecoveryOptions good = lost.options();
  const auto refused = [](RecoveryOptions options, const char* text) {
    for (const auto& done : {look_before_recovery(options), recover_single(options)}) {
      REQUIRE(!done.ok());
      INFO(done.error().detail);
      CHECK(done.error().detail.find(text) != std::string::npos);
    }
    CHECK(!is_recovery_begun(options.directory));
  };
  const auto with = [&](auto&& change) {
    RecoveryOptions options = good;
    change(options);
    return options;
  };
  refused(with([](auto& it) { it.cluster_id = old_cluster; }), "needs another");
  refused(with([](auto& it) { it.cluster_id = 0; }), "not 0");
  refused(with([](auto& it) { it.node_id = 2; }), "that of node 3");
  refused(with([](auto& it) { it.address = "x"; }), "not host:port");
  refused(with([](auto& it) { it.directory += "/nowhere"; }), "no such directory");
  refused(with([](auto& it) { it.directory += "/.."; }), "not the directory of a node");
  const std::string storage = good.directory + "-storage";
  files::create_directories(storage + "/log");
  std::ofstream{storage + "/mark"} << "x";
  refused(with([&](auto& it) { it.directory = storage; }), "of a storage");
  CHECK(!files::exists(storage + "/lock"));
  {
    lost.group.open(3, false);
    refused(good, "is locked");
    lost.group.close(3);
  }
  files::create_directories(good.directory + "-empty/log");
  files::copy(good.directory + "/vote", good.directory + "-empty/vote");
  refused(with([](auto& it) { it.directory += "-empty"; }), "nothing of its group");
  // Its vote may say more than its entries.
  std::ofstream{good.directory + "-empty/vote", std::ios::trunc} << "nonsense";
  refused(with([](auto& it) { it.directory += "-empty"; }), "the vote cannot be read");
  REQUIRE(recover_single(good).ok());
  check_recovered(good.directory);
}

}  // namespace semel::tests
