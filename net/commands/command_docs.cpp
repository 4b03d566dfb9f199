#include "net/commands/command_docs.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/ascii.hpp"
#include "engine/types/object_limits.hpp"
#include "net/acl/acl_limits.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/commands/transaction.hpp"
#include "net/events/pubsub.hpp"
#include "net/resp/resp_parser.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

// In the order of the rows.
constexpr CommandDocs docs[] = {
#define X(name, arity, flags, categories, keys, facts, since, handler, group, tips, complexity, \
          words, summary, deviation)                                                            \
  {group, tips, complexity, words, summary, deviation},
#define S X
#include "net/commands/command_table.def"
#undef S
#undef X
};

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
    shown += c == '|' ? ' ' : base::to_upper(c);
  }
  return shown;
}

}  // namespace

const CommandDocs& docs_of(const CommandRow& row) noexcept {
  return docs[index_of(row)];
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

namespace {

std::string shown_number(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

/// Bounds that redis-server does not have, or has elsewhere.
std::string limits_section() {
  struct Limit {
    std::string_view what;
    std::size_t most;
    std::string_view otherwise;
  };
  const auto years = static_cast<std::size_t>(command_ttl_max / Millis{365LL * 24 * 3600 * 1000});
  const std::array all{
      Limit{"bytes of a key", limits::key_bytes_max, "`ERR`, with both numbers"},
      Limit{"bytes of a value", limits::value_bytes_max, "`ERR`, with both numbers"},
      Limit{"years of 365 days to the end of a key", years, "`ERR invalid expire time`"},
      Limit{"numbered databases", limits::db_count, "`ERR DB index is out of range`"},
      Limit{"fields that HSCAN brings at once", limits::hash_scan_whole_max,
            "the next call goes on"},
      Limit{"fields that HRANDFIELD draws, if they may repeat", limits::hash_picks_max, "`ERR`"},
      Limit{"members that SSCAN brings at once", limits::set_scan_whole_max,
            "the next call goes on"},
      Limit{"members that SRANDMEMBER draws, if they may repeat", limits::set_picks_max, "`ERR`"},
      Limit{"bytes of weights of SORT with BY and ALPHA", limits::sort_weights_bytes_max, "`ERR`"},
      Limit{"COUNT of SCAN", limits::scan_count_max, "taken as this"},
      Limit{"keys of MSETEX", limits::section_keys_max, "`ERR invalid numkeys value`"},
      Limit{"claims of one SEMEL.CLAIMS, CLAIMALL or COMPLETES", limits::batch_max, "`ERR`"},
      Limit{"bytes of a claim's OWNER", limits::owner_label_max, "`ERR`"},
      Limit{"waits for one claim", limits::waiters_per_key_max, "outcome `busy`"},
      Limit{"waits for claims in all", limits::waiters_total_max, "outcome `busy`"},
      Limit{"bytes queued between MULTI and EXEC", transaction_bytes_max, "`ERR`; EXEC is refused"},
      Limit{"subscriptions of a connection", PubSub::subscriptions_max, "`ERR`"},
      Limit{"bytes of a channel's name", PubSub::name_bytes_max, "`ERR`"},
      Limit{"bytes of such names of a connection", PubSub::names_bytes_max, "`ERR`"},
      Limit{"bytes published within one EXEC", PubSub::held_bytes_max, "sent before the rest"},
      Limit{"users", acl_limits::users_max, "`ERR`"},
      Limit{"bytes of a user's name", acl_limits::name_bytes_max, "`ERR`"},
      Limit{"passwords of a user", acl_limits::passwords_max, "`ERR`"},
      Limit{"selectors of a user", acl_limits::selectors_max, "`ERR`"},
      Limit{"patterns of keys, and of channels, of a selector", acl_limits::patterns_max, "`ERR`"},
      Limit{"words of a request", RequestLimits{}.arguments_max, "closed, as by redis-server"},
      Limit{"bytes of an inline request", RequestLimits{}.line_bytes_max,
            "closed, as by redis-server"},
      Limit{"words of a request before the login", limits_before_auth.arguments_max, "closed"},
  };
  std::string text =
      "\n## Limits\n\nHard limits, none of which a setting moves; settings have others "
      "([operations](operations.md)).\n\n| at most | of | beyond |\n|---|---|---|\n";
  for (const Limit& limit : all) {
    text += "| " + shown_number(limit.most) + " | " + std::string{limit.what} + " | " +
            std::string{limit.otherwise} + " |\n";
  }
  return text;
}

}  // namespace

namespace {

/// What `tools/prove redis-suite` finds.
constexpr std::string_view suite_section =
    "\n"
    "## Redis' own tests\n"
    "\n"
    "`tools/prove redis-suite` runs the suite of redis-server 7.0.15 against `semel "
    "redis-server`; `tests/redis_suite/run.py --external` against one that\n"
    "runs already. `tests/redis_suite/reasons.txt` has a reason for each test that "
    "redis-server passes and the node does not:\n"
    "\n"
    "| subject | what the tests look for |\n"
    "|---|---|\n"
    "| replication | a replica that follows the node, or the stream of SYNC: a node "
    "follows others, and none follows it |\n"
    "| files | RDB and AOF files of the node: a storage journals writes instead |\n"
    "| start | flags and errors of redis-server's start, settings that only it has, and "
    "a node that other machines reach without a password |\n"
    "| memory | buffers, encodings and numbers of bytes of redis-server: memory is laid "
    "out otherwise, and a large hash has the order of its index |\n"
    "| scripts | Lua 5.1 outside of a sandbox, and a debugger: scripts run in LuaJIT's "
    "|\n"
    "| answers | limits of this page, and MIGRATE, ACL LOAD and DBSIZE as "
    "their rows say or as they are safer |\n";

}  // namespace

std::string compatibility_page() {
  std::string page =
      "# Compatibility\n\n"
      "Made from `net/commands/command_table.def`; a test holds this page to it. To write it "
      "again:\n`SEMEL_WRITE_PAGES=1 build/dev/tests/net/net_tests "
      "\"[pages]\"`.\n\n"
      "The measure is redis-server 7.0.15, byte for byte in both dialects, and Redis 7.2 to 8.8 "
      "and "
      "Valkey where they are\nnewer; *since* is the version of theirs that a command came with. A "
      "command that is not in the table is not there.\n\n"
      "| command | since | otherwise than Redis |\n|---|---|---|\n";
  for (const CommandRow& row : all_commands()) {
    const CommandDocs& about = docs_of(row);
    page += "| `" + shown_name(row.name);
    if (!about.words.empty()) page += " " + cell(about.words);
    page += "` | " + std::string{row.since} + " | ";
    page += cell(about.deviation);
    page += " |\n";
  }
  return page + limits_section() + std::string{suite_section};
}

}  // namespace semel::net
