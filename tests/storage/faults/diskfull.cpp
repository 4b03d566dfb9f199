// A small file system fills up, and gets space back.
//
//   proof_diskfull [--long] [--seed N]
//
// A round: a storage on a tmpfs of 48 MiB with some ballast works until it is refused. What must
// hold: every call after that is refused at once, with an error that says so; lookups go on; when
// the ballast is removed new work is accepted within 5 s without anybody doing anything; and
// everything that was acknowledged, before and after, is there in the next process. Ends with 77
// where it may not mount: skipped.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "tests/proofs/arguments.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr int skipped = 77;
constexpr std::size_t ballast_bytes = std::size_t{16} << 20;
constexpr Millis refusal_limit = 1'000ms;
constexpr Millis recovery_limit = 5'000ms;
constexpr Millis fill_limit = 60'000ms;
constexpr std::uint64_t shown_errors = 12;

/// A tmpfs in a mount namespace of this process: nobody else sees it, and it goes with it.
bool mount_small(const std::string& path) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", path.c_str(), "tmpfs", 0, "size=48m") == 0;
}

struct Total {
  std::uint64_t rounds = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t unclear = 0;  ///< errors that do not say what is wrong
  std::uint64_t slow = 0;     ///< refused, but not at once
  std::uint64_t bad_lookups = 0;
  std::uint64_t not_again = 0;  ///< new work was not accepted when there was space
  std::uint64_t lost = 0;
  std::uint64_t not_opened = 0;
  Millis slowest_refusal{0};
  Millis slowest_recovery{0};
};

class DiskFull {
 public:
  DiskFull(std::string directory, std::uint64_t seed)
      : directory_(std::move(directory)), random_(seed), seed_(seed) {}
  void round();
  [[nodiscard]] int report() const;

 private:
  [[nodiscard]] bool put_ballast() const;
  [[nodiscard]] Result<World> open(Durability level) const;
  [[nodiscard]] bool fill(World& world);
  void be_refused(World& world);
  void recover(World& world);
  void look_up(World& world);
  void compare_with_acknowledged();
  [[nodiscard]] Status add(World& world);
  void say(const std::string& what);

  const std::string directory_;
  proofs::Random random_;
  const std::uint64_t seed_;
  const SystemClock clock_;
  std::vector<std::string> acknowledged_;  // keys; each holds itself
  std::uint64_t next_ = 0;
  std::uint64_t said_ = 0;
  std::string refusal_;
  Total total_;
};

void DiskFull::say(const std::string& what) {
  if (said_++ >= shown_errors) return;
  std::printf("diskfull: seed %llu, round %llu: %s\n", static_cast<unsigned long long>(seed_),
              static_cast<unsigned long long>(total_.rounds), what.c_str());
}

bool DiskFull::put_ballast() const {
  const int descriptor = ::open((directory_ + "/ballast").c_str(), O_RDWR | O_CREAT, 0600);
  if (descriptor < 0) return false;
  const bool good = fallocate(descriptor, 0, 0, static_cast<off_t>(ballast_bytes)) == 0;
  close(descriptor);
  return good;
}

Result<World> DiskFull::open(Durability level) const {
  StorageOptions options;
  options.directory = directory_ + "/storage";
  options.sync_every = 20ms;
  options.log_bytes = std::size_t{8} << 20;
  return open_world(options, clock_, level);
}

