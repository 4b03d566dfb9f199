// The error for an argument that no part of the program accepts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace semel::tool {

struct UnknownArgument {
  const CLI::App* app;  ///< where it stood: the program, or the subcommand it came behind
  std::string text;     ///< names it, and the known name that is nearest
};

/// The one of `arguments` (without the program's name) to name first, of those that `program` and
/// its subcommand left over when they parsed them; none if they took all.
[[nodiscard]] std::optional<UnknownArgument> unknown_argument(
    const CLI::App& program, std::span<const char* const> arguments);

/// "no subcommand 'dedpu'; did you mean 'dedup'?"
[[nodiscard]] std::string no_subcommand(const CLI::App& program, std::string_view typed);

}  // namespace semel::tool
