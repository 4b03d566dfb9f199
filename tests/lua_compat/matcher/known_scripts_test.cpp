// The matcher: each text of the catalogue is known in any spelling, and in no other tokens.
#include "lua_compat/matcher/known_scripts.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include "tests/support/catch.hpp"

#include "lua_compat/matcher/script_tokens.hpp"
#include "net/scripts/native_scripts.hpp"

namespace semel::tests {
namespace {

using lua::KnownEntry;
using lua::KnownScript;
using lua::ScriptWord;
using lua::Token;
using lua::TokenKind;
using Tokens = std::vector<Token>;

lua::ScriptShape shape_of(std::string_view text) {
  return lua::shape_of(text, net::key_positions);
}

bool is_hole(const Token& token) {
  return token.kind == TokenKind::string && token.text == "?1";
}

Tokens tokens_of(std::string_view text) {
  Tokens tokens = lua::read_tokens(text).value_or(Tokens{});
  if (!tokens.empty()) tokens.pop_back();
  return tokens;
}

/// Names that the text declares. No text of ours has one of them for anything else.
std::set<std::string> locals_of(const Tokens& tokens) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is("local") && !tokens[i].is("for")) continue;
    std::size_t at = i + 1;
    while (at < tokens.size() && tokens[at].kind == TokenKind::name) {
      names.insert(tokens[at].text);
      if (at + 1 >= tokens.size() || !tokens[at + 1].is(",")) break;
      at += 2;
    }
  }
  return names;
}

class Speller {
 public:
  explicit Speller(std::mt19937_64& random) : random_(random) {}

  std::string spell(const Tokens& tokens) {
    names_.clear();
    for (const std::string& name : locals_of(tokens)) {
      names_[name] = "x" + std::to_string(random_() % 1000) + name;
    }
    std::string text = gap();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Token* const before = i > 0 ? &tokens[i - 1] : nullptr;
      const bool opens =
          before != nullptr && (before->is("then") || before->is("do") || before->is("else"));
      if (tokens[i].is("end") && !opens && random_() % 3 == 0) text += ";";
      // A call's bracket stays on its line.
      if (tokens[i].is("(")) {
        while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
      }
      const bool is_command = i >= 3 && tokens[i - 1].is("(") &&
                              tokens[i - 2].text.ends_with("call") && tokens[i - 3].is(".");
      text += spelled(tokens[i], before, is_command);
      const bool before_bracket = i + 1 < tokens.size() && tokens[i + 1].is("(");
      // Two of them begin a remark.
      if (tokens[i].is("-")) text += " ";
      text += before_bracket ? " " : gap();
    }
    return text;
  }

 private:
  std::string gap() {
    static const char* const gaps[] = {
        " ", "  ", "\n", "\r\n", "\t", " -- if end\n", "--[[ return ]] ", "--[=[\n]]]=]"};
    return gaps[random_() % std::size(gaps)];
  }
  std::string spelled(const Token& token, const Token* before, bool is_command) {
    switch (token.kind) {
      case TokenKind::name: {
        const bool is_field = before != nullptr && before->is(".");
        const auto found = names_.find(token.text);
        return is_field || found == names_.end() ? token.text : found->second;
      }
      case TokenKind::string:
        return quoted_anyhow(is_command ? any_case(token.text) : token.text);
      case TokenKind::number:
        return random_() % 2 == 0 ? token.text : token.text + ".0";
      default:
        return token.text;
    }
  }
  std::string any_case(std::string text) {
    for (char& c : text) {
      if (c >= 'a' && c <= 'z' && random_() % 2 == 0) c = static_cast<char>(c - 'a' + 'A');
    }
    return text;
  }
  std::string quoted_anyhow(const std::string& text) {
    switch (random_() % 4) {
      case 0:
        return "'" + text + "'";
      case 1:
        return "\"" + text + "\"";
      case 2:
        return "[==[" + text + "]==]";
      default: {
        std::string escaped = "'";
        for (const char c : text) {
          const std::string code = std::to_string(static_cast<int>(c));
          escaped += "\\" + std::string(3 - code.size(), '0') + code;
        }
        return escaped + "'";
      }
    }
  }

  std::mt19937_64& random_;
  std::map<std::string, std::string> names_;
};

/// With a constant for its wildcard, and random line breaks.
std::string plain_text(const Tokens& tokens) {
  std::string text;
  for (const Token& token : tokens) {
    const bool is_string = token.kind == TokenKind::string;
    text += is_string ? "'" + token.text + "'" : token.text;
    text += " ";
  }
  return text;
}

