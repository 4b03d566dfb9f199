// The options of the console, and the functions that the program around it provides.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "net/admin/metrics.hpp"
#include "net/server/session.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct ConsoleOptions {
  bool actions = false;  ///< allow resolve and forget
  /// The origins under which a proxy serves the page, see check_console_origin(); at most
  /// origins_max.
  std::vector<std::string> origins{};
};

/// A login, its end, or an action, for the log. Views are valid during the call.
struct ConsoleEvent {
  std::string_view name{};  ///< console_login, console_logout, console_action
  std::string_view user{};
  std::string_view address{};
  std::string_view action{};  ///< resolve_done, resolve_released, forget; or why a session ended
  std::string_view space{};
  std::string_view key{};
  std::string_view outcome{};
};

struct ConsoleSources {
  std::function<void(MetricValues&)> values{};
  std::function<Status()> ready{};
  /// A connection of the node for one session.
  MakeSession make_session{};
  std::function<void(const ConsoleEvent&)> log{};
};

}  // namespace semel::net
