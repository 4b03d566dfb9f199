// The state of the console; only for the sources of this room.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "net/admin/admin_route.hpp"
#include "net/admin/admin_thread.hpp"
#include "net/console/command_client.hpp"
#include "net/console/console_options.hpp"
#include "net/console/console_sessions.hpp"
#include "net/console/history.hpp"
#include "net/console/login_limit.hpp"
#include "net/console/request_guard.hpp"
#include "net/node/node.hpp"
#include "semel/clock.hpp"

namespace semel::net {

/// One request while it is answered.
struct ConsoleCall {
  AdminRequest request;
  GuardedRequest place;
  boost::json::object fields{};  ///< of the body of a POST
  AdminRespond respond;
};
using SharedCall = std::shared_ptr<ConsoleCall>;

/// Of the key that a call is about.
struct ConsoleKey {
  std::string space;
  std::string key;
  unsigned db = 0;

  [[nodiscard]] std::string table_key() const { return space + ":" + key; }
};

/// What an operator does to one claim, from the request to the response.
struct ConsoleAction {
  enum class Stage : std::uint8_t { check, change, done };

  SharedCall call;
  std::string user;
  std::string address;
  std::string_view name;  ///< resolve_done, resolve_released, forget
  ConsoleKey key{};
  std::string state{};  ///< that the operator has seen
  std::string epoch{};
  CommandClient::Command change{};
  Stage stage = Stage::check;
};

class ConsoleImpl : public std::enable_shared_from_this<ConsoleImpl> {
 public:
  ConsoleImpl(Node& node, const Clock& clock, std::shared_ptr<AdminThread> thread,
              const ConsoleOptions& options, ConsoleSources sources);

  void respond(AdminRequest request, AdminRespond then);
  void tick();
  void close();

 private:
  class Host;

  // console.cpp
  void answer(const SharedCall& call) SEMEL_REQUIRES(mutex_);
  void answer_post(const SharedCall& call) SEMEL_REQUIRES(mutex_);
  void answer_status(const SharedCall& call) SEMEL_REQUIRES(mutex_);
  void answer_history(const SharedCall& call) SEMEL_REQUIRES(mutex_);
  void answer_session(const SharedCall& call) SEMEL_REQUIRES(mutex_);
  void collect(std::uint64_t client);
  [[nodiscard]] std::shared_ptr<SessionHost> make_host(std::uint64_t client);
  void reap() SEMEL_REQUIRES(mutex_);

  // console_login.cpp
  void log_in(const SharedCall& call) SEMEL_REQUIRES(mutex_);
  void open_session(const SharedCall& call, std::uint64_t client, const std::string& user,
                    const PasswordHash& password) SEMEL_REQUIRES(mutex_);
  void log_out(const SharedCall& call, const ConsoleSession& session) SEMEL_REQUIRES(mutex_);
  [[nodiscard]] bool is_valid(const ConsoleSession& session) const SEMEL_REQUIRES(mutex_);
  [[nodiscard]] ConsoleSession* session_of(const ConsoleCall& call) const SEMEL_REQUIRES(mutex_);
  /// Of sessions that have ended: their connections go, and the log says why.
  void note_ended(std::string_view why, const std::vector<ConsoleSession>& ended)
      SEMEL_REQUIRES(mutex_);
  [[nodiscard]] std::string cookie_name(const ConsoleCall& call) const;
  [[nodiscard]] boost::json::object session_json(const ConsoleSession& session) const
      SEMEL_REQUIRES(mutex_);

  // console_calls.cpp
  void look_up(const SharedCall& call, const ConsoleSession& session) SEMEL_REQUIRES(mutex_);
  void scan(const SharedCall& call, const ConsoleSession& session) SEMEL_REQUIRES(mutex_);
  /// False: an error has been sent.
  [[nodiscard]] bool read_key(const ConsoleCall& call, ConsoleKey& key) SEMEL_REQUIRES(mutex_);
  void run(const SharedCall& call, const ConsoleSession& session, CommandClient::Commands commands,
           CommandClient::Step step) SEMEL_REQUIRES(mutex_);

  // console_actions.cpp
  void act(const SharedCall& call, const ConsoleSession& session, bool forgets)
      SEMEL_REQUIRES(mutex_);
  [[nodiscard]] bool read_action(ConsoleAction& action, bool forgets) SEMEL_REQUIRES(mutex_);
  [[nodiscard]] bool may_act() SEMEL_REQUIRES(mutex_);
  CommandClient::Commands continue_action(ConsoleAction& action, const std::vector<Reply>& replies)
      SEMEL_REQUIRES(mutex_);
  void end_action(ConsoleAction& action, std::string_view outcome, AdminResponse response)
      SEMEL_REQUIRES(mutex_);
  void end_action(ConsoleAction& action, const Reply& error) SEMEL_REQUIRES(mutex_);

  /// Where the leader serves clients; empty: not known.
  [[nodiscard]] std::string leader() const;

  Node& node_;
  const Clock& clock_;
  const std::shared_ptr<AdminThread> thread_;
  const bool has_actions_;
  const RequestGuard guard_;
  const ConsoleSources sources_;

  // Held by the admin port's thread while it works, and by close().
  base::Mutex mutex_;
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
  std::map<std::uint64_t, std::unique_ptr<CommandClient>> clients_ SEMEL_GUARDED_BY(mutex_);
  /// Sessions have ended that use them. A client may be at work further up the stack.
  std::vector<std::uint64_t> unused_clients_ SEMEL_GUARDED_BY(mutex_);
  std::uint64_t next_client_ SEMEL_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, AdminRespond> responses_ SEMEL_GUARDED_BY(mutex_);  // not sent yet
  std::uint64_t next_response_ SEMEL_GUARDED_BY(mutex_) = 1;
  ConsoleSessions sessions_ SEMEL_GUARDED_BY(mutex_);
  LoginLimit logins_ SEMEL_GUARDED_BY(mutex_);
  ConsoleHistory history_ SEMEL_GUARDED_BY(mutex_);
  Timestamp action_second_ SEMEL_GUARDED_BY(mutex_){};
  std::size_t actions_ SEMEL_GUARDED_BY(mutex_) = 0;  // in that second
};

/// A text of the body; `fallback` if it is not there. None: it is no text.
[[nodiscard]] std::optional<std::string_view> text_field(const ConsoleCall& call,
                                                         std::string_view name,
                                                         std::string_view fallback = {});

}  // namespace semel::net