Token some_token(const Tokens& all, std::mt19937_64& random) {
  static const char* const symbols[] = {
      "and",   "or",    "not", "==", "~=", "<=", ">",    "+",    "-",   "(",      ")",   ",",
      ".",     "[",     "]",   "{",  "}",  "if", "then", "else", "end", "return", "nil", "true",
      "false", "local", "=",   "#",  "..", ";",  "for",  "do",   "in",  "elseif"};
  static const char* const names[] = {"KEYS", "ARGV", "redis", "call", "pcall", "tonumber", "x"};
  switch (random() % 5) {
    case 0:
      return {.kind = TokenKind::symbol, .text = symbols[random() % std::size(symbols)]};
    case 1:
      return {.kind = TokenKind::name, .text = names[random() % std::size(names)]};
    case 2:
      return {.kind = TokenKind::number, .text = std::to_string(random() % 5)};
    case 3:
      return {.kind = TokenKind::string, .text = random() % 2 == 0 ? "get" : "other"};
    default:
      return all[random() % all.size()];
  }
}

/// An `else` without anything in it behind a return says nothing: that is the same program.
bool has_empty_else(const Tokens& tokens) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].is("else") && tokens[i + 1].is("end")) return true;
  }
  return false;
}

/// One token changed, moved, gone or more. None: the one that may be anything.
std::optional<Tokens> mutated(Tokens tokens, std::mt19937_64& random) {
  const std::size_t at = random() % tokens.size();
  if (is_hole(tokens[at])) return std::nullopt;
  const auto place = tokens.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 4) {
    case 0:
      tokens.erase(place);
      break;
    case 1:
      tokens.insert(place, some_token(tokens, random));
      break;
    case 2:
      if (at + 1 < tokens.size() && !is_hole(tokens[at + 1])) std::swap(*place, *(place + 1));
      break;
    default:
      *place = some_token(tokens, random);
  }
  return tokens;
}

}  // namespace

TEST_CASE("known scripts: each text is itself, and all are different", "[lua][known]") {
  std::set<std::string> names;
  std::set<std::string> forms;
  for (const KnownEntry& entry : lua::known_catalogue()) {
    INFO(entry.name);
    const lua::ScriptShape shape = shape_of(entry.text);
    CHECK(shape.entry == &entry);
    CHECK(shape.known == entry.means);
    CHECK(names.insert(std::string{entry.name}).second);
    CHECK(forms.insert(lua::canonical_form(entry.text)).second);
    CHECK_FALSE(shape.lines.empty());
    // What is sent there depends on an argument, which the native looks at.
    const bool by_argument = entry.text.find("redis.call(ARGV") != std::string_view::npos;
    CHECK(shape.declares_keys == !by_argument);
    CHECK(net::keeps_to_keys(shape));
  }
  CHECK(forms.size() >= 30);
}

TEST_CASE("known scripts: another spelling is the same script", "[lua][known]") {
  std::mt19937_64 random{Catch::rngSeed()};
  Speller speller{random};
  for (const KnownEntry& entry : lua::known_catalogue()) {
    const Tokens tokens = tokens_of(entry.text);
    for (int i = 0; i < 50; ++i) {
      const std::string text = speller.spell(tokens);
      INFO(entry.name << "\n" << text << "\nseed " << Catch::rngSeed());
      REQUIRE(lua::canonical_form(text) == lua::canonical_form(entry.text));
      REQUIRE(shape_of(text).entry == &entry);
    }
  }
}

TEST_CASE("known scripts: another token is another script", "[lua][known]") {
  std::mt19937_64 random{Catch::rngSeed()};
  std::size_t looked_at = 0;
  for (const KnownEntry& entry : lua::known_catalogue()) {
    const Tokens tokens = tokens_of(entry.text);
    const std::string form = lua::canonical_form(plain_text(tokens));
    for (int i = 0; i < 400; ++i) {
      const auto changed = mutated(tokens, random);
      if (!changed || has_empty_else(*changed)) continue;
      const std::string text = plain_text(*changed);
      const std::string other = lua::canonical_form(text);
      if (other.empty()) {
        REQUIRE(shape_of(text).known == KnownScript::unknown);
        continue;
      }
      if (other == form) continue;
      ++looked_at;
      INFO(entry.name << "\n" << text << "\nseed " << Catch::rngSeed());
      REQUIRE(shape_of(text).entry != &entry);
    }
  }
  CHECK(looked_at > 3000);
}

