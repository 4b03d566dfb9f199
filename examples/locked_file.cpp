// A lock around a file on disk, and why a lock is not enough: an owner that is paused for longer
// than its lease does not know that it has lost the lock, and goes on to write. The file refuses
// it: its first line is the largest fencing token that ever wrote to it.
#include <semel/patterns/lock.hpp>
#include <semel/policies.hpp>
#include <semel/semel.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

class FencedFile {
 public:
  explicit FencedFile(std::string path) : path_(std::move(path)) {
    std::ofstream{path_} << header(0);
  }

  /// Appends a line. False: a later owner has been here, and nothing was written. Looking and
  /// writing are one step, or the fence has a hole: between processes, do both under flock(2).
  [[nodiscard]] bool append(semel::Epoch token, const std::string& line) {
    std::fstream file{path_};
    semel::Epoch highest = 0;
    if (!(file >> highest) || token < highest) return false;
    // The token before the line: a crash between them leaves a file that is guarded too well.
    file.seekp(0) << header(token) << std::flush;
    file.seekp(0, std::ios::end) << line << '\n' << std::flush;
    return file.good();
  }

  [[nodiscard]] std::string lines() const {
    std::ifstream file{path_};
    std::string skipped;
    std::getline(file, skipped);
    return {std::istreambuf_iterator<char>{file}, {}};
  }

 private:
  /// As long for every token, so that it is overwritten in place.
  static std::string header(semel::Epoch token) {
    char text[24];
    std::snprintf(text, sizeof text, "%020llu\n", static_cast<unsigned long long>(token));
    return text;
  }

  std::string path_;
};

bool is(const char* what, bool actual, bool expected) {
  std::printf("%-40s %s\n", what, actual ? "yes" : "no");
  return actual == expected;
}

bool play(const std::string& path) {
  semel::ManualClock clock;
  auto engine = semel::Engine::open({.clock = &clock}).value();
  auto locks = engine->claims("locks", semel::policies::lock).value();
  FencedFile report{path};
  semel::Lock slow{locks, "report", {.owner = "slow"}};
  semel::Lock quick{locks, "report", {.owner = "quick"}};
  bool right = true;

  right &= is("slow has the lock", slow.try_lock(), true);
  right &= is("slow writes", report.append(slow.fencing_token(), "slow 1"), true);
  right &= is("quick has the lock", quick.try_lock(), false);

  // Slow is paused: a full disk, a stop of the machine, a debugger.
  const semel::Epoch remembered = slow.fencing_token();
  clock.advance(semel::policies::lock.lease);
  right &= is("a lease later, quick has the lock", quick.try_lock(), true);
  // No write has come since: the file cannot know yet, and slow's line is still in order.
  right &= is("slow writes before quick", report.append(remembered, "slow 2"), true);
  right &= is("quick writes", report.append(quick.fencing_token(), "quick 1"), true);

  // Slow wakes up in the middle of its work and goes on.
  right &= is("slow writes after quick", report.append(remembered, "slow 3"), false);
  right &= is("slow, if it asks, has the lock", slow.is_held(), false);
  right &= is("slow gives back what is not its own", slow.unlock(), false);
  right &= is("quick writes", report.append(quick.fencing_token(), "quick 2"), true);
  right &= is("quick gives it back", quick.unlock(), true);
  right &= is("slow has the lock again", slow.try_lock(), true);
  right &=
      is("slow writes with its new token", report.append(slow.fencing_token(), "slow 4"), true);
  return right && report.lines() == "slow 1\nslow 2\nquick 1\nquick 2\nslow 4\n";
}

}  // namespace

int main() {
  char name[] = "/tmp/semel_example_XXXXXX";
  if (mkdtemp(name) == nullptr) return 1;
  const bool right = play(std::string{name} + "/report");
  std::filesystem::remove_all(name);
  return right ? 0 : 1;
}
