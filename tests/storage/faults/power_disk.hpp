// A disk that loses power.
//
// The files are real ones (put them on a tmpfs); beside them stands what a disk would hold: for
// each file its bytes at the last sync, for each directory its names at the last sync. A cut makes
// an image of what may be left and starts from there:
//
//   bytes   of each file, sector by sector, those of the last sync or the present ones; with
//           Options::torn also the first bytes of one and the rest of the other. A file that grew
//           may have any length between the two, so its last write may be torn.
//           What was appended arrives in order, for journaling file systems (ext4 data=ordered,
//           xfs, btrfs) make a file longer when the bytes are there; with Options::any_order it
//           does not
//   names   that were made, changed or removed and not synced since: a part of them did not happen,
//           either the last ones of each directory, as journaling file systems have it, or any
//
// Now and then a part of what is not synced reaches the disk by itself, as the system's flusher
// does it, so a sector may also be one that was there between two syncs. A mapped file needs no
// call to be written: its present bytes are read when they matter.
//
// What is not modelled: directories themselves (they are always there).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "semel/clock.hpp"
#include "storage/log/disk.hpp"
#include "tests/proofs/random.hpp"
#include "tests/storage/faults/delay.hpp"
#include "tests/storage/faults/hooked_files.hpp"

namespace semel::faults {

class PowerDisk final : public storage::Disk, private FileHooks {
 public:
  /// What a disk that lies leaves out while it says that it did it. For self-tests.
  enum class Lie { none, bytes, names, cold };  // cold: bytes of the files of a cold store

  /// Which syncs are counted for Options::fail_at: those of Disk, or those of RocksDB's files and
  /// directories. One of them fails. What it should have written is not written by a later one
  /// either, unless it is written anew: the system takes it for clean. Names arrive with a sync of
  /// the next process, for a file system that has lost some for good has stopped.
  enum class Failing { none, disk, rocksdb };

  struct Options {
    std::string root;  ///< a directory; what is in it is what the disk holds
    /// A directory that is not there yet: where the cut leaves its image. Empty: nowhere
    std::string image{};
    std::string boot;
    std::uint64_t seed = 0;
    /// The step (a sync, a file made, renamed, ..) with which power goes. 0: none
    std::uint64_t cut_at = 0;
    bool any_order = false;          ///< of appended sectors
    bool maps = true;                ///< false: the log is written, not mapped
    std::size_t sector_bytes = 512;  ///< what a disk writes at once, unless it is torn
    bool torn = false;
    /// After the cut RocksDB is told that its writes and syncs went well, and nothing is done, as
    /// nothing that a killed process still wanted has an effect. Else they fail: some of RocksDB's
    /// assertions do not expect another error behind one for want of space.
    bool ends_quietly = false;
    std::size_t bytes_free = SIZE_MAX;  ///< it says at most so many
    /// Called before each step, whoever takes it, with the number of names that a cut could still
    /// take although later syncs may rest on them. It may call image() and nothing else of the
    /// disk.
    std::function<void(std::size_t names)> at_step{};
    Lie lie = Lie::none;
    std::uint64_t lie_every = 1;  ///< it lies about one sync in so many
    Failing failing = Failing::none;
    std::uint64_t fail_at = 0;  ///< the sync of that kind that fails, 1 and up
  };

  explicit PowerDisk(const Options& options);
  /// The same disk, used by the next process: `before` was cut with no image, as if its process had
  /// been killed. What was not synced is not synced yet.
  PowerDisk(const Options& options, const PowerDisk& before);
  ~PowerDisk() override;
  PowerDisk(const PowerDisk&) = delete;
  PowerDisk& operator=(const PowerDisk&) = delete;

  // storage::Disk
  [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override;
  [[nodiscard]] bool write_at(int descriptor, std::string_view bytes,
                              std::uint64_t at) noexcept override;
  [[nodiscard]] Status sync(int descriptor, const std::string& path) override;
  [[nodiscard]] Status rewrite_file(const std::string& path, std::uint64_t from) override;
  [[nodiscard]] Status sync_part(char* memory, const std::string& path, std::size_t from,
                                 std::size_t to) override;
  [[nodiscard]] Status remove(const std::string& path) override;
  [[nodiscard]] Status rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] bool maps_safely(const std::string&) override { return options_.maps; }
  [[nodiscard]] std::size_t bytes_free(const std::string& path) override {
    return std::min(options_.bytes_free, Disk::bytes_free(path));
  }
  [[nodiscard]] std::string boot_id() override { return options_.boot; }
  [[nodiscard]] rocksdb::Env* env() override { return env_.get(); }

