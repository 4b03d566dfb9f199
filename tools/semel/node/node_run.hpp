// One node from its start to its end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/config/namespaces.hpp"
#include "net/follow/follower.hpp"
#include "net/node/node.hpp"
#include "net/node/ticker.hpp"
#include "net/settings/settings.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"
#include "tools/semel/node/node_backup.hpp"
#include "tools/semel/node/node_certificates.hpp"
#include "tools/semel/node/node_console.hpp"
#include "tools/semel/node/node_engine.hpp"
#include "tools/semel/node/node_failures.hpp"
#include "tools/semel/node/node_peers.hpp"
#include "tools/semel/node/node_ports.hpp"
#include "tools/semel/node/node_watch.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class NodeRun {
 public:
  /// `file` and `redis_conf`: of the settings; CONFIG REWRITE changes the first that there is;
  /// empty: there is none. `declared`: namespaces of `file`.
  NodeRun(net::Settings& settings, std::string file, std::string redis_conf,
          std::vector<net::DeclaredNamespace> declared);
  ~NodeRun();
  NodeRun(const NodeRun&) = delete;
  NodeRun& operator=(const NodeRun&) = delete;

  /// Returns when the node has ended.
  [[nodiscard]] Exit run();

 private:
  // The detail of each error is the whole text for the user.
  /// Everything before the first client. Quick checks come before the recovery, which may take
  /// minutes.
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status open_watch();
  [[nodiscard]] Status open_node();
  void set_hooks();
  void set_backup_hooks();
  /// Before the first client, and after everything that its thread uses.
  [[nodiscard]] Status start_group();
  [[nodiscard]] Status open_ports();
  void follow_settings();
  [[nodiscard]] Status announce_ready();
  [[nodiscard]] Status serving();
  void log_scripts();
  /// Waits for a request to shut down.
  void wait_for_end();
  [[nodiscard]] Exit end();

  net::Settings& settings_;
  const std::string file_;
  const std::string redis_conf_;
  const std::vector<net::DeclaredNamespace> declared_;
  // In the order of their dependencies.
  SystemClock system_clock_;
  NodeWatch watch_;
  NodeEngine engine_;
  std::unique_ptr<net::Node> node_;
  NodePeers peers_;
  std::unique_ptr<net::Follower> follower_;  // null: the node is of a group
  std::unique_ptr<NodePorts> ports_;
  std::unique_ptr<NodeCertificates> certificates_;
  std::unique_ptr<NodeCertificates> group_certificates_;
  std::unique_ptr<NodeBackup> backup_;  // null: there is no storage
  std::optional<NodeFailures> failures_;
  std::unique_ptr<net::Ticker> ticker_;
  NodeConsole console_;
};

/// Instead of a run: all errors that can be found without starting. Creates no file and opens no
/// port. Each detail is a whole text for the user.
[[nodiscard]] std::vector<Error> check_node(net::Settings& settings, const std::string& file,
                                            const std::vector<net::DeclaredNamespace>& declared);

}  // namespace semel::tool
