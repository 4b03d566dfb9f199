#include "tests/storage/faults/power_disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

namespace semel::faults {
namespace {

std::string parent_of(const std::string& path) {
  return std::filesystem::path{path}.parent_path().string();
}

/// The model itself must not fail; if the machine does, the run is worth nothing.
void require(bool good, const std::string& what) {
  if (good) return;
  std::perror(("power_disk: " + what).c_str());
  std::_Exit(3);
}

std::string read_whole(int descriptor) {
  struct stat info {};
  require(fstat(descriptor, &info) == 0, "fstat");
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        pread(descriptor, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    require(got >= 0, "pread");
    if (got == 0) break;  // it was made shorter meanwhile
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Error power_is_gone(const std::string& what) {
  errno = EIO;
  return storage::system_error(what);
}

}  // namespace

/// A file, whatever its names are. Its descriptor reads it after the last of them is gone.
struct PowerDisk::Node {
  explicit Node(const std::string& path) : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    require(descriptor >= 0, path);
  }
  ~Node() { close(descriptor); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  int descriptor;
  std::string held;                           // by the disk
  std::map<std::size_t, std::string> failed;  // sectors whose sync failed: taken for clean
};

PowerDisk::PowerDisk(const Options& options)
    : options_(options),
      env_(make_hooked_env(*this)),
      random_(options.seed),
      countdown_(options.fail_at) {
  std::filesystem::create_directories(options_.root);
  take_names_of_root({});
  held_ = live_;
}

PowerDisk::PowerDisk(const Options& options, const PowerDisk& before)
    : options_(options),
      env_(make_hooked_env(*this)),
      random_(options.seed),
      countdown_(options.fail_at) {
  const std::lock_guard lock{before.mutex_};
  take_names_of_root(before.live_);
  held_ = before.held_;
  changes_ = before.changes_;
  for (Change& change : changes_) change.never = false;
  synced_directories_ = before.synced_directories_;
}

PowerDisk::~PowerDisk() = default;

void PowerDisk::take_names_of_root(const Names& known) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator{options_.root}) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string();
    const auto found = known.find(path);
    NodePointer node = found == known.end() ? nullptr : found->second;
    if (node == nullptr) {
      node = std::make_shared<Node>(path);
      node->held = read_whole(node->descriptor);
    }
    live_[path] = node;
  }
}

/// Names in directories that are synced, of files whose bytes are, where another file of the
/// directory was synced later: what it says may need them. All other names that a cut could take,
/// nearly always some, are those of files that nobody needs any more, or not yet.
std::size_t PowerDisk::names_overdue() const {
  std::size_t overdue = 0;
  for (const Change& change : changes_) {
    if (!change.is_followed || synced_directories_.count(change.directory) == 0) continue;
    const auto found = live_.find(change.added);
    overdue += found != live_.end() && found->second == change.node ? 1 : 0;
  }
  return overdue;
}

/// Counts a step. True: power goes with it.
bool PowerDisk::is_last_step() {
  ++counts_.steps;
  if (options_.at_step) options_.at_step(names_overdue());
  return options_.cut_at != 0 && counts_.steps == options_.cut_at;
}

Result<int> PowerDisk::create(const std::string& path, std::size_t bytes) {
  delay_.wait();
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (cut_.load(std::memory_order_relaxed)) return power_is_gone(path);
  half_made_ = path;
  half_made_bytes_ = bytes;
  if (is_last_step()) {
    cut_locked();
    return power_is_gone(path);
  }
  half_made_.clear();
  SEMEL_TRY(descriptor, storage::Disk::create(path, bytes));
  const auto node = std::make_shared<Node>(path);
  node->held = read_whole(node->descriptor);
  forget_changes_of(path);
  live_[path] = node;
  held_[path] = node;
  return descriptor;
}

/// What RocksDB took for done after the cut (Options::ends_quietly) must have no effect either.
bool PowerDisk::write_at(int descriptor, std::string_view bytes, std::uint64_t at) noexcept {
  if (!is_cut()) return storage::Disk::write_at(descriptor, bytes, at);
  errno = EIO;
  return false;
}

// A tmpfs has nothing to sync; what matters is the model.
Status PowerDisk::sync(int /*descriptor*/, const std::string& path) {
  return sync_now("fdatasync", path, 0, SIZE_MAX);
}

Status PowerDisk::rewrite_file(const std::string& path, std::uint64_t from) {
  {
    const std::lock_guard lock{mutex_};
    const auto found = live_.find(path);
    if (found != live_.end()) found->second->failed.clear();  // none of it is clean any more
  }
  return storage::Disk::rewrite_file(path, from);
}

