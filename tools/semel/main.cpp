// The program `semel`: one subcommand a file, this one only chooses between them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <string>

#include "semel/version.hpp"
#include "tools/semel/dedup/dedup_command.hpp"
#include "tools/semel/demo/demo.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/storage/storage_commands.hpp"
#ifdef SEMEL_HAS_NODE
#include "tools/semel/node/node_command.hpp"
#endif

namespace {

using semel::tool::Exit;

int run(int argc, char** argv) {
  CLI::App program{"Semel remembers what has been done, so that the same work is done once.",
                   "semel"};
  program.set_version_flag("--version", std::string{"semel "} + semel::version);
  program.require_subcommand(0, 1);
  program.footer(std::string{"'semel SUBCOMMAND --help' tells more.\n\n"} +
                 semel::tool::exit_code_help +
                 "\nSubcommands for a storage have their own; see their --help.");
  const semel::tool::DedupCommand dedup{program};
  const semel::tool::DemoCommand demo{program};
#ifdef SEMEL_HAS_NODE
  semel::tool::NodeCommand node{program};
#endif
  std::string chosen;
  const auto storage_commands = semel::tool::storage_commands(program);
  const auto chosen_storage = [&]() -> const semel::tool::StorageCommand* {
    for (const auto& command : storage_commands) {
      if (command->is_chosen()) return command.get();
    }
    return nullptr;
  };
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      program.exit(error);
      return 0;
    }
    if (dedup.is_chosen()) chosen = " dedup";
    if (demo.is_chosen()) chosen = " demo";
    Exit usage = Exit::usage;
    if (const auto* command = chosen_storage()) {
      chosen = " " + command->name();
      usage = Exit{static_cast<int>(semel::tool::StorageExit::usage)};
    }
    fmt::print(stderr, "semel{0}: {1}\nTry 'semel{0} --help'.\n", chosen, error.what());
    return static_cast<int>(usage);
  }
  if (dedup.is_chosen()) return static_cast<int>(dedup.run());
  if (demo.is_chosen()) return static_cast<int>(demo.run());
#ifdef SEMEL_HAS_NODE
  if (node.is_chosen()) return static_cast<int>(node.run());
#endif
  if (const auto* command = chosen_storage()) return static_cast<int>(command->run());
  fmt::print(stderr, "{}", program.help());
  return static_cast<int>(Exit::usage);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that leaves (head) is seen as the error of a write, so that the other outputs are
  // still finished and the statistics printed.
  std::signal(SIGPIPE, SIG_IGN);
  return run(argc, argv);
}
