#include "tools/semel/help/help_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "semel/version.hpp"
#include "tools/semel/help/nearest_name.hpp"
#include "tools/semel/help/unknown_argument.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

constexpr char exit_help[] = "Exit codes: 0 done, 1 cannot write standard output, 2 usage.";
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

/// The rows of all subcommands of `app`; a nested one has both names: "cluster status".
std::string listed_below(const CLI::App& app, const std::string& before) {
  std::string rows;
  for (const CLI::App* below : app.get_subcommands({})) {
    const std::string name = before + below->get_name();
    rows += fmt::format("subcommand\t{}\t{}\n", name, below->get_description());
    rows += listed_options(*below, name) + listed_below(*below, name + " ");
  }
  return rows;
}
std::string listed(const CLI::App& program) {
  return listed_options(program, "") + listed_below(program, "");
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
  constexpr int deepest = 2;
  subcommand_ = app_->add_option("SUBCOMMAND", names_, "What to show; without it, the overview")
                    ->type_name("")
                    ->expected(0, deepest);
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
  const CLI::App* app = &program_;
  std::string path = program_.get_name();
  for (const std::string& name : names_) {
    const std::vector<const CLI::App*> below = app->get_subcommands({});
    const auto found = std::find_if(below.begin(), below.end(),
                                    [&](const CLI::App* each) { return each->get_name() == name; });
    if (below.empty()) {
      write_error(fmt::format("semel help: unexpected argument {}\nTry 'semel help --help'.\n",
                              in_quotes(name)));
      return Exit::usage;
    }
    if (found == below.end()) {
      write_error(fmt::format("semel help: {}\nTry 'semel help'.\n", no_subcommand(*app, name)));
      return Exit::usage;
    }
    app = *found;
    path += " " + name;
  }
  return write_out(help_of(*app, path));
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
