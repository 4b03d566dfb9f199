// The frame of dedup.cpp and exact_dedup.cpp: files, engine, statistics, errors.
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
#include "tools/semel/dedup/exact_dedup.hpp"
#include "tools/semel/records/output_file.hpp"
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
  // A named output may be an input: it is written beside it and renamed.
  const bool is_named = !options.output_path.empty();
  const bool output_is_file = (is_named ? stat(options.output_path.c_str(), &output)
                                        : fstat(STDOUT_FILENO, &output)) == 0 &&
                              S_ISREG(output.st_mode);
  const bool duplicates_exist = !options.duplicates_path.empty() &&
                                stat(options.duplicates_path.c_str(), &duplicates) == 0 &&
                                S_ISREG(duplicates.st_mode);
  if (duplicates_exist && output_is_file && is_same_file(duplicates, output)) {
    return usage_error(fmt::format("'{}' is also {}: --duplicates needs another file",
                                   options.duplicates_path,
                                   is_named ? "the output" : "standard output"));
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
        (output_is_file && !is_named && S_ISREG(input.st_mode) && is_same_file(input, output))) {
      return usage_error(fmt::format("'{}' is both input and output", path));
    }
  }
  if (!total_known) inputs.bytes_total = 0;
  return inputs;
}

/// The statistics of a run, as text.
struct Figures {
  DedupCounts counts;
  std::uint64_t bytes_read = 0;
  std::uint64_t keys = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit = 0;
  std::size_t bytes_left = 0;  ///< of an unfinished line, after a signal
};

void print_stats(const DedupOptions& options, const Figures& figures, Millis elapsed) {
  const DedupCounts& counts = figures.counts;
  const auto lines = static_cast<double>(counts.lines);
  const double seconds = static_cast<double>(std::max(elapsed, Millis{1}).count()) / 1000;
  const double share = counts.lines == 0 ? 0 : 100 * static_cast<double>(counts.duplicates) / lines;
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  row("lines", format_count(counts.lines));
  // With --unique and --repeated these count the lines written and the lines omitted.
  const bool is_each = options.select == DedupOptions::Select::each;
  row(is_each ? "first" : "written", format_count(counts.first));
  row(is_each ? "duplicates" : "left out",
      fmt::format("{} ({:.1f} %)", format_count(counts.duplicates), share));
  if (options.missing == DedupOptions::Missing::pass) {
    row("without key", format_count(counts.without_key));
  }
  if (options.rule.time_format) {
    row("late", fmt::format("{} ({})", format_count(counts.late),
                            options.late == DedupOptions::Late::pass ? "passed" : "dropped"));
  }
  row("time", fmt::format("{:.3f} s", seconds));
  row("rate", fmt::format("{} lines/s, {:.0f} MB/s", format_rate(lines / seconds),
                          static_cast<double>(figures.bytes_read) / 1e6 / seconds));
  if (!options.needs_engine()) row("threads", std::to_string(options.threads));
  row("remembered", fmt::format("{} keys", format_count(figures.keys)));
  row("memory",
      fmt::format("{} keys (limit {}), {} process at most", format_bytes(figures.memory_bytes),
                  format_bytes(figures.memory_limit), format_bytes(peak_resident_bytes())));
  std::fputs(text.c_str(), stderr);
}

/// The last line at a terminal.
std::string summary(const DedupOptions& options, const DedupCounts& counts, double seconds) {
  const bool is_each = options.select == DedupOptions::Select::each;
  return fmt::format("{} lines, {} {}, {} {}, {:.1f} s", format_count(counts.lines),
                     format_count(counts.first), is_each ? "first" : "written",
                     format_count(counts.duplicates), is_each ? "duplicates" : "left out", seconds);
}

Exit report(const Error& error) {
  print_error("semel dedup: {}\n", error.detail);
  return exit_of(error.code);
}

/// Ended by a signal: reports how far the output goes.
Exit report_stop(int signal, const DedupOptions& options, const Figures& figures) {
  constexpr int signal_exit = 128;  // as shells number them
  std::string rest;
  if (!options.resume_path.empty()) {
    rest = "; the same command goes on from the last checkpoint";
  } else if (!options.output_path.empty()) {
    rest = fmt::format("; '{}' was not written", options.output_path);
  } else if (options.needs_whole_input()) {
    rest = "; nothing was written, as not all input was read";
  } else {
    rest = ", all written";
    if (figures.bytes_left != 0) {
      rest += fmt::format("; {} bytes of an unfinished line were not written", figures.bytes_left);
    }
  }
  print_error("semel dedup: stopped by SIG{} after {} lines{}\n", sigabbrev_np(signal),
              format_count(figures.counts.lines), rest);
  return static_cast<Exit>(signal_exit + signal);
}

/// Null: there is no file of duplicates.
Result<std::unique_ptr<LineWriter>> open_duplicates(const DedupOptions& options) {
  const std::string& path = options.duplicates_path;
  if (path.empty()) return std::unique_ptr<LineWriter>{};
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return file_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  }
  return std::make_unique<LineWriter>(
      descriptor, path, LineWriter::Form{options.rule.terminator, compression_of(path)});
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

/// Shared by both kinds of run.
struct Surroundings {
  const DedupOptions& options;
  const StopSignals& stop;
  LineWriter& first;
  LineWriter* duplicates;
  Progress& progress;
  std::uint64_t bytes_total;
  Checkpoints* checkpoints;
  int output;
};

