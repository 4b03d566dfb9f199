// The session of claims that end with their connection.
#pragma once

#include "net/session/client_state.hpp"
#include "semel/engine.hpp"

namespace semel::net {

/// The session of the connection, opened for its first bound claim.
[[nodiscard]] inline SessionId session_of(Engine& engine, ClientState& client) {
  if (client.session == 0) client.session = engine.open_session();
  return client.session;
}

}  // namespace semel::net
