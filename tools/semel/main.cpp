// The program `semel`: one subcommand a file, this one only chooses between them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "semel/version.hpp"
#include "tools/semel/dedup_command.hpp"
#include "tools/semel/demo.hpp"
#include "tools/semel/exit_code.hpp"

namespace {

using semel::tool::Exit;

Exit run(int argc, char** argv) {
  CLI::App program{"Semel remembers what has been done, so that the same work is done once.",
                   "semel"};
  program.set_version_flag("--version", std::string{"semel "} + semel::version);
  program.require_subcommand(0, 1);
  program.footer(std::string{"'semel SUBCOMMAND --help' tells more.\n\n"} +
                 semel::tool::exit_code_help);
  const semel::tool::DedupCommand dedup{program};
  const semel::tool::DemoCommand demo{program};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      program.exit(error);
      return Exit::ok;
    }
    const char* const chosen = dedup.is_chosen() ? " dedup" : demo.is_chosen() ? " demo" : "";
    fmt::print(stderr, "semel{0}: {1}\nTry 'semel{0} --help'.\n", chosen, error.what());
    return Exit::usage;
  }
  if (dedup.is_chosen()) return dedup.run();
  if (demo.is_chosen()) return demo.run();
  fmt::print(stderr, "{}", program.help());
  return Exit::usage;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that leaves (head) is seen as the error of a write, so that the other outputs are
  // still finished and the statistics printed.
  std::signal(SIGPIPE, SIG_IGN);
  return static_cast<int>(run(argc, argv));
}
