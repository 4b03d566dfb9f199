// COMMAND: what the table of commands says, and HELP of everything that has subcommands.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/ascii.hpp"
#include "net/commands/command_arguments.hpp"
#include "net/commands/command_docs.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

bool is_subcommand(const CommandRow& row) noexcept {
  return row.name.find('|') != std::string_view::npos;
}

std::vector<const CommandRow*> subcommands_of(std::string_view parent) {
  std::vector<const CommandRow*> rows;
  const std::string prefix = std::string{parent} + "|";
  for (const CommandRow& row : all_commands()) {
    if (row.name.starts_with(prefix)) rows.push_back(&row);
  }
  return rows;
}

std::vector<const CommandRow*> top_commands() {
  std::vector<const CommandRow*> rows;
  for (const CommandRow& row : all_commands()) {
    if (!is_subcommand(row) && has_name(row)) rows.push_back(&row);
  }
  return rows;
}

void write_key_flags(RespWriter& reply, std::uint16_t flags) {
  const auto shown = static_cast<std::uint16_t>(flags & ((1U << shown_key_flags) - 1));
  reply.set(static_cast<std::size_t>(std::popcount(shown)));
  for (std::size_t i = 0; i < shown_key_flags; ++i) {
    if ((shown >> i & 1U) != 0) reply.simple(key_flag_names[i]);
  }
}

void write_field(RespWriter& reply, std::string_view name, std::int64_t value) {
  reply.bulk(name);
  reply.integer(value);
}

/// A claim's key is none of the words.
void write_unknown(RespWriter& reply, std::string_view name) {
  reply.bulk(name);
  reply.map(2);
  reply.bulk("type");
  reply.bulk("unknown");
  reply.bulk("spec");
  reply.map(0);
}

/// Where the search for keys begins.
void write_begin(RespWriter& reply, const KeySpec& spec) {
  const bool is_keyword = spec.position == KeySpec::Position::keyword;
  reply.bulk("begin_search");
  reply.map(2);
  reply.bulk("type");
  reply.bulk(is_keyword ? "keyword" : "index");
  reply.bulk("spec");
  reply.map(is_keyword ? 2 : 1);
  if (!is_keyword) return write_field(reply, "index", spec.first);
  reply.bulk("keyword");
  reply.bulk(base::upper_of(spec.keyword));
  write_field(reply, "startfrom", spec.first);
}

/// Words behind a keyword; `limit` 2: half of them.
struct BehindWord {
  std::string_view word{};
  std::int64_t start_from = 0;
  std::int64_t limit = 0;
};
void write_behind_word(RespWriter& reply, const KeySpec& spec, const BehindWord& behind) {
  reply.bulk("begin_search");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("keyword");
  reply.bulk("spec");
  reply.map(2);
  reply.bulk("keyword");
  reply.bulk(behind.word);
  write_field(reply, "startfrom", behind.start_from);
  reply.bulk("find_keys");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("range");
  reply.bulk("spec");
  reply.map(3);
  write_field(reply, "lastkey", -1);
  write_field(reply, "keystep", spec.step);
  write_field(reply, "limit", behind.limit);
}

void write_places(RespWriter& reply, const KeySpec& spec) {
  if (spec.position == KeySpec::Position::streams) {
    return write_behind_word(reply, spec,
                             {.word = "STREAMS", .start_from = spec.first, .limit = 2});
  }
  if (spec.position == KeySpec::Position::migrated) {
    return write_behind_word(reply, spec, {.word = "KEYS", .start_from = -2});
  }
  const bool is_counted = spec.position == KeySpec::Position::counted;
  const bool is_keyword = spec.position == KeySpec::Position::keyword;
  if (!is_counted && !is_keyword && spec.position != KeySpec::Position::range) {
    write_unknown(reply, "begin_search");
    return write_unknown(reply, "find_keys");
  }
  write_begin(reply, spec);
  reply.bulk("find_keys");
  reply.map(2);
  reply.bulk("type");
  reply.bulk(is_counted ? "keynum" : "range");
  reply.bulk("spec");
  reply.map(3);
  if (is_counted) {
    write_field(reply, "keynumidx", 0);
    write_field(reply, "firstkey", 1);
    write_field(reply, "keystep", spec.step);
  } else {
    write_field(reply, "lastkey",
                spec.last < 0 || is_keyword ? std::min<std::int64_t>(spec.last, 0)
                                            : spec.last - spec.first);
    write_field(reply, "keystep", spec.step);
    write_field(reply, "limit", 0);
  }
}

void write_key_spec(RespWriter& reply, const KeySpec& spec) {
  constexpr std::size_t parts = 3;
  reply.map(parts);
  reply.bulk("flags");
  write_key_flags(reply, spec.flags);
  write_places(reply, spec);
}

