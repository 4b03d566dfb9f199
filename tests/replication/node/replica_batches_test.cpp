// Which commands share an entry while a disk takes its time. An entry is known by the versions that
// its commands take: 16 bits of a version are the place in it.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "replication/node/memory_gate.hpp"
#include "replication/node/replica.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

/// Does not sync while it is held.
class HeldDisk final : public storage::Disk {
 public:
  void hold(bool held) {
    const std::lock_guard lock{mutex_};
    is_held_ = held;
    changed_.notify_all();
  }
  [[nodiscard]] bool has_waiter() {
    const std::lock_guard lock{mutex_};
    return waiters_ != 0;
  }
  Status sync(int descriptor, const std::string& path) override {
    wait();
    return Disk::sync(descriptor, path);
  }
  Status sync_part(char* memory, const std::string& path, std::size_t from,
                   std::size_t to) override {
    wait();
    return Disk::sync_part(memory, path, from, to);
  }

 private:
  void wait() {
    std::unique_lock lock{mutex_};
    ++waiters_;
    changed_.wait(lock, [&] { return !is_held_; });
    --waiters_;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  int waiters_ = 0;
};

/// A group of one node that leads, whose disk can be held.
struct HeldNode {
  HeldNode() {
    REQUIRE(mkdtemp(directory.data()) != nullptr);
    ReplicaOptions options;
    options.cluster_id = 78;
    options.node_id = 1;
    options.directory = directory + "/1";
    options.listen = "127.0.0.1:" + std::to_string(free_port());
    options.founders = {{1, options.listen}};
    options.founds = true;
    options.election = Millis{150};
    options.heartbeat = Millis{30};
    options.segment_bytes = std::size_t{1} << 20;
    options.engine.memory_bytes = memory_reserve + (std::size_t{64} << 20);
    options.disk = &disk;
    options.report = [this](const ReplicaEvent& event) {
      const std::lock_guard lock{mutex};
      events.push_back(event);
    };
    auto opened = Replica::open(options);
    REQUIRE(opened.ok());
    node = *std::move(opened);
    REQUIRE(node->start().ok());
    REQUIRE(Group::wait_for([&] { return node->status().role == Role::leader; }));
  }
  ~HeldNode() {
    disk.hold(false);
    node.reset();
    std::filesystem::remove_all(directory);
  }
  HeldNode(const HeldNode&) = delete;
  HeldNode& operator=(const HeldNode&) = delete;

  void propose(std::size_t bytes = 1) {
    const std::string key = "key " + std::to_string(proposed++);
    const std::string value(bytes, 'v');
    StoreCommand command;
    command.op.verb = Verb::set;
    command.op.key = key;
    command.op.value = value;
    auto prepared = prepare({command});
    REQUIRE(prepared.ok());
    node->propose(*std::move(prepared), [this](const Result<Answer>& answer) {
      const std::lock_guard lock{mutex};
      if (!answer.ok()) return;
      entries.push_back(std::get<StoreOutcome>(answer->what).version >> fence_place_bits);
    });
  }
  /// An entry of `count` commands is under way, and its sync is held: proposed on the replica's own
  /// thread, they are together.
  void begin_entry(std::size_t count) {
    std::atomic<bool> is_proposed{false};
    StoreCommand first;
    first.op.verb = Verb::set;
    first.op.key = "first";
    first.op.value = "v";
    auto prepared = prepare({first});
    REQUIRE(prepared.ok());
    // mo: release and acquire [test.proposed]: all of them are there
    node->propose(*std::move(prepared), [&](const Result<Answer>&) {
      disk.hold(true);
      for (std::size_t i = 0; i < count; ++i) propose();
      is_proposed.store(true, std::memory_order_release);
    });
    REQUIRE(Group::wait_for([&] { return is_proposed.load(std::memory_order_acquire); }));
    REQUIRE(Group::wait_for([&] { return disk.has_waiter(); }));
  }
  /// What it has said of that kind; empty: nothing.
  [[nodiscard]] std::string said(ReplicaEvent::What what) {
    const std::lock_guard lock{mutex};
    for (const ReplicaEvent& each : events) {
      if (each.what == what) return each.text;
    }
    return {};
  }
  /// One turn of the replica's loop, which proposes what may be proposed. The last of the log then.
  [[nodiscard]] LogIndex turn() {
    REQUIRE_FALSE(node->transfer(99).ok());
    return node->status().last;
  }
  /// The entries of all that was proposed, in that order.
  [[nodiscard]] std::vector<LogIndex> finish() {
    disk.hold(false);
    REQUIRE(Group::wait_for([&] {
      const std::lock_guard lock{mutex};
      return entries.size() == proposed;
    }));
    return entries;
  }