/// --total, the end of the outputs, and the first error.
Status conclude(const Surroundings& around, Status status, const DedupCounts& counts) {
  // After an error too: the lines before it are written and remembered. The first error is
  // reported.
  around.progress.clear();
  if (status && around.options.total) around.first.write(fmt::format("{}\n", counts.first));
  const Status written = finish_outputs(around.first, around.duplicates);
  return status ? written : status;
}

Status run_exact(const Surroundings& around, Figures& figures) {
  ExactDedup dedup{around.options,
                   {.outputs = {around.first, around.duplicates, around.progress,
                                around.checkpoints, around.output},
                    .stop = around.stop,
                    .bytes_total = around.bytes_total}};
  const Status status = conclude(around, dedup.run(), dedup.counts());
  figures = {dedup.counts(),      dedup.bytes_read(),          dedup.keys(),
             dedup.memory_used(), around.options.memory_bytes, dedup.bytes_left()};
  return status;
}

Status run_with_engine(const Surroundings& around, Figures& figures) {
  const DedupOptions& options = around.options;
  std::unique_ptr<DedupState> state;
  if (!options.state_path.empty()) {
    SEMEL_TRY(opened, open_dedup_state(options));
    state = std::move(opened);
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
  if (!engine) return memory_error(engine.error().message());
  if (state != nullptr) SEMEL_CHECK(state->recover(**engine));
  Dedup dedup{options,           **engine,        event_time, around.first,
              around.duplicates, around.progress, around.stop};
  Status status = conclude(around, dedup.run(), dedup.counts());
  if (state != nullptr) {
    const Status saved = state->finish(**engine);
    if (status) status = saved;
  }
  const Stats stats = (*engine)->stats();
  figures = {dedup.counts(),   dedup.bytes_read(), stats.records,
             stats.bytes_used, stats.bytes_limit,  dedup.bytes_left()};
  return status;
}

/// The output is complete and gets its name. With checkpoints that is noted first: a run killed
/// after the name, but before the end of the checkpoint, has nothing left to do.
Status commit(OutputFile& output, Checkpoints* checkpoints, const DedupCounts& counts) {
  if (checkpoints == nullptr) return output.commit();
  SEMEL_CHECK(checkpoints->save({.is_complete = true, .counts = counts}, output.descriptor()));
  SEMEL_CHECK(output.commit());
  return checkpoints->remove();
}

/// An earlier run was complete; the output may lack its name.
Status finish_complete(const DedupOptions& options, Checkpoints& checkpoints) {
  if (access(checkpoints.partial_path().c_str(), F_OK) == 0) {
    SEMEL_TRY(output, OutputFile::open(options.output_path, checkpoints.partial_path()));
    SEMEL_CHECK(output->commit());
  }
  return checkpoints.remove();
}

}  // namespace

Exit run_dedup(const DedupOptions& options) {
  const StopSignals stop;
  const Result<Inputs> inputs = check_inputs(options);
  if (!inputs) return report(inputs.error());
  const Result<std::unique_ptr<LineWriter>> opened = open_duplicates(options);
  if (!opened) return report(opened.error());
  std::unique_ptr<Checkpoints> checkpoints;
  std::unique_ptr<OutputFile> output;
  int descriptor = STDOUT_FILENO;
  if (!options.resume_path.empty()) {
    Result<std::unique_ptr<Checkpoints>> found = Checkpoints::open(options);
    if (!found) return report(found.error());
    checkpoints = *std::move(found);
    if (checkpoints->last() && checkpoints->last()->is_complete) {
      const Status finished = finish_complete(options, *checkpoints);
      return finished ? Exit::ok : report(finished.error());
    }
  }
  if (!options.output_path.empty()) {
    Result<std::unique_ptr<OutputFile>> file = OutputFile::open(
        options.output_path, checkpoints == nullptr ? "" : checkpoints->partial_path());
    if (!file) return report(file.error());
    output = *std::move(file);
    const Result<int> other = output->duplicate_descriptor();
    if (!other.ok()) return report(other.error());
    descriptor = *other;
  }
  LineWriter first{descriptor, output == nullptr ? "standard output" : options.output_path,
                   LineWriter::Form{options.rule.terminator, options.compression}};
  const bool shows_data = output == nullptr && !options.total;
  ProgressLine line{shows_data ? ProgressLine::Output::data : ProgressLine::Output::report,
                    options.quiet};
  Progress progress{line, inputs->bytes_total};
  Figures figures;
  const Surroundings around{options,
                            stop,
                            first,
                            opened->get(),
                            progress,
                            inputs->bytes_total,
                            checkpoints.get(),
                            output == nullptr ? -1 : output->descriptor()};
  Status status =
      options.needs_engine() ? run_with_engine(around, figures) : run_exact(around, figures);
  if (status && output != nullptr && stop.received() == 0) {
    status = commit(*output, checkpoints.get(), figures.counts);
  }
  progress.clear();
  if (options.stats) print_stats(options, figures, line.elapsed());
  if (!status) return report(status.error());
  const bool is_file_made = output != nullptr && stop.received() == 0;
  if ((is_file_made || line.was_drawn()) && !options.stats) {
    line.finish(summary(options, figures.counts, line.seconds()));
  }
  return stop.received() == 0 ? Exit::ok : report_stop(stop.received(), options, figures);
}

}  // namespace semel::tool
