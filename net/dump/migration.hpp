// MIGRATE: keys that go to another server, on a thread that serves no clients.
//
// A key is removed here only when the target has answered that it has the value, and while the key
// still holds that value; else it goes to the target again. So at every moment one side has the key
// at least; after an error both may.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/commands/services.hpp"
#include "net/session/peer_link.hpp"

namespace semel::net {

struct Migration {
  PeerAddress target{};
  std::int64_t target_db = 0;
  std::vector<std::string> login{};  ///< AUTH and its words; empty: none
  bool copies = false;               ///< the keys stay here
  bool replaces = false;             ///< keys of the target
  std::uint8_t db = 0;
  std::vector<std::string> keys{};
};

/// Carries it out. Returns the reply, in RESP. Blocks on the network. std::bad_alloc.
[[nodiscard]] std::string migrate(Services& services, const Migration& migration);

}  // namespace semel::net
