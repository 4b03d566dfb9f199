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

/// A part for each thread, unless the memory is so little that their beginnings would take it.
unsigned part_count(const DedupOptions& options) {
  constexpr std::size_t bytes_a_part = std::size_t{1} << 20;
  const std::size_t most =
      std::bit_floor(std::max(options.memory_bytes / bytes_a_part, std::size_t{1}));
  return static_cast<unsigned>(std::min<std::size_t>(std::bit_ceil(options.threads), most));
}

TableHeader::Added added_column(const DedupOptions& options) {
  return options.count ? TableHeader::Added::count : TableHeader::Added::none;
}

}  // namespace

ExactDedup::ExactDedup(const DedupOptions& options, const Context& context)
    : options_(options),
      stop_(context.stop),
      checkpoints_(context.outputs.checkpoints),
      bytes_total_(context.bytes_total),
      parts_(part_count(options)),
      header_(options.rule, added_column(options)),
      splitter_(header_.rule(), hash_,
                {.threads = options.threads,
                 .parts = parts_,
                 .passes_missing = options.missing == DedupOptions::Missing::pass,
                 .has_digests = options.digest}),
      writer_(options, context.outputs, header_),
      budget_(options.memory_bytes) {}

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

Status ExactDedup::open_sets() {
  const KeySet::Options kind{.is_counted = options_.needs_whole_input(),
                             .keeps_last = options_.keep == DedupOptions::Keep::last};
  for (unsigned i = 0; i < parts_; ++i) {
    if (sets_.emplace_back(hash_, budget_, kind).open()) continue;
    return memory_error(
        fmt::format("the memory limit of {} is too small for {} threads, or the "
                    "process may not have the addresses (ulimit -v)",
                    format_bytes(budget_.limit()), options_.threads));
  }
  return Done{};
}

Status ExactDedup::run() {
  SEMEL_CHECK(open_inputs());
  SEMEL_CHECK(open_sets());
  return options_.needs_whole_input() ? run_twice() : run_once();
}

Status ExactDedup::run_once() {
  if (checkpoints_ != nullptr) {
    SEMEL_CHECK(resume(checkpoints_->last().value_or(Checkpoint{})));
    if (stop_.received() != 0) return Done{};
  }
  return run_pass(Pass::only);
}

Status ExactDedup::run_twice() {
  SEMEL_CHECK(run_pass(Pass::collect));
  // A part of the counts would be a wrong result, so that nothing is written after a signal.
  if (stop_.received() != 0) return Done{};
  const std::uint64_t lines_collected = counts().lines;
  writer_.restart_counts();
  header_.forget();
  for (FeedInput& input : inputs_) input.is_stored = false;
  selection_.emplace(sets_, options_, budget_);
  SEMEL_CHECK(selection_->prepare());
  SEMEL_CHECK(run_pass(Pass::write));
  if (writer_.reader_left() || stop_.received() != 0) return Done{};
  if (counts().lines == lines_collected && selection_->peek() == nullptr) return Done{};
  return data_error("the input has changed while it was read: what was written is not right");
}

/// Reads the keys of the output so far and continues where it ended.
Status ExactDedup::resume(const Checkpoint& last) {
  SEMEL_CHECK(writer_.cut_back_to(last));
  const std::string& path = checkpoints_->partial_path();
  rebuilt_ = {FeedInput{path}};
  SEMEL_CHECK(run_pass(Pass::rebuild));
  if (stop_.received() != 0) return Done{};
  if (counts().first != last.counts.first || counts().duplicates != 0) {
    return data_error(fmt::format("--resume: {} has {} keys and had {}: remove '{}' to begin again",
                                  path, counts().first, last.counts.first, options_.resume_path));
  }
  writer_.continue_from(last);
  start_ = {last.input, last.offset};
  return Done{};
}

Status ExactDedup::run_pass(Pass pass) {
  pass_ = pass;
  feed_ = std::make_unique<BlockFeed>(pass == Pass::rebuild ? rebuilt_ : inputs_, header_.rule(),
                                      bytes_total_, stop_, [this] { writer_.show_progress(); });
  if (pass == Pass::only) feed_->start_at(start_);
  const Status done =
      run_pipeline(*this, {.threads = options_.threads, .parts = pass == Pass::write ? 1 : parts_});
  bytes_left_ = feed_->bytes_held();
  return done;
}

