#include "tools/semel/dedup/blocks/block_splitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

BlockSplitter::BlockSplitter(const LineRule& rule, const KeyHash& hash, const Options& options)
    : rule_(rule),
      hash_(hash),
      options_(options),
      part_shift_(64 - static_cast<unsigned>(std::countr_zero(options.parts))),
      parsers_(options.threads) {
  SEMEL_ASSERT(std::has_single_bit(options.parts));
}

/// The rest of a line that is too long is in front. False: there is nothing else.
bool BlockSplitter::take_rest(Block& block) const {
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
  if (!options_.passes_missing || rule_.is_csv) {
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
void BlockSplitter::for_each_line(Block& block, AddLine add_line) const {
  const Bytes text = block.bytes.bytes();
  if (rule_.is_csv && text.find('"') != Bytes::npos) {
    for (std::size_t at = block.begin; at < text.size();) {
      const bool is_first = block.begins_input && at == 0;
      const Bytes left = text.substr(at);
      std::size_t size = is_first ? first_record_size(rule_, left) : record_size(rule_, left);
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

void BlockSplitter::add_key(Block& block, Bytes key, std::uint32_t line) const {
  if (options_.has_digests) {
    char* const digest = block.key_bytes.space(KeyHash::digest_bytes);
    hash_.digest(key, digest);
    block.key_bytes.use(KeyHash::digest_bytes);
    key = {digest, KeyHash::digest_bytes};
  }
  const std::uint64_t hash = hash_(key);
  const std::size_t part = options_.parts == 1 ? 0 : hash >> part_shift_;
  block.keys[part].push_back({hash, key.data(), static_cast<std::uint32_t>(key.size()), line});
}

/// The part of a line that is compared: a byte order mark before the first line of an input is not
/// data. A plain line is all of its bytes.
Bytes BlockSplitter::without_mark(const Block& block, Bytes line) const {
  const bool is_first = block.begins_input && line.data() == block.bytes.data();
  const bool has_marks = rule_.is_csv || !rule_.key_pointers.empty();
  if (is_first && has_marks) line.remove_prefix(mark_size(line));
  return line;
}

void BlockSplitter::parse_lines(Block& block, LineParser& parser, Keys keys) const {
  std::uint32_t line = 0;
  for_each_line(block, [&](Bytes text) {
    if (text.back() == rule_.terminator) text.remove_suffix(1);
    ParsedLine parsed;
    char* const space = block.key_bytes.space(rule_.key_bytes_max);
    const LineError error = parser.parse(without_mark(block, text), space, parsed);
    if (error == LineError::none) {
      if (keys == Keys::noted) {
        if (parsed.key.data() == space) block.key_bytes.use(parsed.key.size());
        add_key(block, parsed.key, line);
      }
      ++line;
      block.fates.push_back(Fate::first);
      return true;
    }
    if (error == LineError::blank || (options_.passes_missing && LineParser::can_pass(error))) {
      ++line;
      block.fates.push_back(Fate::no_key);
      return true;
    }
    block.ends.pop_back();
    block.fault = {line, 0, parser.explanation(), false};
    return false;
  });
}

/// Of all lines before a fault.
void BlockSplitter::count_newlines(Block& block) const {
  if (rule_.is_csv) {
    const std::size_t end =
        block.fault ? (block.ends.empty() ? block.begin : block.ends.back()) : block.bytes.size;
    const Bytes text = block.bytes.bytes().substr(block.begin, end - block.begin);
    block.newlines += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  } else {
    block.newlines += block.ends.size();
  }
  if (block.fault) block.fault->newlines = block.newlines;
}

void BlockSplitter::split(Block& block, unsigned thread, Keys keys) {
  SEMEL_ASSERT(thread < parsers_.size());
  SEMEL_ASSERT(keys == Keys::not_noted || block.keys.size() == options_.parts);
  if (take_rest(block)) {
    if (keys == Keys::noted || options_.passes_missing) {
      std::unique_ptr<LineParser>& parser = parsers_[thread];
      if (parser == nullptr) parser = std::make_unique<LineParser>(rule_);
      parse_lines(block, *parser, keys);
    } else {
      for_each_line(block, [&](Bytes text) {
        const bool is_blank = rule_.is_table && is_blank_record(text);
        block.fates.push_back(is_blank ? Fate::no_key : Fate::dropped);
        return true;
      });
    }
  }
  count_newlines(block);
  block.check_invariants();
}

}  // namespace semel::tool
