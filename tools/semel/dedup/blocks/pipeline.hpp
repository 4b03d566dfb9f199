// Blocks on their way through several threads; they leave in the order of their arrival.
//
//   read > split > judge (each part of the keys in the order of the blocks) > finish > write
//
// read and write run on one thread at a time and in order; split and finish on any number; a part
// is judged by one thread at a time, block after block. So the output does not depend on the number
// of threads. Any thread takes the next step, of the oldest block first.
#pragma once

#include "semel/result.hpp"
#include "tools/semel/dedup/blocks/block.hpp"

namespace semel::tool {

class BlockSteps {
 public:
  virtual ~BlockSteps() = default;
  /// False: there are no more blocks.
  [[nodiscard]] virtual Result<bool> read(Block& block) = 0;
  virtual void split(Block& block, unsigned thread) = 0;
  virtual void judge(Block& block, unsigned part) = 0;
  virtual void finish(Block& block) = 0;
  /// False: stop.
  [[nodiscard]] virtual Result<bool> write(Block& block) = 0;
  /// Cancels: a read() that waits for its input returns. Any thread, at any time.
  virtual void cancel() = 0;
};

struct PipelineSize {
  unsigned threads = 1;
  unsigned parts = 1;
};

/// Returns when all blocks are written, or after the first error or false of write(), or after an
/// error of read() and all blocks before it. Uses fewer threads if the system refuses more.
[[nodiscard]] Status run_pipeline(BlockSteps& steps, PipelineSize size);

}  // namespace semel::tool