Result<bool> ExactDedup::read(Block& block) {
  SEMEL_TRY(is_block, feed_->next(block));
  if (!is_block) return false;
  if (!block.begins_input || !header_.rule().has_header) return true;
  // The threads that split blocks need its fields, so no block is handed out before it.
  std::uint64_t newlines = 0;
  while (true) {
    SEMEL_TRY(is_header, header_.take(block, feed_->name_of(block.input)));
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

void ExactDedup::split(Block& block, unsigned thread) {
  using Keys = BlockSplitter::Keys;
  splitter_.split(block, thread, pass_ == Pass::write ? Keys::not_noted : Keys::noted);
}

void ExactDedup::judge(Block& block, unsigned part) {
  if (pass_ == Pass::write) return select(block);
  const std::vector<KeyRef>& keys = block.keys[part];
  block.added[part] = sets_[part].add(
      {.keys = keys, .first_line = block.first_line, .share = block.share}, block.fates.data());
}

/// Marks the chosen lines. An empty line of a table is not counted as a line.
void ExactDedup::select(Block& block) {
  const bool counts = options_.count || options_.select != DedupOptions::Select::each;
  for (Fate& fate : block.fates) {
    if (fate != Fate::no_key || counts) fate = Fate::dropped;
  }
  block.occurrences.clear();
  const std::uint64_t end = block.first_line + block.lines();
  for (const KeyNote* note = selection_->peek(); note != nullptr && note->line < end;
       note = selection_->peek()) {
    block.fates[note->line - block.first_line] = Fate::first;
    if (options_.count) block.occurrences.push_back(note->count);
    selection_->take();
  }
}

/// The first line whose key had no memory, in any part.
void ExactDedup::find_fault_of_memory(Block& block) const {
  for (unsigned part = 0; part < parts_ && pass_ != Pass::write; ++part) {
    const std::vector<KeyRef>& keys = block.keys[part];
    if (block.added[part] == keys.size()) continue;
    const std::size_t line = keys[block.added[part]].line;
    if (block.fault && block.fault->line <= line) continue;
    block.fault = {line, 0, {}, true};
  }
  if (!block.fault || !block.fault->is_memory) return;
  const std::size_t end = block.fault->line == 0 ? block.begin : block.ends[block.fault->line - 1];
  const Bytes before = block.bytes.bytes().substr(0, end);
  block.fault->newlines = static_cast<std::uint64_t>(
      std::count(before.begin(), before.end(), header_.rule().terminator));
}

void ExactDedup::finish(Block& block) {
  find_fault_of_memory(block);
  const std::size_t lines = block.fault ? block.fault->line : block.lines();
  for (std::size_t i = 0; i < lines; ++i) {
    block.counts.first += block.fates[i] == Fate::first;
    block.counts.no_key += block.fates[i] == Fate::no_key;
  }
  block.counts.repeats = lines - block.counts.first - block.counts.no_key;
  if (writes_lines()) writer_.compose(block);
}

Result<bool> ExactDedup::write(Block& block) {
  if (writes_lines()) writer_.write(block);
  writer_.count(block);
  if (block.fault) return error_of(block);
  SEMEL_TRY(is_open, writer_.is_open());
  if (is_open && pass_ == Pass::only) SEMEL_CHECK(writer_.save_checkpoint(block));
  return is_open;
}

Error ExactDedup::error_of(const Block& block) const {
  const std::string place =
      fmt::format("{}, line {}", feed_->name_of(block.input), writer_.line_at_fault(block));
  if (!block.fault->is_memory) return data_error(fmt::format("{}: {}", place, block.fault->text));
  if (budget_.used() < budget_.limit() / 4) {
    return memory_error(
        fmt::format("{}: the system gives no memory (or no addresses, ulimit -v) "
                    "beyond {}, with {} keys remembered",
                    place, format_bytes(budget_.used()), format_count(counts().first)));
  }
  return memory_error(
      fmt::format("{}: the memory limit of {} is reached with {} keys remembered; none was "
                  "forgotten. Allow more with --memory{}",
                  place, format_bytes(options_.memory_bytes), format_count(counts().first),
                  options_.digest ? "" : ", or remember 16 bytes a key with --digest"));
}

}  // namespace semel::tool
