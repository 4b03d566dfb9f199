#include "tools/semel/dedup.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "tools/semel/units.hpp"

namespace semel::tool {

Dedup::Dedup(const DedupOptions& options, Engine& engine, const EventTime& event_time,
             LineWriter& first, LineWriter* duplicates, Progress& progress)
    : options_(options),
      engine_(engine),
      event_clock_(event_time.clock),
      event_bias_ms_(event_time.bias_ms),
      first_(first),
      duplicates_(duplicates),
      progress_(progress),
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
    if (reader_left_) break;
  }
  return true;
}

bool Dedup::run_input(const std::string& path, Failure& failure) {
  input_name_ = path == "-" ? "standard input" : path;
  input_line_ = 0;
  if (!reader_.open(path, failure)) return false;
  while (true) {
    wait_for_input();
    if (!is_output_open(failure)) return failure.exit == Exit::ok;
    Bytes block;
    switch (reader_.next(block, failure)) {
      case BlockReader::Next::failed:
        return false;
      case BlockReader::Next::end:
        return true;
      case BlockReader::Next::block:
        break;
    }
    if (!run_block(block, failure)) return false;
    if (options_.window) engine_.advance();
    progress_.show({reader_.bytes_read(), counts_.lines, counts_.duplicates});
  }
}

/// A pipe that has nothing now may have nothing for hours: what was found is passed on before,
/// and records that end meanwhile give their memory back.
void Dedup::wait_for_input() {
  if (reader_.ready(Millis{0})) return;
  first_.flush();
  if (duplicates_ != nullptr) duplicates_->flush();
  while (!reader_.ready(Millis{1000})) {
    if (options_.window) engine_.advance();
    progress_.show({reader_.bytes_read(), counts_.lines, counts_.duplicates});
  }
}

bool Dedup::run_block(Bytes block, Failure& failure) {
  const char* at = block.data();
  const char* const end = at + block.size();
  while (at != end) {
    const auto left = static_cast<std::size_t>(end - at);
    const auto* const newline = static_cast<const char*>(std::memchr(at, '\n', left));
    const std::size_t size = newline == nullptr ? left : static_cast<std::size_t>(newline - at) + 1;
    if (!take_line({at, size}, failure)) return false;
    at += size;
  }
  // The next block overwrites the lines of this one.
  return flush_batch(failure);
}

bool Dedup::take_line(Bytes line, Failure& failure) {
  if (batch_size_ == batch_lines || room_bytes - room_used_ < LineParser::key_room) {
    if (!flush_batch(failure)) return false;
  }
  ++input_line_;
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
    failure = {Exit::data,
               fmt::format("{}, line {}: {}", input_name_, input_line_, parser_.explanation())};
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
