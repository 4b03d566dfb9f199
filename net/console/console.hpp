// The console: a page on the admin port that shows the state of the node. An operator with a login
// can look up keys, and resolve or forget claims if the node was started with these actions.
//
//   GET  /console/                 the page, its script and style
//   GET  /console/api/status       figures that /metrics has too: no login
//   GET  /console/api/history      ?after=N: the samples of the last hour
//   GET  /console/api/namespaces   claims by namespace, minute by minute
//   GET  /console/api/session      the user of the session; does not keep the session alive
//   POST /console/api/login        {"user", "password"}
//   POST /console/api/logout
//   POST /console/api/key          {"namespace", "key"}: a claim and the decisions about it
//   POST /console/api/scan         {"cursor"}: a slice of the claims in flight, in doubt, poisoned
//   POST /console/api/keys         {"cursor", "namespace", "prefix", "owner", "state",
//                                  "left_min_ms", "left_max_ms", "age_min_ms"}: a page of keys
//   POST /console/api/decisions    {"cursor", "namespace"}: the newest decisions that a slice meets
//   POST /console/api/resolve      {"namespace", "key", "state", "epoch", "as", "result"}
//   POST /console/api/forget       {"namespace", "key", "state", "epoch"}
//
// Goals: only a login shows keys or changes anything; a session has the rights of its user, which
// the node checks for each command; an action changes only the record that the operator has seen;
// nothing blocks the thread of the admin port.
// Non-goals: TLS (a proxy has it, see `origins`), users of its own.
#pragma once

#include <functional>
#include <memory>

#include "net/admin/admin_route.hpp"
#include "net/admin/admin_thread.hpp"
#include "net/console/console_options.hpp"
#include "net/node/node.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"

namespace semel::net {

class ConsoleImpl;

/// The route of all paths of the console, which checks requests by itself (request_guard.hpp).
/// `respond` calls Console::respond() as long as there is a console.
[[nodiscard]] AdminRoute console_route(std::function<void(AdminRequest, AdminRespond)> respond);

class Console {
 public:
  /// Checks the options as a start does. Errors: bad_option, with the whole text.
  [[nodiscard]] static Status check(const ConsoleOptions& options);

  /// `node` and `clock` must outlive this. `thread` is the thread of the admin port, and calls the
  /// `sources`. `options` must have passed check().
  Console(Node& node, const Clock& clock, std::shared_ptr<AdminThread> thread,
          const ConsoleOptions& options, ConsoleSources sources);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // On the thread of the admin port.
  void respond(AdminRequest request, AdminRespond then);
  /// About once a second: takes samples, and ends sessions and waits whose time is over.
  void tick();

  /// Ends all sessions and answers waiting requests with an error. When it returns, the console
  /// uses and calls nothing of the node. From any thread.
  void close();

 private:
  std::shared_ptr<ConsoleImpl> impl_;
};

}  // namespace semel::net
