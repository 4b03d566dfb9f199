// The group that a node belongs to, in a program or a service that embeds it:
//
//   net::NodeGroup group{settings};  // node-id, cluster-id, dir, peer, ..
//   group.open(options, report);     // its engine is the node's
//   net::Node node{group.engine(), settings};
//   group.start(node);               // then connections, and ticks of the node
//
// Built without replication (SEMEL_REPLICATION) every group is refused: bad_option.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/node/node.hpp"
#include "net/settings/settings.hpp"
#include "semel/engine.hpp"
#include "semel/options.hpp"
#include "semel/result.hpp"

namespace semel::net {

class NodeGroup {
 public:
  /// A line for the operator log.
  struct Event {
    std::string_view name;
    bool is_warning;
    std::uint64_t term;
    std::string text;
  };
  /// From any thread.
  using Report = std::function<void(const Event& event)>;

  /// `settings` must outlive this.
  explicit NodeGroup(const Settings& settings);
  ~NodeGroup();
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  /// Whether the settings make the node a member of one.
  [[nodiscard]] bool is_wanted() const { return settings_.integer(Setting::node_id) != 0; }
  /// Checks the settings as open() does before it reads the disk. The detail of an error is the
  /// whole text.
  [[nodiscard]] Status check() const;
  /// Initialises the directory of a founding member of a new group, once. The detail of an error is
  /// the whole text.
  [[nodiscard]] Status prepare();
  /// Reads the state on the disk. `options`: of the engine. The detail of an error is the whole
  /// text.
  [[nodiscard]] Status open(const Options& options, Report report);
  [[nodiscard]] bool is_open() const noexcept { return parts_ != nullptr; }
  [[nodiscard]] Engine& engine() noexcept;
  /// Joins the group. Before the node's first connection; `node` must outlive stop().
  [[nodiscard]] Status start(Node& node);
  /// Hands over the lead, so that another node leads at once, and not after an election timeout.
  /// Waits for that, 300 ms at most.
  void hand_over();
  void stop();
  struct Ending {
    std::string reason{};       ///< why it no longer takes part; empty: it does
    bool needs_reopen = false;  ///< only a new process can do that
  };
  [[nodiscard]] Ending ending() const;
  /// Whether the node is ready for work. The detail of an error is the reason.
  [[nodiscard]] Status ready() const;
  /// Its connections to other nodes have certificates.
  [[nodiscard]] bool uses_tls() const {
    return is_open() && !settings_.text(Setting::cluster_tls_cert_file).empty();
  }
  /// Reads them again, for new connections. After an error those before stay in use.
  [[nodiscard]] Status reload_tls();

 private:
  struct Parts;
  const Settings& settings_;
  std::unique_ptr<Parts> parts_;  // null: not open
};

}  // namespace semel::net
