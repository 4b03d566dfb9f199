#include "net/acl/acl.hpp"

#include <algorithm>

#include "net/acl/acl_limits.hpp"
#include "net/resp/reply_error.hpp"

namespace semel::net {
namespace {

constexpr std::string_view default_name = "default";

}  // namespace

Acl::Acl(std::span<const AclCommand> commands) : catalog_(commands) {
  users_.emplace(default_name,
                 std::make_shared<const User>(User::default_user(catalog_, next_id_++)));
}

void Acl::changed() {
  // mo: relaxed: only this thread may change it, by the mutex.
  const std::uint64_t last = generation_.load(std::memory_order_relaxed);
  // mo: release [acl.generation]
  generation_.store(last + 1, std::memory_order_release);
}

SharedUser Acl::find_locked(std::string_view name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second;
}

SharedUser Acl::find(std::string_view name) const {
  const base::MutexLock lock{mutex_};
  return find_locked(name);
}

AclSession Acl::open_session() const {
  AclSession session;
  const base::MutexLock lock{mutex_};
  session.user_ = find_locked(default_name);
  session.authenticated_ = session.user_->is_on() && session.user_->has_nopass();
  // mo: relaxed: the mutex keeps it still.
  session.seen_ = generation_.load(std::memory_order_relaxed);
  return session;
}

AclSession Acl::open_internal() const {
  AclSession session;
  session.user_ = std::make_shared<const User>(User::default_user(catalog_, 0));
  session.seen_ = generation();
  session.authenticated_ = true;
  return session;
}

AclSession Acl::open_session(const AclSession& before) const {
  AclSession session = open_session();
  if (before.guarded_) session.guard();
  return session;
}

AclChange Acl::renew(AclSession& session) const {
  const base::MutexLock lock{mutex_};
  SharedUser now = find_locked(session.user_->name());
  if (now == nullptr || now->id() != session.user_->id()) return AclChange::gone;
  // mo: relaxed: the mutex keeps it still.
  session.seen_ = generation_.load(std::memory_order_relaxed);
  if (now == session.user_) return AclChange::none;
  session.user_ = std::move(now);
  return AclChange::rights;
}

SharedUser Acl::authenticate(std::string_view name, std::string_view password) const {
  const PasswordHash hash = hash_of_password(password);
  SharedUser user = find(name);
  const std::span<const PasswordHash> known =
      user == nullptr ? std::span<const PasswordHash>{} : user->passwords();
  const bool matches = is_among(hash, known);
  if (user == nullptr || !user->is_on()) return nullptr;
  return matches || user->has_nopass() ? user : nullptr;
}

bool Acl::log_in(AclSession& session, std::string_view name, std::string_view password) const {
  SharedUser user = authenticate(name, password);
  if (user == nullptr || (session.guarded_ && user->has_nopass())) return false;
  session.user_ = std::move(user);
  session.authenticated_ = session.logged_in_ = true;
  session.seen_ = 0;  // no generation: the next refresh looks the user up
  return true;
}

bool Acl::log_in_by_certificate(AclSession& session, std::string_view name) const {
  SharedUser user = find(name);
  if (user == nullptr || !user->is_on()) return false;
  session.user_ = std::move(user);
  session.authenticated_ = session.logged_in_ = true;
  session.seen_ = 0;  // as above
  return true;
}

void Acl::set_requirepass(std::string_view password) {
  const base::MutexLock lock{mutex_};
  SharedUser& stored = users_.find(default_name)->second;
  User user = *stored;
  user.set_only_password(password);
  stored = std::make_shared<const User>(std::move(user));
  changed();
}

void Acl::set_first_channels(FirstChannels first) {
  const base::MutexLock lock{mutex_};
  first_channels_ = first;
}

Status Acl::set_user(std::string_view name, std::span<const std::string_view> rules) {
  if (has_blanks(name)) {
    return reply_error("ERR Usernames can't contain spaces or null characters");
  }
  if (name.size() > acl_limits::name_bytes_max) {
    return reply_error("ERR The username has " + std::to_string(name.size()) +
                       " bytes, more than " + std::to_string(acl_limits::name_bytes_max));
  }
  const MergedRules merged = merge_selectors(rules);
  if (merged.unmatched) {
    return reply_error("ERR Unmatched parenthesis in acl selector starting at '" +
                       std::string{up_to_nul(rules[*merged.unmatched])} + "'.");
  }
  const base::MutexLock lock{mutex_};
  const SharedUser before = find_locked(name);
  if (before == nullptr && users_.size() >= acl_limits::users_max) {
    return reply_error("ERR There are " + std::to_string(users_.size()) + " users, the limit is " +
                       std::to_string(acl_limits::users_max));
  }
  User user =
      before != nullptr ? *before : User{catalog_, std::string{name}, next_id_, first_channels_};
  user.set_first_channels(first_channels_);
  for (const std::string& rule : merged.rules) {
    if (const RuleResult error = user.apply(rule)) {
      return reply_error("ERR Error in ACL SETUSER modifier '" + std::string{up_to_nul(rule)} +
                         "': " + text_of(*error));
    }
  }
  if (before == nullptr) ++next_id_;
  users_.insert_or_assign(std::string{name}, std::make_shared<const User>(std::move(user)));
  changed();
  return Done{};
}

Result<std::size_t> Acl::delete_users(std::span<const std::string_view> names) {
  if (std::find(names.begin(), names.end(), default_name) != names.end()) {
    return reply_error("ERR The 'default' user cannot be removed");
  }
  std::size_t deleted = 0;
  const base::MutexLock lock{mutex_};
  for (const std::string_view name : names) {
    const auto found = users_.find(name);
    if (found == users_.end()) continue;
    users_.erase(found);
    ++deleted;
  }
  if (deleted > 0) changed();
  return deleted;
}

std::vector<SharedUser> Acl::users() const {
  std::vector<SharedUser> users;
  const base::MutexLock lock{mutex_};
  users.reserve(users_.size());
  for (const auto& [name, user] : users_) users.push_back(user);
  return users;
}

std::vector<std::string> Acl::list() const {
  std::vector<std::string> lines;
  for (const SharedUser& user : users()) {
    lines.push_back("user " + user->name() + " " + user->text(RuleForm::list));
  }
  return lines;
}

std::vector<std::string_view> Acl::commands_in(std::size_t category) const {
  const AclCatalog::Words& members = catalog_.members_of(category);
  std::vector<std::string_view> names;
  for (const std::uint32_t command : catalog_.in_order()) {
    const bool is_member = (members[command / 64] >> (command % 64) & 1U) != 0;
    if (is_member) names.emplace_back(catalog_.name_of(command));
  }
  return names;
}

std::string_view object_of(const Verdict& verdict, const AclRequest& request,
                           const AclCatalog& catalog) {
  switch (verdict.denied) {
    case AclDenied::ok:
      break;
    case AclDenied::command:
      return catalog.name_of(request.command);
    case AclDenied::key:
      return request.keys[verdict.index].name;
    case AclDenied::channel:
      return request.channels[verdict.index].name;
  }
  return {};
}

std::string noperm_text(const Verdict& verdict, const AclRequest& request,
                        const AclCatalog& catalog) {
  std::string text = "NOPERM this user has no permissions to ";
  if (verdict.denied == AclDenied::command) {
    return text + "run the '" + catalog.name_of(request.command) + "' command";
  }
  text +=
      verdict.denied == AclDenied::key ? "access one of the keys" : "access one of the channels";
  return text + " used as arguments";
}

}  // namespace semel::net
