// A file of its own, so a process of its own: limits of open files are those of a process, and a
// child of a process that has used RocksDB has none of its threads.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/repair/tool_fixture.hpp"
#include "tests/support/child.hpp"

namespace semel::tests {

namespace {

/// In a child. Its exit code: 0 opened, 1 refused, for the reason on standard error.
Ended open_with(const std::string& path, rlim_t files) {
  return run_apart([&] {
    const rlimit limit{files, files};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(2);
    const ManualClock clock;
    const auto opened = Storage::open({.directory = path}, clock);
    if (!opened) std::fputs(opened.error().message().c_str(), stderr);
    _exit(opened ? 0 : 1);
  });
}

}  // namespace

TEST_CASE("storage: too low a limit of open files is refused before anything is changed",
          "[storage][between-12]") {
  constexpr rlim_t few = 40;
  const Directory directory;
  const std::string path = directory.of("storage");
  const Ended made = run_apart([&] {
    const ManualClock clock;
    ToolLife{path, clock}.fill("k", 100);
  });
  REQUIRE(made.status == 0);
  const auto before = picture(path);
  const Ended refused = open_with(path, few);
  INFO(refused.output);
  CHECK(WEXITSTATUS(refused.status) == 1);
  CHECK(refused.output.find(path + ": the limit of open files is 40") != std::string::npos);
  CHECK(picture(path) == before);
  // What it asks for is enough.
  const std::size_t at = refused.output.find("at least ");
  REQUIRE(at != std::string::npos);
  const rlim_t enough = std::strtoul(refused.output.c_str() + at + 9, nullptr, 10);
  const Ended opened = open_with(path, enough);
  INFO(opened.output);
  CHECK(opened.status == 0);
}

}  // namespace semel::tests