Status PowerDisk::sync_part(char* /*memory*/, const std::string& path, std::size_t from,
                            std::size_t to) {
  constexpr std::size_t page = 4096;
  return sync_now("msync", path, from / page * page, (to + page - 1) / page * page);
}

Status PowerDisk::sync_now(const char* call, const std::string& path, std::size_t from,
                           std::size_t to) {
  const Timestamp begun = clock_.now();
  delay_.wait();
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (cut_.load(std::memory_order_relaxed)) return power_is_gone(path);
  if (is_last_step()) {
    cut_locked();
    return power_is_gone(path);
  }
  if (fails(Failing::disk)) {
    fail_node(path);
    errno = EIO;
    return storage::system_error(call + (" " + path));
  }
  sync_node(path, from, to);
  longest_sync_ = std::max(longest_sync_, clock_.now() - begun);
  return Done{};
}

Status PowerDisk::remove(const std::string& path) {
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (cut_.load(std::memory_order_relaxed)) return power_is_gone(path);
  if (is_last_step()) {
    cut_locked();
    return power_is_gone(path);
  }
  SEMEL_TRY(removed, storage::Disk::remove(path));
  note({Step::remove, path});
  return removed;
}

Status PowerDisk::rename(const std::string& from, const std::string& to) {
  delay_.wait();
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (cut_.load(std::memory_order_relaxed)) return power_is_gone(from);
  SEMEL_TRY(renamed, storage::Disk::rename(from, to));
  note({Step::rename, from, to});
  if (is_last_step()) {  // it may have happened
    cut_locked();
    return power_is_gone(from);
  }
  sync_names(parent_of(to));
  return renamed;
}

rocksdb::IOStatus PowerDisk::after_cut(const FileStep& step) const {
  const bool may_seem_done =
      step.step == Step::write || step.step == Step::sync || step.step == Step::sync_names;
  return options_.ends_quietly && may_seem_done
             ? rocksdb::IOStatus::OK()
             : rocksdb::IOStatus::IOError("power is gone", step.path);
}

rocksdb::IOStatus PowerDisk::on(const FileStep& step,
                                const std::function<rocksdb::IOStatus()>& act) {
  const Timestamp begun = clock_.now();
  const bool syncs = step.step == Step::sync || step.step == Step::sync_names;
  if (syncs || step.step == Step::write) delay_.wait();
  if (step.step == Step::write) {  // the image is made from the file, whenever that is
    return is_cut() ? after_cut(step) : act();
  }
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (!cut_.load(std::memory_order_relaxed) && is_last_step()) cut_locked();
  // mo: relaxed: as above.
  if (cut_.load(std::memory_order_relaxed)) return after_cut(step);
  if (syncs && fails(Failing::rocksdb)) {
    step.step == Step::sync ? fail_node(step.path) : fail_names(step.path);
    return rocksdb::IOStatus::IOError("fsync " + step.path, "Input/output error");
  }
  if (step.step == Step::sync) {
    sync_node(step.path);
    longest_sync_ = std::max(longest_sync_, clock_.now() - begun);
    return rocksdb::IOStatus::OK();
  }
  if (step.step == Step::sync_names) {
    sync_names(step.path);
    return rocksdb::IOStatus::OK();
  }
  const rocksdb::IOStatus status = act();
  if (status.ok()) note(step);
  return status;
}

/// A step that changed a name has been done on the real files.
void PowerDisk::note(const FileStep& step) {
  const auto found = live_.find(step.path);
  const bool known = found != live_.end();
  switch (step.step) {
    case Step::create:
      if (!known) {
        const auto node = std::make_shared<Node>(step.path);
        live_[step.path] = node;
        changes_.push_back({parent_of(step.path), "", step.path, node});
      }
      return;
    case Step::remove:
      if (known) {
        changes_.push_back({parent_of(step.path), step.path, "", found->second});
        live_.erase(found);
      }
      return;
    case Step::rename:
    case Step::link:
      if (known) {
        const bool moves = step.step == Step::rename;
        const NodePointer node = found->second;
        changes_.push_back({parent_of(step.target), moves ? step.path : "", step.target, node});
        if (moves) live_.erase(found);
        live_[step.target] = node;
      } else if (step.step == Step::rename) {
        move_names_below(step.path, step.target);
      }
      return;
    case Step::write:
    case Step::sync:
    case Step::sync_names:
      return;
  }
}

/// A directory has another name. Names of directories are on the disk at once here.
void PowerDisk::move_names_below(const std::string& from, const std::string& to) {
  const auto moved = [&](const std::string& path) {
    if (path == from) return to;
    return path.starts_with(from + "/") ? to + path.substr(from.size()) : path;
  };
  for (Names* const names : {&live_, &held_}) {
    Names next;
    for (const auto& [path, node] : *names) next[moved(path)] = node;
    *names = std::move(next);
  }
  for (Change& change : changes_) {
    change.directory = moved(change.directory);
    change.removed = moved(change.removed);
    change.added = moved(change.added);
  }
  std::set<std::string> synced;
  for (const std::string& path : synced_directories_) synced.insert(moved(path));
  synced_directories_ = std::move(synced);
}

