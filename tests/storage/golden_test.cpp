// What earlier releases left behind is opened by this one (tests/storage/golden, golden_maker.cpp).
#include <filesystem>
#include "tests/support/catch.hpp"

#include "semel/storage_tools.hpp"
#include "tests/storage/golden.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::tests {
namespace {

/// A copy to work on.
std::string unpacked(const Directory& directory, const std::string& archive) {
  REQUIRE(golden::unpack(archive, directory.of("")));
  return directory.of("golden");
}

std::vector<std::string> archives() {
  return files_in(SEMEL_GOLDEN, ".tar.gz");
}

}  // namespace

TEST_CASE("upgrade: every golden directory is sound and holds every record", "[storage][upgrade]") {
  REQUIRE_FALSE(archives().empty());
  for (const std::string& archive : archives()) {
    INFO(archive);
    const Directory directory;
    const std::string path = unpacked(directory, archive);
    const auto check = verify_storage(path);
    REQUIRE(check);
    for (const StorageFinding& finding : check->findings) FAIL_CHECK(finding.what);
    // Twice: what is opened and closed must still be there.
    for (int process = 0; process < 2; ++process) {
      ManualClock clock{golden::engine_start, golden::unix_start_ms};
      auto opened = golden::open(path, clock);
      if (!opened) FAIL(opened.error().message());
      for (const std::string& wrong : golden::compare(*opened->engine)) FAIL_CHECK(wrong);
      if (process == 0) continue;
      clock.advance(golden::short_ttl);
      Store store = opened->engine->store();
      for (const char* part : {"drained", "undrained"}) {
        CHECK_FALSE(store.get(std::string{"short-"} + part).value());
        CHECK(store.get(std::string{"long-"} + part).value() == "l");
      }
    }
  }
}

TEST_CASE("upgrade: a golden directory that is repaired holds every record",
          "[storage][upgrade][repair]") {
  for (const std::string& archive : archives()) {
    INFO(archive);
    const Directory directory;
    const std::string path = unpacked(directory, archive);
    for (const std::size_t slot : {0U, 4096U}) flip(path + "/mark", slot + 20);
    const auto repair = repair_storage(path, true);
    REQUIRE(repair);
    CHECK(repair->mutations > 0);
    ManualClock clock{golden::engine_start, golden::unix_start_ms};
    auto opened = golden::open(path, clock);
    if (!opened) FAIL(opened.error().message());
    for (const std::string& wrong : golden::compare(*opened->engine)) FAIL_CHECK(wrong);
  }
}

TEST_CASE("upgrade: what the maker writes now is what is looked for", "[storage][upgrade]") {
  const Directory directory;
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto process = golden::open(directory.of("now"), clock);
    REQUIRE(process);
    REQUIRE(golden::fill(*process->engine, *process->storage));
    REQUIRE(golden::compare(*process->engine).empty());
    REQUIRE(process->engine->hashes().hset("fields-drained", "f39", "other").ok());
    CHECK(process->engine->store().set("plain-drained", "other").ok());
    CHECK(process->engine->store().del("zset3-drained").value());
    CHECK(golden::compare(*process->engine) ==
          std::vector<std::string>{"plain-drained", "fields-drained", "zset3-drained"});
  }
}

}  // namespace semel::tests
