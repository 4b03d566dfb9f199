// The storage of a node, where it was built with one.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "net/settings/settings.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"
#include "semel/storage.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

/// Must outlive the engine.
class NodeStorage {
 public:
  NodeStorage(const net::Settings& settings, const Clock& clock);
  ~NodeStorage();
  NodeStorage(const NodeStorage&) = delete;
  NodeStorage& operator=(const NodeStorage&) = delete;

  /// Whether the program has one at all.
  [[nodiscard]] static bool is_built() noexcept;
  /// Opens it and tells `options` of it. Returns what is wrong.
  [[nodiscard]] Failure open(Options& options);
  /// Puts back what it has; told in `report`. Without effect if it was not opened.
  [[nodiscard]] Failure recover(Engine& engine,
                                const std::function<void(const RecoveryProgress&)>& progress,
                                RecoveryReport& report);
  [[nodiscard]] bool is_open() const noexcept { return storage_ != nullptr; }
  /// How long a thread of its has been at one piece of work; 0 where it was not opened.
  [[nodiscard]] Millis busy_for() const noexcept;
  /// None: it was not opened. From any thread.
  [[nodiscard]] std::optional<StorageStats> stats() const;

 private:
  [[maybe_unused]] const net::Settings& settings_;
  [[maybe_unused]] const Clock& clock_;
  std::unique_ptr<Journal> storage_;
};

}  // namespace semel::tool
