// The group that a node belongs to, where the program was built with replication.
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
  /// A line for the log.
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

  /// Whether the settings say that the node belongs to one.
  [[nodiscard]] bool is_wanted() const;
  /// What open() refuses before it reads the disk. The detail of an error is the whole text.
  [[nodiscard]] Status check() const;
  /// Makes the directory that of a first member of a new group, once. The detail of an error is the
  /// whole text.
  [[nodiscard]] Status prepare();
  /// Reads what is on the disk. `options`: of the engine. The detail of an error is the whole text.
  [[nodiscard]] Status open(const Options& options, Report report);
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] Engine& engine() noexcept;
  /// Takes part. Before the node's first connection; `node` must outlive stop().
  [[nodiscard]] Status start(net::Node& node);
  /// If it leads, another node does so at once, and not after an election timeout. Waits for that,
  /// 300 ms at most.
  void hand_over();
  void stop();
  /// Why it takes part no longer; empty: it does.
  [[nodiscard]] std::string failed() const;
  /// It has to be opened anew, which only a new process can.
  [[nodiscard]] bool needs_reopen() const;
  /// Whether it is worth sending work to. The detail of an error says why not.
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
