// One command on the engine. Called by the state machine, within the scope of an entry.
#pragma once

#include "replication/state/answer.hpp"
#include "replication/state/command.hpp"
#include "semel/engine.hpp"

namespace semel::replication {

/// Carries out what clients of a node have asked (net/ has one). On every replica alike.
class RequestRunner {
 public:
  virtual ~RequestRunner() = default;
  /// Whether run() knows the words. One that does not would stop the replica. Any thread.
  [[nodiscard]] virtual bool knows(const RequestCommand& command) const noexcept = 0;
  /// Within the scope of an entry. `text` of the answer has the replies; an error is one of this
  /// replica alone (local_error). std::bad_alloc.
  [[nodiscard]] virtual PlainAnswer run(const RequestCommand& command) = 0;
  /// Which libraries of functions there are has changed so: restore_and_flush with all of them
  /// before the first entry, and then within the scope of an entry. An error is one of this replica
  /// alone, which then stops: storage_newer (here the change is refused). std::bad_alloc.
  [[nodiscard]] virtual Status libraries_changed(const LibraryChange& /*change*/) { return Done{}; }
};

/// `runner`: null if there are no requests of clients; one that comes is refused, and the replica
/// stops: others can run it. std::bad_alloc.
[[nodiscard]] Answer apply(Engine& engine, const Command& command, RequestRunner* runner);

}  // namespace semel::replication
