#include "tools/semel/dedup/exact_dedup.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

/// An unnamed file for an input that cannot be read twice.
Result<int> open_store(const std::string& name) {
  const char* const asked = std::getenv("TMPDIR");
  std::string path = asked != nullptr && *asked != '\0' ? asked : "/tmp";
  const std::string directory = path;
  path += "/semel-dedup-XXXXXX";
  const int store = mkostemp(path.data(), O_CLOEXEC);
  if (store < 0) {
    return file_error(fmt::format("cannot store '{}' to read it twice: {}: {}", name, directory,
                                  std::strerror(errno)));
  }
  unlink(path.c_str());
  return store;
}

/// The line at `begin`, its end included.
std::size_t line_size(Bytes text, std::size_t begin) {
  return std::min(text.find('\n', begin), text.size() - 1) + 1 - begin;
}

/// A part for each thread, unless the memory is so little that their beginnings would take it.
unsigned part_count(const DedupOptions& options) {
  constexpr std::size_t bytes_a_part = std::size_t{1} << 20;
  const std::size_t most =
      std::bit_floor(std::max(options.memory_bytes / bytes_a_part, std::size_t{1}));
  return static_cast<unsigned>(std::min<std::size_t>(std::bit_ceil(options.threads), most));
}

}  // namespace

ExactDedup::ExactDedup(const DedupOptions& options, const Context& context)
    : options_(options),
      context_(context),
      parts_(part_count(options)),
      part_shift_(64 - static_cast<unsigned>(std::countr_zero(parts_))),
      rule_(options.rule),
      budget_(options.memory_bytes),
      parsers_(options.threads) {}

ExactDedup::~ExactDedup() {
  for (const FeedInput& input : inputs_) {
    if (input.store >= 0) ::close(input.store);
  }
}

std::uint64_t ExactDedup::keys() const noexcept {
  std::uint64_t keys = 0;
  for (const KeySet& set : sets_) keys += set.size();
  return keys;
}

Status ExactDedup::open_inputs() {
  for (const std::string& path : options_.files) {
    FeedInput& input = inputs_.emplace_back(FeedInput{path});
    struct stat file {};
    const bool is_file = path != "-" && stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode);
    if (!options_.needs_whole_input() || is_file) continue;
    SEMEL_TRY(store, open_store(path == "-" ? "standard input" : path));
    input.store = store;
    input.is_stored = true;
  }
  return Done{};
}

Status ExactDedup::run() {
  SEMEL_CHECK(open_inputs());
  const KeySet::Options kind{.is_counted = options_.needs_whole_input(),
                             .keeps_last = options_.keep == DedupOptions::Keep::last};
  for (unsigned i = 0; i < parts_; ++i) {
    if (sets_.emplace_back(hash_, budget_, kind).open()) continue;
    return memory_error(
        fmt::format("the memory limit of {} is too small for {} threads, or the "
                    "process may not have the addresses (ulimit -v)",
                    format_bytes(budget_.limit()), options_.threads));
  }
  if (!options_.needs_whole_input()) {
    if (context_.checkpoints != nullptr) {
      SEMEL_CHECK(resume(context_.checkpoints->last().value_or(Checkpoint{})));
      if (context_.stop.received() != 0) return Done{};
    }
    return run_pass(Pass::only);
  }
  SEMEL_CHECK(run_pass(Pass::collect));
  // A part of the counts would be a wrong result, so that nothing is written after a signal.
  if (context_.stop.received() != 0) return Done{};
  lines_collected_ = counts_.lines;
  counts_ = {};
  for (FeedInput& input : inputs_) input.is_stored = false;
  selection_.emplace(sets_, options_, budget_);
  SEMEL_CHECK(selection_->prepare());
  SEMEL_CHECK(run_pass(Pass::write));
  if (reader_left_ || context_.stop.received() != 0) return Done{};
  if (counts_.lines == lines_collected_ && selection_->peek() == nullptr) return Done{};
  return data_error("the input has changed while it was read: what was written is not right");
}

