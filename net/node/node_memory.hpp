// The memory of a node, as its settings say: maxmemory, caches and their eviction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/events/keyspace_events.hpp"
#include "net/session/memory_guard.hpp"
#include "net/session/tracking.hpp"
#include "net/settings/memory_plan.hpp"
#include "net/settings/settings.hpp"
#include "semel/engine.hpp"

namespace semel::net {

class NodeMemory {
 public:
  /// All must outlive this. From here on CONFIG SET changes the engine's limits.
  NodeMemory(Engine& engine, Settings& settings, KeyspaceEvents& events, Tracking& tracking);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Lets the settings take effect with which the node starts. Errors: as of CONFIG SET.
  [[nodiscard]] Status open();

  MemoryGuard guard;

 private:
  [[nodiscard]] Status apply();
  [[nodiscard]] Status fit_arena(const MemoryPlan& plan);
  void note_evicted(std::uint8_t db, std::string_view key);

  Engine& engine_;
  Settings& settings_;
  KeyspaceEvents& events_;
  Tracking& tracking_;
  const std::size_t arena_bytes_;  // the engine's limit when the node began
};

}  // namespace semel::net
