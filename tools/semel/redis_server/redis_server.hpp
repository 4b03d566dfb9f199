// `semel redis-server`: a node where a test, or a program that starts one, expects redis-server. It
// takes Redis' flags and files (net/config/redis_start.hpp), and its log, version, pid file and
// daemon are those of redis-server. The node is that of `semel node`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

/// The arguments behind the subcommand, or behind the name of a program that is called
/// redis-server, as by a link. None: another subcommand is meant.
[[nodiscard]] std::optional<std::span<char* const>> redis_server_arguments(
    std::span<char* const> words);

/// `words` are all of main(), of which redis_server_arguments() has found `arguments`: their memory
/// becomes the title of the process. Returns when the node has ended.
[[nodiscard]] Exit run_redis_server(std::span<char* const> arguments, std::span<char* const> words);

/// Lists the subcommand in the help of `program`; its arguments are not for CLI11.
void add_redis_server(CLI::App& program);

}  // namespace semel::tool