// Redis' order in a reply, by the letters of command_table.def.
constexpr std::string_view shown_flags = "prwmaxblsfunotqhvky";
static_assert(shown_flags.size() == flag_letters.size());

void write_flags(RespWriter& reply, const CommandRow& row) {
  reply.set(static_cast<std::size_t>(std::popcount(row.flags)));
  for (const char letter : shown_flags) {
    const std::size_t i = flag_letters.find(letter);
    if ((row.flags >> i & 1U) != 0) reply.simple(flag_names[i]);
  }
}

void write_categories(RespWriter& reply, const CommandRow& row) {
  reply.set(static_cast<std::size_t>(std::popcount(row.categories)));
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if ((row.categories >> i & 1U) != 0) reply.simple("@" + std::string{acl_categories[i]});
  }
}

void write_info(RespWriter& reply, const CommandRow& row) {
  constexpr std::size_t parts = 10;
  const std::vector<std::string_view> tips = split(docs_of(row).tips, ',');
  const auto specs = row.keys.all();
  const auto shown = std::ranges::count_if(specs, &KeySpec::is_shown);
  const std::vector<const CommandRow*> subcommands = subcommands_of(row.name);
  reply.array(parts);
  reply.bulk(row.name);
  reply.integer(row.arity);
  write_flags(reply, row);
  reply.integer(row.first_key);
  reply.integer(row.last_key);
  reply.integer(row.key_step);
  write_categories(reply, row);
  reply.set(tips.size());
  for (const std::string_view tip : tips) reply.bulk(tip);
  reply.set(static_cast<std::size_t>(shown));
  for (const KeySpec& spec : specs) {
    if (spec.is_shown()) write_key_spec(reply, spec);
  }
  reply.set(subcommands.size());
  for (const CommandRow* sub : subcommands) write_info(reply, *sub);
}

/// `keys`: how many arguments before it are keys. A claim's key is an argument like others.
void write_argument(RespWriter& reply, const CommandArgument& argument, std::size_t specs,
                    std::size_t& keys) {
  const bool is_key = argument.type == "key" && specs != 0;
  const std::size_t flags = (argument.is_optional ? 1U : 0U) + (argument.is_multiple ? 1U : 0U) +
                            (argument.repeats_token ? 1U : 0U);
  const auto fields =
      static_cast<std::size_t>(2 + (is_key ? 1 : 0) + (argument.token.empty() ? 0 : 1) +
                               (flags != 0 ? 1 : 0) + (argument.parts.empty() ? 0 : 1));
  reply.map(fields);
  reply.bulk("name");
  reply.bulk(argument.name);
  reply.bulk("type");
  reply.bulk(argument.type == "key" && !is_key ? "string" : argument.type);
  if (is_key) {
    write_field(reply, "key_spec_index", static_cast<std::int64_t>(std::min(keys++, specs - 1)));
  }
  if (!argument.token.empty()) {
    reply.bulk("token");
    reply.bulk(argument.token);
  }
  if (flags != 0) {
    reply.bulk("flags");
    reply.set(flags);
    if (argument.is_optional) reply.simple("optional");
    if (argument.is_multiple) reply.simple("multiple");
    if (argument.repeats_token) reply.simple("multiple_token");
  }
  if (argument.parts.empty()) return;
  reply.bulk("arguments");
  reply.array(argument.parts.size());
  for (const CommandArgument& part : argument.parts) write_argument(reply, part, specs, keys);
}

void write_arguments(RespWriter& reply, const CommandRow& row,
                     const std::vector<CommandArgument>& arguments) {
  const auto specs =
      static_cast<std::size_t>(std::ranges::count_if(row.keys.all(), &KeySpec::is_shown));
  std::size_t keys = 0;
  reply.bulk("arguments");
  reply.array(arguments.size());
  for (const CommandArgument& argument : arguments) write_argument(reply, argument, specs, keys);
}

void write_docs(RespWriter& reply, const CommandRow& row) {
  const CommandDocs& about = docs_of(row);
  const std::vector<const CommandRow*> subcommands = subcommands_of(row.name);
  // Those of a container are those of its subcommands.
  const auto arguments =
      subcommands.empty() ? arguments_of(row.name, about.words) : std::vector<CommandArgument>{};
  constexpr std::size_t fields = 4;
  reply.bulk(row.name);
  reply.map(fields + (subcommands.empty() ? 0 : 1) + (arguments.empty() ? 0 : 1));
  reply.bulk("summary");
  reply.bulk(about.summary);
  reply.bulk("since");
  reply.bulk(row.since);
  reply.bulk("group");
  reply.bulk(about.group);
  reply.bulk("complexity");
  reply.bulk(about.complexity);
  if (!arguments.empty()) write_arguments(reply, row, arguments);
  if (subcommands.empty()) return;
  reply.bulk("subcommands");
  reply.map(subcommands.size());
  for (const CommandRow* sub : subcommands) write_docs(reply, *sub);
}

