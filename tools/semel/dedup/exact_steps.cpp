// The steps of one block, by any thread: lines, keys, fates, output.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/semel/dedup/exact_dedup.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

/// The rest of a line that is too long is in front. False: there is nothing else.
bool ExactDedup::take_rest(Block& block) {
  if (!block.begins_inside && !block.is_long_part) return true;
  const Bytes text = block.bytes.bytes();
  if (block.begins_inside) {
    const std::size_t size = block.is_long_part
                                 ? text.size()
                                 : std::min(text.find(rule_.terminator), text.size() - 1) + 1;
    block.rest = block.begin = size;
    block.newlines = 1;
    return size < text.size();
  }
  block.ends.push_back(static_cast<std::uint32_t>(text.size()));
  block.fates.push_back(Fate::no_key);
  if (options_.missing != DedupOptions::Missing::pass || rule_.is_csv) {
    const char* const what = rule_.is_csv ? "a record (is a quote not closed?)" : "a line";
    block.fault = {
        0, 0, fmt::format("{} is longer than the limit of {}", what, format_bytes(line_bytes_max)),
        false};
    block.ends.clear();
    block.fates.clear();
  }
  return false;
}

template <class AddLine>
void ExactDedup::for_each_line(Block& block, AddLine add_line) {
  const Bytes text = block.bytes.bytes();
  if (rule_.is_csv && text.find('"') != Bytes::npos) {
    for (std::size_t at = block.begin; at < text.size();) {
      const bool is_first = block.begins_input && at == 0;
      const Bytes left = text.substr(at);
      std::size_t size = is_first ? feed_->first_record_size(left) : feed_->record_size(left);
      if (size == 0) size = text.size() - at;
      at += size;
      block.ends.push_back(static_cast<std::uint32_t>(at));
      if (!add_line(text.substr(at - size, size))) return;
    }
    return;
  }
  const char* at = text.data() + block.begin;
  const char* const end = text.data() + text.size();
  while (at != end) {
    const auto left = static_cast<std::size_t>(end - at);
    const void* const found = std::memchr(at, rule_.terminator, left);
    const std::size_t size =
        found == nullptr ? left
                         : static_cast<std::size_t>(static_cast<const char*>(found) - at) + 1;
    block.ends.push_back(static_cast<std::uint32_t>(at + size - text.data()));
    if (!add_line(Bytes{at, size})) return;
    at += size;
  }
}

void ExactDedup::add_key(Block& block, Bytes key, std::uint32_t line) {
  if (options_.digest) {
    char* const digest = block.key_bytes.space(KeyHash::digest_bytes);
    hash_.digest(key, digest);
    block.key_bytes.use(KeyHash::digest_bytes);
    key = {digest, KeyHash::digest_bytes};
  }
  const std::uint64_t hash = hash_(key);
  const std::size_t part = parts_ == 1 ? 0 : hash >> part_shift_;
  block.keys[part].push_back({hash, key.data(), static_cast<std::uint32_t>(key.size()), line});
}

/// The part of a line that is compared: a byte order mark before the first line of an input is not
/// data. A plain line is all of its bytes.
Bytes ExactDedup::without_mark(const Block& block, Bytes line) const {
  const bool is_first = block.begins_input && line.data() == block.bytes.data();
  const bool has_marks = rule_.is_csv || !rule_.key_pointers.empty();
  if (is_first && has_marks) line.remove_prefix(mark_size(line));
  return line;
}

void ExactDedup::split_lines(Block& block, LineParser& parser) {
  std::uint32_t line = 0;
  for_each_line(block, [&](Bytes text) {
    if (text.back() == rule_.terminator) text.remove_suffix(1);
    ParsedLine parsed;
    char* const space = block.key_bytes.space(rule_.key_bytes_max);
    const LineError error = parser.parse(without_mark(block, text), space, parsed);
    if (error == LineError::none) {
      if (pass_ != Pass::write) {
        if (parsed.key.data() == space) block.key_bytes.use(parsed.key.size());
        add_key(block, parsed.key, line);
      }
      ++line;
      block.fates.push_back(Fate::first);
      return true;
    }
    if (error == LineError::blank ||
        (options_.missing == DedupOptions::Missing::pass && LineParser::can_pass(error))) {
      ++line;
      block.fates.push_back(Fate::no_key);
      return true;
    }
    block.ends.pop_back();
    block.fault = {line, 0, parser.explanation(), false};
    return false;
  });
}

void ExactDedup::split(Block& block, unsigned thread) {
  if (take_rest(block)) {
    const bool needs_keys = pass_ != Pass::write || options_.missing == DedupOptions::Missing::pass;
    if (needs_keys) {
      std::unique_ptr<LineParser>& parser = parsers_[thread];
      if (parser == nullptr) parser = std::make_unique<LineParser>(rule_);
      split_lines(block, *parser);
    } else {
      for_each_line(block, [&](Bytes text) {
        const bool is_blank = rule_.is_table && is_blank_record(text);
        block.fates.push_back(is_blank ? Fate::no_key : Fate::dropped);
        return true;
      });
    }
  }
  const std::size_t end =
      block.fault ? (block.ends.empty() ? block.begin : block.ends.back()) : block.bytes.size;
  if (rule_.is_csv) {
    const Bytes text = block.bytes.bytes().substr(block.begin, end - block.begin);
    block.newlines += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  } else {
    block.newlines += block.ends.size();
  }
  if (block.fault) block.fault->newlines = block.newlines;
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
void ExactDedup::find_fault_of_memory(Block& block) {
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
  block.fault->newlines =
      static_cast<std::uint64_t>(std::count(before.begin(), before.end(), rule_.terminator));
}

void ExactDedup::finish(Block& block) {
  find_fault_of_memory(block);
  const std::size_t lines = block.fault ? block.fault->line : block.lines();
  for (std::size_t i = 0; i < lines; ++i) {
    block.counts.first += block.fates[i] == Fate::first;
    block.counts.no_key += block.fates[i] == Fate::no_key;
  }
  block.counts.repeats = lines - block.counts.first - block.counts.no_key;
  if (pass_ == Pass::only || pass_ == Pass::write) compose(block);
}

/// The output of the block, in one piece.
void ExactDedup::compose(Block& block) {
  const std::size_t lines = block.counts.first + block.counts.no_key + block.counts.repeats;
  const bool counts_only = options_.total;
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
    if (is_out && !counts_only) block.first.append(run);
    if (!is_out && context_.duplicates != nullptr) block.duplicates.append(run);
    i = end;
  }
}

std::string ExactDedup::occurrence_text(std::uint64_t count) const {
  if (rule_.has_header || rule_.is_csv) {
    return fmt::format("{}{}", count, rule_.delimiter.value_or(','));
  }
  return fmt::format("{:7} ", count);
}

}  // namespace semel::tool
