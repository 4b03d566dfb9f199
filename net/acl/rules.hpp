// Splits and joins the words of rules, and has Redis' texts for their errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// Why a rule was refused. `too_many_*` and `too_long` do not exist in Redis. An enum and not a
/// Result: callers choose the text around it by the kind of error.
enum class RuleError : std::uint8_t {
  syntax,
  unknown_command,
  pattern_after_all_keys,
  pattern_after_all_channels,
  no_such_password,
  bad_hash,
  argument_of_subcommand,
  too_many_passwords,
  too_many_patterns,
  too_many_arguments,
  too_many_selectors,
  too_long,
};

/// What stands behind "Error in ACL SETUSER modifier '..': ".
[[nodiscard]] std::string text_of(RuleError error);

/// None: the rule was accepted.
using RuleResult = std::optional<RuleError>;

/// True where a name or a pattern would break a line of an aclfile.
[[nodiscard]] bool has_blanks(std::string_view text) noexcept;

/// Up to the first NUL byte: as much of a client's word as an error of Redis shows.
[[nodiscard]] std::string_view up_to_nul(std::string_view text) noexcept;

struct MergedRules {
  std::vector<std::string> rules{};
  std::optional<std::size_t> unmatched{};  ///< the word with a parenthesis that nothing closes
};

/// "(+get" "~x)" are one rule, "(+get ~x)".
[[nodiscard]] MergedRules merge_selectors(std::span<const std::string_view> words);

/// The words of a selector: separated by blanks, where a part in quotes may hold any of them. None:
/// quotes that are not closed, or closed inside a word.
[[nodiscard]] std::optional<std::vector<std::string>> split_quoted(std::string_view text);

}  // namespace semel::net
