// What a row of the command table says to people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/commands/command.hpp"

namespace semel::net {

struct CommandDocs {
  std::string_view group;
  std::string_view tips;  ///< for clients of a cluster, commas between
  std::string_view complexity;
  std::string_view words;  ///< behind the name
  std::string_view summary;
  std::string_view deviation;  ///< from Redis; empty: none that we know of
};

[[nodiscard]] const CommandDocs& docs_of(const CommandRow& row) noexcept;

/// The row of "get" or "client|kill", in any case of letters. Null: there is none.
[[nodiscard]] const CommandRow* find_full_name(std::string_view name) noexcept;
/// The text between the commas (or what `separator` is); empty: nothing.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// docs/compatibility.md, made from the table.
[[nodiscard]] std::string compatibility_page();

}  // namespace semel::net
