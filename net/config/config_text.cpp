#include "net/config/config_text.hpp"

#include <array>
#include <charconv>

#include "base/hex.hpp"

namespace semel::net {
namespace {

/// A TOML basic string.
std::string toml_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      quoted += "\\u00";
      base::append_hex(quoted, static_cast<std::uint8_t>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

/// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped.append(c == '|' ? "\\" : "").append(1, c);
  return escaped;
}

std::string code(std::string_view text) {
  return text.empty() ? "empty" : "`" + cell(text) + "`";
}

std::string values_of(const SettingRow& row) {
  const auto number = [&row](std::int64_t n) {
    return n == std::numeric_limits<std::int64_t>::max() ? std::string{"2^63 - 1"}
                                                         : write_setting(row, {.number = n});
  };
  switch (row.type) {
    case SettingType::boolean:
      return "true, false";
    case SettingType::choice: {
      std::string words;
      for (const std::string_view word : words_of(row.detail)) {
        words.append(words.empty() ? "" : ", ").append(word);
      }
      return words;
    }
    case SettingType::text:
      return "text, at most " + std::to_string(row.high) + " bytes";
    case SettingType::list:
      return "list, at most " + std::to_string(row.high) +
             (row.detail.empty() ? " words" : " of " + std::string{row.detail});
    case SettingType::integer:
      if (row.detail == "octal") return "octal, 0 .. 777";
      return std::to_string(row.low) + " .. " + number(row.high);
    case SettingType::bytes:
    case SettingType::duration:
      break;
  }
  return number(row.low) + " .. " + number(row.high) +
         (row.type == SettingType::duration ? "; unit " + std::string{row.detail} : "");
}

std::string default_of(const SettingRow& row) {
  const SettingValue value = parse_setting(row, row.default_text, {}).value();
  return row.type == SettingType::boolean ? (value.number != 0 ? "true" : "false")
                                          : code(write_setting(row, value));
}

std::string table_row(const SettingRow& row) {
  std::string redis;
  for (const std::string_view name : words_of(row.redis_names)) {
    if (name != row.name) redis.append(redis.empty() ? " (Redis: `" : ", `").append(name) += '`';
  }
  if (!redis.empty()) redis += ')';
  return "| `" + std::string{row.name} + "`" + redis + " | " + cell(values_of(row)) + " | " +
         default_of(row) + " | " + (row.changes_at_run_time() ? "yes" : "no") + " | " +
         cell(row.doc) + " |\n";
}

}  // namespace

std::string toml_value(const SettingRow& row, const SettingValue& value) {
  std::string text = write_setting(row, value);
  switch (row.type) {
    case SettingType::boolean:
      return value.number != 0 ? "true" : "false";
    case SettingType::list: {
      std::string words;
      for (const std::string_view word : words_of(text)) {
        words.append(words.empty() ? "" : ", ").append(toml_text(word));
      }
      return "[" + words + "]";
    }
    case SettingType::integer:
    case SettingType::bytes:
    case SettingType::duration:
      if (text == std::to_string(value.number)) return text;
      break;
    case SettingType::text:
    case SettingType::choice:
      break;
  }
  return toml_text(text);
}

std::string print_config(const Settings& settings, const PrintOptions& options) {
  std::string page;
  std::string_view section;
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const SettingRow& row = row_of(setting);
    const SettingValue value = settings.value(setting);
    if (row.has_one_value()) continue;
    if (row.section != section) {
      page.append(section.empty() ? "[" : "\n[").append(row.section).append("]\n");
      section = row.section;
    }
    const bool is_hidden = row.is_secret() && !value.text.empty();
    page.append(is_hidden ? "# " : "").append(row.name).append(" = ");
    page.append(is_hidden ? "\"<hidden>\"" : toml_value(row, value));
    if (options.origins) {
      std::string origin = settings.origin(setting).text();
      for (char& c : origin) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
      page.append("  # ").append(origin);
    }
    page += '\n';
  }
  return page;
}

namespace {

/// A line of the table of Redis' settings that have one value.
std::string one_value_row(const SettingRow& row) {
  std::string names;
  for (const std::string_view name : words_of(row.redis_names)) {
    names.append(names.empty() ? "`" : ", `").append(name) += '`';
  }
  const std::string_view lost = row.loss() == Loss::speed  ? "speed or memory"
                                : row.loss() == Loss::disk ? "disk"
                                                           : "a promise";
  return "| " + names + " | " + code(row.default_text) + " | " + std::string{lost} + " | " +
         cell(row.doc) + " |\n";
}

}  // namespace

std::string settings_table() {
  std::string page;
  std::string_view section;
  for (const SettingRow& row : all_settings()) {
    if (row.section != section) {
      section = row.section;
      page.append(page.empty() ? "### [" : "\n### [").append(section).append("]\n\n");
      page += row.has_one_value()
                  ? "Known to Redis' clients. Each has one value here, which CONFIG "
                    "GET shows; another is refused (see above).\n\n"
                    "| name | value | another loses | because, or instead |\n"
                    "|---|---|---|---|\n"
                  : "| name | values | default | CONFIG SET | |\n"
                    "|---|---|---|---|---|\n";
    }
    page += row.has_one_value() ? one_value_row(row) : table_row(row);
  }
  return page;
}

}  // namespace semel::net
