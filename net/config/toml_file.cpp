// Reads a TOML file into assignments: its tables are sections, its keys names of settings.
#include "base/toml.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "base/assert.hpp"
#include "net/config/config_file.hpp"
#include "net/config/toml_edit.hpp"

namespace semel::net {
namespace {

class TomlReader {
 public:
  TomlReader(const std::string& path, std::vector<Assignment>& out, Findings& findings)
      : path_(path), out_(out), findings_(findings) {}

  void read(const toml::table& file) {
    const auto sections = all_sections();
    for (const auto& [key, node] : file) {
      const bool is_section =
          std::find(sections.begin(), sections.end(), key.str()) != sections.end();
      if (key.str() == namespaces_section) {
        read_namespaces(key, node);
      } else if (is_section && node.is_table()) {
        read_section(key.str(), *node.as_table());
      } else if (is_section) {
        fail(key, in_quotes(key) + " is a section: write [" + std::string{key.str()} + "]");
      } else if (node.is_table()) {
        fail(key,
             "unknown section " + in_quotes(key) + suggestion(nearest_of(key.str(), sections)));
      } else {
        read_stray(key);
      }
    }
    // The parser sorts keys by name; report errors in the order of the file.
    std::sort(errors_.begin(), errors_.end());
    for (auto& [at, line] : errors_) findings_.errors.push_back(std::move(line));
  }

 private:
  static constexpr std::string_view namespaces_section = "namespaces";

  static std::string in_quotes(const toml::key& key) {
    constexpr std::size_t shown_max = 64;
    return "'" + std::string{key.str().substr(0, shown_max)} + "'";
  }
  static std::string suggestion(std::string_view name) {
    return name.empty() ? "" : ", did you mean '" + std::string{name} + "'?";
  }
  [[nodiscard]] std::string location(const toml::source_region& region) const {
    return path_ + ":" + std::to_string(region.begin.line) + ":" +
           std::to_string(region.begin.column);
  }
  void fail(const toml::key& key, const std::string& what) {
    fail(key.source(), location(key.source()) + ": " + what);
  }
  void fail(const toml::source_region& region, std::string line) {
    errors_.emplace_back(region.begin, std::move(line));
  }

  void read_stray(const toml::key& key) {
    if (const std::string_view reason = reason_against(key.str()); !reason.empty()) {
      return fail(key, in_quotes(key) + ": " + std::string{reason});
    }
    const auto found = find_setting(key.str());
    if (!found || row_of(found->setting).name != key.str()) {
      return fail(key,
                  "unknown setting " + in_quotes(key) + suggestion(nearest_setting(key.str())));
    }
    fail(key,
         in_quotes(key) + " belongs into [" + std::string{row_of(found->setting).section} + "]");
  }

  void read_section(std::string_view section, const toml::table& table) {
    for (const auto& [key, node] : table) {
      const auto found = find_setting(key.str());
      if (!found || row_of(found->setting).name != key.str() ||
          row_of(found->setting).section != section) {
        read_stray(key);
        continue;
      }
      const auto text = text_of_node(row_of(found->setting), node);
      if (!text) {
        fail(node.source(), location(node.source()) + ": " + std::string{key.str()} +
                                ": expected " + expected(row_of(found->setting)) + ", not a " +
                                kind_of(node));
        continue;
      }
      take(found->setting, *text, node);
    }
  }

  void read_namespaces(const toml::key& section, const toml::node& node) {
    const toml::table* const spaces = node.as_table();
    if (spaces == nullptr) return fail(section, "'namespaces' is a section of sections");
    for (const auto& [name, options] : *spaces) {
      if (options.is_table()) {
        read_namespace(name, *options.as_table());
      } else {
        fail(name, in_quotes(name) + " is a namespace: write [namespaces." +
                       std::string{name.str()} + "]");
      }
    }
  }

  void read_namespace(const toml::key& name, const toml::table& table) {
    NamespaceOptions options;
    bool right = true;
    for (const auto& [key, node] : table) {
      const auto text = text_of_option(node);
      const Status added =
          text ? options.add(key.str(), *text)
               : Error{ErrorCode::bad_option,
                       std::string{key.str()} + " cannot be of type " + kind_of(node)};
      if (added.ok()) continue;
      right = false;
      fail(key, added.error().detail);
    }
    if (!right) return;
    const Result<Policy> policy = options.finish(name.str());
    if (!policy.ok()) return fail(name, policy.error().detail);
    findings_.namespaces.push_back(
        {.name = std::string{name.str()}, .policy = *policy, .location = location(name.source())});
  }

  static std::optional<std::string> text_of_option(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* yes = node.as_boolean()) return yes->get() ? "yes" : "no";
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    return std::nullopt;
  }

