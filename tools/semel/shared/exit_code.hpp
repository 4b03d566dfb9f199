// Exit codes. Documented in every --help. Before 0.2 usage was 1 and file was 2.
#pragma once

#include <string>
#include <utility>

#include "semel/result.hpp"

namespace semel::tool {

enum class Exit : int {
  ok = 0,
  file = 1,    ///< a file cannot be read or written; also: demo's story did not hold
  usage = 2,   ///< an option or its value, as in shells and most programs
  data = 3,    ///< the input does not match the options
  memory = 4,  ///< --memory is used up
};

// Errors that end a run. The detail is the whole text for the user, without the program's name; it
// names the value and the limit. The code chooses the exit code.
[[nodiscard]] inline Error usage_error(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}
[[nodiscard]] inline Error file_error(std::string text) {
  return {ErrorCode::storage_failed, std::move(text)};
}
[[nodiscard]] inline Error data_error(std::string text) {
  return {ErrorCode::syntax, std::move(text)};
}
[[nodiscard]] inline Error memory_error(std::string text) {
  return {ErrorCode::memory_full, std::move(text)};
}

/// The exit code of a run that `code` ended.
[[nodiscard]] constexpr Exit exit_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::ok:
      return Exit::ok;
    case ErrorCode::bad_option:
      return Exit::usage;
    case ErrorCode::syntax:
    case ErrorCode::storage_damaged:
    case ErrorCode::storage_newer:
      return Exit::data;
    case ErrorCode::memory_full:
    case ErrorCode::out_of_address_space:
      return Exit::memory;
    default:
      return Exit::file;
  }
}

inline constexpr char exit_code_help[] =
    "Exit codes: 0 done, 1 cannot read or write a file, 2 usage, 3 bad input data,\n"
    "4 memory limit reached. If the reader closes the output early (head), the code is 0.\n"
    "128 + N: stopped by signal N (130 Ctrl-C, 143 SIGTERM), after all input that was read had\n"
    "been written and remembered; a second signal ends the run at once.";

}  // namespace semel::tool
