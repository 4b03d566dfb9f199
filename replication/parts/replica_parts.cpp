#include "replication/parts/replica_parts.hpp"

#include "replication/parts/forwarder.hpp"
#include "replication/parts/proposer.hpp"

namespace semel::replication {

void ReplicaParts::check_invariants() const noexcept {
  proposals.check_invariants();
  forwarder->check_invariants();
  proposer->check_invariants();
  reads.check_invariants();
}

}  // namespace semel::replication