  void take(Setting setting, const std::string& text, const toml::node& node) {
    const SettingRow& row = row_of(setting);
    const Result<SettingValue> parsed = parse_setting(row, text, row.default_text);
    if (!parsed) {  // reported here, where the column is known
      fail(node.source(),
           value_error(location(node.source()), setting, text, parsed.error().detail));
      return;
    }
    const std::string line = path_ + ":" + std::to_string(node.source().begin.line);
    out_.push_back({setting, text, {Origin::Kind::file, line}});
  }

  static std::string kind_of(const toml::node& node) {
    std::ostringstream text;
    text << node.type();
    return text.str();
  }

  static std::string expected(const SettingRow& row) {
    switch (row.type) {
      case SettingType::boolean:
        return "true or false";
      case SettingType::bytes:
        return "a number or a text as \"100mb\"";
      case SettingType::duration:
        return "a number or a text as \"30s\"";
      case SettingType::list:
        return "an array of texts without blanks";
      case SettingType::integer:
        return "an integer";
      case SettingType::text:
      case SettingType::choice:
        break;
    }
    return "a text";
  }

  /// The text form that flags and variables have, too. None: the TOML type does not fit.
  static std::optional<std::string> text_of_node(const SettingRow& row, const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* yes = node.as_boolean(); yes != nullptr && row.type == SettingType::boolean) {
      return yes->get() ? "yes" : "no";
    }
    if (const auto* number = node.as_integer()) {
      const bool fits =
          row.is_number() && row.type != SettingType::boolean && row.type != SettingType::choice;
      if (!fits) return std::nullopt;
      // For a mode, both 0o700 and 700 mean octal 700.
      const bool is_octal =
          row.detail == "octal" &&
          (number->flags() & toml::value_flags::format_as_octal) != toml::value_flags::none;
      std::array<char, 32> digits;
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number->get(),
                                     is_octal ? 8 : 10);
      return std::string{digits.data(), end.ptr};
    }
    const auto* words = node.as_array();
    if (words == nullptr || row.type != SettingType::list) return std::nullopt;
    std::string text;
    for (const toml::node& word : *words) {
      const auto* one = word.as_string();
      if (one == nullptr || words_of(one->get()).size() != 1) return std::nullopt;
      text.append(text.empty() ? "" : " ").append(one->get());
    }
    return text;
  }

  const std::string& path_;
  std::vector<Assignment>& out_;
  Findings& findings_;
  std::vector<std::pair<toml::source_position, std::string>> errors_;
};

/// The offset of a line and column in `content`. Columns count characters, not bytes.
std::size_t offset_of(std::string_view content, toml::source_position at) {
  SEMEL_ASSERT(at.line > 0 && at.column > 0);  // toml++ counts both from 1
  std::size_t offset = 0;
  for (toml::source_index line = 1; line < at.line; ++line) {
    offset = content.find('\n', offset);
    if (offset == std::string_view::npos) return content.size();
    ++offset;
  }
  for (toml::source_index column = 1; column < at.column && offset < content.size(); ++column) {
    ++offset;
    while (offset < content.size() && (static_cast<unsigned char>(content[offset]) >> 6U) == 2) {
      ++offset;
    }
  }
  return offset;
}

}  // namespace

void read_toml(std::string_view content, const std::string& path, std::vector<Assignment>& out,
               Findings& findings) {
  const toml::parse_result parsed = toml::parse(content);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    findings.errors.push_back(path + ":" + std::to_string(error.source().begin.line) + ":" +
                              std::to_string(error.source().begin.column) + ": " +
                              std::string{error.description()});
    return;
  }
  TomlReader{path, out, findings}.read(parsed.table());
}

TomlLocation find_in_toml(std::string_view content, const SettingRow& row) {
  const toml::parse_result parsed = toml::parse(content);
  if (!parsed) return {.is_toml = false};
  TomlLocation location;
  const toml::node* section = parsed.table().get(row.section);
  if (section == nullptr) return location;
  location.has_section = true;
  const toml::table* table = section->as_table();
  const toml::node* value = table == nullptr ? nullptr : table->get(row.name);
  if (value == nullptr) return location;
  location.has_value = true;
  location.begin = offset_of(content, value->source().begin);
  location.end = offset_of(content, value->source().end);
  SEMEL_ASSERT(location.begin <= location.end && location.end <= content.size());
  return location;
}

bool is_same_toml(std::string_view one, std::string_view other,
                  const std::vector<const SettingRow*>& except) {
  toml::parse_result a = toml::parse(one);
  toml::parse_result b = toml::parse(other);
  if (!a || !b) return false;
  for (const SettingRow* row : except) {
    for (toml::table* table : {&a.table(), &b.table()}) {
      toml::table* const section = (*table)[row->section].as_table();
      if (section == nullptr) continue;
      section->erase(row->name);
      if (section->empty()) table->erase(row->section);
    }
  }
  return a.table() == b.table();
}

}  // namespace semel::net
