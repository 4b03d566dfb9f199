#include "net/config/flags.hpp"

#include <CLI/CLI.hpp>

#include "net/config/config_file.hpp"
#include "net/settings/setting_value.hpp"

namespace semel::net {
namespace {

std::string kind_of(const SettingRow& row) {
  switch (row.type) {
    case SettingType::boolean:
      return "[yes|no]";
    case SettingType::integer:
      return "NUMBER";
    case SettingType::bytes:
      return "BYTES";
    case SettingType::duration:
      return "DURATION";
    case SettingType::list:
      return "WORDS";
    case SettingType::choice: {
      std::string words{row.detail};
      for (char& c : words) c = c == ' ' ? '|' : c;
      return words;
    }
    case SettingType::text:
      break;
  }
  return "TEXT";
}

/// "--unix-socket,--unixsocket"
std::string names_of(const SettingRow& row) {
  std::string names = "--" + std::string{row.name};
  for (const std::string_view name : words_of(row.redis_names)) {
    if (name != row.name) names.append(",--").append(name);
  }
  return names;
}

/// The end of a setting's sentence in --help: the unit of a plain number, and the default.
std::string unit_and_default(const SettingRow& row) {
  std::string text;
  if (row.type == SettingType::bytes) text = " A plain number is in bytes.";
  if (row.type == SettingType::duration) {
    text.append(" A plain number is in ").append(row.detail).append(".");
  }
  const SettingValue value = parse_setting(row, row.default_text, {}).value();
  const std::string shown = write_setting(row, value);
  return text + " Default: " + (shown.empty() ? "empty" : shown);
}

}  // namespace

void register_flags(CLI::App& app, ConfigSources& sources) {
  app.add_option("--config", sources.file, "Configuration file (TOML)")->type_name("FILE");
  app.add_option("--redis-conf", sources.redis_conf,
                 "A redis.conf; lines that this node cannot use are reported")
      ->type_name("FILE");
  constexpr int words_max = 64;  // of a line that is refused anyway
  for (const RefusedWord& refused : refused_words()) {
    const std::string name = "--" + std::string{refused.word};
    const auto refuse = [&sources, name, &refused](const CLI::results_t&) {
      sources.errors.push_back(name + ": " + std::string{refused.reason});
      return true;
    };
    app.add_option(name, refuse, std::string{refused.reason})->group("")->expected(0, words_max);
  }
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const SettingRow& row = row_of(setting);
    const auto take = [&sources, setting, &row](const CLI::results_t& given) {
      std::string text;
      for (const std::string& word : given) text.append(text.empty() ? "" : " ").append(word);
      // CLI11 passes a flag without a value as an empty word or as "{}".
      const bool is_bare = text.empty() || text == "{}";
      if (row.type == SettingType::boolean && is_bare) text = "yes";
      Origin origin{Origin::Kind::flag, "--" + std::string{row.name}};
      sources.flags.push_back({setting, std::move(text), std::move(origin)});
      return true;
    };
    CLI::Option* const option =
        app.add_option(names_of(row), take,
                       std::string{row.doc} + (row.has_one_value() ? "" : unit_and_default(row)));
    option->type_name(kind_of(row))->group(row.has_one_value() ? "" : std::string{row.section});
    if (row.type == SettingType::boolean) option->expected(0, 1);
    if (setting == Setting::replicaof) option->expected(1, 2);  // as redis-server's
    // The last occurrence counts; for lists, all of them.
    option->multi_option_policy(row.type == SettingType::list ? CLI::MultiOptionPolicy::TakeAll
                                                              : CLI::MultiOptionPolicy::TakeLast);
  }
}

}  // namespace semel::net
