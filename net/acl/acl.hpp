// The users of a node, and what their connections may do.
//
// A user is immutable once it is shared; a change replaces it with a new one and raises a
// generation number. A connection keeps the user it logged in as and that number, so that while
// nothing changes a command costs one load and, with all rights, one branch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "net/acl/catalog.hpp"
#include "net/acl/denial_log.hpp"
#include "net/acl/user.hpp"
#include "semel/result.hpp"

namespace semel::net {

class Acl;

/// The user of a connection. Used by one thread at a time; the Acl must live as long.
class AclSession {
 public:
  [[nodiscard]] const User& user() const noexcept { return *user_; }
  /// A command other than those that are for all gets "NOAUTH Authentication required.".
  [[nodiscard]] bool needs_auth() const noexcept {
    return !authenticated_ && !(user_->is_on() && user_->has_nopass() && !guarded_);
  }
  /// From now on only a login with a password counts: for a client of another machine under
  /// protected-mode.
  void guard() noexcept {
    guarded_ = true;
    authenticated_ = logged_in_;
  }
  [[nodiscard]] bool is_guarded() const noexcept { return guarded_; }

 private:
  friend class Acl;
  SharedUser user_;
  std::uint64_t seen_ = 0;  ///< the generation of the users when user_ was looked up
  bool authenticated_ = false;
  bool logged_in_ = false;  ///< by a password, or by a certificate
  bool guarded_ = false;
};

/// What became of a session's user since it was looked at last.
enum class AclChange : std::uint8_t {
  none,
  rights,  ///< another set of rules; subscriptions may have to end
  gone,    ///< deleted: the connection is to be closed
};

class Acl {
  // Concurrency of `generation_`
  //   states   counts changes of `users_`.
  //   writers  threads that change a user, under the mutex.  readers  any thread.
  //   [acl.generation]  release store in changed  pairs with  acquire load in refresh.
  //   stale    a command under way may still be checked against the rights before a change. A
  //            command that is sent after the reply of ACL SETUSER is checked against the rights
  //            after it. The users themselves are read under the mutex.
 public:
  /// With the user `default` alone, which has all rights and needs no password. Copies `commands`;
  /// rights cover exactly these.
  explicit Acl(std::span<const AclCommand> commands);

  [[nodiscard]] const AclCatalog& catalog() const noexcept { return catalog_; }
  [[nodiscard]] DenialLog& log() noexcept { return log_; }

  /// As a connection begins, and after RESET: the user `default`, logged in if that one needs no
  /// password.
  [[nodiscard]] AclSession open_session() const;
  /// Of what the node does itself: with all rights, whatever the users' are.
  [[nodiscard]] AclSession open_internal() const;
  /// The same after `before`, which stays guarded.
  [[nodiscard]] AclSession open_session(const AclSession& before) const;
  /// Before each command. Progress: one load; after a change of any user, once, a mutex.
  [[nodiscard]] AclChange refresh(AclSession& session) const {
    // mo: acquire [acl.generation]: a command after this load sees everything before the last
    // change.
    const std::uint64_t now = generation_.load(std::memory_order_acquire);
    return now == session.seen_ ? AclChange::none : renew(session);
  }
  /// Grows with each change of a user.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return generation_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic, not an order
  }
  /// False: no such user, it is off, or another password; which of them takes the same work but for
  /// the search of the name. The session is then as before.
  [[nodiscard]] bool log_in(AclSession& session, std::string_view name,
                            std::string_view password) const;
  /// The same for a client that its certificate names. False: no such user, or it is off.
  [[nodiscard]] bool log_in_by_certificate(AclSession& session, std::string_view name) const;
  [[nodiscard]] SharedUser authenticate(std::string_view name, std::string_view password) const;

  /// Makes it the only password of the user `default`; empty: none is needed.
  void set_requirepass(std::string_view password);
  /// Of users, selectors and resets from now on; users that are there stay as they are.
  void set_first_channels(FirstChannels first);
  /// Creates the user or changes it, by all rules or none. The detail of an error is the whole
  /// reply, here and below.
  [[nodiscard]] Status set_user(std::string_view name, std::span<const std::string_view> rules);
  /// Returns how many were deleted; unknown names are skipped. On an error none was deleted.
  [[nodiscard]] Result<std::size_t> delete_users(std::span<const std::string_view> names);

  /// Null: there is none.
  [[nodiscard]] SharedUser find(std::string_view name) const;
  /// By name.
  [[nodiscard]] std::vector<SharedUser> users() const;
  /// "user NAME on nopass ~* &* +@all", by name.
  [[nodiscard]] std::vector<std::string> list() const;
  [[nodiscard]] std::vector<std::string_view> commands_in(std::size_t category) const;

  /// Puts the users of an aclfile in the place of all that are there, or none of them: the error
  /// then has the number of each bad line. `default` is as new if the file has no line for it.
  /// Connections of users that are still there go on with the new rights (redis-server 7.0 closes
  /// them), the others are to be closed.
  [[nodiscard]] Status load_file(std::string_view text, std::string_view file_name);
  /// What load_file() makes the same users of.
  [[nodiscard]] std::string file_text() const;

 private:
  using Users = std::map<std::string, SharedUser, std::less<>>;
  class FileReader;

  [[nodiscard]] AclChange renew(AclSession& session) const;
  [[nodiscard]] SharedUser find_locked(std::string_view name) const SEMEL_REQUIRES(mutex_);
  void changed() SEMEL_REQUIRES(mutex_);

  const AclCatalog catalog_;
  DenialLog log_;
  mutable base::Mutex mutex_;
  Users users_ SEMEL_GUARDED_BY(mutex_);
  FirstChannels first_channels_ SEMEL_GUARDED_BY(mutex_) = FirstChannels::none;
  std::uint64_t next_id_ SEMEL_GUARDED_BY(mutex_) = 1;
  std::atomic<std::uint64_t> generation_{1};
};

/// The whole name of the command, the key or the channel that was refused.
[[nodiscard]] std::string_view object_of(const Verdict& verdict, const AclRequest& request,
                                         const AclCatalog& catalog);
/// "NOPERM this user has no permissions .."
[[nodiscard]] std::string noperm_text(const Verdict& verdict, const AclRequest& request,
                                      const AclCatalog& catalog);

}  // namespace semel::net
