// The group that a node belongs to, if the program is built with replication.
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

namespace semel::tool {

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

  explicit NodeGroup(const net::Settings& settings);
  ~NodeGroup();
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  /// Whether the settings make the node a member of one.
  [[nodiscard]] bool is_wanted() const;
  /// Checks the settings as open() does before it reads the disk. The detail of an error is the
  /// whole text.
  [[nodiscard]] Status check() const;
  /// Initialises the directory of a founding member of a new group, once. The detail of an error is
  /// the whole text.
  [[nodiscard]] Status prepare();
  /// Reads the state on the disk. `options`: of the engine. The detail of an error is the whole
  /// text.
  [[nodiscard]] Status open(const Options& options, Report report);
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] Engine& engine() noexcept;
  /// Joins the group. Before the node's first connection; `node` must outlive stop().
  [[nodiscard]] Status start(net::Node& node);
  /// Hands over the lead, so that another node leads at once, and not after an election timeout.
  /// Waits for that, 300 ms at most.
  void hand_over();
  void stop();
  /// The reason why it no longer takes part; empty: it does.
  [[nodiscard]] std::string failed() const;
  /// It has to be reopened, which only a new process can do.
  [[nodiscard]] bool needs_reopen() const;
  /// Whether the node is ready for work. The detail of an error is the reason.
  [[nodiscard]] Status ready() const;
  /// Its connections to other nodes have certificates.
  [[nodiscard]] bool uses_tls() const;
  /// Reads them again, for new connections. After an error those before stay in use.
  [[nodiscard]] Status reload_tls();

 private:
  class Inside;
  const net::Settings& settings_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace semel::tool
