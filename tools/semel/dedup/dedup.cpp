#include "tools/semel/dedup/dedup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "semel/engine_host.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

Dedup::Dedup(const DedupOptions& options, Engine& engine, const EventTime& event_time,
             LineWriter& first, LineWriter* duplicates, Progress& progress, const StopSignals& stop)
    : options_(options),
      engine_(engine),
      first_(first),
      duplicates_(duplicates),
      progress_(progress),
      stop_(stop),
      parser_(options.rule),
      time_(event_time.clock, event_time.watermark, event_time.bias_ms),
      batch_(options) {}

Status Dedup::run() {
  for (const std::string& path : options_.files) {
    SEMEL_CHECK(run_input(path));
    if (reader_left_ || stop_.received() != 0) break;
  }
  return Done{};
}

Status Dedup::run_input(const std::string& path) {
  input_name_ = path == "-" ? "standard input" : path;
  input_line_ = inner_lines_ = 0;
  in_long_line_ = false;
  expects_header_ = options_.rule.has_header;
  SEMEL_CHECK(reader_.open(path, options_.rule.terminator));
  while (wait_for_input()) {
    SEMEL_TRY(is_open, is_output_open());
    if (!is_open) return Done{};
    SEMEL_TRY(piece, reader_.next());
    switch (piece.kind) {
      case BlockReader::Piece::Kind::end:
        return reader_.tail();
      case BlockReader::Piece::Kind::nothing_yet:
        continue;
      case BlockReader::Piece::Kind::part:
        SEMEL_CHECK(add_part(piece.bytes));
        break;
      case BlockReader::Piece::Kind::block:
        SEMEL_CHECK(run_block(piece.bytes));
        break;
    }
    if (options_.window) engine_.advance();
    progress_.show({reader_.bytes_read(), counts_.lines, counts_.duplicates});
  }
  return Done{};
}

/// Waits for input. A pipe may have none for hours, so the output is flushed first, and expired
/// records are removed during the wait. False: a signal arrived.
bool Dedup::wait_for_input() {
  if (stop_.received() != 0) return false;
  if (reader_.ready(Millis{0}, stop_.descriptor())) return true;
  first_.flush();
  if (duplicates_ != nullptr) duplicates_->flush();
  while (!reader_.ready(Millis{1000}, stop_.descriptor())) {
    if (stop_.received() != 0) return false;
    if (options_.window) engine_.advance();
    progress_.show({reader_.bytes_read(), counts_.lines, counts_.duplicates});
  }
  return true;
}

/// The size of the line or record at the beginning of `text`; 0: it continues in the next block.
std::size_t Dedup::record_size(Bytes text) const noexcept {
  if (options_.rule.is_csv) {
    const std::size_t mark = input_line_ == 0 ? mark_size(text) : 0;
    const std::size_t size =
        csv_record_size(text.substr(mark), options_.rule.delimiter.value_or(','));
    return size == 0 && reader_.is_at_end() ? text.size() : size == 0 ? 0 : mark + size;
  }
  const std::size_t newline = text.find(options_.rule.terminator);
  return newline == Bytes::npos ? text.size() : newline + 1;
}

Status Dedup::run_block(Bytes block) {
  if (in_long_line_) {
    const std::size_t size = std::min(block.find(options_.rule.terminator), block.size() - 1) + 1;
    if (!options_.total) first_.append(block.substr(0, size));
    in_long_line_ = false;
    block.remove_prefix(size);
  }
  while (!block.empty()) {
    const std::size_t size = record_size(block);
    if (size == 0) {
      reader_.hand_back(block.size());
      break;
    }
    const Bytes record = block.substr(0, size);
    SEMEL_CHECK(expects_header_ ? read_header(record) : add_line(record));
    block.remove_prefix(size);
  }
  // The next block overwrites the lines of this one.
  return flush_batch();
}

/// Writes part of a line that has no key, because it is longer than line_bytes_max.
Status Dedup::add_part(Bytes part) {
  if (!in_long_line_) ++input_line_;
  if (options_.missing != DedupOptions::Missing::pass || options_.rule.is_csv) {
    const char* const what = options_.rule.is_csv ? "a record (is a quote not closed?)" : "a line";
    return error_at(input_line_, fmt::format("{} is longer than the limit of {}", what,
                                             format_bytes(line_bytes_max)));
  }
  if (!in_long_line_) {
    ++counts_.lines;
    ++counts_.without_key;
    if (!options_.total) first_.write(part);
  } else if (!options_.total) {
    first_.append(part);
  }
  in_long_line_ = true;
  return Done{};
}

/// The names of the fields are written once; every input must have the same.
Status Dedup::read_header(Bytes record) {
  ++input_line_;
  if (is_blank_record(record)) return Done{};  // not a record of the table
  expects_header_ = false;
  Bytes content = record;
  while (content.ends_with('\n') || content.ends_with('\r')) content.remove_suffix(1);
  content.remove_prefix(mark_size(content));
  if (header_) {
    if (*header_ == content) return Done{};
    return error_at(
        1, fmt::format("the header is '{}'; the previous input has '{}'", content, *header_));
  }
  header_ = content;
  if (const Status resolved = parser_.resolve(content); !resolved) {
    return error_at(1, resolved.error().detail);
  }
  if (!options_.total) first_.write(record);
  if (duplicates_ != nullptr) duplicates_->write(record);
  return Done{};
}

