#include "net/settings/setting_table.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "base/edit_distance.hpp"
#include "net/resp/text.hpp"
#include "net/settings/setting_limits.hpp"

namespace semel::net {
namespace {

constexpr std::int64_t setting_high = std::numeric_limits<std::int64_t>::max();

/// An identifier with '-' for '_', as a text that lives as long as the program.
template <std::size_t bytes>
struct Name {
  consteval Name(const char (&id)[bytes]) {
    for (std::size_t i = 0; i < bytes; ++i) text[i] = id[i] == '_' ? '-' : id[i];
  }
  char text[bytes]{};
};

template <Name name>
constexpr std::string_view name_text() noexcept {
  return {name.text, sizeof name.text - 1};
}

constexpr std::array rows{
#define X(id, redis, section, type, value, low, high, flags, detail, doc) \
  SettingRow{name_text<Name{#id}>(),                                      \
             redis,                                                       \
             #section,                                                    \
             SettingType::type,                                           \
             value,                                                       \
             (low),                                                       \
             (high),                                                      \
             flags,                                                       \
             detail,                                                      \
             doc},
#include "net/settings/settings.def"
#undef X
};
static_assert(rows.size() == setting_count);

constexpr std::array words_refused{
    RefusedWord{"include", "other files are not followed; put its lines into this one"},
    RefusedWord{"loadmodule", "there are no modules"},
    RefusedWord{"rename-command", "commands keep their names; take rights away in the aclfile"},
    RefusedWord{"user", "users belong into the aclfile"}};

/// The name among the words of `names`, which are in small letters.
std::string_view name_among(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (is_word(name, names.substr(0, end))) return names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return {};
}

}  // namespace

std::span<const SettingRow> all_settings() noexcept {
  return rows;
}

const SettingRow& row_of(Setting setting) noexcept {
  return rows[static_cast<std::size_t>(setting)];
}

std::span<const RefusedWord> refused_words() noexcept {
  return words_refused;
}

std::string_view reason_against(std::string_view word) {
  for (const RefusedWord& refused : words_refused) {
    if (is_word(word, refused.word)) return refused.reason;
  }
  return {};
}

std::optional<FoundSetting> find_redis_setting(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string_view known = name_among(rows[i].redis_names, name);
    if (!known.empty()) return FoundSetting{static_cast<Setting>(i), known};
  }
  return std::nullopt;
}

std::optional<FoundSetting> find_setting(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_word(name, rows[i].name)) return FoundSetting{static_cast<Setting>(i), rows[i].name};
  }
  return find_redis_setting(name);
}

std::vector<std::string_view> all_sections() {
  std::vector<std::string_view> sections;
  for (const SettingRow& row : rows) {
    if (sections.empty() || sections.back() != row.section) sections.push_back(row.section);
  }
  return sections;
}

std::string_view nearest_of(std::string_view name, std::span<const std::string_view> names) {
  constexpr std::size_t name_bytes_max = 64;  // longer ones are like none of ours
  if (name.empty() || name.size() > name_bytes_max) return {};
  const std::string small = base::lower_of(name);
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string_view known : names) {
    const std::size_t away = base::edit_distance(small, known);
    if (away < least) least = away, nearest = known;
  }
  return nearest;
}

std::string_view nearest_setting(std::string_view name) {
  if (const auto found = find_setting(name)) return row_of(found->setting).name;
  std::vector<std::string_view> names;
  for (const SettingRow& row : rows) names.push_back(row.name);
  return nearest_of(name, names);
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

}  // namespace semel::net
