// A reply of a node as text.
#pragma once

#include <string>

#include "semel/local_redis.hpp"

namespace semel::tool {

/// For people: a map has a line for each key, an array one for each item; bytes that are no
/// printable text are in quotes, with \xNN. Without a line's end behind the last.
[[nodiscard]] std::string reply_text(const Reply& reply);

/// One line of JSON. Bytes that are not UTF-8 are written as text with \u00NN for each byte, an
/// error as {"error": ..}, a map whose keys are not all text as an array of pairs.
[[nodiscard]] std::string reply_json(const Reply& reply);

}  // namespace semel::tool
