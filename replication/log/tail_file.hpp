// How far the replicated log of a replica was synced, in the file `tail` beside it: the absence of
// what it names is damage.
//
// One of its slots is synced with the first sync of each segment, so that it names the newest one.
// The other one is written after every sync, and not synced itself: what a killed process leaves is
// exact, what a power cut leaves is the slot that was synced, at least. Either is written only
// after what it names is on the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "semel/result.hpp"
#include "storage/log/checkpoint.hpp"
#include "storage/log/disk.hpp"

namespace semel::replication {

struct TailContent {
  static constexpr std::uint64_t magic_value = 0x314c4941'544c4d53;  // "SMLTAIL1"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // grows with each write
  std::uint64_t log_id = 0;
  storage::LogOffset synced = 0;  // everything before it has reached the disk; 0: nothing has
  std::uint64_t digest = 0;       // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(TailContent, digest));
  }
};

/// Belongs to one thread.
class TailFile {
 public:
  static constexpr const char* name = "tail";

  /// Up to where the log in this directory was synced; 0: it is not said. Changes nothing. Errors:
  /// storage_failed, storage_damaged.
  [[nodiscard]] static Result<storage::LogOffset> read(const std::string& directory,
                                                       std::uint64_t log_id);
  /// Opens or makes it. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<TailFile>> open(storage::Disk& disk,
                                                              const std::string& directory,
                                                              std::uint64_t log_id);
  /// The log is on the disk up to `to`. `is_named`: the file is synced too when this returns, and
  /// names `to` also after a power cut. Errors: storage_failed (only if `is_named`).
  [[nodiscard]] Status synced(storage::LogOffset to, bool is_named);

 private:
  using File = storage::TwoSlots<TailContent>;
  explicit TailFile(std::unique_ptr<File> file) noexcept : file_(std::move(file)) {}

  std::unique_ptr<File> file_;
  TailContent content_;
};

}  // namespace semel::replication
