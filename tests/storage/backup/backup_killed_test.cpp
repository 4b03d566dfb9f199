// A file of its own, so a process of its own: a child of a process that has used RocksDB has none
// of its threads, and would wait for them.
#include "tests/storage/backup/backup_fixture.hpp"
#include "tests/support/child.hpp"

namespace semel::tests {

TEST_CASE("backup: what a killed process leaves is refused by name, and its links go",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  const ManualClock clock;
  constexpr int kills = 8;  // in as many calls of the callback
  const auto target = [&](int at) { return beside.of("b" + std::to_string(at)); };
  for (int at = 1; at <= kills; ++at) {
    INFO(at);
    const Ended ended = run_apart([&] {
      Process process{directory.path(), clock};
      process.fill("k" + std::to_string(at), 300);
      int calls = 0;
      static_cast<void>(process.storage->backup(
          target(at), {.copies = true, .progress = [&](const BackupProgress&) {
                         if (++calls == at) _exit(7);
                         return true;
                       }}));
      _exit(8);
    });
    REQUIRE(WIFEXITED(ended.status));
    REQUIRE(WEXITSTATUS(ended.status) == 7);
    CHECK(has_links(directory));
  }
  // From here on this process uses RocksDB itself.
  const auto refusal_of = [](const auto& result) {
    REQUIRE_FALSE(result);
    return result.error().detail;
  };
  for (int at = 1; at <= kills; ++at) {
    INFO(at);
    const std::string to = target(at);
    const std::string refused = to + ": is a backup that was not completed";
    CHECK(refusal_of(restore_backup(to, beside.of("again"))).find(refused) == 0);
    CHECK(refusal_of(verify_storage(to)).find(refused) == 0);
    CHECK(refusal_of(repair_storage(to, true)).find(refused) == 0);
    CHECK_FALSE(exists(beside.of("again")));
  }
  require_sound(directory.path());  // links are no damage
  Process process{directory.path(), clock};
  CHECK_FALSE(has_links(directory));
  for (int at = 1; at <= kills; ++at) {
    CHECK(process.get("k" + std::to_string(at) + "299") != "-");
  }
}

}  // namespace semel::tests
