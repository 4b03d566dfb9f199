// Backups of a node: one at a time, and whatever ends one does not end the node.
#include "tools/semel/node/node_backup.hpp"

#include <future>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "tests/support/catch.hpp"

namespace semel::tests {

using Stage = net::BackupState::Stage;
using tool::NodeBackup;

namespace {

/// Waits for the end of the backup that was started last.
struct Backups {
  explicit Backups(NodeBackup::Make make)
      : backup(clock, std::move(make),
               [this](const net::BackupState& state) { ended.set_value(state); }) {}
  [[nodiscard]] net::BackupState run(const std::string& name) {
    ended = {};
    std::future<net::BackupState> end = ended.get_future();
    REQUIRE(backup.start("folder", name));
    return end.get();
  }
  ManualClock clock;
  std::promise<net::BackupState> ended;
  NodeBackup backup;  // ends first
};

}  // namespace

TEST_CASE("backup: its result is that of the call which makes it", "[tool][node]") {
  std::string made;
  Status result = Done{};
  Backups backups{[&](const std::string&, const std::string& directory, const NodeBackup::Step&) {
    made = directory;
    return result;
  }};
  CHECK(backups.backup.state().stage == Stage::none);
  CHECK(backups.run("one").stage == Stage::done);
  CHECK(made == "folder/one");
  result = Error{ErrorCode::storage_failed, "full"};
  const net::BackupState failed = backups.run("two");
  CHECK(failed.stage == Stage::failed);
  CHECK(failed.error.find("full") != std::string::npos);
}

TEST_CASE("backup: an exception ends it, and the next one may begin", "[tool][node]") {
  bool throws = true;
  Backups backups{[&](const std::string&, const std::string&, const NodeBackup::Step&) -> Status {
    if (throws) throw std::bad_alloc{};
    return Done{};
  }};
  const net::BackupState failed = backups.run("one");
  CHECK(failed.stage == Stage::failed);
  CHECK_FALSE(failed.error.empty());
  throws = false;
  CHECK(backups.run("two").stage == Stage::done);
  CHECK(backups.backup.state().error.empty());
}

TEST_CASE("backup: while one runs a second is refused", "[tool][node]") {
  std::promise<void> go_on;
  Backups backups{[&](const std::string&, const std::string&, const NodeBackup::Step&) -> Status {
    go_on.get_future().wait();
    return Done{};
  }};
  std::future<net::BackupState> end = backups.ended.get_future();
  REQUIRE(backups.backup.start("folder", "one"));
  const Status second = backups.backup.start("folder", "two");
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::refused);
  CHECK(backups.backup.state().name == "one");
  go_on.set_value();
  CHECK(end.get().stage == Stage::done);
}

TEST_CASE("backup: it shows how far it is, and ends at its next step when it is cancelled",
          "[tool][node]") {
  std::promise<void> stepped;
  std::promise<void> go_on;
  Backups backups{
      [&](const std::string& folder, const std::string&, const NodeBackup::Step& step) -> Status {
        CHECK(folder == "folder");
        CHECK(step(3, 7));
        stepped.set_value();
        go_on.get_future().wait();
        if (step(4, 7)) return Done{};
        return Error{ErrorCode::refused, "the backup was cancelled"};
      }};
  CHECK(backups.backup.cancel().error().code == ErrorCode::refused);  // there is none
  std::future<net::BackupState> end = backups.ended.get_future();
  REQUIRE(backups.backup.start("folder", "one"));
  stepped.get_future().wait();
  CHECK(backups.backup.state().bytes == 3);
  CHECK(backups.backup.state().bytes_total == 7);
  CHECK(backups.backup.cancel());
  go_on.set_value();
  const net::BackupState ended = end.get();
  CHECK(ended.stage == Stage::failed);
  CHECK(ended.last_failed);
  CHECK(ended.done == 0);
  CHECK(ended.error.find("cancelled") != std::string::npos);
}

TEST_CASE("backup: the end of the node ends it", "[tool][node]") {
  std::promise<void> begun;
  std::optional<Backups> backups;
  backups.emplace(
      [&](const std::string&, const std::string&, const NodeBackup::Step& step) -> Status {
        begun.set_value();
        while (step(1, 2)) std::this_thread::yield();
        return Error{ErrorCode::refused, "the backup was cancelled"};
      });
  REQUIRE(backups->backup.start("folder", "one"));
  begun.get_future().wait();
  backups.reset();  // would not return
  SUCCEED();
}

TEST_CASE("backup: a name has 128 bytes at most and stays in its folder", "[tool][node]") {
  Backups backups{[](const std::string&, const std::string&, const NodeBackup::Step&) -> Status {
    return Done{};
  }};
  for (const std::string name : {"", ".", "..", "../a", "a/b", "/a", "a b"}) {
    CHECK(backups.backup.start("folder", name).error().code == ErrorCode::bad_option);
  }
  CHECK_FALSE(backups.backup.start("folder", std::string(129, 'n')));
  CHECK_FALSE(backups.backup.start("", "one"));
  CHECK(backups.run(std::string(128, 'n')).stage == Stage::done);
}

}  // namespace semel::tests
