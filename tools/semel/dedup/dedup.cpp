#include "tools/semel/dedup/dedup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "tools/semel/dedup/csv.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

Dedup::Dedup(const DedupOptions& options, Engine& engine, const EventTime& event_time,
             LineWriter& first, LineWriter* duplicates, Progress& progress, const StopSignals& stop)
    : options_(options),
      engine_(engine),
      event_clock_(event_time.clock),
      event_bias_ms_(event_time.bias_ms),
      first_(first),
      duplicates_(duplicates),
      progress_(progress),
      stop_(stop),
      parser_(options.rule),
      watermark_(event_time.watermark),
      room_(new char[room_bytes]) {
  for (StoreOp& op : ops_) {
    op.verb = Verb::set;
    // Sliding: always written, so that the end moves; `found` tells the duplicates either way.
    op.condition = options.sliding ? Condition::always : Condition::if_absent;
    op.expiry = options.window ? Expiry::in(*options.window) : Expiry::clear();
  }
}

bool Dedup::run(Failure& failure) {
  for (const std::string& path : options_.files) {
    if (!run_input(path, failure)) return false;
    if (reader_left_ || stop_.received() != 0) break;
  }
  return true;
}

bool Dedup::run_input(const std::string& path, Failure& failure) {
  input_name_ = path == "-" ? "standard input" : path;
  input_line_ = inner_lines_ = 0;
  in_long_line_ = false;
  expects_header_ = options_.has_header;
  if (!reader_.open(path, failure)) return false;
  while (wait_for_input()) {
    if (!is_output_open(failure)) return failure.exit == Exit::ok;
    Bytes block;
    switch (reader_.next(block, failure)) {
      case BlockReader::Next::failed:
        return false;
      case BlockReader::Next::end:
        return true;
      case BlockReader::Next::nothing_yet:
        continue;
      case BlockReader::Next::part:
        if (!take_part(block, failure)) return false;
        break;
      case BlockReader::Next::block:
        if (!run_block(block, failure)) return false;
        break;
    }
    if (options_.window) engine_.advance();
    progress_.show({reader_.bytes_read(), counts_.lines, counts_.duplicates});
  }
  return true;
}

/// A pipe that has nothing now may have nothing for hours: what was found is passed on before,
/// and records that end meanwhile give their memory back. False: a signal came.
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

/// Of the line or record that `text` begins with; 0: it goes on in the next block.
std::size_t Dedup::record_size(Bytes text) const noexcept {
  if (options_.rule.is_csv) {
    const std::size_t size = csv_record_size(text, options_.rule.delimiter.value_or(','));
    return size == 0 && reader_.is_at_end() ? text.size() : size;
  }
  const std::size_t newline = text.find('\n');
  return newline == Bytes::npos ? text.size() : newline + 1;
}

bool Dedup::run_block(Bytes block, Failure& failure) {
  if (in_long_line_) {
    const std::size_t size = std::min(block.find('\n'), block.size() - 1) + 1;
    if (!options_.count) first_.append(block.substr(0, size));
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
    if (!(expects_header_ ? take_header(record, failure) : take_line(record, failure)))
      return false;
    block.remove_prefix(size);
  }
  // The next block overwrites the lines of this one.
  return flush_batch(failure);
}

/// A line that no key can be read from, as it does not fit into memory.
bool Dedup::take_part(Bytes part, Failure& failure) {
  if (!in_long_line_) ++input_line_;
  if (options_.missing != DedupOptions::Missing::pass || options_.rule.is_csv) {
    const char* const what = options_.rule.is_csv ? "a record (is a quote not closed?)" : "a line";
    failure = at_line(input_line_, fmt::format("{} is longer than the limit of {}", what,
                                               format_bytes(line_bytes_max)));
    return false;
  }
  if (!in_long_line_) {
    ++counts_.lines;
    ++counts_.without_key;
    if (!options_.count) first_.write(part);
  } else if (!options_.count) {
    first_.append(part);
  }
  in_long_line_ = true;
  return true;
}

/// The names of the fields are written once; every input must have the same.
bool Dedup::take_header(Bytes record, Failure& failure) {
  expects_header_ = false;
  ++input_line_;
  Bytes content = record;
  while (content.ends_with('\n') || content.ends_with('\r')) content.remove_suffix(1);
  if (header_) {
    if (*header_ == content) return true;
    failure = at_line(
        1, fmt::format("the header is '{}', that of the input before '{}'", content, *header_));
    return false;
  }
  header_ = content;
  if (!parser_.resolve(content)) {
    failure = at_line(1, parser_.explanation());
    return false;
  }
  if (!options_.count) first_.write(record);
  if (duplicates_ != nullptr) duplicates_->write(record);
  return true;
}

Failure Dedup::at_line(std::uint64_t line, const std::string& text) const {
  return {Exit::data, fmt::format("{}, line {}: {}", input_name_, line, text)};
}

bool Dedup::take_line(Bytes line, Failure& failure) {
  if (batch_size_ == batch_lines || room_bytes - room_used_ < LineParser::key_room) {
    if (!flush_batch(failure)) return false;
  }
  input_line_ += 1 + std::exchange(inner_lines_, 0);
  // A record may have newlines in its quotes; an error names the line where it begins.
  if (options_.rule.is_csv)
    inner_lines_ = static_cast<std::uint64_t>(std::count(line.begin(), line.end() - 1, '\n'));
  Bytes content = line;
  if (content.back() == '\n') content.remove_suffix(1);
  ParsedLine parsed;
  const LineProblem problem = parser_.parse(content, room_.get() + room_used_, parsed);
  if (problem != LineProblem::none) return take_problem(problem, line, failure);
  const bool in_room = parsed.key.data() == room_.get() + room_used_;
  const std::size_t room_end = room_used_ + parsed.key.size();
  if (parsed.unix_ms) {
    bool is_late = false;
    if (!take_time(*parsed.unix_ms, is_late, failure)) return false;
    if (is_late) {
      if (!flush_batch(failure)) return false;
      ++counts_.lines;
      ++counts_.late;
      if (options_.late == DedupOptions::Late::pass && !options_.count) first_.write(line);
      return true;
    }
  }
  // Also after a flush for the time, which gave the room back: the key lies where it was written.
  if (in_room) room_used_ = room_end;
  lines_[batch_size_] = line;
  numbers_[batch_size_] = input_line_;
  ops_[batch_size_].key = parsed.key;
  ++batch_size_;
  return true;
}

