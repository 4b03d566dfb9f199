#include "net/acl/rights.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "net/acl/acl_limits.hpp"
#include "net/resp/text.hpp"
#include "semel/store.hpp"

namespace semel::net {
namespace {

constexpr auto bits_of(KeyAccess access) noexcept {
  return static_cast<std::uint8_t>(access);
}

}  // namespace

void Rights::forget_keys(bool all) {
  keys_.clear();
  all_keys_ = all;
}

void Rights::forget_channels(bool all) {
  channels_.clear();
  all_channels_ = all;
}

void Rights::reset() {
  forget_keys(false);
  forget_channels(false);
  commands_.set_all(false);
}

RuleResult Rights::apply(std::string_view rule) {
  if (is_word(rule, "allkeys") || rule == "~*") {
    forget_keys(true);
  } else if (is_word(rule, "resetkeys")) {
    forget_keys(false);
  } else if (is_word(rule, "allchannels") || rule == "&*") {
    forget_channels(true);
  } else if (is_word(rule, "resetchannels")) {
    forget_channels(false);
  } else if (is_word(rule, "allcommands") || is_word(rule, "+@all")) {
    commands_.set_all(true);
  } else if (is_word(rule, "nocommands") || is_word(rule, "-@all")) {
    commands_.set_all(false);
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return apply_key(rule);
  } else if (rule.starts_with('&')) {
    return apply_channel(rule.substr(1));
  } else if (rule.starts_with('+') || rule.starts_with('-')) {
    return apply_commands(rule);
  } else {
    return RuleError::syntax;
  }
  return std::nullopt;
}

RuleResult Rights::apply_commands(std::string_view rule) {
  const bool allowed = rule[0] == '+';
  const std::string_view name = rule.substr(1);
  if (name.starts_with('@')) {
    const auto category = acl_category_of(name.substr(1));
    if (!category) return RuleError::unknown_command;
    commands_.set_category(*category, allowed);
    return std::nullopt;
  }
  const std::size_t bar = name.rfind('|');
  if (allowed && bar != std::string_view::npos) return allow_argument(name, bar);
  const auto command = commands_.catalog().find(name);
  if (!command) return RuleError::unknown_command;
  commands_.set(*command, allowed);
  return std::nullopt;
}

RuleResult Rights::allow_argument(std::string_view name, std::size_t bar) {
  const AclCatalog& catalog = commands_.catalog();
  const auto parent = catalog.find(name.substr(0, bar));
  const std::string_view argument = name.substr(bar + 1);
  if (!parent) return RuleError::unknown_command;
  if (catalog.is_subcommand(*parent)) return RuleError::argument_of_subcommand;
  if (argument.empty()) return RuleError::syntax;
  if (!catalog.children_of(*parent).empty()) {
    const auto command = catalog.find(name);
    if (!command) return RuleError::unknown_command;
    commands_.set(*command, true);
    return std::nullopt;
  }
  // Redis would write such an argument into its aclfile and could not read it back.
  if (has_blanks(argument)) return RuleError::syntax;
  if (argument.size() > acl_limits::argument_bytes_max) return RuleError::too_long;
  if (!commands_.allow_argument(*parent, argument)) return RuleError::too_many_arguments;
  return std::nullopt;
}

RuleResult Rights::apply_key(std::string_view rule) {
  if (all_keys_) return RuleError::pattern_after_all_keys;
  std::uint8_t access = 0;
  std::size_t at = 1;
  if (rule[0] == '~') access = bits_of(KeyAccess::both);
  for (; rule[0] == '%' && at < rule.size(); ++at) {
    if (rule[at] == '~') {
      ++at;
      break;
    }
    const char letter = base::to_lower(rule[at]);
    if (letter != 'r' && letter != 'w') return RuleError::syntax;
    const std::uint8_t bit = bits_of(letter == 'r' ? KeyAccess::read : KeyAccess::write);
    if ((access & bit) != 0) return RuleError::syntax;
    access |= bit;
  }
  const std::string_view pattern = rule.substr(at);
  if (access == 0 || has_blanks(pattern)) return RuleError::syntax;
  if (pattern.size() > acl_limits::pattern_bytes_max) return RuleError::too_long;
  const auto same = std::find_if(keys_.begin(), keys_.end(),
                                 [&](const KeyPattern& known) { return known.text == pattern; });
  if (same != keys_.end()) {
    same->access |= access;
    return std::nullopt;
  }
  if (keys_.size() >= acl_limits::patterns_max) return RuleError::too_many_patterns;
  keys_.push_back({.text = std::string{pattern}, .access = access});
  return std::nullopt;
}

RuleResult Rights::apply_channel(std::string_view pattern) {
  if (all_channels_) return RuleError::pattern_after_all_channels;
  if (has_blanks(pattern)) return RuleError::syntax;
  if (pattern.size() > acl_limits::pattern_bytes_max) return RuleError::too_long;
  if (std::find(channels_.begin(), channels_.end(), pattern) != channels_.end()) {
    return std::nullopt;
  }
  if (channels_.size() >= acl_limits::patterns_max) return RuleError::too_many_patterns;
  channels_.emplace_back(pattern);
  return std::nullopt;
}

bool Rights::allows(const AclKey& key) const {
  const std::uint8_t wanted = bits_of(key.access);
  return std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& pattern) {
    return (pattern.access & wanted) == wanted && glob_match(pattern.text, key.name);
  });
}

bool Rights::allows(const AclChannel& channel) const {
  return std::any_of(channels_.begin(), channels_.end(), [&](const std::string& pattern) {
    return channel.is_pattern ? pattern == channel.name : glob_match(pattern, channel.name);
  });
}

Verdict Rights::check(const AclRequest& request) const {
  if (!commands_.allows(request.command, request.argument) &&
      !commands_.catalog().is_for_all(request.command)) {
    return {.denied = AclDenied::command};
  }
  for (std::size_t i = 0; !all_keys_ && i < request.keys.size(); ++i) {
    if (!allows(request.keys[i])) return {.denied = AclDenied::key, .index = i};
  }
  for (std::size_t i = 0; !all_channels_ && i < request.channels.size(); ++i) {
    if (!allows(request.channels[i])) return {.denied = AclDenied::channel, .index = i};
  }
  return {};
}

bool Rights::reads_all_keys() const {
  return all_keys_ || std::any_of(keys_.begin(), keys_.end(), [](const KeyPattern& pattern) {
           return pattern.text == "*" && (pattern.access & bits_of(KeyAccess::read)) != 0;
         });
}

std::string Rights::keys_text(RuleForm form) const {
  if (all_keys_) return "~*";
  std::string text;
  for (const KeyPattern& pattern : keys_) {
    if (!text.empty()) text += ' ';
    if (pattern.access == bits_of(KeyAccess::read)) text += "%R";
    if (pattern.access == bits_of(KeyAccess::write)) text += "%W";
    const bool is_all = pattern.access == bits_of(KeyAccess::both) && pattern.text == "*";
    if (is_all && form == RuleForm::file) text += "%RW";
    text.append("~").append(pattern.text);
  }
  return text;
}

std::string Rights::channels_text() const {
  if (all_channels_) return "&*";
  std::string text;
  for (const std::string& pattern : channels_) {
    text.append(text.empty() ? "&" : " &").append(pattern);
  }
  return text;
}

std::string Rights::text(RuleForm form) const {
  std::string text = keys_text(form);
  if (!text.empty()) text += ' ';
  if (!all_channels_) text += "resetchannels ";
  if (const std::string channels = channels_text(); !channels.empty()) text += channels + ' ';
  return text + commands_text(form);
}

}  // namespace semel::net