/// Reads the keys of the output so far and continues where it ended.
Status ExactDedup::resume(const Checkpoint& last) {
  const std::string& path = context_.checkpoints->partial_path();
  struct stat file {};
  const auto size = static_cast<off_t>(last.output_bytes);
  if (fstat(context_.output, &file) != 0 || file.st_size < size) {
    return data_error(
        fmt::format("--resume: {} has {} bytes and had {}: remove '{}' to begin again", path,
                    file.st_size, size, options_.resume_path));
  }
  if (ftruncate(context_.output, size) != 0 || lseek(context_.output, size, SEEK_SET) != size) {
    return file_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  }
  rebuilt_ = {FeedInput{path}};
  SEMEL_CHECK(run_pass(Pass::rebuild));
  if (context_.stop.received() != 0) return Done{};
  if (counts_.first != last.counts.first || counts_.duplicates != 0) {
    return data_error(fmt::format("--resume: {} has {} keys and had {}: remove '{}' to begin again",
                                  path, counts_.first, last.counts.first, options_.resume_path));
  }
  counts_ = last.counts;
  input_newlines_ = last.newlines;
  start_ = {last.input, last.offset};
  context_.first.continue_after(last.owes_newline);
  return Done{};
}

/// The input alone decides the place of a checkpoint, as a compressed stream ends there.
Status ExactDedup::save_checkpoint(const Block& block) {
  bytes_since_ += block.bytes.size;
  // A run cannot begin inside of a line that is too long for a block.
  if (bytes_since_ < options_.resume_every || block.is_long_part) return Done{};
  bytes_since_ = 0;
  LineWriter& first = context_.first;
  first.end_stream();
  if (first.state() != LineWriter::State::good) return first.error();
  const off_t end = lseek(context_.output, 0, SEEK_CUR);
  if (end < 0) return file_error("cannot tell how long the output is");
  return context_.checkpoints->save({.input = block.place.input,
                                     .offset = block.place.offset,
                                     .newlines = input_newlines_,
                                     .output_bytes = static_cast<std::uint64_t>(end),
                                     .owes_newline = first.owes_newline(),
                                     .counts = counts_},
                                    context_.output);
}

Status ExactDedup::run_pass(Pass pass) {
  pass_ = pass;
  if (pass == Pass::write) header_.reset();
  feed_ =
      std::make_unique<BlockFeed>(pass == Pass::rebuild ? rebuilt_ : inputs_, rule_,
                                  context_.bytes_total, context_.stop, [this] { show_progress(); });
  if (pass == Pass::only) feed_->start_at(start_);
  const Status done =
      run_pipeline(*this, {.threads = options_.threads, .parts = pass == Pass::write ? 1 : parts_});
  bytes_left_ = feed_->bytes_held();
  return done;
}

Result<bool> ExactDedup::read(Block& block) {
  SEMEL_TRY(is_block, feed_->next(block));
  if (!is_block) return false;
  if (!block.begins_input || !rule_.has_header) return true;
  // The threads that split blocks need its fields, so no block is handed out before it.
  std::uint64_t newlines = 0;
  while (true) {
    SEMEL_TRY(is_header, take_header(block));
    block.newlines += newlines;
    if (is_header) break;
    newlines = block.newlines;
    block.reset(block.keys.size());
    SEMEL_TRY(is_more, feed_->next(block));
    if (!is_more) return false;
    if (block.begins_input) newlines = 0;
  }
  block.begins_input = true;
  return true;
}

void ExactDedup::cancel() {
  feed_->cancel();
}

/// The names of the fields are written once; every input must have the same. Empty lines before
/// them are none of the table. False: there is nothing else in the block.
Result<bool> ExactDedup::take_header(Block& block) {
  const std::string name = feed_->name_of(block.input);
  if (block.is_long_part) {
    return data_error(fmt::format("{}, line 1: the header is longer than the limit of {}", name,
                                  format_bytes(line_bytes_max)));
  }
  const Bytes text = block.bytes.bytes();
  std::size_t begin = 0;
  while (begin < text.size() && is_blank_record(text.substr(begin, line_size(text, begin)))) {
    begin += line_size(text, begin);
  }
  std::size_t size = feed_->first_record_size(text.substr(begin));
  if (size == 0) size = text.size() - begin;
  block.begin = begin + size;
  const Bytes before = text.substr(0, block.begin);
  block.newlines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  if (size == 0) return false;
  const Bytes record = text.substr(begin, size);
  Bytes content = record;
  while (content.ends_with('\n') || content.ends_with('\r') || content.ends_with('\0')) {
    content.remove_suffix(1);
  }
  content.remove_prefix(mark_size(content));
  if (header_) {
    if (*header_ == content) return true;
    return data_error(fmt::format("{}, line 1: the header is '{}'; the previous input has '{}'",
                                  name, content, *header_));
  }
  header_ = content;
  LineParser parser{rule_};
  if (const Status resolved = parser.resolve(content); !resolved) {
    return data_error(fmt::format("{}, line 1: {}", name, resolved.error().detail));
  }
  rule_ = parser.rule();
  header_record_ = record;
  if (options_.count) {
    // The byte order mark stays in front.
    header_record_.insert(mark_size(record), fmt::format("count{}", rule_.delimiter.value_or(',')));
  }
  block.carries_header = true;
  return true;
}

