#include "lua_compat/matcher/known_scripts.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "lua_compat/matcher/script_calls.hpp"
#include "lua_compat/matcher/script_keys.hpp"
#include "lua_compat/matcher/script_tokens.hpp"
#include "lua_compat/matcher/script_tree.hpp"

namespace semel::lua {
namespace {

struct KnownTokenRow {
  const KnownEntry* entry;
  std::vector<RowToken> row;
};

/// The token rows of the catalogue, computed once.
const std::vector<KnownTokenRow>& known_rows() {
  static const std::vector<KnownTokenRow> rows = [] {
    std::vector<KnownTokenRow> made;
    for (const KnownEntry& entry : known_catalogue()) {
      const auto tree = read_tree(entry.text);
      SEMEL_ASSERT(tree.has_value());  // the catalogue is our own
      if (tree) made.push_back({&entry, plain_token_row(*tree)});
    }
    return made;
  }();
  return rows;
}

/// The constant as redis-server receives it in a command. None: a number whose text only Lua can
/// decide.
std::optional<std::string> word_of(NodeKind kind, const std::string& text) {
  if (kind == NodeKind::string) return text;
  if (kind == NodeKind::number) return whole_number(text);
  return std::nullopt;
}

bool is_wildcard(const RowToken& token) noexcept {
  return token.kind == NodeKind::string && token.text.size() == 2 && token.text.front() == '?' &&
         token.text.back() >= '1' && token.text.back() <= '9';
}

/// Whether `row` matches the known one; stores the constants that its wildcards match.
bool matches(const std::vector<RowToken>& known, const std::vector<RowToken>& row,
             std::vector<std::string>& wildcards) {
  if (known.size() != row.size()) return false;
  wildcards.clear();
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_wildcard(known[i])) {
      if (known[i] != row[i]) return false;
      continue;
    }
    auto word = word_of(row[i].kind, row[i].text);
    const auto number = static_cast<std::size_t>(known[i].text.back() - '0');
    if (!word) return false;
    if (wildcards.size() < number) wildcards.resize(number);
    wildcards[number - 1] = std::move(*word);
  }
  return true;
}

ScriptWord word_from(std::string_view text, const std::vector<std::string>& wildcards) {
  using From = ScriptWord::From;
  constexpr std::string_view letters = "KANH";
  constexpr From meanings[] = {From::key, From::argument, From::number, From::text};
  const std::size_t letter = letters.find(text.front());
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (letter == std::string_view::npos || read.ptr != text.data() + text.size() || number == 0) {
    return {.text = std::string{text}};
  }
  if (text.front() == 'H') return {.text = number <= wildcards.size() ? wildcards[number - 1] : ""};
  return {.from = meanings[letter], .index = number - 1};
}

