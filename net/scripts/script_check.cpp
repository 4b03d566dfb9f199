#include "net/scripts/script_check.hpp"

#include <algorithm>

#include "net/commands/command.hpp"
#include "net/resp/reply_error.hpp"

namespace semel::net {
namespace {

constexpr std::size_t shown_bytes_max = 64;

/// As it stands in a line of its own.
std::string shown(std::string_view word) {
  std::string text{word.substr(0, shown_bytes_max)};
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

/// Null: there is none.
const CommandRow* row_of(const lua::SentCommand& sent) {
  const CommandRow* const row = find_command(sent.name);
  if (row == nullptr || !sent.has_subcommand || !is_container(*row)) return row;
  return find_subcommand(*row, sent.subcommand);
}

bool may_write(const lua::SentCommand& sent) {
  if (!sent.is_named) return true;
  const CommandRow* const row = row_of(sent);
  if (row == nullptr || row->is(flag_noscript)) return false;
  return row->is(flag_write) || row->is(flag_may_replicate) || row->is(flag_pubsub) ||
         row->has(fact_caches);
}

}  // namespace

Status check_commands(std::string_view what, std::span<const lua::SentCommand> sent) {
  const auto wrong = std::ranges::find_if(sent, [](const lua::SentCommand& each) {
    if (!each.is_named || each.is_caught) return false;
    const CommandRow* const row = row_of(each);
    return row == nullptr || row->is(flag_noscript);
  });
  if (wrong == sent.end() || !std::ranges::any_of(sent, may_write)) return Done{};
  const CommandRow* const row = row_of(*wrong);
  std::string name = shown(wrong->name);
  const bool names_both = find_command(wrong->name) != nullptr && row == nullptr;
  if (names_both) name += ' ' + shown(wrong->subcommand);
  return reply_error(
      "ERR this " + std::string{what} + " was not taken, and nothing of it ran: line " +
      std::to_string(wrong->line) + " sends '" + name +
      (row == nullptr ? "', which this node does not have, " : "', which no script may send, ") +
      "and others would have written by then (setting 'script-unknown-commands')");
}

}  // namespace semel::net
