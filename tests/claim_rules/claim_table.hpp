// Reads claim_table.txt. Its format is described there.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace semel::tests {

/// Of each dimension of the table, in its order, the index of one value.
using Combination = std::vector<std::size_t>;

struct TableDimension {
  enum class Kind { record, policy, asked };
  Kind kind = Kind::record;
  std::string name;
  std::vector<std::string> values;
};

struct TableRow {
  std::size_t line = 0;
  std::vector<std::vector<bool>> cells{};  ///< of each column of the call: which values are meant
  std::string answer{};
  std::vector<std::string> flags{};    ///< sorted
  std::vector<std::string> carries{};  ///< sorted
  std::string next{};
};

struct TableCall {
  std::string name;
  std::vector<std::size_t> columns;  ///< indices of dimensions
  std::vector<TableRow> rows;

  [[nodiscard]] bool names(std::size_t dimension) const;
  [[nodiscard]] static bool means(const TableRow& row, const std::vector<std::size_t>& columns,
                                  const Combination& combination);
};

class ClaimTable {
 public:
  /// What is wrong with the text itself is in errors(), a line each.
  explicit ClaimTable(std::string_view text);
  /// The table of this tree.
  [[nodiscard]] static std::string text();

  [[nodiscard]] const std::vector<std::string>& errors() const noexcept { return errors_; }
  [[nodiscard]] const std::vector<TableCall>& calls() const noexcept { return calls_; }
  /// Null: there is none.
  [[nodiscard]] const TableCall* call(std::string_view name) const;
  [[nodiscard]] const std::string& value(const Combination& combination,
                                         std::string_view dimension) const;
  [[nodiscard]] std::string describe(const TableCall& call, const Combination& combination) const;

  /// Visits every combination of record, policy and what `call` is asked with that may meet.
  void each(const TableCall& call, const std::function<void(const Combination&)>& visit) const;
  /// The row of a combination; null: none, or several.
  [[nodiscard]] static const TableRow* row(const TableCall& call, const Combination& combination);
  /// Combinations without a row or with several, rows that are no combination's; empty: complete.
  [[nodiscard]] std::vector<std::string> gaps() const;

 private:
  /// Two values, each as (dimension, value).
  struct Never {
    std::vector<std::pair<std::size_t, std::size_t>> both{};
  };

  void read_line(std::size_t number, std::string_view line);
  void read_dimension(std::size_t number, const std::vector<std::string>& words);
  void read_never(std::size_t number, const std::vector<std::string>& words);
  [[nodiscard]] bool may_be(const TableCall& call, const Combination& combination) const;
  void read_call(std::size_t number, const std::vector<std::string>& words);
  void read_row(std::size_t number, const std::vector<std::string>& words);
  [[nodiscard]] std::vector<bool> read_cell(std::size_t number, const TableDimension& dimension,
                                            std::string_view cell);
  void error(std::size_t number, const std::string& what);

  std::vector<TableDimension> dimensions_;
  std::vector<Never> nevers_;
  std::vector<TableCall> calls_;
  std::vector<std::string> errors_;
};

}  // namespace semel::tests
