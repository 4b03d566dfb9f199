// Snapshots as files: what is read is what was written, and nothing else is taken for one.
#include "replication/log/snapshot_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "semel/engine_host.hpp"
#include "tests/replication/state/canonical.hpp"
#include "tests/replication/state/commands.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace fs = std::filesystem;

struct Place {
  Place() {
    std::string pattern = (fs::temp_directory_path() / "semel_snapshot_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Place() { fs::remove_all(path); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string path;
  storage::Disk disk;
};

std::unique_ptr<StateMachine> open(std::uint64_t seed) {
  Options options;
  options.shard_count = 4;
  options.hash_seed = seed;
  auto made = StateMachine::open(options);
  REQUIRE(made.ok());
  return std::move(*made);
}

void apply(StateMachine& replica, Commands& commands, LogIndex entries) {
  for (LogIndex i = 0; i < entries; ++i) {
    EntryBuilder entry{commands.next_time(), i};
    while (entry.size() < 20) {
      const auto added = entry.add(commands.next());
      REQUIRE(added.ok());
      if (!*added) break;
    }
    REQUIRE(replica.apply(replica.applied() + 1, entry.bytes()).ok());
    commands.forget_bytes();
  }
}

/// A file of a replica's state, and its path.
std::string write(Place& directory, StateMachine& replica, const SnapshotId& id) {
  std::unique_ptr<SnapshotWriter> writer;
  REQUIRE(replica.snapshot(
      [&](const ReplicaState& state) {
        auto made = SnapshotWriter::create(directory.disk, directory.path,
                                           {.cluster_id = 7, .id = id, .state = state});
        REQUIRE(made.ok());
        writer = std::move(*made);
      },
      [&](const Mutation& mutation) { REQUIRE(writer->add(mutation)); }));
  const auto path = writer->finish();
  REQUIRE(path.ok());
  return *path;
}

Status read(const std::string& path, StateMachine& into, SnapshotFront* front = nullptr) {
  return read_snapshot(
      path,
      [&](const SnapshotFront& found) {
        if (front != nullptr) *front = found;
        return into.restore(found.state);
      },
      [&](std::span<const Mutation> some) { return into.engine().host().restore(some); });
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

const SnapshotId some_id{.index = 200,
                         .term = 3,
                         .configuration_index = 17,
                         .configuration = {{1, "127.0.0.1:7001", MemberRole::voter},
                                           {2, "[::1]:7002", MemberRole::standby}}};

}  // namespace

TEST_CASE("snapshot file: below level 2 it is what a release of level 1 reads",
          "[snapshot_file][libraries]") {
  Place directory;
  auto replica = open(1);
  const auto apply = [&](const Command& command) {
    EntryBuilder entry{static_cast<std::int64_t>(replica->applied()) + 1, 1};
    REQUIRE(entry.add(command).ok());
    REQUIRE(replica->apply(replica->applied() + 1, entry.bytes()).ok());
  };
  const auto format_of = [&] { return bytes_of_file(write(directory, *replica, some_id)).at(8); };
  CHECK(format_of() == 1);
  apply({FeatureLevelCommand{1}});
  CHECK(format_of() == 1);
  apply({FeatureLevelCommand{2}});
  CHECK(format_of() == 2);
  // As much as there may be: libraries, and answers that are remembered, are in its front.
  std::size_t loaded = 0;
  const std::string code(std::size_t{7} << 20, 'c');
  for (int i = 0; i < 12; ++i) {
    const std::string name = "lib" + std::to_string(i);
    LibraryCommand load;
    load.libraries = {{.name = name, .code = code, .body_begin = 5}};
    load.libraries[0].functions = {{.name = name, .description = "what it does", .flags = 3}};
    apply({load});
    loaded = replica->libraries().size();
  }
  CHECK(loaded == 9);  // 63 MiB
  const std::string path = write(directory, *replica, some_id);
  auto other = open(2);
  REQUIRE(read(path, *other));
  CHECK(canonical(*other).bytes() == canonical(*replica).bytes());
  CHECK(other->libraries().at(8)->functions.at(0).description == "what it does");
}

/// The kernel reports to one who waits that it could not write, and to no sync after that.
TEST_CASE("snapshot file: an error of a wait for the disk is told, and nothing is left",
          "[snapshot_file]") {
  class WaitsFail final : public storage::Disk {
   public:
    Status wait_written(int /*descriptor*/, const std::string& path, std::uint64_t from,
                        std::uint64_t to) override {
      waited_for += to - from;
      if (++waits != failing) return Done{};
      return Error{ErrorCode::storage_failed, path + ": Input/output error"};
    }
    int failing = 0;
    int waits = 0;
    std::uint64_t waited_for = 0;
  };
  auto replica = open(1);
  const std::string value(std::size_t{64} << 10, 'v');
  for (Version version = 1; version <= 256; ++version) {
    const std::string key = std::to_string(version);
    Mutation put;
    put.version = version;
    put.key = key;
    put.value = value;
    REQUIRE(replica->engine().host().restore(put).ok());
  }
  for (const int failing : {0, 1, 2}) {
    CAPTURE(failing);
    Place directory;
    WaitsFail disk;
    disk.failing = failing;
    std::unique_ptr<SnapshotWriter> writer;
    Status done = Done{};
    REQUIRE(replica->snapshot(
        [&](const ReplicaState& state) {
          auto made = SnapshotWriter::create(disk, directory.path,
                                             {.cluster_id = 7, .id = some_id, .state = state});
          REQUIRE(made.ok());
          writer = std::move(*made);
        },
        [&](const Mutation& mutation) {
          if (done) done = writer->add(mutation);
        }));
    if (done) {
      const auto path = writer->finish();
      if (!path) done = path.error();
    }
    CHECK(disk.waited_for >= std::uint64_t{4} << 20);
    CHECK(done.ok() == (failing == 0));
    if (!done) CHECK_THAT(done.error().message(), Catch::Contains("Input/output error"));
    writer.reset();
    CHECK(fs::is_empty(directory.path) == (failing != 0));
  }
}

TEST_CASE("snapshot file: a replica that begins from it has the same state", "[snapshot_file]") {
  Place directory;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    INFO("seed " << seed);
    Commands commands{seed};
    auto replica = open(seed);
    apply(*replica, commands, 500);
    const std::string path = write(directory, *replica, some_id);
    auto other = open(seed + 100);
    SnapshotFront front;
    REQUIRE(read(path, *other, &front));
    CHECK(front.cluster_id == 7);
    CHECK(front.id.index == some_id.index);
    CHECK(front.id.term == some_id.term);
    CHECK(front.id.configuration_index == some_id.configuration_index);
    CHECK(front.id.configuration == some_id.configuration);
    CHECK(canonical(*other).bytes() == canonical(*replica).bytes());
    // And it goes on alike.
    Commands more{seed + 50};
    static_cast<void>(more.next_time());
    EntryBuilder entry{replica->unix_ms() + 60'000, 9};
    while (entry.size() < 100) REQUIRE(entry.add(more.next()).ok());
    REQUIRE(replica->apply(replica->applied() + 1, entry.bytes()).ok());
    REQUIRE(other->apply(other->applied() + 1, entry.bytes()).ok());
    CHECK(canonical(*other).bytes() == canonical(*replica).bytes());
  }
}

TEST_CASE("snapshot file: the newest is found by its name, all others are of no use",
          "[snapshot_file]") {
  Place directory;
  Commands commands{5};
  auto replica = open(5);
  apply(*replica, commands, 5);
  CHECK_FALSE(find_snapshots(directory.path)->newest);
  SnapshotId id = some_id;
  for (const LogIndex index : {9U, 200U, 30U}) {
    id.index = index;
    static_cast<void>(write(directory, *replica, id));
  }
  std::ofstream{directory.path + "/snapshot-ffffffffffffffff-1.part"} << "half";
  std::ofstream{directory.path + "/another"} << "file";
  const auto found = find_snapshots(directory.path);
  REQUIRE(found.ok());
  id.index = 200;
  CHECK(found->newest == snapshot_name(id));
  CHECK(found->others.size() == 3);
}

TEST_CASE("snapshot file: one that is cut or changed is damage, and names the place",
          "[snapshot_file]") {
  Place directory;
  Commands commands{6};
  auto replica = open(6);
  apply(*replica, commands, 200);
  const std::string path = write(directory, *replica, some_id);
  const std::string bytes = bytes_of_file(path);
  proofs::Random random{6};
  const std::string other = directory.path + "/changed";
  const auto require_damage = [&](const std::string& changed) {
    std::ofstream{other, std::ios::binary} << changed;
    auto into = open(1);
    const Status done = read(other, *into);
    REQUIRE_FALSE(done);
    CHECK((done.error().code == ErrorCode::storage_damaged ||
           done.error().code == ErrorCode::storage_newer));
    CHECK(done.error().detail.find(other) != std::string::npos);
  };
  for (int i = 0; i < 300; ++i) {
    require_damage(bytes.substr(0, random.below(bytes.size())));
    std::string changed = bytes;
    changed[random.below(changed.size())] ^= static_cast<char>(1 << random.below(8));
    require_damage(changed);
  }
  require_damage("");
}

TEST_CASE("snapshot file: what is not finished leaves nothing", "[snapshot_file]") {
  Place directory;
  {
    const auto writer = SnapshotWriter::create(directory.disk, directory.path,
                                               {.cluster_id = 7, .id = some_id, .state = {}});
    REQUIRE(writer.ok());
  }
  CHECK(fs::is_empty(directory.path));
  const auto none = SnapshotWriter::create(directory.disk, directory.path + "/none", {});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::storage_failed);
}

}  // namespace semel::tests
