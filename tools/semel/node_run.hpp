// One node from its start to its end: settings, clock, storage, engine, users, sockets.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/config/settings.hpp"
#include "net/connection.hpp"
#include "net/node.hpp"
#include "net/server/server.hpp"
#include "net/test_clock.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"
#include "tools/semel/exit_code.hpp"

namespace semel::tool {

/// Lets time pass for a node: what has ended is removed and told, waits with a deadline are ended.
class Ticker {
 public:
  Ticker(Engine& engine, net::Node& node);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void run();

  Engine& engine_;
  net::Node& node_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;  // under mutex_
  std::thread thread_;
};

class NodeRun {
 public:
  /// `file`: of the settings, for CONFIG REWRITE; empty: there is none.
  NodeRun(net::Settings& settings, std::string file);
  ~NodeRun();
  NodeRun(const NodeRun&) = delete;
  NodeRun& operator=(const NodeRun&) = delete;

  /// Returns when the node has ended.
  [[nodiscard]] Exit run();

 private:
  // Each returns what is wrong; empty: nothing.
  [[nodiscard]] std::string open_engine();
  [[nodiscard]] std::string open_node();
  [[nodiscard]] std::string open_server();
  void follow_settings();
  void greet() const;
  /// Until somebody says that it is enough.
  void wait_for_end();
  [[nodiscard]] net::ServerOptions server_options() const;
  [[nodiscard]] net::LinkLimits link_limits() const;
  [[nodiscard]] net::TlsFiles tls_files() const;

  net::Settings& settings_;
  const std::string file_;
  // In the order in which they need each other.
  SystemClock system_clock_;
  std::unique_ptr<net::TestClock> test_clock_;  // null: time is nobody's
  std::unique_ptr<Journal> storage_;
  std::unique_ptr<Engine> engine_;
  Durability level_ = Durability::memory;
  std::unique_ptr<net::Node> node_;
  std::vector<std::unique_ptr<net::Batch>> batches_;  // one a thread
  std::unique_ptr<Ticker> ticker_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace semel::tool
