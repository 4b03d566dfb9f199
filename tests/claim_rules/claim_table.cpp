#include "tests/claim_rules/claim_table.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace semel::tests {
namespace {

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string{text}};
  std::string part;
  while (std::getline(stream, part, separator)) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

[[nodiscard]] std::vector<std::string> list_of(const std::string& words) {
  if (words == "-") return {};
  std::vector<std::string> list = split(words, ',');
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

bool TableCall::names(std::size_t dimension) const {
  return std::find(columns.begin(), columns.end(), dimension) != columns.end();
}

bool TableCall::means(const TableRow& row, const std::vector<std::size_t>& columns,
                      const Combination& combination) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!row.cells[i][combination[columns[i]]]) return false;
  }
  return true;
}

std::string ClaimTable::text() {
  std::ifstream file{SEMEL_CLAIM_TABLE};
  return {std::istreambuf_iterator<char>{file}, {}};
}

ClaimTable::ClaimTable(std::string_view text) {
  std::istringstream stream{std::string{text}};
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) read_line(number, line);
  if (calls_.empty()) error(0, "no calls");
}

void ClaimTable::error(std::size_t number, const std::string& what) {
  errors_.push_back("line " + std::to_string(number) + ": " + what);
}

void ClaimTable::read_line(std::size_t number, std::string_view line) {
  const std::vector<std::string> words = split(line, ' ');
  if (words.empty() || words[0].front() == '#') return;
  const std::string& first = words[0];
  if (line.front() == ' ') {
    read_row(number, words);
  } else if (first == "call") {
    read_call(number, words);
  } else if (first == "never") {
    read_never(number, words);
  } else {
    read_dimension(number, words);
  }
}

void ClaimTable::read_dimension(std::size_t number, const std::vector<std::string>& words) {
  TableDimension made;
  if (words[0] == "policy") {
    made.kind = TableDimension::Kind::policy;
  } else if (words[0] == "asked") {
    made.kind = TableDimension::Kind::asked;
  } else if (words[0] != "record") {
    return error(number, words[0] + " is no word to begin a line with");
  }
  if (words.size() < 3) return error(number, "a dimension has a name and values");
  made.name = words[1];
  made.values.assign(words.begin() + 2, words.end());
  dimensions_.push_back(made);
}

void ClaimTable::read_never(std::size_t number, const std::vector<std::string>& words) {
  if (words.size() < 5) return error(number, "two values, and why they never meet");
  Never made;
  for (std::size_t i = 1; i <= 2; ++i) {
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const std::vector<std::string>& values = dimensions_[d].values;
      for (std::size_t v = 0; v < values.size(); ++v) {
        if (words[i] == dimensions_[d].name + "=" + values[v]) made.both.emplace_back(d, v);
      }
    }
  }
  if (made.both.size() != 2) return error(number, "not two values of dimensions");
  nevers_.push_back(made);
}

bool ClaimTable::may_be(const TableCall& call, const Combination& combination) const {
  const auto is = [&](const std::pair<std::size_t, std::size_t>& one) {
    const bool asked = dimensions_[one.first].kind == TableDimension::Kind::asked;
    return combination[one.first] == one.second && (!asked || call.names(one.first));
  };
  return std::none_of(nevers_.begin(), nevers_.end(), [&](const Never& never) {
    return std::all_of(never.both.begin(), never.both.end(), is);
  });
}

void ClaimTable::read_call(std::size_t number, const std::vector<std::string>& words) {
  if (words.size() < 3) return error(number, "a call has a name and dimensions");
  TableCall made;
  made.name = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto at = std::find_if(dimensions_.begin(), dimensions_.end(),
                                 [&](const TableDimension& d) { return d.name == words[i]; });
    if (at == dimensions_.end()) return error(number, words[i] + " is no dimension");
    made.columns.push_back(static_cast<std::size_t>(at - dimensions_.begin()));
  }
  calls_.push_back(made);
}