bool is_of_category(const CommandRow& row, std::string_view name) {
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if (is_word(name, acl_categories[i])) return (row.categories >> i & 1U) != 0;
  }
  return false;
}

bool matches(const CommandRow& row, std::string_view pattern) {
  return glob_match(base::lower_of(pattern), row.name);
}

void write_keys(Call& call, bool with_flags) {
  const auto words = call.args.subspan(2);
  const CommandRow* row = find_command(words[0]);
  if (row != nullptr && words.size() > 1 && is_container(*row)) {
    row = find_subcommand(*row, words[1]);
  }
  if (row == nullptr) return call.fail("ERR Invalid command specified");
  if (!std::ranges::any_of(row->keys.all(), &KeySpec::is_key)) {
    return call.fail("ERR The command has no key arguments");
  }
  if (!row->takes(words.size())) {
    return call.fail("ERR Invalid number of arguments specified for command");
  }
  const UsedKeys used = used_keys(row->keys, words);
  if (used.keys.empty() && !row->is(flag_no_mandatory_keys)) {
    return call.fail("ERR Invalid arguments specified for command");
  }
  call.reply.array(used.keys.size());
  for (const UsedKey& one : used.keys) {
    if (with_flags) call.reply.array(2);
    call.reply.bulk(one.name);
    if (with_flags) write_key_flags(call.reply, one.flags);
  }
}

void write_infos(Call& call, const std::vector<const CommandRow*>& rows) {
  call.reply.array(rows.size());
  for (const CommandRow* row : rows) {
    row == nullptr ? call.reply.null() : write_info(call.reply, *row);
  }
}

}  // namespace

namespace handlers {

void command(Call& call) {
  write_infos(call, top_commands());
}

void command_count(Call& call) {
  call.reply.integer(static_cast<std::int64_t>(top_commands().size()));
}

void command_info(Call& call) {
  if (call.args.size() == 2) return write_infos(call, top_commands());
  std::vector<const CommandRow*> rows;
  for (const std::string_view name : call.args.subspan(2)) rows.push_back(find_full_name(name));
  write_infos(call, rows);
}

void command_docs(Call& call) {
  std::vector<const CommandRow*> rows;
  for (const std::string_view name : call.args.subspan(2)) rows.push_back(find_full_name(name));
  if (call.args.size() == 2) rows = top_commands();
  std::erase(rows, nullptr);
  call.reply.map(rows.size());
  for (const CommandRow* row : rows) write_docs(call.reply, *row);
}

void command_list(Call& call) {
  const auto words = call.args.subspan(2);
  const bool filters = words.size() == 3 && is_word(words[0], "filterby");
  if (!words.empty() && !filters) return call.fail_syntax();
  std::vector<std::string_view> names;
  if (filters && !is_word(words[1], "module") && !is_word(words[1], "aclcat") &&
      !is_word(words[1], "pattern")) {
    return call.fail_syntax();
  }
  for (const CommandRow& row : all_commands()) {
    if (!has_name(row)) continue;
    if (filters && is_word(words[1], "module")) continue;
    if (filters && is_word(words[1], "aclcat") && !is_of_category(row, words[2])) continue;
    if (filters && is_word(words[1], "pattern") && !matches(row, words[2])) continue;
    names.push_back(row.name);
  }
  call.reply.array(names.size());
  for (const std::string_view name : names) call.reply.bulk(name);
}

void command_getkeys(Call& call) {
  write_keys(call, false);
}
void command_getkeysandflags(Call& call) {
  write_keys(call, true);
}

void help(Call& call) {
  const std::string_view parent = call.row->name.substr(0, call.row->name.find('|'));
  std::vector<std::string> lines{base::upper_of(call.args[0]) +
                                 " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"};
  for (const CommandRow* row : subcommands_of(parent)) {
    if (row == call.row) continue;
    const CommandDocs& about = docs_of(*row);
    std::string line = base::upper_of(row->name.substr(parent.size() + 1));
    if (!about.words.empty()) line.append(" ").append(about.words);
    lines.push_back(std::move(line));
    lines.push_back("    " + std::string{about.summary});
  }
  lines.emplace_back("HELP");
  lines.emplace_back("    Prints this help.");
  call.reply.array(lines.size());
  for (const std::string& line : lines) call.reply.simple(line);
}

}  // namespace handlers
}  // namespace semel::net