/// Removes and returns the text in front of `mark`, and removes `mark`.
std::string_view take_until(std::string_view& rest, char mark) noexcept {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

std::vector<ScriptCommand> commands_of(const KnownEntry& entry,
                                       const std::vector<std::string>& wildcards) {
  std::vector<ScriptCommand> commands;
  std::string_view all = entry.commands;
  while (!all.empty()) {
    std::string_view words = take_until(all, ';');
    ScriptCommand& command = commands.emplace_back();
    while (!words.empty()) command.push_back(word_from(take_until(words, ' '), wildcards));
  }
  return commands;
}

/// Matches `return redis.call(..)` of elements and constants, directly or through locals. Every
/// such script is one command, so the catalogue needs no entry for it.
class OneCommand {
 public:
  explicit OneCommand(const Tree& tree) : tree_(tree), values_(tree.local_count, nullptr) {}

  std::optional<ScriptCommand> read() {
    const Node& block = tree_[tree_.root];
    for (const NodeIndex at : block.parts) {
      const Node& statement = tree_[at];
      if (statement.kind == NodeKind::return_values) return answer(statement);
      if (!hold(statement)) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  /// Records a declaration without effect: `local a, b = KEYS[1], ARGV[1]`. The call itself may be
  /// assigned to a local, too, if only its return follows.
  bool hold(const Node& statement) {
    if (statement.kind != NodeKind::locals || call_ != nullptr) return false;
    const Node& names = tree_.part(statement, 0);
    const Node& values = tree_.part(statement, 1);
    if (names.parts.size() != values.parts.size()) return false;
    for (std::size_t i = 0; i < names.parts.size(); ++i) {
      const Node& value = tree_.part(values, i);
      const bool is_call = tree_.is_command(value) && names.parts.size() == 1;
      if (is_call) call_ = &value;
      if (!is_call && !word(value)) return false;
      const bool is_other = value.kind == NodeKind::local;
      values_[tree_.part(names, i).number] = is_other ? values_[value.number] : &value;
    }
    return true;
  }

  std::optional<ScriptCommand> answer(const Node& statement) {
    if (statement.parts.size() != 1) return std::nullopt;
    const Node* value = &tree_.part(statement, 0);
    if (value->kind == NodeKind::local) value = values_[value->number];
    if (value == nullptr || !tree_.is_command(*value)) return std::nullopt;
    if (call_ != nullptr && call_ != value) return std::nullopt;
    if (tree_.part(tree_.part(*value, 0), 1).text != "call") return std::nullopt;
    ScriptCommand command;
    for (std::size_t i = 1; i < value->parts.size(); ++i) {
      auto found = word(tree_.part(*value, i));
      if (!found) return std::nullopt;
      command.push_back(std::move(*found));
    }
    // The name must be a string constant; a number would be converted to one.
    const bool is_named =
        !command.empty() && resolved(tree_.part(*value, 1)).kind == NodeKind::string;
    return is_named ? std::optional{std::move(command)} : std::nullopt;
  }

  [[nodiscard]] const Node& resolved(const Node& node) const noexcept {
    return node.kind == NodeKind::local ? *values_[node.number] : node;
  }

  std::optional<ScriptWord> word(const Node& node) {
    if (node.kind == NodeKind::local) {
      const Node* value = values_[node.number];
      return value == nullptr || value == call_ ? std::nullopt : word(*value);
    }
    if (auto text = word_of(node.kind, node.text)) return ScriptWord{.text = std::move(*text)};
    const auto element = element_of(tree_, node);
    if (!element) return std::nullopt;
    return ScriptWord{.from = element->is_key ? ScriptWord::From::key : ScriptWord::From::argument,
                      .index = element->place - 1};
  }

  const Tree& tree_;
  std::vector<const Node*> values_;
  const Node* call_ = nullptr;
};

void append_text(std::string& form, std::string_view text) {
  form += std::to_string(text.size());
  form += ':';
  form += text;
}

}  // namespace

std::string canonical_form(std::string_view script) {
  const auto tree = read_tree(script);
  if (!tree) return {};
  // Each token has the same five fields, and each text its length in front, so different rows have
  // different bytes.
  std::string form;
  for (const RowToken& token : token_row(*tree)) {
    form += static_cast<char>('A' + static_cast<int>(token.kind));
    form += std::to_string(token.parts);
    form += ',';
    form += std::to_string(token.number);
    form += ',';
    append_text(form, token.text);
  }
  return form;
}

ScriptShape shape_of(std::string_view script, KeysOf keys_of) {
  ScriptShape shape;
  const auto tree = read_tree(script);
  if (!tree) return shape;
  shape.declares_keys = declares_keys(*tree, keys_of);
  shape.lines = call_lines(*tree);
  shape.sent = sent_commands(*tree);
  if (auto command = OneCommand{*tree}.read()) {
    shape.known = KnownScript::one_command;
    shape.commands.push_back(std::move(*command));
    return shape;
  }
  const std::vector<RowToken> row = plain_token_row(*tree);
  std::vector<std::string> wildcards;
  for (const KnownTokenRow& known : known_rows()) {
    if (!matches(known.row, row, wildcards)) continue;
    shape.known = known.entry->means;
    shape.entry = known.entry;
    shape.commands = commands_of(*known.entry, wildcards);
    return shape;
  }
  shape.lines.clear();
  return shape;
}

}  // namespace semel::lua
