#include "tools/semel/dedup/blocks/table_header.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

/// The line at `begin`, its end included.
std::size_t line_size(Bytes text, std::size_t begin) {
  return std::min(text.find('\n', begin), text.size() - 1) + 1 - begin;
}

/// A record without its end and without a byte order mark.
Bytes content_of(Bytes record) {
  while (record.ends_with('\n') || record.ends_with('\r') || record.ends_with('\0')) {
    record.remove_suffix(1);
  }
  record.remove_prefix(mark_size(record));
  return record;
}

}  // namespace

Result<bool> TableHeader::take(Block& block, const std::string& name) {
  SEMEL_ASSERT(rule_.has_header);
  if (block.is_long_part) {
    return data_error(fmt::format("{}, line 1: the header is longer than the limit of {}", name,
                                  format_bytes(line_bytes_max)));
  }
  const Bytes text = block.bytes.bytes();
  std::size_t begin = 0;
  while (begin < text.size() && is_blank_record(text.substr(begin, line_size(text, begin)))) {
    begin += line_size(text, begin);
  }
  std::size_t size = first_record_size(rule_, text.substr(begin));
  if (size == 0) size = text.size() - begin;
  block.begin = begin + size;
  const Bytes before = text.substr(0, block.begin);
  block.newlines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  if (size == 0) return false;
  const Bytes record = text.substr(begin, size);
  const Bytes content = content_of(record);
  if (!header_) {
    SEMEL_CHECK(adopt(record, content, name));
    block.carries_header = true;
    return true;
  }
  if (*header_ == content) return true;
  return data_error(fmt::format("{}, line 1: the header is '{}'; the previous input has '{}'", name,
                                content, *header_));
}

Status TableHeader::adopt(Bytes record, Bytes content, const std::string& name) {
  header_ = content;
  LineParser parser{rule_};
  if (const Status resolved = parser.resolve(content); !resolved) {
    return data_error(fmt::format("{}, line 1: {}", name, resolved.error().detail));
  }
  rule_ = parser.rule();
  record_ = record;
  if (added_ == Added::count) {
    // The byte order mark stays in front.
    record_.insert(mark_size(record), fmt::format("count{}", rule_.delimiter.value_or(',')));
  }
  return Done{};
}

}  // namespace semel::tool