bool Dedup::take_problem(LineProblem problem, Bytes line, Failure& failure) {
  if (!flush_batch(failure)) return false;
  const bool forgiven =
      options_.missing == DedupOptions::Missing::pass && LineParser::is_forgivable(problem);
  if (!forgiven) {
    failure = at_line(input_line_, parser_.explanation());
    return false;
  }
  ++counts_.lines;
  ++counts_.without_key;
  if (!options_.count) first_.write(line);
  return true;
}

/// Event time is the newest time seen. It never goes back: a line that comes late is judged as if
/// it had come in time, one older than the window cannot be judged at all.
bool Dedup::take_time(std::int64_t unix_ms, bool& is_late, Failure& failure) {
  if (event_bias_ms_ != 0 && (unix_ms <= -event_bias_ms_ || unix_ms > 2 * event_bias_ms_)) {
    failure = {Exit::data, fmt::format("{}, line {}: time {} ms is outside of {}..{}, which a "
                                       "state can remember",
                                       input_name_, input_line_, unix_ms, 1 - event_bias_ms_,
                                       2 * event_bias_ms_)};
    return false;
  }
  if (!watermark_) {
    watermark_ = unix_ms;
    if (event_bias_ms_ != 0) {
      const std::int64_t now = event_clock_->now().time_since_epoch().count();
      event_clock_->advance(Millis{unix_ms + event_bias_ms_ - now});
    }
  }
  if (unix_ms > *watermark_) {
    // The lines before this one are judged at their own time.
    if (!flush_batch(failure)) return false;
    event_clock_->advance(Millis{unix_ms - *watermark_});
    watermark_ = unix_ms;
  }
  is_late = *watermark_ - unix_ms >= options_.window->count();
  return true;
}

bool Dedup::flush_batch(Failure& failure) {
  std::size_t judged = 0;
  while (judged < batch_size_) {
    const std::size_t count = batch_size_ - judged;
    engine_.apply(std::span<const StoreOp>{&ops_[judged], count},
                  std::span<StoreOutcome>{&outcomes_[judged], count});
    while (judged < batch_size_ && outcomes_[judged].error == ErrorCode::ok) emit(judged++);
    if (judged == batch_size_) break;
    if (!ask_again(judged, failure)) return false;
    emit(judged++);
  }
  batch_size_ = 0;
  room_used_ = 0;
  return true;
}

void Dedup::emit(std::size_t index) {
  ++counts_.lines;
  if (outcomes_[index].found) {
    ++counts_.duplicates;
    if (duplicates_ != nullptr) duplicates_->write(lines_[index]);
  } else {
    ++counts_.first;
    if (!options_.count) first_.write(lines_[index]);
  }
}

/// The engine refused ops_[index]. If that was for memory, and records have ended since the last
/// sweep, there is room again; what comes after it in the batch is then asked again as well.
bool Dedup::ask_again(std::size_t index, Failure& failure) {
  if (outcomes_[index].error == ErrorCode::memory_full) {
    // Later lines of the batch may have been stored; were they left there, this line could meet
    // its own repeat and be called the duplicate.
    for (std::size_t i = index + 1; i < batch_size_; ++i) {
      if (outcomes_[i].error != ErrorCode::ok || outcomes_[i].found) continue;
      StoreOp undo;
      undo.verb = Verb::del;
      undo.key = ops_[i].key;
      StoreOutcome undone;
      engine_.apply(undo, undone);
    }
    if (options_.window) {
      while (engine_.advance() == 0) {
      }
      engine_.quiesce();
    }
    engine_.apply(ops_[index], outcomes_[index]);
  }
  const ErrorCode error = outcomes_[index].error;
  if (error == ErrorCode::ok) return true;
  const std::string place = fmt::format("{}, line {}", input_name_, numbers_[index]);
  if (error == ErrorCode::refused || error == ErrorCode::outcome_unknown) {
    failure = {Exit::file,
               fmt::format("{}: the state cannot be written: {}", place, sentence_of(error))};
    return false;
  }
  if (error != ErrorCode::memory_full) {
    failure = {Exit::data, fmt::format("{}: {}", place, sentence_of(error))};
    return false;
  }
  failure = {
      Exit::memory,
      fmt::format("{}: the memory limit of {} is reached with {} keys remembered; none was "
                  "forgotten. Allow more with --memory{}",
                  place, format_bytes(options_.memory_bytes), format_count(engine_.stats().records),
                  options_.window ? " or a shorter --window" : " or set a --window")};
  return false;
}

bool Dedup::is_output_open(Failure& failure) {
  const LineWriter::State state = first_.state();
  if (state == LineWriter::State::failed) failure = first_.failure();
  if (state == LineWriter::State::reader_left) reader_left_ = true;
  if (duplicates_ != nullptr && duplicates_->state() != LineWriter::State::good) {
    failure = duplicates_->failure();
  }
  return failure.exit == Exit::ok && !reader_left_;
}

}  // namespace semel::tool
