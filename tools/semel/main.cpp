// The program `semel`: one subcommand per file; this one only chooses between them.
#include <fmt/format.h>
#ifdef SEMEL_STATIC_PROGRAM
#include <nss.h>
#endif

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "tools/semel/dedup/dedup_command.hpp"
#include "tools/semel/demo/demo.hpp"
#include "tools/semel/help/help_command.hpp"
#include "tools/semel/help/unknown_argument.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/storage/storage_commands.hpp"
#ifdef SEMEL_HAS_NODE
#include "tools/semel/cli/cli_command.hpp"
#include "tools/semel/cluster/cluster_command.hpp"
#include "tools/semel/node/node_command.hpp"
#include "tools/semel/redis_server/redis_server.hpp"
#include "tools/semel/transfer/transfer_command.hpp"
#endif
#ifdef SEMEL_HAS_GATEWAY
#include "tools/semel/gateway/gateway_command.hpp"
#endif

namespace {

using semel::tool::chosen_storage_command;
using semel::tool::Exit;

/// Reports on standard error why `program` refused `arguments`, and which help to read.
void print_refusal(const CLI::App& program, std::span<const char* const> arguments,
                   const CLI::ParseError& error) {
  const CLI::App* app = &program;
  std::string text = error.what();
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  if (auto unknown = semel::tool::unknown_argument(program, arguments)) {
    app = unknown->app;
    text = std::move(unknown->text);
  }
  std::string chosen;
  for (; app != &program; app = app->get_parent()) chosen = " " + app->get_name() + chosen;
  semel::tool::write_error(fmt::format("semel{0}: {1}\nTry 'semel{0} --help'.\n", chosen, text));
}

int run(int argc, char** argv) {
#ifdef SEMEL_HAS_NODE
  // Its arguments are redis-server's, and a test waits for it: none of the flags below are made.
  const std::span<char* const> words{argv, static_cast<std::size_t>(argc)};
  if (const auto arguments = semel::tool::redis_server_arguments(words)) {
    return static_cast<int>(semel::tool::run_redis_server(*arguments, words));
  }
#endif
  CLI::App program{"Semel makes work happen once, and remembers its result.", "semel"};
  program.formatter(std::make_shared<semel::tool::HelpFormatter>());
  program.require_subcommand(0, 1);
  program.footer(
      std::string{"'semel help SUBCOMMAND' or 'semel SUBCOMMAND --help' shows its flags.\n\n"} +
      semel::tool::exit_code_help +
      "\nSubcommands for a storage have their own; see their --help.");
  const semel::tool::DedupCommand dedup{program};
  const semel::tool::DemoCommand demo{program};
#ifdef SEMEL_HAS_NODE
  semel::tool::NodeCommand node{program};
  semel::tool::add_redis_server(program);
  const semel::tool::ClusterCommand cluster{program};
  const semel::tool::CliCommand cli{program};
  const semel::tool::ImportCommand import{program};
  const semel::tool::ExportCommand to_export{program};
#endif
#ifdef SEMEL_HAS_GATEWAY
  semel::tool::GatewayCommand gateway{program};
#endif
  const semel::tool::StorageCommands storage_commands = semel::tool::storage_commands(program);
  const semel::tool::HelpCommand help{program};
  const semel::tool::VersionCommand version{program};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      std::ostringstream text;
      program.exit(error, text);
      return static_cast<int>(semel::tool::write_out(text.str()));
    }
    print_refusal(program, std::span{argv, static_cast<std::size_t>(argc)}.subspan(1), error);
    const bool is_storage = chosen_storage_command(storage_commands) != nullptr;
    return is_storage ? static_cast<int>(semel::tool::StorageExit::usage)
                      : static_cast<int>(Exit::usage);
  }
  if (dedup.is_chosen()) return static_cast<int>(dedup.run());
  if (demo.is_chosen()) return static_cast<int>(demo.run());
#ifdef SEMEL_HAS_NODE
  if (node.is_chosen()) return static_cast<int>(node.run());
  if (cluster.is_chosen()) return static_cast<int>(cluster.run());
  if (cli.is_chosen()) return static_cast<int>(cli.run());
  if (import.is_chosen()) return static_cast<int>(import.run());
  if (to_export.is_chosen()) return static_cast<int>(to_export.run());
#endif
#ifdef SEMEL_HAS_GATEWAY
  if (gateway.is_chosen()) return static_cast<int>(gateway.run());
#endif
  if (const auto* command = chosen_storage_command(storage_commands)) {
    const semel::tool::StorageExit exit = command->run();
    if (exit != semel::tool::StorageExit::ok) return static_cast<int>(exit);
    const bool is_written = semel::tool::finish_out() == Exit::ok;
    return static_cast<int>(is_written ? exit : semel::tool::StorageExit::findings);
  }
  if (help.is_chosen()) return static_cast<int>(help.run());
  if (version.is_chosen()) return static_cast<int>(version.run());
  semel::tool::write_error(program.help());
  return static_cast<int>(Exit::usage);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef SEMEL_STATIC_PROGRAM
  // Names of hosts are found by files and DNS, which are inside. Other ways that /etc/nsswitch.conf
  // may ask for are shared libraries of the system's own C library, which would not fit.
  if (__nss_configure_lookup("hosts", "files dns") != 0) return static_cast<int>(Exit::memory);
#endif
  // A reader that leaves (head) is seen as the error of a write, so that the other outputs are
  // still finished and the statistics printed.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // none is ours: the heap has no memory left
    static_cast<void>(std::fprintf(stderr, "semel: %s\n", error.what()));  // nowhere else to say it
    return static_cast<int>(Exit::memory);
  }
}
