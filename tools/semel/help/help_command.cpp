#include "tools/semel/help/help_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "semel/version.hpp"
#include "tools/semel/help/unknown_argument.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

constexpr char exit_help[] = "Exit codes: 0 done, 1 usage, 2 cannot write standard output.";
constexpr char list_help[] =
    "Print all subcommands and flags for a program to read. One a line, separated by tabs: "
    "'subcommand', name and description; or 'flag' or 'positional', subcommand (empty: semel "
    "itself), names, kind of value and description";

std::string wrapped(std::string_view text) {
  constexpr std::size_t width = 70;
  std::string out;
  while (text.size() > width) {
    // A line that ends by itself stays as it is.
    std::size_t at = text.substr(0, width + 1).find('\n');
    if (at == std::string_view::npos) at = text.rfind(' ', width);
    if (at == std::string_view::npos) break;
    out.append(text.substr(0, at)).append("\n");
    text.remove_prefix(at + 1);
  }
  return out.append(text);
}

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// The rows of --list for one subcommand, or for the program with an empty `name`.
std::string listed_options(const CLI::App& app, const std::string& name) {
  std::string rows;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // --help leaves it out as well
    const bool is_positional = option->get_positional();
    const bool takes_value = option->get_items_expected_max() > 0;
    rows += fmt::format("{}\t{}\t{}\t{}\t{}\n", is_positional ? "positional" : "flag", name,
                        option->get_name(is_positional, !is_positional),
                        takes_value ? option->get_type_name() : "",
                        on_one_line(option->get_description()));
  }
  return rows;
}

std::string listed(const CLI::App& program) {
  std::string rows = listed_options(program, "");
  for (const CLI::App* app : program.get_subcommands({})) {
    rows += fmt::format("subcommand\t{}\t{}\n", app->get_name(), app->get_description());
    rows += listed_options(*app, app->get_name());
  }
  return rows;
}

/// CLI::App::help() would show that of the chosen subcommand, `help` itself.
std::string help_of(const CLI::App& app, const std::string& name) {
  return app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
}

}  // namespace

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description());
}

HelpCommand::HelpCommand(CLI::App& program)
    : program_(program),
      app_(program.add_subcommand("help", "Show the help of the program or of a subcommand")) {
  subcommand_ = app_->add_option("SUBCOMMAND", name_, "What to show; without it, the overview")
                    ->type_name("");
  app_->add_flag("--list", lists_, list_help);
  app_->footer(exit_help);
}

Exit HelpCommand::run() const {
  if (lists_ && subcommand_->count() > 0) {
    write_error("semel help: --list covers the whole program: it takes no SUBCOMMAND\n");
    return Exit::usage;
  }
  if (lists_) return write_out(listed(program_));
  if (subcommand_->count() == 0) return write_out(help_of(program_, program_.get_name()));
  for (const CLI::App* app : program_.get_subcommands({})) {
    if (app->get_name() == name_) return write_out(help_of(*app, "semel " + name_));
  }
  write_error(fmt::format("semel help: {}\nTry 'semel help'.\n", no_subcommand(program_, name_)));
  return Exit::usage;
}

VersionCommand::VersionCommand(CLI::App& program)
    : app_(program.add_subcommand("version", "Print the version")) {
  program.set_version_flag("--version", std::string{"semel "} + semel::version);
  app_->footer(exit_help);
}

Exit VersionCommand::run() const {
  return write_out(fmt::format("semel {}\n", semel::version));
}

}  // namespace semel::tool
