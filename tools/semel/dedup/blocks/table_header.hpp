// The header of a table, which every input repeats, and the rule for its lines: the header says
// which fields the named ones are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/dedup/blocks/block.hpp"
#include "tools/semel/records/line_parser.hpp"

namespace semel::tool {

/// Changed by the thread that reads, before it hands out the first block; by no thread later.
class TableHeader {
 public:
  enum class Added : std::uint8_t { none, count };
  /// `added`: a column that the written header has in front of those of the input.
  TableHeader(LineRule rule, Added added) : rule_(std::move(rule)), added_(added) {}

  /// With numbers for the named fields, once take() was true.
  [[nodiscard]] const LineRule& rule() const noexcept { return rule_; }
  /// The output begins with it. Empty: no header was taken.
  [[nodiscard]] const std::string& record() const noexcept { return record_; }

  /// Takes the header off a block at the beginning of the input `name`. The first of all inputs is
  /// written; the others must be equal. Empty lines before it are no part of the table. False: the
  /// block has nothing else, and the header is in the next one. The detail of an error is its whole
  /// text.
  [[nodiscard]] Result<bool> take(Block& block, const std::string& name);
  /// The inputs are read again: the header of the first one is written.
  void forget() noexcept { header_.reset(); }

 private:
  [[nodiscard]] Status adopt(Bytes record, Bytes content, const std::string& name);

  LineRule rule_;
  const Added added_;
  std::optional<std::string> header_;  ///< without its end
  std::string record_;
};

}  // namespace semel::tool