bool PowerDisk::lies_about(Lie what) {
  return options_.lie == what && random_.below(options_.lie_every) == 0;
}

bool PowerDisk::fails(Failing kind) {
  return kind == options_.failing && countdown_ != 0 && --countdown_ == 0;
}

void PowerDisk::fail_node(const std::string& path) {
  fail_time_ = clock_.now();
  failed_.store(true, std::memory_order_release);  // mo: release [power_disk.failed]
  const auto found = live_.find(path);
  if (found == live_.end()) return;
  Node& node = *found->second;
  const std::string present = read_whole(node.descriptor);
  const std::size_t sector_bytes = options_.sector_bytes;
  for (std::size_t at = 0; at < present.size(); at += sector_bytes) {
    const std::string sector = present.substr(at, sector_bytes);
    if (at >= node.held.size() || node.held.compare(at, sector_bytes, sector) != 0) {
      node.failed[at] = sector;
    }
  }
}

void PowerDisk::fail_names(const std::string& directory) {
  fail_time_ = clock_.now();
  failed_.store(true, std::memory_order_release);  // mo: release [power_disk.failed]
  for (Change& change : changes_) change.never = change.never || change.directory == directory;
}

/// What a sync would leave on the disk: the present bytes, except for sectors that a failed one
/// should have written and that did not change since.
std::string PowerDisk::writable(const Node& node) const {
  std::string bytes = read_whole(node.descriptor);
  for (const auto& [at, sector] : node.failed) {
    if (at >= bytes.size() || bytes.compare(at, sector.size(), sector) != 0) continue;
    std::string old = at < node.held.size() ? node.held.substr(at, sector.size()) : std::string{};
    old.resize(sector.size(), '\0');
    bytes.replace(at, sector.size(), old);
  }
  return bytes;
}

void PowerDisk::sync_node(const std::string& path, std::size_t from, std::size_t to) {
  ++counts_.syncs;
  if (lies_about(Lie::bytes)) return;
  if (path.find("/cold/") != std::string::npos && lies_about(Lie::cold)) return;
  const auto found = live_.find(path);
  if (found != live_.end()) {
    for (Change& change : changes_) {
      const bool is_other = change.node != found->second && !change.node->held.empty();
      if (is_other && change.directory == parent_of(path)) change.is_followed = true;
    }
    std::string& held = found->second->held;
    std::string bytes = writable(*found->second);
    if (from == 0 && to >= bytes.size()) {
      held = std::move(bytes);
    } else if (held.size() == bytes.size()) {  // one that is mapped does not grow
      held.replace(from, std::min(to, bytes.size()) - from, bytes, from,
                   std::min(to, bytes.size()) - from);
    }
  }
  if (random_.chance(1, 4)) write_back_locked();
}

