#include "tools/semel/help/unknown_argument.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "tools/semel/help/nearest_name.hpp"

namespace semel::tool {
namespace {

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool looks_like_flag(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

std::string suggestion(std::string_view nearest) {
  return nearest.empty() ? "" : "; did you mean " + in_quotes(nearest) + "?";
}

/// A name that the whole program has, and a smaller build may lack.
struct PartName {
  std::string_view name;
  std::string_view part;
};
constexpr PartName parts[] = {
    {"node", "the node"},       {"cluster", "the node"},    {"import", "the node"},
    {"export", "the node"},     {"gateway", "the gateway"}, {"verify", "the storage"},
    {"repair", "the storage"},  {"inspect", "the storage"}, {"backup", "the storage"},
    {"restore", "the storage"}, {"--state", "the storage"}};

/// Why this build does not know `typed`. Empty: no build does.
std::string lacking(std::string_view typed) {
  const auto* const found = std::find_if(std::begin(parts), std::end(parts),
                                         [&](const PartName& each) { return each.name == typed; });
  if (found == std::end(parts)) return {};
  return std::string{" in this build, which is without "}
      .append(found->part)
      .append(". The whole program has it: cmake --preset release, or the Debian package semel");
}

/// CLI11 reads `-stats` as -s and leaves `-tats` over: finds the argument that ends with the rest.
std::string_view argument_of_rest(std::string_view rest, std::span<const char* const> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument.starts_with('-') && !argument.starts_with("--") &&
        argument.ends_with(rest.substr(1))) {
      return argument;
    }
  }
  return rest;
}

bool has_flag(const CLI::App& app, std::string_view typed) {
  const std::vector<std::string> known = flag_names(app);
  return std::find(known.begin(), known.end(), typed) != known.end();
}

/// The place for a flag that stands before the subcommand. Empty: no subcommand has it.
std::string place_of_flag(const CLI::App& program, std::string_view typed) {
  std::vector<const CLI::App*> apps = program.get_subcommands({});
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  if (!chosen.empty()) apps.assign(chosen.begin(), chosen.end());
  std::string names;
  for (const CLI::App* app : apps) {
    if (has_flag(*app, typed)) names += (names.empty() ? "" : " or ") + in_quotes(app->get_name());
  }
  return names.empty() ? names : "; write it after the subcommand " + names;
}

std::string no_flag(const CLI::App& app, std::string_view left,
                    std::span<const char* const> arguments) {
  const std::vector<std::string> known = flag_names(app);
  std::string_view typed = left.substr(0, left.find('='));
  if (!left.starts_with("--")) {
    const std::string_view whole = argument_of_rest(left, arguments);
    if (nearest_name(whole, known).starts_with("--")) typed = whole;
  }
  if (app.get_parent() == nullptr) {
    if (const std::string place = place_of_flag(app, typed); !place.empty()) {
      return "no flag " + in_quotes(typed) + place;
    }
  }
  if (const std::string why = lacking(typed); !why.empty() && app.get_name() == "dedup") {
    return "no flag " + in_quotes(typed) + why;
  }
  return "no flag " + in_quotes(typed) + suggestion(nearest_name(typed, known));
}

}  // namespace

std::string no_subcommand(const CLI::App& program, std::string_view typed) {
  std::vector<std::string> known;
  for (const CLI::App* app : program.get_subcommands({})) known.push_back(app->get_name());
  if (program.get_parent() == nullptr) {
    if (const std::string why = lacking(typed); !why.empty()) {
      return "no subcommand " + in_quotes(typed) + why;
    }
  }
  return "no subcommand " + in_quotes(typed) + suggestion(nearest_name(typed, known));
}

std::optional<UnknownArgument> unknown_argument(const CLI::App& program,
                                                std::span<const char* const> arguments) {
  const CLI::App* app = &program;
  std::vector<std::string> left = program.remaining();
  while (left.empty() && !app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    left = app->remaining();
  }
  if (left.empty()) return std::nullopt;
  // Behind a subcommand an unknown flag comes first: an argument too many may be its value.
  const auto flag = std::find_if(left.begin(), left.end(), looks_like_flag);
  if (flag != left.end() && (flag == left.begin() || app != &program)) {
    return UnknownArgument{app, no_flag(*app, *flag, arguments)};
  }
  if (!app->get_subcommands({}).empty() && app->get_subcommands().empty()) {
    return UnknownArgument{app, no_subcommand(*app, left.front())};
  }
  return UnknownArgument{app, "unexpected argument " + in_quotes(left.front())};
}

}  // namespace semel::tool
