// What a core is made with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "replication/core/types.hpp"
#include "semel/types.hpp"

namespace semel::replication {

/// What protects against defects of the library. Off only in the simulator, which then must find a
/// fault.
struct Guards {
  bool splits_configurations = true;  ///< a configuration is the first entry of its message
  bool drops_stale_rejections = true;
  bool shows_real_term = true;     ///< in a refused pre-vote
  bool trims_compacted = true;     ///< entries that the own snapshot has
  bool waits_for_catch_up = true;  ///< before a promotion, a demotion and a removal
  bool bounds_uncommitted = true;
  bool gives_lease_up = true;     ///< for the term in which TimeoutNow was sent
  bool sits_out = true;           ///< a restarted voter, for one election timeout
  bool holds_timeout_now = true;  ///< until everything is on its receiver's disk
  bool keeps_members = true;      ///< that are committed, where the change after them is dropped
};

struct ConsensusOptions {
  NodeId id = 0;
  std::string address;
  Millis election{500};  ///< a follower that hears nothing for one to two of them is a candidate
  Millis heartbeat{50};
  std::size_t uncommitted_max = 64;           ///< entries
  std::size_t message_bytes_max = 256 << 10;  ///< of entries' data, unless one entry has more
  std::size_t apply_entries_max =
      64;  ///< applied per event; bounds how long the loop does not respond
  std::size_t apply_bytes_max = 256 << 10;  ///< of their data, unless one entry has more
  std::uint32_t seed = 1;                   ///< of election timeouts
  Guards guards{};
};

}  // namespace semel::replication
