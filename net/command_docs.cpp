#include "net/command_docs.hpp"

#include <algorithm>
#include <iterator>

#include "net/text.hpp"

namespace semel::net {
namespace {

constexpr CommandDocs docs[] = {
#define D(name, group, tips, complexity, words, summary, deviation) \
  {name, group, tips, complexity, words, summary, deviation},
#include "net/command_docs.def"
#undef D
};
static_assert(std::is_sorted(std::begin(docs), std::end(docs),
                             [](const CommandDocs& a, const CommandDocs& b) {
                               return a.name < b.name;
                             }));

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