TEST_CASE("known scripts: names for elements and else behind a return change nothing",
          "[lua][known]") {
  const auto name_of = [](const char* text) {
    const lua::ScriptShape shape = shape_of(text);
    return std::string{shape.entry == nullptr ? "" : shape.entry->name};
  };
  for (const char* text : {
           "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
           "else return 0 end",
           "local key = KEYS[1] local owner = ARGV[1] "
           "if redis.call('get', key) == owner then return redis.call('del', key) end return 0",
           "local key, owner, no = KEYS[1], ARGV[1], 0 local k = key "
           "if (redis.call('get', k) == owner) then return redis.call('del', key); "
           "else return no; end",
       }) {
    INFO(text);
    CHECK(name_of(text) == "release");
  }
  for (const char* text : {
           "local key = KEYS[1] key = KEYS[2] "
           "if redis.call('get', key) == ARGV[1] then return redis.call('del', key) end return 0",
           "local key = KEYS[2] "
           "if redis.call('get', key) == ARGV[1] then return redis.call('del', key) end return 0",
           "KEYS[1] = 'x' local key = KEYS[1] "
           "if redis.call('get', key) == ARGV[1] then return redis.call('del', key) end return 0",
           "local KEYS = {'x'} "
           "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
           "return 0",
           "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) "
           "else return 0 end",
       }) {
    INFO(text);
    CHECK(name_of(text).empty());
  }
}

TEST_CASE("known scripts: one command is known by what it consists of", "[lua][known]") {
  const lua::ScriptShape shape = shape_of(
      "local k, v = KEYS[1], ARGV[1]\nlocal ttl = 60000\n"
      "local old = redis.call('SET', k, v, 'NX', \"GET\", 'PX', ttl)\nreturn old");
  REQUIRE(shape.known == KnownScript::one_command);
  CHECK(shape.entry == nullptr);
  CHECK(shape.declares_keys);
  CHECK(shape.lines == std::vector<std::uint32_t>{3});
  REQUIRE(shape.commands.size() == 1);
  const lua::ScriptCommand& words = shape.commands.front();
  REQUIRE(words.size() == 7);
  CHECK(words[0].text == "set");
  CHECK(words[1].from == ScriptWord::From::key);
  CHECK(words[2].from == ScriptWord::From::argument);
  CHECK(words[3].text == "NX");
  CHECK(words[6].text == "60000");
  for (const char* text : {
           "return redis.pcall('get', KEYS[1])",
           "return redis.call('get', KEYS[1]), 1",
           "redis.call('get', KEYS[1])",
           "local a = redis.call('get', KEYS[1]) return redis.call('get', KEYS[1])",
           "local a = redis.call('get', KEYS[1])",
           "local a, b = redis.call('get', KEYS[1]), 1 return a",
           "local k = KEYS[1] k = 'x' return redis.call('get', k)",
           "return redis.call('set', KEYS[1], 0.5)",
           "return redis.call('set', KEYS[1], true)",
           "return redis.call(KEYS[1])",
           "return redis.call(1)",
           "return redis.call()",
           "return redis.call('get', KEYS[0])",
           "return redis.call('get', KEYS[1.5])",
           "return redis.call('get', KEYS[i])",
           "return redis.call('get', (KEYS[1]) .. '')",
           "local redis = {} return redis.call('get', KEYS[1])",
           "return server.call('get', KEYS[1])",
       }) {
    INFO(text);
    CHECK(shape_of(text).known == KnownScript::unknown);
  }
  CHECK_FALSE(shape_of("return redis.call('get', ARGV[1])").declares_keys);
}

TEST_CASE("known scripts: the constant of a wildcard becomes an argument", "[lua][known]") {
  const std::string begin =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ";
  const std::string end = ") end return 0";
  for (const auto& [constant, word] :
       {std::pair{"30000", "30000"}, {"3e4", "30000"}, {"'030'", "030"}, {"-1", "-1"}}) {
    const lua::ScriptShape shape = shape_of(begin + constant + end);
    REQUIRE(shape.known == KnownScript::compare_and_run);
    CHECK(shape.commands.front().back().text == word);
  }
  for (const char* other : {"0.5", "1e300", "nil", "true", "KEYS[2]", "ARGV[3]", "x", "-x"}) {
    INFO(other);
    CHECK(shape_of(begin + other + end).known == KnownScript::unknown);
  }
}

}  // namespace semel::tests
