#include "tools/semel/dedup/block_writer.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

void BlockWriter::compose(Block& block) const {
  const std::size_t lines = block.counts.lines();
  if (!options_.count && block.counts.repeats == 0) {
    block.is_whole = true;
    return;
  }
  block.first.grow_to(block.bytes.size);
  std::size_t occurrence = 0;
  for (std::size_t i = 0; i < lines;) {
    const bool is_out = block.fates[i] == Fate::first || block.fates[i] == Fate::no_key;
    std::size_t end = i + 1;
    if (is_out && options_.count) {
      block.first.append(occurrence_text(block.occurrences[occurrence++]));
    } else {  // neighbours with the same target are copied together
      while (end < lines &&
             (block.fates[end] == Fate::first || block.fates[end] == Fate::no_key) == is_out) {
        ++end;
      }
    }
    const std::size_t from = i == 0 ? block.begin : block.ends[i - 1];
    const Bytes run{block.bytes.data() + from, block.ends[end - 1] - from};
    if (is_out && !options_.total) block.first.append(run);
    if (!is_out && outputs_.duplicates != nullptr) block.duplicates.append(run);
    i = end;
  }
}

std::string BlockWriter::occurrence_text(std::uint64_t count) const {
  const LineRule& rule = header_.rule();
  if (rule.has_header || rule.is_csv) {
    return fmt::format("{}{}", count, rule.delimiter.value_or(','));
  }
  return fmt::format("{:7} ", count);
}

void BlockWriter::write(const Block& block) {
  LineWriter& first = outputs_.first;
  LineWriter* const duplicates = outputs_.duplicates;
  if (block.carries_header) {
    if (!options_.total) first.write(header_.record());
    if (duplicates != nullptr) duplicates->write(header_.record());
  }
  if (block.rest > 0 && !options_.total) first.append(block.bytes.bytes().substr(0, block.rest));
  const std::size_t lines = block.counts.lines();
  if (block.is_whole && lines > 0 && !options_.total) {
    first.write(block.bytes.bytes().substr(block.begin, block.ends[lines - 1] - block.begin));
  }
  if (block.first.size > 0) first.write(block.first.bytes());
  if (block.duplicates.size > 0) duplicates->write(block.duplicates.bytes());
  // A reader behind a pipe sees each block at once.
  first.flush();
  if (duplicates != nullptr) duplicates->flush();
}

void BlockWriter::count(const Block& block) {
  newlines_before_ = block.begins_input ? 0 : newlines_;
  newlines_ = newlines_before_ + block.newlines;
  {
    const std::scoped_lock lock{progress_mutex_};
    const Block::Counts& counts = block.counts;
    counts_.lines += counts.lines();
    counts_.first += counts.first;
    counts_.duplicates += counts.repeats;
    counts_.without_key += counts.no_key;
    bytes_read_ = block.bytes_read;
  }
  show_progress();
}

std::uint64_t BlockWriter::line_at_fault(const Block& block) const {
  SEMEL_ASSERT(block.fault && block.fault->newlines <= block.newlines);
  return newlines_before_ + block.fault->newlines + 1;
}

Result<bool> BlockWriter::is_open() {
  const LineWriter::State state = outputs_.first.state();
  if (state == LineWriter::State::reader_left) reader_left_ = true;
  LineWriter* const duplicates = outputs_.duplicates;
  if (duplicates != nullptr && duplicates->state() != LineWriter::State::good) {
    return duplicates->error();
  }
  if (state == LineWriter::State::failed) return outputs_.first.error();
  return !reader_left_;
}

/// The input alone decides the place of a checkpoint, as a compressed stream ends there.
Status BlockWriter::save_checkpoint(const Block& block) {
  if (outputs_.checkpoints == nullptr) return Done{};
  bytes_since_ += block.bytes.size;
  // A run cannot begin inside of a line that is too long for a block.
  if (bytes_since_ < options_.resume_every || block.is_long_part) return Done{};
  bytes_since_ = 0;
  LineWriter& first = outputs_.first;
  first.end_stream();
  if (first.state() != LineWriter::State::good) return first.error();
  const off_t end = lseek(outputs_.output, 0, SEEK_CUR);
  if (end < 0) return file_error("cannot tell how long the output is");
  return outputs_.checkpoints->save({.input = block.place.input,
                                     .offset = block.place.offset,
                                     .newlines = newlines_,
                                     .output_bytes = static_cast<std::uint64_t>(end),
                                     .owes_newline = first.owes_newline(),
                                     .counts = counts_},
                                    outputs_.output);
}

Status BlockWriter::cut_back_to(const Checkpoint& last) {
  const std::string& path = outputs_.checkpoints->partial_path();
  struct stat file {};
  const auto size = static_cast<off_t>(last.output_bytes);
  if (fstat(outputs_.output, &file) != 0 || file.st_size < size) {
    return data_error(
        fmt::format("--resume: {} has {} bytes and had {}: remove '{}' to begin again", path,
                    file.st_size, size, options_.resume_path));
  }
  if (ftruncate(outputs_.output, size) != 0 || lseek(outputs_.output, size, SEEK_SET) != size) {
    return file_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  }
  return Done{};
}

void BlockWriter::continue_from(const Checkpoint& last) {
  counts_ = last.counts;
  newlines_ = last.newlines;
  outputs_.first.continue_after(last.owes_newline);
}

void BlockWriter::show_progress() {
  const std::scoped_lock lock{progress_mutex_};
  outputs_.progress.show({bytes_read_, counts_.lines, counts_.duplicates});
}

}  // namespace semel::tool
