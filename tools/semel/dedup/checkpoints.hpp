// The directory of `semel dedup --resume DIR`, from which a killed run continues.
//
// DIR/checkpoint.json records how far the inputs were read and how long the output then was. Keys
// are not stored: every key has its line in the output, and is read from there. Order on the disk:
// the output is synced, then the checkpoint is written beside, synced, renamed, and the directory
// synced. So everything that a checkpoint names exists, after a power cut too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "semel/result.hpp"
#include "tools/semel/dedup/dedup_options.hpp"

namespace semel::tool {

struct Checkpoint {
  std::uint64_t input = 0;         ///< which of the inputs
  std::uint64_t offset = 0;        ///< of it, not compressed
  std::uint64_t newlines = 0;      ///< of it, before that
  std::uint64_t output_bytes = 0;  ///< as they are in the file
  bool owes_newline = false;       ///< the last line that was written lacks its newline
  bool is_complete = false;        ///< all is written; the output may lack its name
  DedupCounts counts{};
};

/// Used by one process at a time.
class Checkpoints {
 public:
  /// Makes the directory if it is missing, and locks it. Errors: another run has locked it; its
  /// checkpoint belongs to other options, other inputs, or inputs that have changed since.
  [[nodiscard]] static Result<std::unique_ptr<Checkpoints>> open(const DedupOptions& options);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// The checkpoint of an earlier run; none: this run is the first.
  [[nodiscard]] const std::optional<Checkpoint>& last() const noexcept { return last_; }
  /// `output` is synced first.
  [[nodiscard]] Status save(const Checkpoint& checkpoint, int output);
  [[nodiscard]] Status remove();
  /// Where the output is until it is complete: beside its name.
  [[nodiscard]] const std::string& partial_path() const noexcept { return partial_; }

 private:
  explicit Checkpoints(const DedupOptions& options) : options_(options) {}
  [[nodiscard]] Status lock();
  [[nodiscard]] Status read_last();
  [[nodiscard]] Error failed(const std::string& path) const;
  [[nodiscard]] Error failed_with(const std::string& text) const;

  const DedupOptions& options_;
  std::string path_;
  std::string partial_;
  std::string inputs_;   ///< names, sizes and times
  std::string command_;  ///< all options that change the output
  int directory_ = -1;
  std::optional<Checkpoint> last_;
};

}  // namespace semel::tool
