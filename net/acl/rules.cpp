#include "net/acl/rules.hpp"

#include <algorithm>

#include "net/acl/acl_limits.hpp"

namespace semel::net {
namespace {

bool is_blank(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string too_many(std::string_view what, std::size_t limit) {
  std::string text = "More than ";
  text.append(std::to_string(limit)).append(" ").append(what);
  return text;
}

/// Reads one word at `at`, which is not at a blank, and moves behind it. False: as in the header.
bool read_word(std::string_view text, std::size_t& at, std::string& word) {
  while (at < text.size() && !is_blank(text[at])) {
    const char quote = text[at];
    if (quote != '"' && quote != '\'') {
      word += text[at++];
      continue;
    }
    for (++at; at < text.size() && text[at] != quote; ++at) {
      const bool escapes =
          text[at] == '\\' && at + 1 < text.size() && (quote == '"' || text[at + 1] == quote);
      if (escapes) ++at;
      word += text[at];
    }
    if (at == text.size()) return false;
    ++at;
    if (at < text.size() && !is_blank(text[at])) return false;
  }
  return true;
}

}  // namespace

std::string text_of(RuleError error) {
  switch (error) {
    case RuleError::syntax:
      return "Syntax error";
    case RuleError::unknown_command:
      return "Unknown command or category name in ACL";
    case RuleError::pattern_after_all_keys:
      return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
             "not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    case RuleError::pattern_after_all_channels:
      return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
             "does not have any effect. Try 'resetchannels' to start with an empty list of "
             "channels";
    case RuleError::no_such_password:
      return "The password you are trying to remove from the user does not exist";
    case RuleError::bad_hash:
      return "The password hash must be exactly 64 characters and contain only lowercase "
             "hexadecimal characters";
    case RuleError::argument_of_subcommand:
      return "Allowing first-arg of a subcommand is not supported";
    case RuleError::too_many_passwords:
      return too_many("passwords", acl_limits::passwords_max);
    case RuleError::too_many_patterns:
      return too_many("patterns", acl_limits::patterns_max);
    case RuleError::too_many_arguments:
      return too_many("first arguments", acl_limits::arguments_max);
    case RuleError::too_many_selectors:
      return too_many("selectors", acl_limits::selectors_max);
    case RuleError::too_long:
      return "A pattern has at most " + std::to_string(acl_limits::pattern_bytes_max) +
             " bytes, a first argument " + std::to_string(acl_limits::argument_bytes_max);
  }
  return "Wrong format";
}

bool has_blanks(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(), [](char c) { return c == '\0' || is_blank(c); });
}

std::string_view up_to_nul(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

MergedRules merge_selectors(std::span<const std::string_view> words) {
  MergedRules merged;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (merged.unmatched) {
      merged.rules.back().append(" ").append(word);
      if (word.ends_with(')')) merged.unmatched.reset();
      continue;
    }
    merged.rules.emplace_back(word);
    if (word.starts_with('(') && !word.ends_with(')')) merged.unmatched = i;
  }
  return merged;
}

std::optional<std::vector<std::string>> split_quoted(std::string_view text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) return words;
    if (!read_word(text, at, words.emplace_back())) return std::nullopt;
  }
}

}  // namespace semel::net
