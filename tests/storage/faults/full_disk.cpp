#include "tests/storage/faults/full_disk.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr Millis refusal_limit = 1'000ms;
constexpr Millis recovery_limit = 5'000ms;
constexpr Millis fill_limit = 60'000ms;
/// What the ballast leaves, at least. Less than the storage wants to begin anything in files, and
/// enough for what it has begun: RocksDB with assertions ends the process where a write fails.
constexpr std::size_t left_min = std::size_t{2} << 20;

bool mount_on(const std::string& path) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", path.c_str(), "tmpfs", 0, "size=48m") == 0;
}

}  // namespace

FullDisk::FullDisk(std::function<void(const std::string&)> say)
    : say_(std::move(say)), is_mounted_(mount_on(scratch_.path())) {}

FullDisk::~FullDisk() {
  if (is_mounted_) umount2(scratch_.path().c_str(), MNT_DETACH);
}

void FullDisk::found(std::uint64_t& kind, const std::string& what) {
  ++kind;
  say_(what);
}

bool FullDisk::is_full() const {
  return std::filesystem::exists(ballast());
}

std::size_t FullDisk::bytes_free() const {
  struct statvfs is {};
  return statvfs(scratch_.path().c_str(), &is) == 0 ? is.f_bavail * is.f_bsize : 0;
}

/// Takes all space but `left` bytes. Others take some meanwhile, so it is tried again.
bool FullDisk::fill(std::size_t left) const {
  const int descriptor = ::open(ballast().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  bool is_full = false;
  for (int i = 0; i < 100 && !is_full; ++i) {
    const std::size_t free = bytes_free();
    is_full = free <= left || fallocate(descriptor, 0, 0, static_cast<off_t>(free - left)) == 0;
  }
  close(descriptor);
  return is_full;
}

void FullDisk::give_space() const {
  std::error_code code;
  std::filesystem::remove(ballast(), code);
}

void FullDisk::leave_room() const {
  const std::size_t free = bytes_free();
  if (!is_full() || free >= left_min) return;
  const std::size_t bytes = std::filesystem::file_size(ballast());
  std::filesystem::resize_file(ballast(), bytes - std::min(bytes, left_min - free));
}

void FullDisk::meet(World& world, Worker& prober, Observer& observer, const PowerDisk& disk,
                    std::uint64_t seed, bool ends_full) {
  if (!is_full() && !fill(left_min + seed % left_min)) {
    return found(total_.unclear, "the ballast cannot be put");
  }
  judge_refusals(world, prober, disk);
  for (int i = 0; i < 1'000 && !disk.is_broken(); ++i) {
    if (observer.step() || disk.is_broken()) continue;
    found(total_.bad_lookups, "a lookup is not answered on the full disk");
    break;
  }
  if (!ends_full && !disk.is_broken()) judge_recovery(world, prober, disk);
  total_.lives_ended += is_full() ? 1 : 0;
}

void FullDisk::judge_refusals(World& world, Worker& prober, const PowerDisk& disk) {
  const Timestamp end = system_.now() + fill_limit;
  while (world.storage->accepts_writes() && system_.now() < end && !disk.is_broken()) {
    static_cast<void>(prober.step());
  }
  if (world.storage->accepts_writes() && !disk.is_broken()) {
    return found(total_.unclear, "was never refused");
  }
  int in_between = 0;
  for (int i = 0; i < 200 && !disk.is_broken(); ++i) {
    const Timestamp begun = system_.now();
    const bool is_done = prober.step();
    const Millis took = system_.now() - begun;
    total_.slowest_refusal = std::max(total_.slowest_refusal, took);
    if (took > refusal_limit && !disk.is_broken()) {
      found(total_.slow, "answered after " + std::to_string(took.count()) + " ms");
    }
    const StorageStats stats = world.storage->stats();
    // A segment may have become free in between; but not each time.
    in_between = !is_done && stats.accepting ? in_between + 1 : 0;
    if (in_between <= 3 && (stats.accepting || !stats.trouble.empty())) continue;
    if (disk.is_broken()) return;
    return found(total_.unclear, "refused with " + prober.tally().last_error +
                                     ", and the statistics do not tell why");
  }
}

void FullDisk::judge_recovery(World& world, Worker& prober, const PowerDisk& disk) {
  give_space();
  const Timestamp begun = system_.now();
  const std::uint64_t before = prober.tally().acknowledged;
  while (prober.tally().acknowledged == before && !disk.is_broken()) {
    static_cast<void>(prober.step());
    const Millis took = system_.now() - begun;
    total_.slowest_recovery = std::max(total_.slowest_recovery, took);
    if (took < recovery_limit) continue;
    return found(total_.not_again,
                 "there is space, and no new work is accepted: " + world.storage->stats().trouble);
  }
}

std::string FullDisk::report() const {
  const auto number = [](auto value) { return std::to_string(value); };
  return number(total_.lives_ended) + " ended on the full disk; slowest answer there " +
         number(total_.slowest_refusal.count()) + " ms, accepted again " +
         number(total_.slowest_recovery.count()) + " ms after space came back at most; " +
         number(total_.unclear) + " unclear, " + number(total_.slow) + " slow, " +
         number(total_.bad_lookups) + " bad lookups, " + number(total_.not_again) +
         " did not go on";
}

}  // namespace semel::faults
