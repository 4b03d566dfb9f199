// What the program tells the shell. Documented in every --help; a number never changes its meaning.
#pragma once

#include <string>

namespace semel::tool {

enum class Exit : int {
  ok = 0,
  usage = 1,   ///< an option or its value; also: demo's story did not hold
  file = 2,    ///< a file cannot be read or written
  data = 3,    ///< the input is not what the options say
  memory = 4,  ///< --memory is used up
};

/// Why a run ended early. The text names the value and the limit, without program name.
struct Failure {
  Exit exit = Exit::ok;
  std::string text;
};

inline constexpr char exit_code_help[] =
    "Exit codes: 0 done, 1 usage, 2 cannot read or write a file, 3 bad input data,\n"
    "4 memory limit reached. A reader that closes the output early (head) ends the run with 0.\n"
    "128 + N: stopped by signal N (130 Ctrl-C, 143 SIGTERM), after all that was read had been\n"
    "written and remembered; a second signal ends the run at once.";

}  // namespace semel::tool
