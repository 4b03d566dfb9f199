// How a function says that a client's request is refused: by a Status or Result whose Error has the
// whole line of the reply as its detail. Its caller writes the detail. (Call::fail(Error) is for
// the engine's errors: it writes the sentence of the code.)
#pragma once

#include <string>
#include <utility>

#include "semel/result.hpp"

namespace semel::net {

/// `line`: "ERR ..", "NOPERM .."; it begins with a word for programs.
[[nodiscard]] inline Error reply_error(std::string line) {
  return {ErrorCode::bad_option, std::move(line)};
}

}  // namespace semel::net
