#include "net/scripts/script_text.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "base/hex.hpp"
#include "net/commands/command_docs.hpp"
#include "net/resp/reply_error.hpp"

namespace semel::net {
namespace {

constexpr std::array<std::string_view, 5> flag_words = {"no-writes", "allow-oom", "allow-stale",
                                                        "no-cluster", "allow-cross-slot-keys"};

bool is_blank(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// The character that stands behind a backslash at the front of `rest`, within double quotes.
char unescape(std::string_view& rest) noexcept {
  constexpr std::string_view letters = "nrtba";
  constexpr std::string_view meant = "\n\r\t\b\a";
  if (rest.size() >= 3 && rest[0] == 'x' && base::hex_value(rest[1]) >= 0 &&
      base::hex_value(rest[2]) >= 0) {
    const int byte = base::hex_value(rest[1]) * 16 + base::hex_value(rest[2]);
    rest.remove_prefix(3);
    return static_cast<char>(byte);
  }
  const char c = rest.front();
  rest.remove_prefix(1);
  const std::size_t at = letters.find(c);
  return at == std::string_view::npos ? c : meant[at];
}

/// Takes the quoted text off the front of `rest`, which begins behind the quote. False: the closing
/// quote is missing, or the character behind it is not a blank.
bool take_quoted(std::string_view& rest, char quote, std::string& word) {
  while (!rest.empty() && rest.front() != quote) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '\\' && quote == '"' && !rest.empty()) {
      word += unescape(rest);
    } else if (c == '\\' && quote == '\'' && rest.starts_with('\'')) {
      word += '\'';
      rest.remove_prefix(1);
    } else {
      word += c;
    }
  }
  if (rest.empty()) return false;
  rest.remove_prefix(1);
  return rest.empty() || is_blank(rest.front());
}

/// The words of a line as redis-server's configuration has them, with quotes. None: they are wrong.
std::optional<std::vector<std::string>> words_of_line(std::string_view line) {
  std::vector<std::string> words;
  for (;;) {
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    if (line.empty()) return words;
    std::string& word = words.emplace_back();
    while (!line.empty() && !is_blank(line.front())) {
      const char c = line.front();
      line.remove_prefix(1);
      if (c != '"' && c != '\'') {
        word += c;
      } else if (!take_quoted(line, c, word)) {
        return std::nullopt;
      } else {
        break;
      }
    }
  }
}

Result<std::uint32_t> read_flags(std::string_view list) {
  std::uint32_t flags = 0;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view word = list.substr(0, end);
    const auto flag = script_flag(word);
    if (!flag) return reply_error("ERR Unexpected flag in script shebang: " + std::string{word});
    flags |= *flag;
    if (end == list.size()) break;
    list.remove_prefix(end + 1);
    if (list.empty()) return reply_error("ERR Unexpected flag in script shebang: ");
  }
  return flags;
}

}  // namespace

std::optional<std::uint32_t> script_flag(std::string_view name) noexcept {
  const auto found = std::find(flag_words.begin(), flag_words.end(), name);
  if (found == flag_words.end()) return std::nullopt;
  return 1U << static_cast<unsigned>(found - flag_words.begin());
}

std::vector<std::string_view> script_flag_words(std::uint32_t flags) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < flag_words.size(); ++i) {
    if ((flags >> i & 1U) != 0) words.push_back(flag_words[i]);
  }
  return words;
}

std::string sha1_hex(std::string_view bytes) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return base::hex_of(digest);
}

Status read_shebang(Script& script) {
  const std::string_view text = script.text;
  if (!text.starts_with("#!")) return Done{};
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return reply_error("ERR Invalid script shebang");
  script.has_shebang = true;
  script.body_begin = end;  // the line's end is kept: lines are numbered as in the whole text
  const auto words = words_of_line(text.substr(0, end));
  if (!words || words->empty()) return reply_error("ERR Invalid engine in script shebang");
  if (words->front() != "#!lua") {
    return reply_error("ERR Unexpected engine in script shebang: " + words->front());
  }
  constexpr std::string_view option = "flags=";
  for (std::size_t i = 1; i < words->size(); ++i) {
    const std::string_view word = (*words)[i];
    if (!word.starts_with(option)) {
      return reply_error("ERR Unknown lua shebang option: " + std::string{word});
    }
    SEMEL_TRY(flags, read_flags(word.substr(option.size())));
    script.flags |= flags;
  }
  return Done{};
}

Result<LibraryHead> read_library_head(std::string_view text) {
  constexpr std::string_view name = "name=";
  if (!text.starts_with("#!")) return reply_error("ERR Missing library metadata");
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return reply_error("ERR Invalid library metadata");
  const auto words = words_of_line(text.substr(0, end));
  if (!words || words->empty()) return reply_error("ERR Invalid library metadata");
  LibraryHead head;
  head.body_begin = end;
  head.engine = words->front().substr(std::min<std::size_t>(2, words->front().size()));
  bool is_named = false;
  for (std::size_t i = 1; i < words->size(); ++i) {
    const std::string_view word = (*words)[i];
    if (!word.starts_with(name)) {
      return reply_error("ERR Invalid metadata value given: " + std::string{word});
    }
    if (is_named) {
      return reply_error("ERR Invalid metadata value, name argument was given multiple times");
    }
    is_named = true;
    head.name = word.substr(name.size());
  }
  if (!is_named) return reply_error("ERR Library name was not given");
  if (!is_library_name(head.name)) return reply_error(std::string{library_name_error});
  return head;
}

}  // namespace semel::net
