// `semel dedup` without a window and without a state: all keys of the run in exact sets, by several
// threads. Options that need the whole input (--count, --keep last, --unique, --repeated) read it
// once to decide and a second time to write.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "tools/semel/dedup/block_feed.hpp"
#include "tools/semel/dedup/checkpoints.hpp"
#include "tools/semel/dedup/dedup_options.hpp"
#include "tools/semel/dedup/key_hash.hpp"
#include "tools/semel/dedup/key_set.hpp"
#include "tools/semel/dedup/pages.hpp"
#include "tools/semel/dedup/pipeline.hpp"
#include "tools/semel/dedup/progress.hpp"
#include "tools/semel/dedup/selection.hpp"
#include "tools/semel/records/line_writer.hpp"
#include "tools/semel/shared/stop_signals.hpp"

namespace semel::tool {

class ExactDedup final : private BlockSteps {
 public:
  struct Context {
    LineWriter& first;
    LineWriter* duplicates;  ///< null: nowhere
    Progress& progress;
    const StopSignals& stop;
    std::uint64_t bytes_total = 0;       ///< of all inputs; 0: not known
    Checkpoints* checkpoints = nullptr;  ///< null: none are made
    int output = -1;                     ///< with checkpoints: what `first` writes to
  };
  /// All references outlive this.
  ExactDedup(const DedupOptions& options, const Context& context);
  ~ExactDedup() override;

  /// Reads all inputs to the end, or until the reader of the output has closed it, or until a
  /// signal: the lines read by then are judged and written.
  [[nodiscard]] Status run();

  [[nodiscard]] const DedupCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  [[nodiscard]] std::size_t bytes_left() const noexcept { return bytes_left_; }
  [[nodiscard]] std::uint64_t keys() const noexcept;
  /// The peak use of --memory, if it was higher than the present one.
  [[nodiscard]] std::size_t memory_used() const noexcept { return budget_.used(); }

 private:
  enum class Pass : std::uint8_t {
    only,     ///< the first of each key is written as it comes
    rebuild,  ///< the keys are read from the output of an earlier run
    collect,  ///< keys are noted, nothing is written
    write,    ///< the chosen lines are written
  };
  [[nodiscard]] Result<bool> read(Block& block) override;
  void split(Block& block, unsigned thread) override;
  void judge(Block& block, unsigned part) override;
  void finish(Block& block) override;
  [[nodiscard]] Result<bool> write(Block& block) override;
  void cancel() override;

  [[nodiscard]] Status run_pass(Pass pass);
  [[nodiscard]] Status resume(const Checkpoint& last);
  [[nodiscard]] Status save_checkpoint(const Block& block);
  [[nodiscard]] Status open_inputs();
  [[nodiscard]] Result<bool> take_header(Block& block);
  [[nodiscard]] bool take_rest(Block& block);
  [[nodiscard]] Bytes without_mark(const Block& block, Bytes line) const;
  void split_lines(Block& block, LineParser& parser);
  template <class AddLine>
  void for_each_line(Block& block, AddLine add_line);
  void add_key(Block& block, Bytes key, std::uint32_t line);
  void select(Block& block);
  void find_fault_of_memory(Block& block);
  void compose(Block& block);
  [[nodiscard]] std::string occurrence_text(std::uint64_t count) const;
  void write_lines(const Block& block);
  [[nodiscard]] Result<bool> is_output_open();
  void show_progress();
  [[nodiscard]] Error error_of(const Block& block);

  const DedupOptions& options_;
  const Context context_;
  const unsigned parts_;
  const unsigned part_shift_;
  LineRule rule_;  ///< with the fields that the header names, once it was read
  KeyHash hash_;
  MemoryBudget budget_;
  std::vector<KeySet> sets_;
  std::vector<FeedInput> inputs_;
  std::vector<FeedInput> rebuilt_;  ///< the output so far
  Block::Place start_;
  std::optional<Selection> selection_;
  std::unique_ptr<BlockFeed> feed_;
  Pass pass_ = Pass::only;
  std::vector<std::unique_ptr<LineParser>> parsers_;  ///< by thread
  std::optional<std::string> header_;                 ///< without its end
  std::string header_record_;                         ///< to be written before all lines

  // Used by the writing thread.
  std::uint64_t input_newlines_ = 0;  ///< of the input, before the block
  std::uint64_t lines_collected_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::size_t bytes_left_ = 0;
  std::uint64_t bytes_since_ = 0;  ///< of the input, after the last checkpoint
  bool reader_left_ = false;
  std::mutex progress_mutex_;  ///< of counts_ while the threads run
  DedupCounts counts_;
};

}  // namespace semel::tool
