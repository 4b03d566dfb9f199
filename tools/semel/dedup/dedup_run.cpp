// Around the work of dedup.cpp: files, engine, statistics, errors.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/semel/dedup/dedup.hpp"
#include "tools/semel/dedup/dedup_state.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

struct Inputs {
  std::uint64_t bytes_total = 0;  ///< 0: an input is not a plain file, the sum is not known
};

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Checks every input before the first byte is read. An output that is also an input is never
/// opened.
Result<Inputs> check_inputs(const DedupOptions& options) {
  Inputs inputs;
  struct stat output {};
  struct stat duplicates {};
  const bool output_is_file = fstat(STDOUT_FILENO, &output) == 0 && S_ISREG(output.st_mode);
  const bool duplicates_exist = !options.duplicates_path.empty() &&
                                stat(options.duplicates_path.c_str(), &duplicates) == 0 &&
                                S_ISREG(duplicates.st_mode);
  if (duplicates_exist && output_is_file && is_same_file(duplicates, output)) {
    return usage_error(fmt::format("'{}' is also standard output: --duplicates needs another file",
                                   options.duplicates_path));
  }
  bool total_known = true;
  for (const std::string& path : options.files) {
    struct stat input {};
    const bool is_stdin = path == "-";
    if ((is_stdin ? fstat(STDIN_FILENO, &input) : stat(path.c_str(), &input)) != 0) {
      return file_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    }
    if (S_ISDIR(input.st_mode)) {
      return file_error(fmt::format("cannot read '{}': {}", path, std::strerror(EISDIR)));
    }
    total_known = total_known && S_ISREG(input.st_mode);
    inputs.bytes_total += static_cast<std::uint64_t>(input.st_size);
    if ((duplicates_exist && is_same_file(input, duplicates)) ||
        (output_is_file && S_ISREG(input.st_mode) && is_same_file(input, output))) {
      return usage_error(fmt::format("'{}' is both input and output", path));
    }
  }
  if (!total_known) inputs.bytes_total = 0;
  return inputs;
}

void print_stats(const DedupOptions& options, const Dedup& dedup, const Engine& engine,
                 Millis elapsed) {
  const DedupCounts& counts = dedup.counts();
  const Stats stats = engine.stats();
  const auto lines = static_cast<double>(counts.lines);
  const double seconds = static_cast<double>(std::max(elapsed, Millis{1}).count()) / 1000;
  const double share = counts.lines == 0 ? 0 : 100 * static_cast<double>(counts.duplicates) / lines;
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  row("lines", format_count(counts.lines));
  row("first", format_count(counts.first));
  row("duplicates", fmt::format("{} ({:.1f} %)", format_count(counts.duplicates), share));
  if (options.missing == DedupOptions::Missing::pass) {
    row("without key", format_count(counts.without_key));
  }
  if (options.rule.time_format) {
    row("late", fmt::format("{} ({})", format_count(counts.late),
                            options.late == DedupOptions::Late::pass ? "passed" : "dropped"));
  }
  row("time", fmt::format("{:.3f} s", seconds));
  row("rate", fmt::format("{} lines/s, {:.0f} MB/s", format_rate(lines / seconds),
                          static_cast<double>(dedup.bytes_read()) / 1e6 / seconds));
  row("remembered", fmt::format("{} keys", format_count(stats.records)));
  row("memory",
      fmt::format("{} engine (limit {}), {} process at most", format_bytes(stats.bytes_used),
                  format_bytes(stats.bytes_limit), format_bytes(peak_resident_bytes())));
  std::fputs(text.c_str(), stderr);
}

Exit report(const Error& error) {
  print_error("semel dedup: {}\n", error.detail);
  return exit_of(error.code);
}

/// Ended by a signal: reports how far the output goes.
Exit report_stop(int signal, const Dedup& dedup) {
  constexpr int signal_exit = 128;  // as shells number them
  std::string left;
  if (dedup.bytes_left() != 0) {
    left = fmt::format("; {} bytes of an unfinished line were not written", dedup.bytes_left());
  }
  print_error("semel dedup: stopped by SIG{} after {} lines, all written{}\n", sigabbrev_np(signal),
              format_count(dedup.counts().lines), left);
  return static_cast<Exit>(signal_exit + signal);
}

/// Null: no file of duplicates was asked for.
Result<std::unique_ptr<LineWriter>> open_duplicates(const std::string& path) {
  if (path.empty()) return std::unique_ptr<LineWriter>{};
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return file_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  }
  return std::make_unique<LineWriter>(descriptor, path);
}

/// Flushes and closes the outputs; an error may appear only here.
Status finish_outputs(LineWriter& first, LineWriter* duplicates) {
  first.finish();
  if (duplicates != nullptr) duplicates->finish();
  if (duplicates != nullptr && duplicates->state() != LineWriter::State::good) {
    return duplicates->error();
  }
  if (first.state() == LineWriter::State::failed) return first.error();
  return Done{};
}

}  // namespace

Exit run_dedup(const DedupOptions& options) {
  const StopSignals stop;
  const Result<Inputs> inputs = check_inputs(options);
  if (!inputs) return report(inputs.error());
  const Result<std::unique_ptr<LineWriter>> opened = open_duplicates(options.duplicates_path);
  if (!opened) return report(opened.error());
  LineWriter* const duplicates = opened->get();

  std::unique_ptr<DedupState> state;
  if (!options.state_path.empty()) {
    Result<std::unique_ptr<DedupState>> opened_state = open_dedup_state(options);
    if (!opened_state) return report(opened_state.error());
    state = *std::move(opened_state);
  }
  ManualClock event_clock;
  Dedup::EventTime event_time;
  Options engine_options;
  engine_options.memory_bytes = options.memory_bytes;
  engine_options.background = Millis{100};  // also where the lines' times move the clock
  if (state != nullptr) {
    state->prepare(engine_options);
    event_time = {state->event_clock(), state->watermark(), event_bias_ms};
  } else if (options.rule.time_format) {
    engine_options.clock = event_time.clock = &event_clock;
  }
  Result<std::unique_ptr<Engine>> engine = Engine::open(engine_options);
  if (!engine) return report(memory_error(engine.error().message()));
  if (state != nullptr) {
    const Status recovered = state->recover(**engine);
    if (!recovered) return report(recovered.error());
  }

  LineWriter first{STDOUT_FILENO, "standard output"};
  Progress progress{!options.quiet && Progress::is_wanted(), inputs->bytes_total};
  Dedup dedup{options, **engine, event_time, first, duplicates, progress, stop};
  // After an error too: the lines before it are written and remembered. The first error is
  // reported.
  Status status = dedup.run();
  if (status && options.count) first.write(fmt::format("{}\n", dedup.counts().first));
  const Status written = finish_outputs(first, duplicates);
  if (status) status = written;
  if (state != nullptr) {
    const Status saved = state->finish(**engine);
    if (status) status = saved;
  }
  progress.clear();
  if (options.stats) print_stats(options, dedup, **engine, progress.elapsed());
  if (!status) return report(status.error());
  return stop.received() == 0 ? Exit::ok : report_stop(stop.received(), dedup);
}

}  // namespace semel::tool
