// Reads the inputs one after the other in blocks of whole lines or records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/dedup/blocks/block.hpp"
#include "tools/semel/records/byte_source.hpp"
#include "tools/semel/records/line_parser.hpp"
#include "tools/semel/shared/stop_signals.hpp"

namespace semel::tool {

/// One input. An input that cannot be read twice (a pipe) is stored while it is read, if necessary.
struct FeedInput {
  std::string path;        ///< "-": standard input
  bool is_stored = false;  ///< write the decompressed input to `store`
  int store = -1;          ///< a file without a name; >= 0 and not is_stored: read this instead
};

/// Used by one thread at a time.
class BlockFeed {
 public:
  /// `total`: bytes of all inputs as they are on the disk, 0: not known. `on_wait` is called each
  /// second while an input has nothing to read. All references outlive this.
  BlockFeed(const std::vector<FeedInput>& inputs, const LineRule& rule, std::uint64_t total,
            const StopSignals& stop, std::function<void()> on_wait);

  /// The next block; it was reset. False: the inputs have ended, or a signal has come.
  [[nodiscard]] Result<bool> next(Block& block);
  /// Begins at this place instead of at the first input's beginning.
  void start_at(Block::Place place) { start_ = place; }
  ~BlockFeed();
  BlockFeed(const BlockFeed&) = delete;
  BlockFeed& operator=(const BlockFeed&) = delete;
  /// Ends the wait of next() for an input. Any thread.
  void cancel() const noexcept;

  [[nodiscard]] std::string name_of(std::size_t input) const;
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return source_.bytes_read(); }
  /// The bytes of a line that was incomplete when a signal came.
  [[nodiscard]] std::size_t bytes_held() const noexcept { return held_; }

 private:
  enum class Filled : std::uint8_t { block, end_of_input, stopped };
  [[nodiscard]] Status open();
  [[nodiscard]] Result<Filled> fill(Block& block);
  [[nodiscard]] Result<bool> read_more(Block& block);
  [[nodiscard]] std::size_t end_of_records(Bytes text, bool begins_input) const noexcept;
  [[nodiscard]] bool is_ready(Millis wait) const;
  [[nodiscard]] bool wait_for_input();
  void hand_out(Block& block, std::size_t size);

  const std::vector<FeedInput>& inputs_;
  const LineRule& rule_;
  const std::uint64_t total_;
  const StopSignals& stop_;
  const std::function<void()> on_wait_;
  const int cancelled_;  ///< readable after cancel()
  ByteSource source_;
  std::size_t limit_ = 0;  ///< of the block that is filled
  RawBuffer carry_;        ///< read and not handed out: the beginning of a record
  Block::Place start_;
  std::size_t input_ = 0;
  std::uint64_t offset_ = 0;
  std::size_t held_ = 0;
  bool is_open_ = false;
  bool begins_input_ = false;
  bool at_end_ = false;
  bool is_inside_ = false;      ///< of a line that is too long
  std::optional<Error> error_;  ///< of the input behind the blocks handed out
  bool stopped_ = false;
};

}  // namespace semel::tool
