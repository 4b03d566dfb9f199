#include "net/commands/command_arguments.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/ascii.hpp"

namespace semel::net {
namespace {

using Arguments = std::vector<CommandArgument>;
using Words = std::span<const std::string_view>;

constexpr auto key_names =
    std::to_array<std::string_view>({"key", "key1", "key2", "newkey", "source", "sourcekey",
                                     "destination", "destkey", "dst", "src"});
constexpr auto double_names = std::to_array<std::string_view>(
    {"score", "longitude", "latitude", "radius", "width", "height"});
constexpr auto integer_names = std::to_array<std::string_view>(
    {"seconds",   "milliseconds", "count",  "numkeys",   "increment",    "decrement",
     "offset",    "start",        "end",    "db",        "index",        "one",
     "other",     "replicas",     "local",  "slot",      "port",         "bits",
     "epoch",     "ms",           "n",      "cursor",    "version",      "timeout-ms",
     "client-id", "stop",         "weight", "limit",     "entries-read", "entries-added",
     "bit",       "len",          "ttl",    "frequency", "rank",         "num-matches"});

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view type_of(std::string_view command, std::string_view name) {
  if (has(key_names, name)) return "key";
  if (name == "pattern") return "pattern";
  const bool has_numbers = command.starts_with("client|") || command.starts_with("semel.group|");
  if (name == "id" && has_numbers) return "integer";
  const bool is_of_bits = command == "setbit" || command.starts_with("bitfield");
  if (name == "value" && is_of_bits) return "integer";
  if (name.starts_with("unix-")) return "unix-time";
  if (command == "zrange" && (name == "start" || name == "stop")) return "string";
  const bool are_scores = command == "zcount" || command.ends_with("byscore");
  if (has(double_names, name) || (are_scores && (name == "min" || name == "max"))) return "double";
  const bool is_id_of_stream = command.starts_with('x') && (name == "start" || name == "end");
  if (is_id_of_stream) return "string";
  const bool is_double = name == "float" || (name == "increment" && command.ends_with("float")) ||
                         (name == "timeout" && command.starts_with("b"));
  if (is_double) return "double";
  return has(integer_names, name) ? "integer" : "string";
}

/// "EX", "LIB-NAME", "0": no letter is small. "*": a sign by itself.
bool is_token(std::string_view word) {
  constexpr std::string_view signs = "=~*$";
  if (word.size() == 1 && signs.find(word.front()) != std::string_view::npos) return true;
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_shown = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return std::any_of(word.begin(), word.end(), is_shown) &&
         std::none_of(word.begin(), word.end(), is_small);
}

bool begins_group(std::string_view word) {
  return word == "[" || word == "(";
}

/// Words, brackets and bars, each by itself; "or" and a comma are bars. What bars without blanks
/// join, "ON|OFF", is in parentheses.
std::vector<std::string_view> lexed(std::string_view text) {
  std::vector<std::string_view> words;
  bool is_joined = false;
  while (!text.empty()) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    constexpr std::string_view marks = "[]|,";
    const bool is_mark = marks.find(text.front()) != std::string_view::npos;
    const std::size_t end = is_mark ? 1 : std::min(text.find_first_of(" []|,"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    const bool joins = !is_mark && text.starts_with('|');
    if (joins && !is_joined) words.emplace_back("(");
    words.push_back(word == "or" || word == "," ? "|" : word);
    if (is_joined && !is_mark && !joins) words.emplace_back(")");
    if (!is_mark) is_joined = joins;
  }
  return words;
}

/// Of a group that the grammar does not name: the names of its first parts.
std::string joined(const Arguments& parts) {
  constexpr std::size_t shown_max = 3;
  std::string name;
  for (std::size_t i = 0; i < std::min(parts.size(), shown_max); ++i) {
    name.append(name.empty() ? "" : "_").append(parts[i].name);
  }
  return name;
}

std::string name_of_choice(const Arguments& parts) {
  const auto all = [&](std::string_view tokens) {
    return std::all_of(parts.begin(), parts.end(), [&](const CommandArgument& part) {
      return !part.token.empty() && tokens.find(part.token) != std::string_view::npos;
    });
  };
  if (all("NX XX GT LT IFEQ IFNE IFDEQ IFDNE")) return "condition";
  if (all("EX PX EXAT PXAT KEEPTTL PERSIST")) return "expiration";
  return joined(parts);
}

class Parser {
 public:
  explicit Parser(std::string_view command) : command_(command) {}

  /// Alternatives, each a sequence.
  [[nodiscard]] Arguments parse(Words words) const {
    std::vector<Arguments> choices;
    std::size_t depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= words.size(); ++i) {
      if (i < words.size()) {
        if (begins_group(words[i])) ++depth;
        if (words[i] == "]" || words[i] == ")") --depth;
        if (depth > 0 || words[i] != "|") continue;
      }
      choices.push_back(sequence(words.subspan(begin, i - begin)));
      begin = i + 1;
    }
    if (choices.size() == 1) return std::move(choices.front());
    CommandArgument choice{.type = "oneof"};
    for (Arguments& each : choices) choice.parts.push_back(block(std::move(each)));
    choice.name = name_of_choice(choice.parts);
    return {std::move(choice)};
  }

 private:
  [[nodiscard]] static CommandArgument block(Arguments parts) {
    if (parts.size() == 1) return std::move(parts.front());
    CommandArgument whole{.name = joined(parts), .type = "block"};
    // A token in front is that of the block, but for "NO ONE".
    const bool has_values =
        std::any_of(parts.begin(), parts.end(),
                    [](const CommandArgument& part) { return part.type != "pure-token"; });
    if (has_values && parts.front().type == "pure-token") {
      whole.token = parts.front().token;
      whole.name = parts.front().name;
      parts.erase(parts.begin());
    }
    whole.parts = std::move(parts);
    return whole;
  }

  [[nodiscard]] CommandArgument word(std::string_view text) const {
    if (is_token(text)) return {.name = base::lower_of(text), .type = "pure-token", .token = text};
    return {.name = std::string{text}, .type = type_of(command_, text)};
  }

  /// The index of the bracket that closes that at `at`.
  [[nodiscard]] static std::size_t closing(Words words, std::size_t at) {
    std::size_t depth = 0;
    for (; at < words.size(); ++at) {
      if (begins_group(words[at])) ++depth;
      if ((words[at] == "]" || words[at] == ")") && --depth == 0) break;
    }
    return at;
  }

  [[nodiscard]] Arguments sequence(Words words) const {
    Arguments out;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (begins_group(words[i])) {
        const std::size_t end = closing(words, i);
        const Words inside = words.subspan(i + 1, end - i - 1);
        if (words[i] == "[") {
          add_group(out, inside);
        } else {
          out.push_back(block(parse(inside)));
        }
        i = end;
      } else if (is_token(words[i])) {
        out.push_back(with_token(words, i));
      } else {
        out.push_back(word(words[i]));
      }
    }
    return out;
  }

