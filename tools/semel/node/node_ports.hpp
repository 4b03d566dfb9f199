// The ports on which a node serves clients, and the settings that change them while it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "net/node/connection.hpp"
#include "net/node/node.hpp"
#include "net/server/server.hpp"
#include "net/settings/settings.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/node/node_watch.hpp"

namespace semel::tool {

class NodePorts {
 public:
  /// All must outlive this. `level`: what a client's answer waits for. `is_fixed`: addresses do not
  /// change, because the other nodes of a group know them.
  struct Terms {
    net::Settings& settings;
    NodeWatch& watch;
    net::Node& node;
    Durability level = Durability::memory;
    bool is_fixed = false;
  };
  explicit NodePorts(const Terms& terms);

  /// Whether the settings allow a start. The detail of an error is the whole text for the user.
  [[nodiscard]] Status check() const;
  /// Whether a start would accept the output of CONFIG REWRITE, beyond the checks of CONFIG SET.
  /// The detail of an error is for a client.
  [[nodiscard]] Status check_next_start() const;
  /// Serves clients until the end of this, and follows the settings. check() has succeeded.
  [[nodiscard]] Status open();
  /// The node is ready: logs the addresses, and writes the ready file.
  void log_addresses() const { log_listeners(options_); }
  [[nodiscard]] Status write_ready() const;
  /// The node ends: removes the ready file, if it is still this process' own.
  void remove_ready() const;
  /// Where a client connects, for a person.
  void greet() const;

  [[nodiscard]] const net::ServerOptions& options() const noexcept { return options_; }
  /// Only after open() has succeeded.
  [[nodiscard]] net::Server& server() const noexcept {
    SEMEL_ASSERT(server_ != nullptr);
    return *server_;
  }

 private:
  [[nodiscard]] net::ServerHooks hooks();
  [[nodiscard]] Status check_protection(const net::ServerOptions& options, bool has_password) const;
  void follow_settings();
  [[nodiscard]] Status listen_anew();
  void note_port();
  void note_maxclients();
  [[nodiscard]] std::string ready_text() const;
  void log_listeners(const net::ServerOptions& options) const;

  net::Settings& settings_;
  NodeWatch& watch_;
  net::Node& node_;
  const Durability level_;
  const bool is_fixed_;
  const net::ServerOptions options_;                  // of the start
  std::vector<std::unique_ptr<net::Batch>> batches_;  // one a thread
  std::unique_ptr<net::Server> server_;               // its threads use everything else
};

}  // namespace semel::tool