std::vector<bool> ClaimTable::read_cell(std::size_t number, const TableDimension& dimension,
                                        std::string_view cell) {
  const bool but = cell.front() == '!';
  if (cell == "*") return std::vector<bool>(dimension.values.size(), true);
  if (but) cell.remove_prefix(1);
  std::vector<bool> meant(dimension.values.size(), but);
  for (const std::string& word : split(cell, '|')) {
    const auto at = std::find(dimension.values.begin(), dimension.values.end(), word);
    if (at == dimension.values.end()) {
      error(number, word + " is no value of " + dimension.name);
      continue;
    }
    meant[static_cast<std::size_t>(at - dimension.values.begin())] = !but;
  }
  return meant;
}

void ClaimTable::read_row(std::size_t number, const std::vector<std::string>& words) {
  if (calls_.empty()) return error(number, "a row before the first call");
  TableCall& call = calls_.back();
  const std::size_t columns = call.columns.size();
  if (words.size() != columns + 5 || words[columns] != "->") {
    return error(number, "a row has " + std::to_string(columns) + " cells, ->, and four words");
  }
  TableRow made;
  made.line = number;
  for (std::size_t i = 0; i < columns; ++i) {
    made.cells.push_back(read_cell(number, dimensions_[call.columns[i]], words[i]));
  }
  made.answer = words[columns + 1];
  made.flags = list_of(words[columns + 2]);
  made.carries = list_of(words[columns + 3]);
  made.next = words[columns + 4];
  call.rows.push_back(made);
}

const TableCall* ClaimTable::call(std::string_view name) const {
  const auto at = std::find_if(calls_.begin(), calls_.end(),
                               [&](const TableCall& c) { return c.name == name; });
  return at == calls_.end() ? nullptr : &*at;
}

const std::string& ClaimTable::value(const Combination& combination,
                                     std::string_view dimension) const {
  static const std::string none;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (dimensions_[i].name == dimension) return dimensions_[i].values[combination[i]];
  }
  return none;
}

std::string ClaimTable::describe(const TableCall& call, const Combination& combination) const {
  std::string all = call.name;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (dimensions_[i].kind == TableDimension::Kind::asked && !call.names(i)) continue;
    all += " " + dimensions_[i].name + "=" + dimensions_[i].values[combination[i]];
  }
  return all;
}

void ClaimTable::each(const TableCall& call,
                      const std::function<void(const Combination&)>& visit) const {
  Combination at(dimensions_.size(), 0);
  for (;;) {
    if (may_be(call, at)) visit(at);
    std::size_t i = 0;
    for (; i < at.size(); ++i) {
      if (dimensions_[i].kind == TableDimension::Kind::asked && !call.names(i)) continue;
      if (++at[i] < dimensions_[i].values.size()) break;
      at[i] = 0;
    }
    if (i == at.size()) return;
  }
}

const TableRow* ClaimTable::row(const TableCall& call, const Combination& combination) {
  const TableRow* found = nullptr;
  for (const TableRow& row : call.rows) {
    if (!TableCall::means(row, call.columns, combination)) continue;
    if (found != nullptr) return nullptr;
    found = &row;
  }
  return found;
}

std::vector<std::string> ClaimTable::gaps() const {
  std::vector<std::string> all = errors_;
  for (const TableCall& call : calls_) {
    std::vector<std::size_t> used(call.rows.size(), 0);
    each(call, [&](const Combination& combination) {
      std::size_t matches = 0;
      for (std::size_t i = 0; i < call.rows.size(); ++i) {
        if (!TableCall::means(call.rows[i], call.columns, combination)) continue;
        ++matches;
        ++used[i];
      }
      if (matches != 1) {
        all.push_back(std::to_string(matches) + " rows for " + describe(call, combination));
      }
    });
    for (std::size_t i = 0; i < call.rows.size(); ++i) {
      if (used[i] != 0) continue;
      all.push_back("line " + std::to_string(call.rows[i].line) + " matches no case");
    }
  }
  return all;
}

}  // namespace semel::tests