void ExactDedup::write_lines(const Block& block) {
  LineWriter& first = context_.first;
  if (pass_ == Pass::collect || pass_ == Pass::rebuild) return;
  if (block.carries_header) {
    if (!options_.total) first.write(header_record_);
    if (context_.duplicates != nullptr) context_.duplicates->write(header_record_);
  }
  if (block.rest > 0 && !options_.total) first.append(block.bytes.bytes().substr(0, block.rest));
  const std::size_t lines = block.counts.first + block.counts.no_key + block.counts.repeats;
  if (block.is_whole && lines > 0 && !options_.total) {
    first.write(block.bytes.bytes().substr(block.begin, block.ends[lines - 1] - block.begin));
  }
  if (block.first.size > 0) first.write(block.first.bytes());
  if (block.duplicates.size > 0) context_.duplicates->write(block.duplicates.bytes());
  // A reader behind a pipe sees each block at once.
  first.flush();
  if (context_.duplicates != nullptr) context_.duplicates->flush();
}

Result<bool> ExactDedup::write(Block& block) {
  if (block.begins_input) input_newlines_ = 0;
  write_lines(block);
  {
    const std::scoped_lock lock{progress_mutex_};
    const Block::Counts& counts = block.counts;
    counts_.lines += counts.first + counts.no_key + counts.repeats;
    counts_.first += counts.first;
    counts_.duplicates += counts.repeats;
    counts_.without_key += counts.no_key;
    bytes_read_ = block.bytes_read;
  }
  show_progress();
  if (block.fault) return error_of(block);
  input_newlines_ += block.newlines;
  SEMEL_TRY(is_open, is_output_open());
  if (is_open && context_.checkpoints != nullptr && pass_ == Pass::only) {
    SEMEL_CHECK(save_checkpoint(block));
  }
  return is_open;
}

Error ExactDedup::error_of(const Block& block) {
  const std::string place = fmt::format("{}, line {}", feed_->name_of(block.input),
                                        input_newlines_ + block.fault->newlines + 1);
  if (!block.fault->is_memory) return data_error(fmt::format("{}: {}", place, block.fault->text));
  if (budget_.used() < budget_.limit() / 4) {
    return memory_error(
        fmt::format("{}: the system gives no memory (or no addresses, ulimit -v) "
                    "beyond {}, with {} keys remembered",
                    place, format_bytes(budget_.used()), format_count(counts_.first)));
  }
  return memory_error(
      fmt::format("{}: the memory limit of {} is reached with {} keys remembered; none was "
                  "forgotten. Allow more with --memory{}",
                  place, format_bytes(options_.memory_bytes), format_count(counts_.first),
                  options_.digest ? "" : ", or remember 16 bytes a key with --digest"));
}

Result<bool> ExactDedup::is_output_open() {
  const LineWriter::State state = context_.first.state();
  if (state == LineWriter::State::reader_left) reader_left_ = true;
  if (context_.duplicates != nullptr && context_.duplicates->state() != LineWriter::State::good) {
    return context_.duplicates->error();
  }
  if (state == LineWriter::State::failed) return context_.first.error();
  return !reader_left_;
}

/// The reader shows it while it waits, the writer after each block.
void ExactDedup::show_progress() {
  const std::scoped_lock lock{progress_mutex_};
  context_.progress.show({bytes_read_, counts_.lines, counts_.duplicates});
}

}  // namespace semel::tool
