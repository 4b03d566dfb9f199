// The arguments of a command as COMMAND DOCS shows them, read from the words that its row has for
// people: "key value [NX | XX] [EX seconds | PX milliseconds]".
//
// Grammar of the words: a word in capitals is a token and takes the words in small letters behind
// it; [a] is optional; a | b is one of both, as "a or b" and "a, b" are; "a b [a b ...]" is a b
// once or more, [a ...] any number of times; "options of X" is a list of options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

struct CommandArgument {
  std::string name{};
  std::string_view type{};  ///< as Redis names it: "key", "integer", "oneof", "pure-token", ..
  std::string_view token{};
  bool is_optional = false;
  bool is_multiple = false;
  bool repeats_token = false;            ///< if it is multiple: each time with the token
  std::vector<CommandArgument> parts{};  ///< of a oneof or a block
};

/// `command`: its name, for what depends on it. The result has views into `words`.
[[nodiscard]] std::vector<CommandArgument> arguments_of(std::string_view command,
                                                        std::string_view words);

}  // namespace semel::net
