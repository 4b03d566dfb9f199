// One node from its start to its end: settings, clock, storage, engine, users, sockets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/config/namespaces.hpp"
#include "net/node/connection.hpp"
#include "net/node/node.hpp"
#include "net/server/server.hpp"
#include "net/settings/settings.hpp"
#include "net/time/test_clock.hpp"
#include "semel/engine.hpp"
#include "tools/semel/node/node_certificates.hpp"
#include "tools/semel/node/node_storage.hpp"
#include "tools/semel/node/node_ticker.hpp"
#include "tools/semel/node/node_watch.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class NodeRun {
 public:
  /// `file`: of the settings, for CONFIG REWRITE; empty: there is none. `declared`: namespaces of
  /// it.
  NodeRun(net::Settings& settings, std::string file, std::vector<net::DeclaredNamespace> declared);
  ~NodeRun();
  NodeRun(const NodeRun&) = delete;
  NodeRun& operator=(const NodeRun&) = delete;

  /// Returns when the node has ended.
  [[nodiscard]] Exit run();
  /// Instead of run(): everything that it would refuse, as far as that can be said without
  /// starting. Makes no file and listens on nothing.
  [[nodiscard]] std::vector<Failure> check();

 private:
  // Each returns what is wrong.
  /// Everything before the first client. What can be found wrong at once is found before a
  /// recovery that may take minutes.
  [[nodiscard]] Failure prepare();
  [[nodiscard]] Failure open_watch();
  [[nodiscard]] Failure open_stores() { return open_engine(true); }
  [[nodiscard]] Failure open_engine(bool with_storage);
  [[nodiscard]] Failure open_node();
  [[nodiscard]] Failure check_doors();
  [[nodiscard]] Failure recover();
  [[nodiscard]] Failure open_namespaces();
  [[nodiscard]] Failure declare_namespaces();
  [[nodiscard]] Failure open_server();
  [[nodiscard]] Failure tell_ready();
  void set_hooks();
  void follow_settings();
  void log_doors();
  void log_scripts();
  void greet() const;
  /// Until somebody says that it is enough.
  void wait_for_end();
  [[nodiscard]] Exit end();

  net::Settings& settings_;
  const std::string file_;
  const std::vector<net::DeclaredNamespace> declared_;
  // In the order in which they need each other.
  SystemClock system_clock_;
  NodeWatch watch_;
  std::unique_ptr<net::TestClock> test_clock_;  // null: time is nobody's
  std::unique_ptr<NodeStorage> storage_;
  std::unique_ptr<Engine> engine_;
  Durability level_ = Durability::memory;
  std::unique_ptr<net::Node> node_;
  std::vector<std::unique_ptr<net::Batch>> batches_;  // one a thread
  net::ServerOptions doors_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<NodeCertificates> certificates_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace semel::tool
