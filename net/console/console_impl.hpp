// The state of the console; only for the sources of this room.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "net/admin/admin_route.hpp"
#include "net/admin/admin_thread.hpp"
#include "net/console/command_client.hpp"
#include "net/console/console_action.hpp"
#include "net/console/console_call.hpp"
#include "net/console/console_clients.hpp"
#include "net/console/console_options.hpp"
#include "net/console/console_sessions.hpp"
#include "net/console/history.hpp"
#include "net/console/login_limit.hpp"
#include "net/console/request_guard.hpp"
#include "net/node/node.hpp"
#include "semel/clock.hpp"

namespace semel::net {

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
  /// Closes the connections of ended sessions, and logs the reason.
  void note_ended(std::string_view why, const std::vector<ConsoleSession>& ended)
      SEMEL_REQUIRES(mutex_);
  [[nodiscard]] std::string cookie_name(const ConsoleCall& call) const;
  [[nodiscard]] boost::json::object session_json(const ConsoleSession& session) const
      SEMEL_REQUIRES(mutex_);

  // console_calls.cpp
  void look_up(const SharedCall& call, const ConsoleSession& session) SEMEL_REQUIRES(mutex_);
  /// Responds with a slice of all claims. False: the path of the call is another one.
  [[nodiscard]] bool answer_slice(const SharedCall& call, const ConsoleSession& session)
      SEMEL_REQUIRES(mutex_);
  void run(const SharedCall& call, const ConsoleSession& session, CommandClient::Commands commands,
           CommandClient::Step step) SEMEL_REQUIRES(mutex_);
  void act(const SharedCall& call, const ConsoleSession& session, ConsoleAction::Kind kind)
      SEMEL_REQUIRES(mutex_);

  Node& node_;
  const Clock& clock_;
  const std::shared_ptr<AdminThread> thread_;
  const bool has_actions_;
  const RequestGuard guard_;
  const ConsoleSources sources_;

  // Held by the admin port's thread while it works, and by close().
  base::Mutex mutex_;
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
  ConsoleClients clients_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, AdminRespond> responses_ SEMEL_GUARDED_BY(mutex_);  // not sent yet
  std::uint64_t next_response_ SEMEL_GUARDED_BY(mutex_) = 1;
  ConsoleSessions sessions_ SEMEL_GUARDED_BY(mutex_);
  LoginLimit logins_ SEMEL_GUARDED_BY(mutex_);
  ConsoleHistory history_ SEMEL_GUARDED_BY(mutex_);
  ActionLimit actions_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
