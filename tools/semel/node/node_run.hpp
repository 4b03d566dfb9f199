// One node from its start to its end: settings, clock, storage, engine, users, sockets.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "net/config/namespaces.hpp"
#include "net/group/node_group.hpp"
#include "net/node/connection.hpp"
#include "net/node/node.hpp"
#include "net/server/server.hpp"
#include "net/settings/settings.hpp"
#include "net/time/test_clock.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"
#include "tools/semel/node/node_backup.hpp"
#include "tools/semel/node/node_certificates.hpp"
#include "tools/semel/node/node_console.hpp"
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
  /// Instead of run(): returns all errors that can be found without starting. Creates no file and
  /// opens no port. Each detail is a whole text for the user.
  [[nodiscard]] std::vector<Error> check();

 private:
  // The detail of each error is the whole text for the user.
  /// Everything before the first client. Quick checks come before the recovery, which may take
  /// minutes.
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status open_watch();
  [[nodiscard]] Status open_stores() { return open_engine(true); }
  [[nodiscard]] Status open_engine(bool with_storage);
  [[nodiscard]] const Clock& clock() const noexcept;
  /// Without a storage and a group.
  [[nodiscard]] Options engine_options() const;
  [[nodiscard]] Status open_node();
  [[nodiscard]] Status check_server_options();
  [[nodiscard]] Status recover();
  [[nodiscard]] Status open_namespaces();
  [[nodiscard]] Status declare_namespaces();
  /// In a group there are no namespaces of the configuration.
  [[nodiscard]] Status check_declared() const;
  [[nodiscard]] Status start_group();
  [[nodiscard]] Status open_server();
  [[nodiscard]] Status announce_ready();
  void set_hooks();
  void end_if_storage_failed();
  void end_if_group_failed();
  void follow_settings();
  void log_listeners(const net::ServerOptions& options);
  [[nodiscard]] Status check_databases() const;
  [[nodiscard]] Status check_protection(const net::ServerOptions& options, bool has_password) const;
  /// Whether a start would accept the present maxmemory.
  [[nodiscard]] Status check_memory();
  /// Whether a start would accept the output of CONFIG REWRITE, beyond the checks of CONFIG SET.
  [[nodiscard]] Status check_next_start() const;
  [[nodiscard]] Status listen_anew();
  void note_port();
  void note_maxclients();
  void log_memory();
  [[nodiscard]] Status write_ready();
  void log_scripts();
  void greet() const;
  /// Waits for a request to shut down.
  void wait_for_end();
  [[nodiscard]] Exit end();

  net::Settings& settings_;
  const std::string file_;
  const std::vector<net::DeclaredNamespace> declared_;
  // In the order of their dependencies.
  SystemClock system_clock_;
  NodeWatch watch_;
  std::unique_ptr<net::TestClock> test_clock_;  // null: the system's clock
  std::unique_ptr<NodeStorage> storage_;
  std::unique_ptr<Engine> own_engine_;  // null: the group's
  net::NodeGroup group_;
  Engine* engine_ = nullptr;
  std::size_t memory_bytes_max_ = 0;  // the largest limit that own_engine_ has addresses for
  Durability level_ = Durability::memory;
  std::unique_ptr<net::Node> node_;
  std::vector<std::unique_ptr<net::Batch>> batches_;  // one a thread
  net::ServerOptions server_options_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<NodeCertificates> certificates_;
  std::unique_ptr<NodeCertificates> group_certificates_;
  std::unique_ptr<NodeBackup> backup_;  // null: there is no storage
  std::unique_ptr<Ticker> ticker_;
  NodeConsole console_;
  unsigned ticks_ = 0;                       // of the ticker
  std::atomic<bool> storage_failed_{false};  // set by the ticker, before it asks for the end
  std::atomic<bool> group_ended_{false};     // as above
};

}  // namespace semel::tool
