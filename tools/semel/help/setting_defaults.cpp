#include "tools/semel/help/setting_defaults.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "net/settings/setting_value.hpp"

namespace semel::tool {
namespace {

using net::SettingType;

std::string default_of(const net::SettingRow& row) {
  const net::SettingValue value = net::parse_setting(row, row.default_text, {}).value;
  const std::string text = net::write_setting(row, value);
  return " Default: " + (text.empty() ? std::string{"empty"} : text);
}

std::string unit_of(const net::SettingRow& row) {
  if (row.type == SettingType::bytes) return " A plain number is in bytes.";
  if (row.type == SettingType::duration) {
    return " A plain number is in " + std::string{row.detail} + ".";
  }
  return "";
}

}  // namespace

void describe_defaults(CLI::App& node) {
  for (const net::SettingRow& row : net::all_settings()) {
    if (row.is_without_effect()) continue;
    CLI::Option* const option = node.get_option("--" + std::string{row.name});
    option->description(option->get_description() + unit_of(row) + default_of(row));
  }
}

}  // namespace semel::tool
