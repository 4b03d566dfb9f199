// Ends the claims bound to a connection, at a single node or in a group.
#pragma once

#include <utility>

#include "net/cluster/group.hpp"
#include "net/commands/services.hpp"
#include "net/session/client_state.hpp"
#include "semel/engine.hpp"

namespace semel::net {

/// At the end of the connection and at RESET: bound claims may be taken over at once.
inline void end_session(Services& services, ClientState& client) {
  const SessionId session = std::exchange(client.session, 0);
  if (session == 0) return;
  if (services.group != nullptr) return services.group->close_session(session);
  services.engine.close_session(session);
}

}  // namespace semel::net
