#include "replication/parts/group_reads.hpp"

namespace semel::replication {

void GroupReads::ask_waiting() {
  Reads& reads = parts_.reads;
  ConsensusCore& core = parts_.core;
  if (!reads.must_ask() || parts_.host.is_ended()) return;
  if (!core.raft().is_leader() && parts_.forwarder.forward_reads()) return;
  const LogIndex time_index = parts_.proposer.renew_time();
  if (parts_.host.is_ended()) return;
  const std::uint64_t time_until =
      now() + static_cast<std::uint64_t>(parts_.options.election.count());
  // No other node can have answered anything since: this commit index is the newest.
  if (parts_.options.reads_by_lease && core.raft().is_leader() &&
      core.leadership().lease_until(now()) > now()) {
    reads.begin({0, core.log().commit(), time_index, time_until});
    return finish();
  }
  const Result<std::uint64_t> round = core.read(now());
  if (!round.ok()) return reads.refuse(reads.take_waiting(), round.error().code, now());
  reads.begin({*round, core.leadership().read_index(), time_index, time_until});
  finish();
}

void GroupReads::finish() {
  parts_.reads.finish(parts_.core.leadership().confirmed(), parts_.core.log().applied(), now());
}

}  // namespace semel::replication