  /// The token at `i` and the words or the choice behind it; `i` becomes the last of them.
  [[nodiscard]] CommandArgument with_token(Words words, std::size_t& i) const {
    CommandArgument token = word(words[i]);
    Arguments taken;
    if (i + 1 < words.size() && words[i + 1] == "(") {
      const std::size_t end = closing(words, i + 1);
      taken = parse(words.subspan(i + 2, end - i - 2));
      i = end;
    }
    const auto is_plain = [](std::string_view next) {
      return !begins_group(next) && !is_token(next);
    };
    while (i + 1 < words.size() && is_plain(words[i + 1])) taken.push_back(word(words[++i]));
    if (taken.empty()) return token;
    CommandArgument holder = block(std::move(taken));
    holder.token = token.token;
    if (!holder.parts.empty()) holder.name = token.name;
    return holder;
  }

  /// Adds a group in brackets: a repetition of the last argument, or an optional one.
  void add_group(Arguments& out, Words words) const {
    const bool repeats = !words.empty() && words.back() == "...";
    if (repeats) words = words.first(words.size() - 1);
    if (!words.empty() && words.front() == "options") {
      out.push_back(
          {.name = "options", .type = "string", .is_optional = true, .is_multiple = true});
      return;
    }
    Arguments inside = parse(words);
    if (repeats && ends_with(out, inside)) return repeat_last(out, inside);
    if (repeats && !out.empty() && ends_with(out.back().parts, inside)) {
      return repeat_last(out.back().parts, inside);
    }
    CommandArgument group = block(std::move(inside));
    group.is_optional = true;
    group.is_multiple = group.is_multiple || repeats;
    out.push_back(std::move(group));
  }

  [[nodiscard]] static bool ends_with(const Arguments& out, const Arguments& inside) {
    if (out.size() < inside.size()) return false;
    return std::equal(inside.begin(), inside.end(), out.end() - static_cast<long>(inside.size()),
                      [](const CommandArgument& one, const CommandArgument& other) {
                        return one.name == other.name;
                      });
  }

  static void repeat_last(Arguments& out, const Arguments& inside) {
    const std::size_t count = inside.size();
    const bool repeats_token = count == 1 && !inside.front().token.empty();
    Arguments parts{std::make_move_iterator(out.end() - static_cast<long>(count)),
                    std::make_move_iterator(out.end())};
    out.resize(out.size() - count);
    CommandArgument whole = block(std::move(parts));
    whole.is_multiple = true;
    whole.repeats_token = repeats_token;
    out.push_back(std::move(whole));
  }

  std::string_view command_;
};

}  // namespace

std::vector<CommandArgument> arguments_of(std::string_view command, std::string_view words) {
  return Parser{command}.parse(lexed(words));
}

}  // namespace semel::net
