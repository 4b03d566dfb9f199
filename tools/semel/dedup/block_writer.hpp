// The end of a block's way: its output, the counts of all lines so far, and the checkpoints that
// hold both together.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "semel/result.hpp"
#include "tools/semel/dedup/blocks/block.hpp"
#include "tools/semel/dedup/blocks/table_header.hpp"
#include "tools/semel/dedup/checkpoints.hpp"
#include "tools/semel/dedup/dedup_options.hpp"
#include "tools/semel/dedup/progress.hpp"
#include "tools/semel/records/line_writer.hpp"

namespace semel::tool {

/// Used by the thread that writes, but for compose() and show_progress().
class BlockWriter {
 public:
  struct Outputs {
    LineWriter& first;
    LineWriter* duplicates;  ///< null: nowhere
    Progress& progress;
    Checkpoints* checkpoints = nullptr;  ///< null: none are made
    int output = -1;                     ///< with checkpoints: what `first` writes to
  };
  /// All references outlive this.
  BlockWriter(const DedupOptions& options, const Outputs& outputs, const TableHeader& header)
      : options_(options), outputs_(outputs), header_(header) {}

  /// Puts the output of a judged block together, or notes that its lines are the output as they
  /// are. Any thread.
  void compose(Block& block) const;
  /// Writes what compose() has made. Errors: see is_open().
  void write(const Block& block);
  /// Counts the lines of a block, written or not, and shows the progress.
  void count(const Block& block);
  /// False: the reader of the output has closed it. Errors: an output cannot be written.
  [[nodiscard]] Result<bool> is_open();
  [[nodiscard]] bool reader_left() const noexcept { return reader_left_; }

  /// Behind a block that was written and counted: makes a checkpoint if one is due.
  [[nodiscard]] Status save_checkpoint(const Block& block);
  /// Cuts the output back to where it was at a checkpoint. Errors: it is shorter.
  [[nodiscard]] Status cut_back_to(const Checkpoint& last);
  /// Counts on from a checkpoint.
  void continue_from(const Checkpoint& last);

  /// While the threads run: of the thread that writes only.
  [[nodiscard]] const DedupCounts& counts() const noexcept { return counts_; }
  void restart_counts() noexcept { counts_ = {}; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  /// The number of the line at fault, from 1, of the block that was counted last.
  [[nodiscard]] std::uint64_t line_at_fault(const Block& block) const;
  /// Any thread: the one that reads shows it while it waits.
  void show_progress();

 private:
  [[nodiscard]] std::string occurrence_text(std::uint64_t count) const;

  const DedupOptions& options_;
  const Outputs outputs_;
  const TableHeader& header_;
  std::uint64_t newlines_before_ = 0;  ///< of the input, before the last block
  std::uint64_t newlines_ = 0;         ///< of the input, the last block included
  std::uint64_t bytes_since_ = 0;      ///< of the input, after the last checkpoint
  bool reader_left_ = false;
  std::mutex progress_mutex_;  ///< of the two below while the threads run
  DedupCounts counts_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace semel::tool
