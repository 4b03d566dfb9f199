#include "net/acl/user.hpp"

#include <algorithm>

#include "net/acl/acl_limits.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

User User::default_user(const AclCatalog& catalog, std::uint64_t id) {
  User user{catalog, "default", id};
  for (const std::string_view rule : {"on", "nopass", "+@all", "~*", "&*"}) {
    static_cast<void>(user.apply(rule));  // these have no faults
  }
  return user;
}

RuleResult User::apply(std::string_view rule) {
  if (rule.empty() || apply_word(rule)) {
    unlimited_ = root_.is_unlimited();
    return std::nullopt;
  }
  if (rule[0] == '>' || rule[0] == '#') return add_password(rule);
  if (rule[0] == '<' || rule[0] == '!') return remove_password(rule);
  if (rule[0] == '(' && rule.size() >= 2 && rule.back() == ')') {
    return add_selector(rule.substr(1, rule.size() - 2));
  }
  const RuleResult result = root_.apply(rule);
  unlimited_ = root_.is_unlimited();
  return result;
}

bool User::apply_word(std::string_view rule) {
  if (is_word(rule, "on")) {
    on_ = true;
  } else if (is_word(rule, "off")) {
    on_ = false;
  } else if (is_word(rule, "nopass")) {
    forget_passwords(true);
  } else if (is_word(rule, "resetpass")) {
    forget_passwords(false);
  } else if (is_word(rule, "sanitize-payload")) {
    sanitize_ = Sanitize::yes;
  } else if (is_word(rule, "skip-sanitize-payload")) {
    sanitize_ = Sanitize::skip;
  } else if (is_word(rule, "clearselectors")) {
    selectors_.clear();
  } else if (is_word(rule, "reset")) {
    reset();
  } else {
    return false;
  }
  return true;
}

User::User(const AclCatalog& catalog, std::string name, std::uint64_t id, FirstChannels first)
    : name_(std::move(name)), id_(id), first_(first), root_(catalog) {
  give_first_channels(root_);
}

void User::give_first_channels(Rights& rights) const {
  // It cannot fail on rights that name no channel yet.
  if (first_ == FirstChannels::all) static_cast<void>(rights.apply("allchannels"));
}

void User::reset() {
  forget_passwords(false);
  on_ = false;
  sanitize_ = Sanitize::yes;
  selectors_.clear();
  root_.reset();
  give_first_channels(root_);
}

void User::forget_passwords(bool nopass) {
  passwords_.clear();
  nopass_ = nopass;
}

void User::set_only_password(std::string_view password) {
  forget_passwords(password.empty());
  if (!password.empty()) passwords_.push_back(hash_of_password(password));
}

RuleResult User::add_password(std::string_view rule) {
  const std::string_view word = rule.substr(1);
  const auto hash = rule[0] == '>' ? hash_of_password(word) : password_hash_of_hex(word);
  if (!hash) return RuleError::bad_hash;
  if (std::find(passwords_.begin(), passwords_.end(), *hash) == passwords_.end()) {
    if (passwords_.size() >= acl_limits::passwords_max) return RuleError::too_many_passwords;
    passwords_.push_back(*hash);
  }
  nopass_ = false;
  return std::nullopt;
}

RuleResult User::remove_password(std::string_view rule) {
  const std::string_view word = rule.substr(1);
  const auto hash = rule[0] == '<' ? hash_of_password(word) : password_hash_of_hex(word);
  if (!hash) return RuleError::bad_hash;
  const auto found = std::find(passwords_.begin(), passwords_.end(), *hash);
  if (found == passwords_.end()) return RuleError::no_such_password;
  passwords_.erase(found);
  return std::nullopt;
}

RuleResult User::add_selector(std::string_view words) {
  const auto rules = split_quoted(words);
  if (!rules) return RuleError::syntax;
  Rights selector{root_.catalog()};
  give_first_channels(selector);
  for (const std::string& rule : *rules) {
    if (rule.find_first_of("\"'") != std::string::npos || rule.ends_with(')')) {
      return RuleError::syntax;
    }
    if (const RuleResult error = selector.apply(rule)) return error;
  }
  if (selectors_.size() >= acl_limits::selectors_max) return RuleError::too_many_selectors;
  selectors_.push_back(std::move(selector));
  return std::nullopt;
}

std::vector<std::string_view> User::flags() const {
  std::vector<std::string_view> flags{on_ ? "on" : "off"};
  if (nopass_) flags.emplace_back("nopass");
  if (sanitize_ == Sanitize::skip) flags.emplace_back("skip-sanitize-payload");
  if (sanitize_ == Sanitize::yes) flags.emplace_back("sanitize-payload");
  return flags;
}

std::string User::text(RuleForm form) const {
  std::string text;
  for (const std::string_view flag : flags()) text.append(flag).append(" ");
  for (const PasswordHash& hash : passwords_) text.append("#").append(hex_of(hash)).append(" ");
  text += root_.text(form);
  for (const Rights& selector : selectors_) {
    text.append(" (").append(selector.text(form)).append(")");
  }
  return text;
}

bool User::may_hear(const AclChannel& channel) const {
  return root_.may_hear(channel) ||
         std::any_of(selectors_.begin(), selectors_.end(),
                     [&](const Rights& selector) { return selector.may_hear(channel); });
}

Verdict User::check_all(const AclRequest& request) const {
  Verdict worst = root_.check(request);
  for (auto selector = selectors_.begin(); !worst.ok() && selector != selectors_.end();
       ++selector) {
    const Verdict verdict = selector->check(request);
    const bool is_further = verdict.denied > worst.denied ||
                            (verdict.denied == worst.denied && verdict.index > worst.index);
    if (verdict.ok() || is_further) worst = verdict;
  }
  return worst;
}

}  // namespace semel::net
