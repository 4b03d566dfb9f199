#include "net/command_docs.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "net/text.hpp"

namespace semel::net {
namespace {

constexpr CommandDocs docs[] = {
#define D(name, group, keys, tips, complexity, words, summary, deviation) \
  {name, group, keys, tips, complexity, words, summary, deviation},
#include "net/command_docs.def"
#undef D
};
static_assert(std::is_sorted(std::begin(docs), std::end(docs),
                             [](const CommandDocs& a, const CommandDocs& b) {
                               return a.name < b.name;
                             }));

int number_of(std::string_view text) noexcept {
  int number = 0;
  static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number));
  return number;
}

/// A cell of a table in Markdown.
std::string cell(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    if (c == '|') shown += '\\';
    shown += c;
  }
  return shown;
}

std::string shown_name(std::string_view name) {
  std::string shown;
  for (const char c : name) {
    shown += c == '|' ? ' ' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return shown;
}

}  // namespace

std::span<const CommandDocs> all_command_docs() noexcept {
  return docs;
}

const CommandDocs* docs_of(const CommandRow& row) noexcept {
  const auto* const found = std::lower_bound(
      std::begin(docs), std::end(docs), row.name,
      [](const CommandDocs& entry, std::string_view name) { return entry.name < name; });
  return found != std::end(docs) && found->name == row.name ? found : nullptr;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<KeySpec> key_specs_of(const CommandRow& row) {
  const CommandDocs* const about = docs_of(row);
  const std::vector<std::string_view> parts =
      about == nullptr ? std::vector<std::string_view>{} : split(about->keys, ';');
  std::vector<KeySpec> specs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t mark = std::min(parts[i].find('#'), parts[i].size());
    KeySpec spec{.flags = split(parts[i].substr(0, mark), ',')};
    if (mark < parts[i].size()) {
      const std::string_view place = parts[i].substr(mark + 1);
      spec.counted = true;
      spec.first = number_of(place);
      spec.step = number_of(place.substr(std::min(place.find(':') + 1, place.size())));
    } else if (parts.size() == 1) {
      spec.first = row.first_key;
      spec.last = row.last_key < 0 ? row.last_key : row.last_key - row.first_key;
      spec.step = row.key_step;
    } else {
      spec.first = row.first_key + static_cast<int>(i);  // a key each
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<FoundKey> find_keys(const std::vector<KeySpec>& specs,
                                std::span<const std::string_view> words) {
  std::vector<FoundKey> found;
  const auto count = static_cast<int>(words.size());
  const auto at = [&](int i) { return words[static_cast<std::size_t>(i)]; };
  for (const KeySpec& spec : specs) {
    int first = spec.first;
    int last = spec.last < 0 ? count + spec.last : first + spec.last;
    if (spec.counted) {
      const auto number = spec.first < count ? integer_of(at(spec.first)) : std::nullopt;
      if (!number || *number < 0 || *number > count) continue;
      last = first + static_cast<int>(*number) * spec.step;
      ++first;
    }
    for (int i = first; i <= last && i < count; i += spec.step) found.push_back({at(i), &spec});
  }
  return found;
}

std::vector<FoundKey> find_counted_keys(const CommandRow& row,
                                        std::span<const std::string_view> words) {
  if (!row.is(flag_movablekeys) || row.first_key != 0) return {};
  std::vector<KeySpec> specs = key_specs_of(row);
  std::erase_if(specs, [](const KeySpec& spec) { return !spec.counted; });
  std::vector<FoundKey> found = find_keys(specs, words);
  for (FoundKey& one : found) one.spec = nullptr;
  return found;
}

const CommandRow* find_full_name(std::string_view name) noexcept {
  const std::size_t bar = name.find('|');
  if (bar == std::string_view::npos) return find_command(name);
  const CommandRow* const parent = find_command(name.substr(0, bar));
  return parent == nullptr ? nullptr : find_subcommand(*parent, name.substr(bar + 1));
}

std::string compatibility_page() {
  std::string page =
      "# Compatibility\n\n"
      "Made from `net/command_table.def` and `net/command_docs.def`; a test holds this page to "
      "them. To write it again:\n`SEMEL_WRITE_PAGES=1 build/dev/tests/net/net_tests "
      "\"[pages]\"`.\n\n"
      "The measure is redis-server 7.0.15, byte for byte in both dialects, and Redis 7.2 to 8.8 "
      "and "
      "Valkey where they are\nnewer; *since* is the version of theirs that a command came with. A "
      "command that is not in the table is not there.\n\n"
      "| command | since | otherwise than Redis |\n|---|---|---|\n";
  for (const CommandRow& row : all_commands()) {
    const CommandDocs* const about = docs_of(row);
    page += "| `" + shown_name(row.name);
    if (about != nullptr && !about->words.empty()) page += " " + cell(about->words);
    page += "` | " + std::string{row.since} + " | ";
    if (about != nullptr) page += cell(about->deviation);
    page += " |\n";
  }
  return page;
}

}  // namespace semel::net