namespace {

template <class Names, class Change>
void apply_change(const Change& change, Names& names) {
  if (!change.removed.empty()) {
    const auto found = names.find(change.removed);
    if (found != names.end() && found->second == change.node) names.erase(found);
  }
  if (!change.added.empty()) names[change.added] = change.node;
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void PowerDisk::sync_names(const std::string& directory) {
  ++counts_.syncs;
  const std::string which = without_slash(directory);
  synced_directories_.insert(which);
  if (lies_about(Lie::names)) return;
  for (const Change& change : changes_) {
    if (change.directory == which && !change.never) apply_change(change, held_);
  }
  std::erase_if(changes_,
                [&](const Change& change) { return change.directory == which && !change.never; });
}

void PowerDisk::forget_changes_of(const std::string& path) {
  std::erase_if(changes_, [&](const Change& change) {
    return change.added == path || change.removed == path;
  });
}

/// What the disk may hold of a file that is partly synced.
std::string PowerDisk::mix(const Node& node) {
  const std::string present = writable(node);
  const std::string& held = node.held;
  if (present == held) return present;
  // How much of it arrived: nothing, all of it, or any part.
  constexpr std::array<std::uint64_t, 7> shares{0, 0, 10, 50, 90, 100, 100};
  const std::uint64_t share = random_.pick(shares);
  const std::size_t sector_bytes = options_.sector_bytes;
  std::size_t length = present.size();
  const std::size_t shorter = std::min(present.size(), held.size());
  if (present.size() != held.size() && !random_.chance(share, 100)) {
    length = random_.chance(1, 2)
                 ? held.size()
                 : shorter + random_.below(std::max(present.size(), held.size()) - shorter + 1);
  }
  std::string mixed = held;
  mixed.resize(length);
  if (!options_.any_order && length > held.size()) {  // the sector in which the growth begins
    const std::size_t begin = held.size();
    const std::size_t end = std::min(length, (begin / sector_bytes + 1) * sector_bytes);
    mixed.replace(begin, end - begin, present, begin, end - begin);
  }
  for (std::size_t at = 0; at < std::min(length, present.size()); at += sector_bytes) {
    const std::size_t end = std::min({at + sector_bytes, length, present.size()});
    if (mixed.compare(at, end - at, present, at, end - at) == 0) continue;
    const bool arrived_in_order = !options_.any_order && at >= held.size();
    if (arrived_in_order || random_.chance(share, 100)) {
      mixed.replace(at, end - at, present, at, end - at);
    } else {
      ++counts_.sectors_lost;
      if (options_.torn && random_.chance(1, 8)) {
        const std::size_t first = random_.below(end - at);
        mixed.replace(at, first, present, at, first);
      }
    }
  }
  return mixed;
}

void PowerDisk::write_back() {
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (!cut_.load(std::memory_order_relaxed)) write_back_locked();
}

void PowerDisk::write_back_locked() {
  if (live_.empty()) return;
  auto which = live_.begin();
  std::advance(which, static_cast<std::ptrdiff_t>(random_.below(live_.size())));
  const std::uint64_t lost = counts_.sectors_lost;
  which->second->held = mix(*which->second);
  counts_.sectors_lost = lost;  // it may arrive yet
}

void PowerDisk::cut() {
  const std::lock_guard lock{mutex_};
  // mo: relaxed: set under mutex_.
  if (!cut_.load(std::memory_order_relaxed)) cut_locked();
}

/// While the image is made nobody's sync returns, so whatever is acknowledged rests on a sync that
/// is in it.
void PowerDisk::cut_locked() {
  cut_time_ = clock_.now();
  longest_sync_ = std::max(longest_sync_, delay_.longest());
  if (!options_.image.empty()) write_image(options_.image, names_after_cut());
  cut_.store(true, std::memory_order_release);  // mo: release [power_disk.cut]
  delay_.set(Millis{0});
}

void PowerDisk::image(const std::string& directory) {
  // mo: relaxed: set under mutex_, which at_step is called with.
  if (!cut_.load(std::memory_order_relaxed)) write_image(directory, names_after_cut());
}

PowerDisk::Names PowerDisk::names_after_cut() {
  Names names = held_;
  // A journaling file system keeps the order of names; which of the last are there is open.
  const bool in_order = !options_.any_order || random_.chance(1, 2);
  const bool none_happened = random_.chance(1, 3);
  std::set<std::string> stopped;  // directories whose further changes did not happen
  for (const Change& change : changes_) {
    const bool happened = !none_happened && !change.never && stopped.count(change.directory) == 0 &&
                          (random_.chance(1, 2) || random_.chance(1, 4));
    if (happened) {
      apply_change(change, names);
    } else {
      ++counts_.names_lost;
      if (in_order) stopped.insert(change.directory);
    }
  }
  return names;
}

void PowerDisk::write_image(const std::string& directory, const Names& names) {
  const std::filesystem::path root{options_.root};
  const std::filesystem::path image{directory};
  std::filesystem::create_directories(image);
  for (const auto& entry : std::filesystem::recursive_directory_iterator{root}) {
    if (entry.is_directory()) {
      std::filesystem::create_directories(image / entry.path().lexically_relative(root));
    }
  }
  std::map<const Node*, std::string> contents;  // a file with two names has one content
  const auto write = [&](const std::string& path, const std::string& bytes) {
    const std::string to = (image / std::filesystem::path{path}.lexically_relative(root)).string();
    std::filesystem::create_directories(parent_of(to));  // a backup's directory gets another name
    std::FILE* file = std::fopen(to.c_str(), "wb");
    require(file != nullptr, to);
    require(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(), to);
    require(std::fclose(file) == 0, to);
  };
  for (const auto& [path, node] : names) {
    auto found = contents.find(node.get());
    if (found == contents.end()) found = contents.emplace(node.get(), mix(*node)).first;
    write(path, found->second);
  }
  if (!half_made_.empty() && random_.chance(3, 4)) {
    const std::array<std::size_t, 3> sizes{0, half_made_bytes_,
                                           random_.below(half_made_bytes_ + 1)};
    write(half_made_, std::string(random_.pick(sizes), '\0'));
  }
}

PowerDisk::Counts PowerDisk::counts() const {
  const std::lock_guard lock{mutex_};
  return counts_;
}

}  // namespace semel::faults