/// A new record.
Status DiskFull::add(World& world) {
  const std::string key = std::to_string(next_++);
  std::string value = key + "/";
  value.append(random_.below(4'000), 'f');
  const auto set = world.engine->store().set(key, value, {.expiry = Expiry::in(24h)});
  if (set.ok()) {
    acknowledged_.push_back(key);
    ++total_.acknowledged;
    return Done{};
  }
  return set.error();
}

bool DiskFull::fill(World& world) {
  const Timestamp end = clock_.now() + fill_limit;
  while (clock_.now() < end) {
    if (!add(world)) return true;
  }
  return false;
}

void DiskFull::be_refused(World& world) {
  int in_between = 0;
  for (int i = 0; i < 200; ++i) {
    const Timestamp begun = clock_.now();
    const Status added = add(world);
    const Millis took = clock_.now() - begun;
    total_.slowest_refusal = std::max(total_.slowest_refusal, took);
    if (took > refusal_limit) {
      ++total_.slow;
      say("answered after " + std::to_string(took.count()) + " ms");
    }
    if (added) continue;  // a small one may fit yet
    refusal_ = added.error().message();
    const StorageStats stats = world.storage->stats();
    // A segment may have become free in between; but not each time.
    in_between = stats.accepting ? in_between + 1 : 0;
    if (in_between > 3 || (!stats.accepting && stats.trouble.empty())) {
      ++total_.unclear;
      say("refused with '" + refusal_ + "', and the statistics do not tell why");
    }
  }
}

void DiskFull::look_up(World& world) {
  for (int i = 0; i < 1'000 && !acknowledged_.empty(); ++i) {
    const std::string& key = acknowledged_[random_.below(acknowledged_.size())];
    const auto value = world.engine->store().get(key);
    if (value.ok() && *value && (*value)->compare(0, key.size() + 1, key + "/") == 0) continue;
    ++total_.bad_lookups;
    say("looking up " + key + ": " + (value.ok() ? "it is not there" : value.error().message()));
    return;
  }
}

void DiskFull::recover(World& world) {
  std::error_code code;
  std::filesystem::remove(directory_ + "/ballast", code);
  const Timestamp begun = clock_.now();
  std::mutex mutex;
  std::condition_variable never;
  while (clock_.now() - begun < recovery_limit) {
    if (add(world)) {
      total_.slowest_recovery = std::max(total_.slowest_recovery, clock_.now() - begun);
      for (int i = 0; i < 200; ++i) static_cast<void>(add(world));  // compared later
      return;
    }
    std::unique_lock lock{mutex};
    never.wait_for(lock, 5ms);
  }
  ++total_.not_again;
  say("there is space, and no new work is accepted: " + world.storage->stats().trouble);
}

void DiskFull::compare_with_acknowledged() {
  auto world = open(Durability::logged);
  if (!world) {
    ++total_.not_opened;
    say("not opened again: " + world.error().message());
    return;
  }
  for (const std::string& key : acknowledged_) {
    const auto value = world->engine->store().get(key);
    if (value.ok() && *value && (*value)->compare(0, key.size() + 1, key + "/") == 0) continue;
    ++total_.lost;
    say(key + " is lost");
  }
}

void DiskFull::round() {
  std::error_code code;
  std::filesystem::remove_all(directory_ + "/storage", code);
  acknowledged_.clear();
  ++total_.rounds;
  if (!put_ballast()) {
    std::perror("diskfull: ballast");
    ++total_.not_opened;
    return;
  }
  {
    auto world = open(random_.chance(1, 2) ? Durability::logged : Durability::synced);
    if (!world) {
      ++total_.not_opened;
      say("not opened: " + world.error().message());
      return;
    }
    if (!fill(*world)) {
      ++total_.unclear;
      say("was never refused");
    }
    be_refused(*world);
    look_up(*world);
    // A restart must not make an outage of it.
    world->close();
    world = open(Durability::logged);
    if (!world) {
      ++total_.not_opened;
      say("not opened on the full disk: " + world.error().message());
      return;
    }
    look_up(*world);
    recover(*world);
  }
  compare_with_acknowledged();
}

int DiskFull::report() const {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("diskfull: told as: %s\n", refusal_.c_str());
  std::printf(
      "diskfull: slowest answer %lld ms, accepted again %lld ms after space came back at "
      "most\n",
      static_cast<long long>(total_.slowest_refusal.count()),
      static_cast<long long>(total_.slowest_recovery.count()));
  std::printf(
      "diskfull: %llu rounds, %llu acknowledged, %llu lost, %llu unclear, %llu slow, %llu "
      "bad lookups, %llu did not go on, %llu not opened\n",
      number(total_.rounds), number(total_.acknowledged), number(total_.lost),
      number(total_.unclear), number(total_.slow), number(total_.bad_lookups),
      number(total_.not_again), number(total_.not_opened));
  const std::uint64_t bad = total_.unclear + total_.slow + total_.bad_lookups + total_.not_again +
                            total_.lost + total_.not_opened;
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace semel::faults

int main(int count, char** texts) {
  const auto arguments = semel::proofs::parse_arguments(count, texts);
  if (!arguments) return 2;
  const std::uint64_t seed = arguments->seed.value_or(semel::proofs::fresh_seed());
  std::printf("diskfull: seed %llu\n", static_cast<unsigned long long>(seed));
  const semel::faults::Scratch scratch;
  if (!semel::faults::mount_small(scratch.path())) {
    std::printf("diskfull: skipped, a file system cannot be mounted here: %s\n",
                std::strerror(errno));
    return semel::faults::skipped;
  }
  semel::faults::DiskFull proof{scratch.path(), seed};
  const int rounds = arguments->is_long ? 200 : 20;
  for (int i = 0; i < rounds; ++i) proof.round();
  const int verdict = proof.report();
  umount2(scratch.path().c_str(), MNT_DETACH);
  return verdict;
}
