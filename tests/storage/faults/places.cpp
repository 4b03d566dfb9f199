#include "tests/storage/faults/places.hpp"

#include <filesystem>
#include <utility>

#include "semel/storage_tools.hpp"
#include "tests/storage/boot_disk.hpp"

namespace semel::faults {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t others_max = 4;
constexpr std::size_t backups_max = 3;

void remove(const std::string& path) {
  std::error_code code;  // what stays goes with the scratch directory
  fs::remove_all(path, code);
}

void copy_tree(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
}

/// To another file system, if it must be.
void move(const std::string& from, const std::string& to) {
  std::error_code code;
  fs::rename(from, to, code);
  if (!code) return;
  copy_tree(from, to);
  remove(from);
}

}  // namespace

StorageOptions options_of(const Place& place, storage::Disk& disk) {
  StorageOptions options;
  options.directory = place.storage();
  options.log_bytes = std::size_t{1} << 20;
  options.span = Millis{1'000};
  options.garbage_bytes = std::size_t{1} << 20;
  options.clock_ahead_max = std::chrono::hours{24 * 365 * 99};
  options.disk = &disk;
  return options;
}

void Places::clear() {
  for (const auto* const all : {&others_, &backups_}) {
    for (const Place& place : *all) remove(place.root);
  }
  others_.clear();
  backups_.clear();
  made_.clear();
}

void Places::outlive_boot() {
  for (auto* const all : {&others_, &backups_, &made_}) {
    for (Place& place : *all) place.promise.outlive_boot();
  }
}

void Places::judge(const char* what, const Status& done, const PowerDisk& disk) {
  if (done || disk.is_broken() || may_be_full_) return;
  findings_.wrong(what + (": " + done.error().message()));
}

void Places::act(World& world, const Place& used, Durability level, const Clock& clock,
                 const PowerDisk& disk) {
  if (random_.chance(1, 60)) judge("not drained", world.storage->drain(), disk);
  if (world.cold != nullptr && random_.chance(1, 40)) judge("not spilled", spill(world), disk);
  // What is acknowledged at `memory` may be in no backup yet.
  if (level != Durability::memory && random_.chance(1, 100)) back_up(world, used, clock, disk);
}

void Places::back_up(World& world, const Place& used, const Clock& clock, const PowerDisk& disk) {
  if (made_.size() >= backups_max) return;
  Place made{.is_tiered = used.is_tiered};
  made.root = "backup" + std::to_string(++names_);  // in the directory that is used
  const std::string path = used.root + "/" + made.root;
  const Timestamp begun = system_.now();
  const auto done = world.storage->backup(path);
  if (done) {
    ++total_.backups;
    made.promise = used.promise.as_of(begun, clock.unix_ms());
    made_.push_back(std::move(made));
    return;
  }
  judge("no backup", done.error(), disk);
  if (!disk.is_broken() && fs::exists(path)) {
    findings_.wrong("a failed backup is left: " + done.error().message());
  }
}

/// One of too many is lost.
void Places::add(std::vector<Place>& to, Place place, std::size_t most) {
  to.push_back(std::move(place));
  if (to.size() <= most) return;
  const auto gone = to.begin() + static_cast<std::ptrdiff_t>(random_.below(most));
  remove(gone->root);
  to.erase(gone);
}

void Places::take_backups_out(const Place& used) {
  for (Place& made : made_) {
    const std::string from = used.root + "/" + made.root;
    made.root = scratch_ / made.root;
    move(from, made.root);
    add(backups_, std::move(made), backups_max);
  }
  made_.clear();
}

/// By the tools of the system.
void Places::copy(const Place& used) {
  Place made = used;
  made.root = fresh_name("copy");
  copy_tree(used.root, made.root);
  add(others_, std::move(made), others_max);
  ++total_.copies;
}

void Places::restore(const Clock& clock) {
  if (backups_.empty()) return;
  const Place& from = backups_[random_.below(backups_.size())];
  StorageOptions options;
  options.directory = from.root;
  if (Storage::open(options, clock)) findings_.wrong("a backup is opened");
  Place made = from;
  made.root = fresh_name("restored");
  fs::create_directory(made.root);
  if (const Status done = restore_backup(from.root, made.storage()); !done) {
    return findings_.wrong("not restored: " + done.error().message());
  }
  if (made.is_tiered) fs::rename(made.storage() + "/cold", made.cold());
  opened(made);  // its storage and cold store fit no other
  add(others_, std::move(made), others_max);
  ++total_.restores;
}

void Places::swap(Place& used) {
  if (others_.empty()) return;
  Place& other = others_[random_.below(others_.size())];
  const std::string aside = fresh_name("aside");
  move(used.root, aside);
  move(other.root, used.root);
  move(aside, other.root);
  std::swap(used, other);
  used.root.swap(other.root);
  ++total_.swaps;
}

/// A storage with a cold store that was not used with it last.
void Places::mix(const Place& used, const Clock& clock, const std::string& boot) {
  if (others_.empty()) return;
  const Place& other = others_[random_.below(others_.size())];
  if (!used.is_tiered || used.stamp == other.stamp) return;
  tests::BootDisk disk{boot};
  ++total_.mixed;
  if (open_world(options_of(used, disk), clock, Durability::logged, Joins::no, other.cold())) {
    findings_.wrong("opened with the cold store of another time");
  }
}

/// Ended before it has recovered.
void Places::open_unused(const Place& used, const Clock& clock, const std::string& boot) {
  if (!fs::exists(used.storage())) return;
  tests::BootDisk disk{boot};
  ++total_.unused;
  if (const auto unused = Storage::open(options_of(used, disk), clock); !unused) {
    findings_.not_opened("not opened, to be closed again: " + unused.error().message());
  }
}

void Places::meet(Place& used, const Clock& clock, const std::string& boot) {
  take_backups_out(used);
  switch (random_.below(5)) {
    case 0:
    case 1:
      copy(used);
      break;
    case 2:
      mix(used, clock, boot);
      break;
    default:
      restore(clock);
      break;
  }
  if (random_.chance(1, 2)) swap(used);
  if (random_.chance(1, 3)) open_unused(used, clock, boot);
}

std::string Places::report() const {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  return number(total_.backups) + " backups, " + number(total_.restores) + " restores, " +
         number(total_.copies) + " copies, " + number(total_.swaps) + " swaps, " +
         number(total_.mixed) + " mixed with another cold store, " + number(total_.unused) +
         " opened and not used";
}

}  // namespace semel::faults
