// A thread that is inside a node of a group: the node asks the group itself, for whole requests,
// and its handlers then read the replica.
#pragma once

#include "semel/engine.hpp"

namespace semel::engine {

/// While it exists, calls of this thread do not ask the CallLog of the replica's group: reads and
/// the clock are those of the replica, which may be stale, and changes are refused. Scopes may be
/// nested. Without effect on other engines, and for a null one. Progress: wait-free.
class OwnState {
 public:
  explicit OwnState(Engine* engine) noexcept;
  ~OwnState();
  OwnState(const OwnState&) = delete;
  OwnState& operator=(const OwnState&) = delete;

 private:
  Engine* const engine_;
  const bool before_;
};

}  // namespace semel::engine
