// Records of comma-separated values with quotes: a field in quotes may hold delimiters, newlines
// and quotes (doubled). Source: RFC 4180.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "semel/types.hpp"

namespace semel::tool {

/// The bytes of the record that `text` begins with, its newline included. 0: its quotes are still
/// open at the end of `text`. A record that is malformed ends at the next newline.
[[nodiscard]] std::size_t csv_record_size(Bytes text, char delimiter) noexcept;

/// The fields of one record (without its newline), up to `wanted`; they point into `record`, or
/// into `unquoted` where a doubled quote became one. False: something follows a closing quote, or a
/// quote is never closed.
[[nodiscard]] bool split_csv(Bytes record, char delimiter, std::size_t wanted,
                             std::vector<Bytes>& fields, std::deque<std::string>& unquoted);

}  // namespace semel::tool
