#include "tools/semel/records/csv.hpp"

#include <algorithm>

#include "base/ascii.hpp"

namespace semel::tool {
namespace {

constexpr char quote = '"';

/// Where the quoted field that begins at `at` is closed, or npos.
std::size_t closing_quote(Bytes text, std::size_t at) noexcept {
  for (++at;; at += 2) {
    at = text.find(quote, at);
    if (at == Bytes::npos || at + 1 >= text.size() || text[at + 1] != quote) return at;
  }
}

/// Whether the quotes of the fields from `at` on, where one begins, are well-formed.
bool has_right_quotes(Bytes record, char delimiter, std::size_t at) noexcept {
  if (record.find(quote, at) == Bytes::npos) return true;
  for (;; ++at) {
    if (at < record.size() && record[at] == quote) {
      at = closing_quote(record, at);
      if (at == Bytes::npos) return false;
      if (++at < record.size() && record[at] != delimiter) return false;
    } else {
      at = std::min(record.find(delimiter, at), record.size());
    }
    if (at == record.size()) return true;
  }
}

}  // namespace

std::size_t csv_record_size(Bytes text, char delimiter) noexcept {
  const auto line_from = [text](std::size_t at) {
    const std::size_t newline = text.find('\n', at);
    return newline == Bytes::npos ? text.size() : newline + 1;
  };
  // Most records have no quotes at all.
  const std::size_t line = line_from(0);
  if (text.substr(0, line).find(quote) == Bytes::npos) return line;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == quote) {
      const std::size_t closed = closing_quote(text, at);
      if (closed == Bytes::npos) return 0;
      at = closed + 1;
      if (at < text.size() && text[at] != delimiter) return line_from(at);
      ++at;
      continue;
    }
    while (at < text.size() && text[at] != delimiter && text[at] != '\n') ++at;
    if (at == text.size()) break;
    if (text[at++] == '\n') return at;
  }
  return text.size();
}

bool split_csv(Bytes record, char delimiter, std::size_t wanted, std::vector<Bytes>& fields,
               std::deque<std::string>& unquoted) {
  fields.clear();
  unquoted.clear();
  if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
  std::size_t at = 0;
  while (fields.size() < wanted) {
    if (at == record.size() || record[at] != quote) {
      const std::size_t end = std::min(record.find(delimiter, at), record.size());
      fields.push_back(record.substr(at, end - at));
      if (end == record.size()) return true;
      at = end + 1;
      continue;
    }
    const std::size_t closed = closing_quote(record, at);
    if (closed == Bytes::npos) return false;
    const Bytes inside = record.substr(at + 1, closed - at - 1);
    if (inside.find(quote) == Bytes::npos) {
      fields.push_back(inside);
    } else {
      std::string& plain = unquoted.emplace_back();
      for (std::size_t i = 0; i < inside.size(); i += inside[i] == quote ? 2 : 1)
        plain += inside[i];
      fields.push_back(plain);
    }
    at = closed + 1;
    if (at == record.size()) return true;
    if (record[at] != delimiter) return false;
    ++at;
  }
  return has_right_quotes(record, delimiter, at);
}

bool append_same_csv(Bytes record, CsvForm form, std::string& field, KeyBuffer& key) {
  if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
  const char special[] = {form.delimiter, quote, '\n'};
  for (std::size_t at = 0;; ++at) {
    if (at == record.size() || record[at] != quote) {
      const std::size_t end = std::min(record.find(form.delimiter, at), record.size());
      field = record.substr(at, end - at);
      at = end;
    } else {
      const std::size_t closed = closing_quote(record, at);
      if (closed == Bytes::npos) return false;
      field.clear();
      for (++at; at < closed; at += record[at] == quote ? 2 : 1) field += record[at];
      at = closed + 1;
      if (at < record.size() && record[at] != form.delimiter) return false;
    }
    if (form.folds_case) std::transform(field.begin(), field.end(), field.begin(), base::to_lower);
    if (field.find_first_of(special, 0, sizeof special) == std::string::npos) {
      key.append(field);
    } else {
      key.append({&quote, 1});
      for (std::size_t from = 0; from < field.size();) {
        const std::size_t end = std::min(field.find(quote, from), field.size() - 1) + 1;
        key.append(Bytes{field}.substr(from, end - from));
        if (field[end - 1] == quote) key.append({&quote, 1});
        from = end;
      }
      key.append({&quote, 1});
    }
    if (at == record.size()) return true;
    key.append({&form.delimiter, 1});
  }
}

}  // namespace semel::tool
