// The work of `semel dedup` with a window or a state: the first occurrence of each key passes,
// repeats within the window do not. One thread reads, asks the engine in batches, and writes in the
// order of the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "tools/semel/dedup/block_reader.hpp"
#include "tools/semel/dedup/dedup_options.hpp"
#include "tools/semel/dedup/line_batch.hpp"
#include "tools/semel/dedup/progress.hpp"
#include "tools/semel/records/line_parser.hpp"
#include "tools/semel/records/line_writer.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/stop_signals.hpp"

namespace semel::tool {

class Dedup {
 public:
  /// The state of the lines' own time when a run begins.
  struct EventTime {
    ManualClock* clock = nullptr;  ///< the engine's, when the lines carry the time; else null
    std::optional<std::int64_t> watermark{};  ///< of earlier runs
    std::int64_t bias_ms = 0;                 ///< the clock minus the watermark; 0: any
  };
  /// All references must outlive the run.
  Dedup(const DedupOptions& options, Engine& engine, const EventTime& event_time, LineWriter& first,
        LineWriter* duplicates, Progress& progress, const StopSignals& stop);

  /// Reads all inputs to the end, or until the reader of the output has closed it, or until a
  /// signal: the lines read by then are judged and written.
  [[nodiscard]] Status run();
  /// The bytes of an incomplete line read before a signal; it is neither judged nor written.
  [[nodiscard]] std::size_t bytes_left() const noexcept { return reader_.bytes_held(); }

  [[nodiscard]] const DedupCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return reader_.bytes_read(); }

 private:
  [[nodiscard]] Status run_input(const std::string& path);
  [[nodiscard]] Status run_block(Bytes block);
  [[nodiscard]] Status add_part(Bytes part);
  [[nodiscard]] Status read_header(Bytes record);
  [[nodiscard]] std::size_t record_size(Bytes text) const noexcept;
  [[nodiscard]] Status add_line(Bytes line);
  [[nodiscard]] Status pass_line_without_key(LineError error, Bytes line);
  /// True: the line is late.
  [[nodiscard]] Result<bool> advance_to(std::int64_t unix_ms);
  [[nodiscard]] Status flush_batch();
  void emit(std::size_t index);
  [[nodiscard]] Status retry(std::size_t index);
  /// False: the reader of the output has closed it.
  [[nodiscard]] Result<bool> is_output_open();
  [[nodiscard]] bool wait_for_input();
  [[nodiscard]] Error error_at(std::uint64_t line, const std::string& text) const;

  const DedupOptions& options_;
  Engine& engine_;
  LineWriter& first_;
  LineWriter* duplicates_;
  Progress& progress_;
  const StopSignals& stop_;
  BlockReader reader_;
  LineParser parser_;
  DedupCounts counts_;
  std::string input_name_;
  std::uint64_t input_line_ = 0;   ///< lines of this input taken so far
  std::uint64_t inner_lines_ = 0;  ///< newlines inside of the last record
  bool reader_left_ = false;
  bool expects_header_ = false;
  bool in_long_line_ = false;  ///< the next bytes are the rest of a line that add_part() began
  std::optional<std::string> header_;
  LineTime time_;
  LineBatch batch_;
};

/// Opens the files and the engine, runs, reports. Writes errors to standard error itself.
[[nodiscard]] Exit run_dedup(const DedupOptions& options);

}  // namespace semel::tool
