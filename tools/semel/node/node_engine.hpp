// The engine of a node and what keeps it: its clock, a storage or a group, and its namespaces.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "net/config/namespaces.hpp"
#include "net/group/node_group.hpp"
#include "net/settings/settings.hpp"
#include "net/time/held_clock.hpp"
#include "net/time/test_clock.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"
#include "tools/semel/node/node_storage.hpp"
#include "tools/semel/node/node_watch.hpp"

namespace semel::tool {

/// The detail of each error is the whole text for the user, except where it says otherwise.
class NodeEngine {
 public:
  /// All arguments must outlive this. `file`: of the settings, or empty.
  NodeEngine(const net::Settings& settings, const std::string& file, const Clock& system_clock);

  /// Opens the storage or the group that the settings name, and the engine.
  [[nodiscard]] Status open(net::Log& log);
  /// Opens an engine without them, so that nothing on the disk is read or written.
  [[nodiscard]] Status open_alone();
  [[nodiscard]] bool is_open() const noexcept { return engine_ != nullptr; }

  /// Restores what the storage has, if there is one.
  [[nodiscard]] Status recover(NodeWatch& watch);
  /// Declares the namespaces of the configuration. They override declarations from before a
  /// restart.
  [[nodiscard]] Status declare(const std::vector<net::DeclaredNamespace>& declared,
                               NodeWatch& watch);
  /// In a group there are no namespaces of the configuration.
  [[nodiscard]] Status check_declared(const std::vector<net::DeclaredNamespace>& declared) const;
  /// Whether a start would accept the present maxmemory. Errors: bad_option; the detail is for a
  /// client.
  [[nodiscard]] Status check_memory() const;

  // Only after one of the open() has succeeded.
  [[nodiscard]] Engine& engine() noexcept {
    SEMEL_ASSERT(engine_ != nullptr);
    return *engine_;
  }
  [[nodiscard]] NodeStorage& storage() noexcept {
    SEMEL_ASSERT(storage_ != nullptr);
    return *storage_;
  }
  [[nodiscard]] net::TestClock* test_clock() noexcept { return test_clock_.get(); }
  /// What a client's answer waits for.
  [[nodiscard]] Durability level() const noexcept { return level_; }

  [[nodiscard]] net::NodeGroup& group() noexcept { return group_; }

 private:
  void prepare();
  [[nodiscard]] const Clock& clock() const noexcept;
  /// Without a storage and a group.
  [[nodiscard]] Options options() const;
  [[nodiscard]] Status open_own(Options options);
  [[nodiscard]] Status check_databases() const;
  [[nodiscard]] Status import_namespaces();

  const net::Settings& settings_;
  const std::string& file_;
  const Clock& system_clock_;
  // In the order of their dependencies.
  std::unique_ptr<net::TestClock> test_clock_;  // null: the system's clock
  std::optional<net::HeldClock> held_clock_;    // above either; none: not prepared
  std::unique_ptr<NodeStorage> storage_;
  std::unique_ptr<Engine> own_engine_;  // null: the group's
  net::NodeGroup group_;
  Engine* engine_ = nullptr;          // own_engine_ or that of group_; null: not open
  std::size_t memory_bytes_max_ = 0;  // the largest limit that own_engine_ has addresses for
  Durability level_ = Durability::memory;
};

}  // namespace semel::tool
