// How a proposal or a read is answered, and how long it may be tried.
#pragma once

#include <functional>

#include "replication/state/answer.hpp"
#include "semel/types.hpp"

namespace semel::replication {

/// Called once: on the replica's thread, where it must be quick and must not wait, or at once on
/// the caller's. Errors: not_leader and log_busy: nothing was changed; outcome_unknown: it may be
/// applied later; closing.
using ProposalDone = std::function<void(Result<Answer>)>;

/// How a proposal, or a read, is treated while there is no leader or leaders change.
struct ProposalTerms {
  /// A second decision is as good as the first: it is proposed anew also where its answer could not
  /// be kept, or the group has forgotten this node. Otherwise that is outcome_unknown.
  bool repeats = false;
  Millis patience{0};     ///< how long it may wait for a leader, and be asked again
  bool forwards = false;  ///< to the leader, also where ReplicaOptions::forwards says no
  /// Once its outcome is unknown it is asked again, by whatever way, for at least this long: by its
  /// number it is decided once.
  Millis asks_again{0};
  /// False: the group need not know whether it comes a second time (`repeats`), however much later.
  bool is_numbered = true;
};

}  // namespace semel::replication
