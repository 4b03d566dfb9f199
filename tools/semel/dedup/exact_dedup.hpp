// `semel dedup` without a window and without a state: all keys of the run in exact sets, by several
// threads. Options that need the whole input (--count, --keep last, --unique, --repeated) read it
// once to decide and a second time to write.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "tools/semel/dedup/block_writer.hpp"
#include "tools/semel/dedup/blocks/block_feed.hpp"
#include "tools/semel/dedup/blocks/block_splitter.hpp"
#include "tools/semel/dedup/blocks/key_hash.hpp"
#include "tools/semel/dedup/blocks/key_set.hpp"
#include "tools/semel/dedup/blocks/pages.hpp"
#include "tools/semel/dedup/blocks/pipeline.hpp"
#include "tools/semel/dedup/blocks/table_header.hpp"
#include "tools/semel/dedup/dedup_options.hpp"
#include "tools/semel/dedup/selection.hpp"
#include "tools/semel/shared/stop_signals.hpp"

namespace semel::tool {

/// The passes over the inputs and the fates of the lines. The lines of a block and their keys are
/// the splitter's, the header and the rule are the table header's, outputs and counts the writer's.
class ExactDedup final : private BlockSteps {
 public:
  struct Context {
    BlockWriter::Outputs outputs;
    const StopSignals& stop;
    std::uint64_t bytes_total = 0;  ///< of all inputs; 0: not known
  };
  /// All references outlive this.
  ExactDedup(const DedupOptions& options, const Context& context);
  ~ExactDedup() override;

  /// Reads all inputs to the end, or until the reader of the output has closed it, or until a
  /// signal: the lines read by then are judged and written.
  [[nodiscard]] Status run();

  [[nodiscard]] const DedupCounts& counts() const noexcept { return writer_.counts(); }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return writer_.bytes_read(); }
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
  [[nodiscard]] bool writes_lines() const noexcept {
    return pass_ == Pass::only || pass_ == Pass::write;
  }
  [[nodiscard]] Result<bool> read(Block& block) override;
  void split(Block& block, unsigned thread) override;
  void judge(Block& block, unsigned part) override;
  void finish(Block& block) override;
  [[nodiscard]] Result<bool> write(Block& block) override;
  void cancel() override;

  [[nodiscard]] Status open_inputs();
  [[nodiscard]] Status open_sets();
  [[nodiscard]] Status run_once();
  [[nodiscard]] Status run_twice();
  [[nodiscard]] Status run_pass(Pass pass);
  [[nodiscard]] Status resume(const Checkpoint& last);
  void select(Block& block);
  void find_fault_of_memory(Block& block) const;
  [[nodiscard]] Error error_of(const Block& block) const;

  const DedupOptions& options_;
  const StopSignals& stop_;
  Checkpoints* const checkpoints_;  ///< null: none are made
  const std::uint64_t bytes_total_;
  const unsigned parts_;
  KeyHash hash_;
  TableHeader header_;
  BlockSplitter splitter_;
  BlockWriter writer_;
  MemoryBudget budget_;
  std::vector<KeySet> sets_;  ///< by part
  std::vector<FeedInput> inputs_;
  std::vector<FeedInput> rebuilt_;  ///< the output so far
  Block::Place start_;
  std::optional<Selection> selection_;
  std::unique_ptr<BlockFeed> feed_;
  Pass pass_ = Pass::only;
  std::size_t bytes_left_ = 0;
};

}  // namespace semel::tool
