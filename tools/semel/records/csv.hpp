// Records of comma-separated values with quotes: a field in quotes may hold delimiters, newlines
// and quotes (doubled). Source: RFC 4180.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "semel/types.hpp"
#include "tools/semel/records/key_buffer.hpp"

namespace semel::tool {

/// The size of the record at the beginning of `text`, its newline included. 0: its quotes are still
/// open at the end of `text`. A malformed record ends at the next newline.
[[nodiscard]] std::size_t csv_record_size(Bytes text, char delimiter) noexcept;

/// The size of a byte order mark at the beginning of `text`: 3, or 0.
[[nodiscard]] constexpr std::size_t mark_size(Bytes text) noexcept {
  return text.starts_with(Bytes{"\xef\xbb\xbf", 3}) ? 3 : 0;
}

/// Whether a record (with or without its newline) is an empty line, which readers of CSV do not
/// count as a record.
[[nodiscard]] constexpr bool is_blank_record(Bytes record) noexcept {
  return record.empty() || record == "\n" || record == "\r\n" || record == "\r";
}

/// The fields of one record (without its newline), up to `wanted`; they point into `record`, or
/// into `unquoted` where a doubled quote became one. False: anywhere in the record, also behind
/// those fields, something follows a closing quote, or a quote is never closed. Such a record may
/// hold all lines that follow it in the file.
[[nodiscard]] bool split_csv(Bytes record, char delimiter, std::size_t wanted,
                             std::vector<Bytes>& fields, std::deque<std::string>& unquoted);

struct CsvForm {
  char delimiter = ',';
  bool folds_case = false;  ///< A to Z become a to z
};
/// Appends one record (without its newline) in the one form that all records of the same fields
/// have: a field is in quotes only where it holds a delimiter, a quote or a newline. `field` is
/// scratch. False: as split_csv().
[[nodiscard]] bool append_same_csv(Bytes record, CsvForm form, std::string& field, KeyBuffer& key);

}  // namespace semel::tool