Error Dedup::error_at(std::uint64_t line, const std::string& text) const {
  return data_error(fmt::format("{}, line {}: {}", input_name_, line, text));
}

Status Dedup::add_line(Bytes line) {
  if (!batch_.has_room()) SEMEL_CHECK(flush_batch());
  input_line_ += 1 + std::exchange(inner_lines_, 0);
  // A record may have newlines in its quotes; an error names the line where it begins.
  if (options_.rule.is_csv)
    inner_lines_ = static_cast<std::uint64_t>(std::count(line.begin(), line.end() - 1, '\n'));
  SEMEL_ASSERT(batch_.has_room());
  Bytes content = line;
  if (content.back() == options_.rule.terminator) content.remove_suffix(1);
  const bool has_marks = options_.rule.is_csv || !options_.rule.key_pointers.empty();
  if (has_marks && input_line_ == 1) content.remove_prefix(mark_size(content));
  ParsedLine parsed;
  const LineError error = parser_.parse(content, batch_.key_space(), parsed);
  if (error != LineError::none) return pass_line_without_key(error, line);
  // advance_to() may flush, which frees the buffer; the key stays where it was written.
  const std::size_t key_end = batch_.end_of(parsed.key);
  if (parsed.unix_ms) {
    SEMEL_TRY(is_late, advance_to(*parsed.unix_ms));
    if (is_late) {
      SEMEL_CHECK(flush_batch());
      ++counts_.lines;
      ++counts_.late;
      if (options_.late == DedupOptions::Late::pass && !options_.total) first_.write(line);
      return Done{};
    }
  }
  batch_.add(line, input_line_, parsed.key, key_end);
  return Done{};
}

/// Writes the line under --missing pass; otherwise `error` ends the run.
Status Dedup::pass_line_without_key(LineError error, Bytes line) {
  SEMEL_CHECK(flush_batch());
  const bool is_passed =
      error == LineError::blank ||
      (options_.missing == DedupOptions::Missing::pass && LineParser::can_pass(error));
  if (!is_passed) return error_at(input_line_, parser_.explanation());
  ++counts_.lines;
  ++counts_.without_key;
  if (!options_.total) first_.write(line);
  return Done{};
}

/// Event time is the newest time seen and never goes back. A line that is late by less than the
/// window is judged at the event time; an older one cannot be judged.
Result<bool> Dedup::advance_to(std::int64_t unix_ms) {
  if (!time_.is_in_range(unix_ms)) {
    const LineTime::Range range = *time_.range();
    return error_at(input_line_, fmt::format("time {} ms is outside the range of a state, {}..{}",
                                             unix_ms, range.first, range.last));
  }
  time_.begin(unix_ms);
  if (time_.is_newer(unix_ms)) {
    // The lines before this one are judged at their own time.
    SEMEL_CHECK(flush_batch());
    SEMEL_ASSERT(batch_.size() == 0);
    time_.advance_to(unix_ms);
  }
  return time_.age_of(unix_ms) >= options_.window->count();
}

Status Dedup::flush_batch() {
  std::size_t judged = 0;
  while (judged < batch_.size()) {
    batch_.ask(engine_, judged);
    while (judged < batch_.size() && batch_.outcome(judged).error == ErrorCode::ok) emit(judged++);
    if (judged == batch_.size()) break;
    SEMEL_CHECK(retry(judged));
    emit(judged++);
  }
  batch_.clear();
  return Done{};
}

void Dedup::emit(std::size_t index) {
  SEMEL_ASSERT(index < batch_.size() && batch_.outcome(index).error == ErrorCode::ok);
  ++counts_.lines;
  if (batch_.outcome(index).found) {
    ++counts_.duplicates;
    if (duplicates_ != nullptr) duplicates_->write(batch_.line(index));
  } else {
    ++counts_.first;
    if (!options_.total) first_.write(batch_.line(index));
  }
}

/// The engine refused a line. If memory was full, removes expired records and asks again. The
/// caller asks about the rest of the batch again.
Status Dedup::retry(std::size_t index) {
  if (batch_.outcome(index).error == ErrorCode::memory_full) {
    batch_.undo_behind(engine_, index);
    if (options_.window) {
      while (engine_.advance() == 0) {
      }
      engine_.host().quiesce();
    }
    batch_.ask_again(engine_, index);
  }
  const ErrorCode error = batch_.outcome(index).error;
  if (error == ErrorCode::ok) return Done{};
  const std::string place = fmt::format("{}, line {}", input_name_, batch_.number(index));
  if (error == ErrorCode::refused || error == ErrorCode::outcome_unknown) {
    return file_error(
        fmt::format("{}: the state cannot be written: {}", place, sentence_of(error)));
  }
  if (error != ErrorCode::memory_full) {
    return data_error(fmt::format("{}: {}", place, sentence_of(error)));
  }
  return memory_error(
      fmt::format("{}: the memory limit of {} is reached with {} keys remembered; none was "
                  "forgotten. Allow more with --memory{}",
                  place, format_bytes(options_.memory_bytes), format_count(engine_.stats().records),
                  options_.window ? " or a shorter --window" : " or set a --window"));
}

Result<bool> Dedup::is_output_open() {
  const LineWriter::State state = first_.state();
  if (state == LineWriter::State::reader_left) reader_left_ = true;
  if (duplicates_ != nullptr && duplicates_->state() != LineWriter::State::good) {
    return duplicates_->error();
  }
  if (state == LineWriter::State::failed) return first_.error();
  return !reader_left_;
}

}  // namespace semel::tool
