// A real disk on which a test makes one kind of step of RocksDB's files fail, or which it declares
// full.
#pragma once

#include <rocksdb/env.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/log/disk.hpp"
#include "tests/storage/faults/hooked_files.hpp"

namespace semel::faults {

class FailingDisk final : public storage::Disk, private FileHooks {
 public:
  enum class How : std::uint8_t { input_output, no_space };

  /// `parts`: all of them are in the paths of the files of which a step fails.
  explicit FailingDisk(std::vector<std::string> parts, Step step = Step::sync,
                       How how = How::input_output)
      : parts_(std::move(parts)), step_(step), how_(how), env_(make_hooked_env(*this)) {}
  [[nodiscard]] rocksdb::Env* env() override { return env_.get(); }
  [[nodiscard]] std::size_t bytes_free(const std::string& path) override {
    // mo: relaxed: as seen by whoever asks next
    return is_full_.load(std::memory_order_relaxed) ? 0 : Disk::bytes_free(path);
  }
  /// All but the next `good` fail.
  void fail_after(int good) noexcept {
    good_.store(good, std::memory_order_relaxed);  // mo: relaxed: as seen by whoever is next
  }
  void heal() noexcept { fail_after(std::numeric_limits<int>::max()); }
  void be_full(bool full) noexcept {
    is_full_.store(full, std::memory_order_relaxed);  // mo: relaxed: as above
  }

 private:
  rocksdb::IOStatus on(const FileStep& step,
                       const std::function<rocksdb::IOStatus()>& act) override {
    const bool hit = step.step == step_ &&
                     std::all_of(parts_.begin(), parts_.end(), [&](const std::string& part) {
                       return step.path.find(part) != std::string::npos;
                     });
    // mo: relaxed: as above
    if (!hit || good_.fetch_sub(1, std::memory_order_relaxed) > 0) return act();
    fail_after(0);
    return how_ == How::no_space
               ? rocksdb::IOStatus::NoSpace(step.path, "No space left on device")
               : rocksdb::IOStatus::IOError("fsync " + step.path, "Input/output error");
  }

  const std::vector<std::string> parts_;
  const Step step_;
  const How how_;
  std::atomic<int> good_{std::numeric_limits<int>::max()};
  std::atomic<bool> is_full_{false};
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace semel::faults
