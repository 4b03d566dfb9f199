#include "tests/replication/state/canonical.hpp"

#include <algorithm>
#include <utility>

#include "replication/state/fields.hpp"
#include "replication/state/library_fields.hpp"
#include "semel/engine_host.hpp"

namespace semel::tests {

using replication::FieldWriter;
using replication::StateMachine;

namespace {

void time(FieldWriter& to, Timestamp when) {
  to.number(std::int64_t{when.time_since_epoch().count()});
}

void claim(FieldWriter& to, const ClaimRecord& record) {
  to.small(static_cast<std::uint8_t>(record.state), 255);
  to.flag(record.result_expired);
  to.flag(record.poison);
  to.number(std::uint64_t{record.attempts});
  to.number(record.epoch);
  to.number(record.session);
  time(to, record.lease_until);
  time(to, record.result_until);
  time(to, record.unique_until);
  to.small(record.fingerprint.algorithm, 255);
  to.array(record.fingerprint.digest);
  to.flag(record.claim_id.has_value());
  if (record.claim_id) to.array(*record.claim_id);
  to.array(record.result_digest);
  to.bytes(record.owner);
  to.bytes(record.result);
  if (!record.memos.empty()) to.bytes(record.memos);
}

}  // namespace

std::string bytes_of(const Mutation& mutation) {
  std::string bytes;
  // The key first, so that the same key of two replicas is at the same place.
  FieldWriter to{bytes};
  to.small(static_cast<std::uint8_t>(mutation.type), 255);
  to.small(static_cast<std::uint8_t>(mutation.kind), 255);
  to.small(mutation.db, 255);
  to.bytes(mutation.key);
  to.number(mutation.version);
  time(to, mutation.due);
  time(to, mutation.keep_until);
  to.flag(mutation.claim.has_value());
  if (mutation.claim) {
    claim(to, *mutation.claim);
  } else {
    to.bytes(mutation.value);
  }
  return bytes;
}

Canonical canonical(StateMachine& replica) {
  Canonical found;
  found.status = replica.snapshot(
      [&](const replication::ReplicaState& state) { found.state = state; },
      [&](const Mutation& mutation) { found.mutations.push_back(bytes_of(mutation)); });
  std::sort(found.mutations.begin(), found.mutations.end());
  // One that was replaced meanwhile may come twice.
  found.mutations.erase(std::unique(found.mutations.begin(), found.mutations.end()),
                        found.mutations.end());
  return found;
}

std::string Canonical::bytes() const {
  std::string bytes;
  FieldWriter to{bytes};
  to.flag(status.ok());
  to.number(state.applied);
  to.number(state.unix_ms);
  static_cast<void>(to.count(state.sessions.size()));
  for (const engine::OpenSession& session : state.sessions) {
    to.number(session.id);
    to.number(session.owner.node);
    to.number(session.owner.life);
  }
  to.bytes(state.answers);
  to.number(state.level);
  // What earlier levels have not is not among their bytes.
  for (const replication::SharedLibraryText& each : state.libraries) {
    replication::LibraryCommand::Library library = replication::view_of(*each);
    replication::all(to, library);
  }
  for (const std::string& mutation : mutations) to.bytes(mutation);
  return bytes;
}

Result<std::unique_ptr<StateMachine>> copy_of(StateMachine& replica, const Options& options) {
  SEMEL_TRY(copy, StateMachine::open(options));
  Status restored{Done{}};
  SEMEL_CHECK(replica.snapshot(
      [&](const replication::ReplicaState& state) { restored = copy->restore(state); },
      [&](const Mutation& mutation) {
        if (restored) restored = copy->engine().host().restore(mutation);
      }));
  if (!restored) return restored.error();
  return copy;
}

}  // namespace semel::tests
