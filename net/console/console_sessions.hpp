// The sessions of the console. The secret of a session is a random number of 256 bits. Only its
// digest is kept, so that neither a dump of memory nor the time of a comparison reveals it.
//
// Pure but for randomness; `now` is an argument. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/password.hpp"
#include "net/console/console_limits.hpp"
#include "semel/types.hpp"

namespace semel::net {

struct ConsoleSession {
  PasswordHash digest{};  ///< of its secret
  std::uint64_t id = 0;   ///< never given twice
  std::string csrf_token{};
  std::uint64_t client = 0;  ///< its connection to the node
  std::string user{};
  std::uint64_t user_id = 0;  ///< a later user of the same name has another id
  PasswordHash password{};    ///< of the login
  std::string address{};      ///< of the browser, or of the proxy
  Timestamp began{};
  Timestamp used{};
  bool needs_https = false;

  [[nodiscard]] Timestamp ends() const noexcept;
};

class ConsoleSessions {
 public:
  struct Opened {
    ConsoleSession* session = nullptr;
    std::string secret{};                 ///< for the cookie: 64 hexadecimal digits
    std::vector<ConsoleSession> ended{};  ///< because their time was over, or to make room
  };
  /// Opens a session with a new secret, also for a client that has shown one. None: sessions_max
  /// sessions are in use.
  [[nodiscard]] std::optional<Opened> open(ConsoleSession as, Timestamp now);
  /// The session of a cookie, and marks it as used now. Null: there is no such session, or it has
  /// ended. The pointer is valid until the next call that ends a session.
  [[nodiscard]] ConsoleSession* use(std::string_view secret, Timestamp now);
  /// The same without marking it: the automatic requests of a page must not keep a session alive.
  [[nodiscard]] ConsoleSession* find(std::string_view secret, Timestamp now) const;
  [[nodiscard]] ConsoleSession* find(std::uint64_t id) const noexcept;
  /// Ends the sessions for which `ends` returns true, and returns them.
  template <class Ends>
  std::vector<ConsoleSession> end_if(Ends&& ends) {
    const auto first = std::stable_partition(sessions_.begin(), sessions_.end(),
                                             [&](const auto& session) { return !ends(*session); });
    std::vector<ConsoleSession> ended;
    for (auto each = first; each != sessions_.end(); ++each) ended.push_back(std::move(**each));
    sessions_.erase(first, sessions_.end());
    return ended;
  }
  [[nodiscard]] std::size_t count() const noexcept { return sessions_.size(); }

 private:
  std::vector<std::unique_ptr<ConsoleSession>> sessions_;
  std::uint64_t next_id_ = 1;
};

/// 256 random bits as 64 hexadecimal digits.
[[nodiscard]] std::string random_secret();

}  // namespace semel::net