  /// Leaves in `directory`, which must not exist, what a cut would leave now. In at_step only.
  void image(const std::string& directory);
  /// Power goes now, unless it is gone: from here on every sync, and every step of RocksDB, fails.
  void cut();
  [[nodiscard]] bool is_cut() const noexcept {
    return cut_.load(std::memory_order_acquire);  // mo: acquire [power_disk.cut]
  }
  /// When it went, by SystemClock, and the longest sync before that. After a cut only.
  [[nodiscard]] Timestamp cut_time() const noexcept { return cut_time_; }
  [[nodiscard]] Millis longest_sync() const noexcept { return longest_sync_; }

  /// The sync of Options::fail_at has failed. When, by SystemClock: only if it has.
  [[nodiscard]] bool has_failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // mo: acquire [power_disk.failed]
  }
  [[nodiscard]] Timestamp fail_time() const noexcept { return fail_time_; }
  /// Nothing more can be asked of a storage on it.
  [[nodiscard]] bool is_broken() const noexcept { return is_cut() || has_failed(); }

  /// From now on each sync, and each write of RocksDB, lasts so much longer, up to the cut. Zero
  /// lets those go that wait.
  void set_delay(Millis delay) { delay_.set(delay); }

  /// Some of what is not synced reaches the disk.
  void write_back();

  struct Counts {
    std::uint64_t steps = 0;  ///< before the cut
    std::uint64_t syncs = 0;
    std::uint64_t sectors_lost = 0;  ///< by the cut: in the file, not in the image
    std::uint64_t names_lost = 0;    ///< changes of names that did not happen
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Node;
  using NodePointer = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePointer>;

  /// A change of names that no sync has covered.
  struct Change {
    std::string directory;
    std::string removed;  // empty: none
    std::string added;    // empty: none
    NodePointer node;
    bool never = false;        // its sync failed
    bool is_followed = false;  // another file of the directory was synced later
  };

  rocksdb::IOStatus on(const FileStep& step,
                       const std::function<rocksdb::IOStatus()>& act) override;
  [[nodiscard]] rocksdb::IOStatus after_cut(const FileStep& step) const;
  void note(const FileStep& step);
  void move_names_below(const std::string& from, const std::string& to);
  [[nodiscard]] std::size_t names_overdue() const;
  [[nodiscard]] bool is_last_step();
  [[nodiscard]] bool lies_about(Lie what);
  void take_names_of_root(const Names& known);
  [[nodiscard]] bool fails(Failing kind);
  void fail_node(const std::string& path);
  void fail_names(const std::string& directory);
  [[nodiscard]] std::string writable(const Node& node) const;
  /// `call`: what a real disk would have been asked, for the error.
  [[nodiscard]] Status sync_now(const char* call, const std::string& path, std::size_t from,
                                std::size_t to);
  void sync_node(const std::string& path, std::size_t from = 0, std::size_t to = SIZE_MAX);
  void sync_names(const std::string& directory);
  void forget_changes_of(const std::string& path);
  [[nodiscard]] std::string mix(const Node& node);
  void write_back_locked();
  void cut_locked();
  [[nodiscard]] Names names_after_cut();
  void write_image(const std::string& directory, const Names& names);

  const Options options_;
  const SystemClock clock_;
  Delay delay_;  // waited for without mutex_
  std::unique_ptr<rocksdb::Env> env_;
  std::atomic<bool> cut_{false};     // [power_disk.cut] released with the image complete
  std::atomic<bool> failed_{false};  // [power_disk.failed] released before the sync returns

  mutable std::mutex mutex_;  // of all below
  proofs::Random random_;
  Names live_;
  Names held_;  // by the disk
  std::vector<Change> changes_;
  std::set<std::string> synced_directories_;  // at any time
  std::string half_made_;                     // a file that create() was making when power went
  std::size_t half_made_bytes_ = 0;
  Counts counts_;
  std::uint64_t countdown_ = 0;  // to the sync that fails
  Timestamp fail_time_{};
  Timestamp cut_time_{};
  Millis longest_sync_{0};
};

}  // namespace semel::faults