  std::string directory = std::filesystem::temp_directory_path() / "replica_batches_XXXXXX";
  HeldDisk disk;
  std::unique_ptr<Replica> node;
  std::size_t proposed = 0;
  std::mutex mutex;
  std::vector<LogIndex> entries;
  std::vector<ReplicaEvent> events;
};

/// The first number of a text.
long number_in(const std::string& text) {
  const std::size_t at = text.find_first_of("0123456789");
  REQUIRE(at != std::string::npos);
  return std::strtol(text.c_str() + at, nullptr, 10);
}

}  // namespace

TEST_CASE("replica: while few commands are under way, the next begins an entry at once",
          "[replica_batches]") {
  HeldNode held;
  held.begin_entry(15);
  const LogIndex last = held.turn();
  held.propose();
  CHECK(held.turn() == last + 1);
  const std::vector<LogIndex> entries = held.finish();
  CHECK(entries[14] == last);
  CHECK(entries[15] == last + 1);
}

TEST_CASE("replica: while many are under way, what comes is gathered into one entry",
          "[replica_batches]") {
  HeldNode held;
  held.begin_entry(16);
  const LogIndex last = held.turn();
  for (int i = 0; i < 30; ++i) {
    held.propose();
    CHECK(held.turn() == last);
  }
  const std::vector<LogIndex> entries = held.finish();
  const std::set<LogIndex> of_late(entries.begin() + 16, entries.end());
  CHECK(entries[15] == last);
  CHECK(of_late == std::set<LogIndex>{last + 1});
}

TEST_CASE("replica: a full entry does not wait for those that are under way", "[replica_batches]") {
  HeldNode held;
  held.begin_entry(16);
  const LogIndex last = held.turn();
  for (int i = 0; i < 70; ++i) held.propose(1'024);
  CHECK(Group::wait_for([&] { return held.node->status().last == last + 1; }));
  const std::vector<LogIndex> entries = held.finish();
  CHECK(entries[16] == last + 1);
  CHECK(entries.back() == last + 2);
}

TEST_CASE("replica: a disk that does not sync is reported, and what waits for it",
          "[replica_batches]") {
  using What = ReplicaEvent::What;
  HeldNode held;
  held.begin_entry(3);
  REQUIRE(Group::wait_for([&] { return !held.said(What::stalled).empty(); }));
  // No more than these are taken, so they are the same since it was said.
  const std::string last = std::to_string(held.turn());
  const std::string synced = std::to_string(held.node->status().commit);
  CHECK(number_in(held.said(What::disk_slow)) >= 1'000);
  CHECK(held.said(What::disk_in_time).empty());
  CHECK(held.said(What::goes_on).empty());
  const std::string text = held.said(What::stalled);
  INFO(text);
  CHECK(number_in(text) >= 1'500);
  CHECK(
      text.find(" commands are under way, 0 were forwarded, 0 wait, 0 have no number; last entry " +
                last + ", on the disk " + synced + ", committed " + synced + ", applied " +
                synced) != std::string::npos);
  CHECK(last != synced);
  REQUIRE(Group::wait_for([&] { return held.node->status().stalled_ms >= 1'500; }));
  static_cast<void>(held.finish());
  REQUIRE(Group::wait_for([&] { return !held.said(What::goes_on).empty(); }));
  CHECK(number_in(held.said(What::disk_in_time)) >= 1'500);
  REQUIRE(Group::wait_for([&] { return held.node->status().stalled_ms == 0; }));
}

}  // namespace semel::tests
