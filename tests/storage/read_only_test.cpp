// A file of its own, so a process of its own: a child of a process that has used RocksDB has none
// of its threads. So the parent uses none.
//
// A storage that cannot be written, by its permissions or by its mount: opening is refused with its
// name, the tools read it, and nothing is changed.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "semel/semel.hpp"
#include "semel/storage_tools.hpp"
#include "tests/storage/repair/tool_fixture.hpp"
#include "tests/support/child.hpp"

namespace semel::tests {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65'534;

[[noreturn]] void end_child(int code, const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  _exit(code);
}

void in_child(const std::function<void()>& scene) {
  const Ended ended = run_apart([&] {
    scene();
    _exit(0);
  });
  INFO(ended.output);
  REQUIRE(WIFEXITED(ended.status));
  REQUIRE(WEXITSTATUS(ended.status) == 0);
}

void check(bool holds, const std::string& what) {
  if (!holds) end_child(9, what);
}

/// What each of them says of a directory that it must not write.
void look_at(const std::string& directory, const std::string& cause) {
  const ManualClock clock;
  const auto opened = Storage::open({.directory = directory}, clock);
  check(!opened, "it was opened");
  const std::string said = opened.error().message();
  check(opened.error().code == ErrorCode::storage_failed, said);
  check(said.find(directory) != std::string::npos && said.find(cause) != std::string::npos, said);
  check(said.find("cannot be written") != std::string::npos, said);
  const auto verified = verify_storage(directory);
  check(verified.ok(), verified ? "" : "verify: " + verified.error().message());
  check(verified->is_sound() && verified->mutations >= 100, "verify finds something");
  const auto shown = inspect_storage(directory);
  check(shown.ok(), shown ? "" : "inspect: " + shown.error().message());
}

void make(const std::string& directory) {
  in_child([&] {
    const ManualClock clock;
    ToolLife life{directory, clock};
    life.fill("k", 100);
    check(life.storage->drain().ok(), "it does not drain");
    life.fill("l", 20);
  });
}

}  // namespace

TEST_CASE("storage: without the permission to write it is refused by name and can be read",
          "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  make(path);
  if (geteuid() == 0) {
    for (const auto& entry : fs::recursive_directory_iterator{directory.path()}) {
      REQUIRE(chown(entry.path().c_str(), nobody, nobody) == 0);
    }
    REQUIRE(chown(directory.path().c_str(), nobody, nobody) == 0);
  }
  for (const auto& entry : fs::recursive_directory_iterator{directory.path()}) {
    const auto mode = entry.is_directory() ? fs::perms::owner_read | fs::perms::owner_exec
                                           : fs::perms::owner_read;
    fs::permissions(entry.path(), mode);
  }
  const auto before = picture(path);
  in_child([&] {
    if (geteuid() == 0) check(setgid(nobody) == 0 && setuid(nobody) == 0, "no other user");
    look_at(path, "Permission denied");
  });
  CHECK(picture(path) == before);
  for (const auto& entry : fs::recursive_directory_iterator{directory.path()}) {
    if (entry.is_directory()) fs::permissions(entry.path(), fs::perms::owner_all);
  }
}

TEST_CASE("storage: on a mount that is read-only it is refused by name and can be read",
          "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  make(path);
  const auto before = picture(path);
  const Ended ended = run_apart([&] {
    // A view of its own: nobody else sees the mount, and it goes with the process.
    const bool mounted =
        unshare(CLONE_NEWNS) == 0 &&
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
        mount(nullptr, path.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
    if (!mounted) _exit(77);
    look_at(path, "Read-only file system");
    _exit(0);
  });
  INFO(ended.output);
  REQUIRE(WIFEXITED(ended.status));
  CHECK(picture(path) == before);
  if (WEXITSTATUS(ended.status) == 77) {
    WARN("not looked at: this process may not mount (issue 16)");
    return;
  }
  CHECK(WEXITSTATUS(ended.status) == 0);
}

TEST_CASE("storage: a reader without the permission to write sees that it is in use",
          "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  make(path);
  in_child([&] {
    const ManualClock clock;
    const ToolLife life{path, clock};
    if (geteuid() != 0) fs::permissions(path + "/lock", fs::perms::owner_read);
    const pid_t reader = fork();
    if (reader == 0) {
      if (geteuid() == 0) {
        fs::permissions(directory.path(), fs::perms::all);
        fs::permissions(path, fs::perms::all);
        fs::permissions(path + "/lock", fs::perms::others_read | fs::perms::owner_all);
        check(setgid(nobody) == 0 && setuid(nobody) == 0, "no other user");
      }
      const auto verified = verify_storage(path);
      check(!verified && verified.error().code == ErrorCode::storage_in_use, "it is not in use");
      _exit(0);
    }
    int status = 0;
    check(waitpid(reader, &status, 0) == reader && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the reader");
  });
}

}  // namespace semel::tests
