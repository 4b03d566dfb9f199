// The console of a node, on the admin port: from the settings to its end.
#pragma once

#include <memory>

#include "net/console/console.hpp"
#include "net/node/connection.hpp"
#include "net/settings/settings.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"
#include "tools/semel/node/node_watch.hpp"

namespace semel::tool {

class NodeConsole {
 public:
  /// Whether the settings are valid. The detail of an error is its whole text.
  [[nodiscard]] static Status check(const net::Settings& settings);

  /// All arguments must outlive this. `clock`: the system's, even if clients change the node's.
  NodeConsole(const net::Settings& settings, NodeWatch& watch, const Clock& clock)
      : settings_(settings), watch_(watch), clock_(clock) {}
  ~NodeConsole() { end(); }
  NodeConsole(const NodeConsole&) = delete;
  NodeConsole& operator=(const NodeConsole&) = delete;

  /// Serves the console, if the settings enable it. `node` must live until end(); its sessions are
  /// connections of `level`.
  void serve(net::Node& node, Durability level);
  /// Ends all sessions. After it the console uses nothing of the node.
  void end();

 private:
  void log(const net::ConsoleEvent& event);

  const net::Settings& settings_;
  NodeWatch& watch_;
  const Clock& clock_;
  std::unique_ptr<net::Batch> batch_;  // of the admin port's thread
  std::shared_ptr<net::Console> console_;
};

}  // namespace semel::tool
