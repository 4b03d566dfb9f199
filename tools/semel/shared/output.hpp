// Standard output and standard error. fmt::print throws if a stream is closed or its disk is full,
// which would end the program without a message.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

/// Appends `text` to standard output. The first failure is kept for finish_out(), and nothing is
/// written after it. Not thread-safe.
void append_out(std::string_view text);
/// Flushes standard output. Exit::file, and a line on standard error: something is lost. A reader
/// that left early is not a failure.
[[nodiscard]] Exit finish_out();
/// Both.
[[nodiscard]] Exit write_out(std::string_view text);
/// Writes `text` to standard error; where that is closed, nowhere.
void write_error(const std::string& text);

template <class... Arguments>
void print_out(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  append_out(fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace semel::tool
