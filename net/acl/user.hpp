// A user: passwords and rights. Built from rules, then shared and never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/acl/password.hpp"
#include "net/acl/rights.hpp"

namespace semel::net {

/// The channels that new rights have: the setting acl-pubsub-default.
enum class FirstChannels : std::uint8_t { all, none };

class User {
 public:
  /// Off, without passwords and rights. `id` distinguishes it from an earlier user of that name;
  /// `catalog` must live as long as this and its copies.
  /// `first`: of its own rights and of each selector.
  User(const AclCatalog& catalog, std::string name, std::uint64_t id,
       FirstChannels first = FirstChannels::none);

  /// The user that is there before any other: on, without a password, with all rights.
  [[nodiscard]] static User default_user(const AclCatalog& catalog, std::uint64_t id);

  /// One rule, as ACL SETUSER takes it; an empty one does nothing. Without effect where it has a
  /// fault. Words are as in redis-server 7.0.15, but what it could not read back from its aclfile
  /// is a syntax error: blanks in a first argument; in a selector quotes that are not closed, and
  /// words with quotes or with a parenthesis at the end. So is a NUL byte but in a password.
  [[nodiscard]] RuleResult apply(std::string_view rule);
  /// For the rights that rules make from now on.
  void set_first_channels(FirstChannels first) noexcept { first_ = first; }
  /// As the requirepass of a redis.conf does; empty: no password is needed.
  void set_only_password(std::string_view password);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] bool is_on() const noexcept { return on_; }
  /// Any password will do.
  [[nodiscard]] bool has_nopass() const noexcept { return nopass_; }
  [[nodiscard]] std::span<const PasswordHash> passwords() const noexcept { return passwords_; }
  [[nodiscard]] const Rights& rights() const noexcept { return root_; }
  [[nodiscard]] std::span<const Rights> selectors() const noexcept { return selectors_; }
  /// "on", "nopass", ..
  [[nodiscard]] std::vector<std::string_view> flags() const;
  /// What stands behind "user NAME " in LIST and in an aclfile.
  [[nodiscard]] std::string text(RuleForm form) const;

  /// True: check() says ok to everything. One load.
  [[nodiscard]] bool is_unlimited() const noexcept { return unlimited_; }
  /// Whether the rights, or those of one selector, allow all of the request. If none does, that
  /// which came furthest says why.
  [[nodiscard]] Verdict check(const AclRequest& request) const {
    return unlimited_ ? Verdict{} : check_all(request);
  }
  /// Whether a subscription to it may stay: the rights or any selector allow it, whatever they say
  /// of commands.
  [[nodiscard]] bool may_hear(const AclChannel& channel) const;

 private:
  enum class Sanitize : std::uint8_t { unset, yes, skip };

  [[nodiscard]] bool apply_word(std::string_view rule);
  [[nodiscard]] RuleResult add_password(std::string_view rule);
  [[nodiscard]] RuleResult remove_password(std::string_view rule);
  [[nodiscard]] RuleResult add_selector(std::string_view words);
  void forget_passwords(bool nopass);
  void reset();
  void give_first_channels(Rights& rights) const;
  [[nodiscard]] Verdict check_all(const AclRequest& request) const;

  std::string name_;
  std::uint64_t id_;
  bool on_ = false;
  bool nopass_ = false;
  bool unlimited_ = false;
  FirstChannels first_ = FirstChannels::none;
  Sanitize sanitize_ = Sanitize::unset;
  std::vector<PasswordHash> passwords_;
  Rights root_;
  std::vector<Rights> selectors_;
};

using SharedUser = std::shared_ptr<const User>;

}  // namespace semel::net
