#include "replication/core/consensus_core.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/raft_shim.h"
#include "replication/core/shim_convert.hpp"

namespace semel::replication {

void ConsensusCore::ShimDeleter::operator()(raft_shim* shim) const noexcept {
  raft_shim_delete(shim);
}

ConsensusCore::ConsensusCore(const ConsensusOptions& options, ConsensusEffects& effects,
                             raft_shim* shim)
    : options_(options), effects_(effects), shim_(shim), answers_(options.id) {}
ConsensusCore::~ConsensusCore() = default;

Result<std::unique_ptr<ConsensusCore>> ConsensusCore::make(const ConsensusOptions& options,
                                                           ConsensusEffects& effects) {
  const int version = raft_shim_version();
  if (version < raft_shim_version_min || version >= raft_shim_version_end) {
    return Error{ErrorCode::bad_option, "libraft " + std::to_string(version) + ", needed is " +
                                            std::to_string(raft_shim_version_min) + " to " +
                                            std::to_string(raft_shim_version_end - 1)};
  }
  if (options.id == 0 || options.election < 2 * options.heartbeat ||
      options.heartbeat <= Millis{0} || options.uncommitted_max == 0 ||
      options.apply_entries_max == 0 || options.apply_bytes_max == 0) {
    return Error{ErrorCode::bad_option,
                 "node id " + std::to_string(options.id) + ", election " +
                     std::to_string(options.election.count()) + " ms, heartbeat " +
                     std::to_string(options.heartbeat.count()) +
                     " ms: the id is from 1, an election takes two heartbeats at least"};
  }
  constexpr unsigned no_bound = 1'000'000;
  raft_shim* const shim = raft_shim_new(options.id, options.address.c_str(), options.seed,
                                        static_cast<unsigned>(options.election.count()),
                                        static_cast<unsigned>(options.heartbeat.count()),
                                        options.guards.bounds_uncommitted
                                            ? static_cast<unsigned>(options.uncommitted_max)
                                            : no_bound);
  if (shim == nullptr) return Error{ErrorCode::memory_full, "libraft"};
  return std::unique_ptr<ConsensusCore>{new ConsensusCore{options, effects, shim}};
}

Result<SharedData> ConsensusCore::encode(const Configuration& configuration) {
  return encode_configuration(configuration);
}
Result<Configuration> ConsensusCore::decode(Bytes data) {
  return decode_configuration(data);
}

void ConsensusCore::fail(const std::string& what) {
  fail(Error{ErrorCode::storage_damaged, "consensus: " + what});
}
void ConsensusCore::fail(const Error& error) {
  if (std::exchange(failed_, true)) return;
  effects_.failed(error);
}

// --- insight --------------------------------------------------------------------------------

Role ConsensusCore::role() const noexcept {
  switch (raft_shim_state(shim_.get())) {
    case raft_shim_leader:
      return Role::leader;
    case raft_shim_candidate:
      return Role::candidate;
    default:
      return Role::follower;
  }
}
Term ConsensusCore::term() const noexcept {
  return raft_shim_term(shim_.get());
}
NodeId ConsensusCore::leader() const noexcept {
  return raft_shim_leader_id(shim_.get());
}
LogIndex ConsensusCore::match(NodeId id) const noexcept {
  return raft_shim_match(shim_.get(), id);
}
LogIndex ConsensusCore::stored() const noexcept {
  return raft_shim_stored(shim_.get());
}
bool ConsensusCore::is_handing_over() const noexcept {
  return raft_shim_transferee(shim_.get()) != 0;
}
std::uint64_t ConsensusCore::next_timeout() const noexcept {
  return raft_shim_timeout(shim_.get());
}

Configuration ConsensusCore::members() const {
  Configuration found;
  for (std::size_t i = 0; i < raft_shim_member_count(shim_.get()); ++i) {
    raft_shim_member member;
    raft_shim_member_at(shim_.get(), i, &member);
    found.push_back(to_member(member));
  }
  return found;
}

// --- events ---------------------------------------------------------------------------------

Status ConsensusCore::start(std::uint64_t now, StoredState stored) {
  SEMEL_ASSERT(!busy_ && log_.last() == 0 && applied_ == 0);
  const LogIndex last = stored.first + stored.entries.size() - 1;
  if (stored.first == 0 || (!stored.snapshot && stored.first != 1) ||
      (stored.snapshot && (stored.first > stored.snapshot->index + 1 ||
                           last < stored.snapshot->index || stored.snapshot->term == 0))) {
    return Error{ErrorCode::bad_option,
                 "entries " + std::to_string(stored.first) + " to " + std::to_string(last) +
                     " do not continue the snapshot of " +
                     std::to_string(stored.snapshot ? stored.snapshot->index : 0)};
  }
  for (const RaftEntry& each : stored.entries) {
    if (each.type != EntryType::configuration) continue;
    SEMEL_CHECK(decode(*each.data));
  }
  started_ = now;
  // One that has never voted has promised nothing.
  sits_out_ = options_.guards.sits_out && stored.term > 1;
  log_.begin(stored.snapshot.value_or(SnapshotId{}), stored.first, stored.entries);
  ShimMembers members;
  raft_shim_snapshot snapshot{};
  if (stored.snapshot) {
    applied_ = committed_ = stored.snapshot->index;
    applied_members_ = stored.snapshot->configuration;
    applied_members_index_ = stored.snapshot->configuration_index;
    snapshot = to_shim(*stored.snapshot, members);
  }
  const std::vector<raft_shim_entry> entries = to_shim(stored.entries);
  raft_shim_update update;
  begin(now);
  const int error = raft_shim_start(shim_.get(), now, stored.term, stored.voted_for,
                                    stored.snapshot ? &snapshot : nullptr, stored.first,
                                    entries.data(), entries.size(), &update);
  if (error != 0) {
    busy_ = false;
    return Error{ErrorCode::bad_option,
                 std::string{"consensus cannot start: "} + raft_shim_error_text(error)};
  }
  carry_out(0, update, {});
  after(now);
  return Done{};
}

void ConsensusCore::tick(std::uint64_t now) {
  if (failed_) return;
  begin(now);
  raft_shim_update update;
  const int error = raft_shim_tick(shim_.get(), now, &update);
  carry_out(error, update, {});
  // A read must not wait for ever for a probe that was lost.
  if (!failed_ && is_leader() && answers_.confirmed() < answers_.round()) send_probes();
  after(now);
}

void ConsensusCore::apply_more(std::uint64_t now) {
  if (failed_) return;
  begin(now);
  after(now);
}

void ConsensusCore::persisted(std::uint64_t now, LogIndex index, Term term) {
  if (failed_) return;
  begin(now);
  persisted_ = index;
  persisted_term_ = term;
  after(now);
}

void ConsensusCore::report_persisted(std::uint64_t now) {
  if (failed_ || persisted_ == 0 || installing_ || role() == Role::candidate) return;
  const LogIndex index = std::exchange(persisted_, 0);
  // An entry that was replaced since is not on the disk.
  const RaftEntry* const found = log_.entry(index);
  if (found == nullptr || found->term != persisted_term_) return;
  if (index <= stored()) return;
  raft_shim_update update;
  const int error = raft_shim_persisted(shim_.get(), now, index, &update);
  carry_out(error, update, {});
}

bool ConsensusCore::submit(std::uint64_t now, EntryType type, SharedData data, int& error) {
  const std::vector<RaftEntry> own{{term(), type, std::move(data)}};
  const std::vector<raft_shim_entry> entries = to_shim(own);
  raft_shim_update update;
  error = raft_shim_submit(shim_.get(), now, entries.data(), &update);
  return error == 0 && carry_out(0, update, own);
}

Result<LogIndex> ConsensusCore::propose(std::uint64_t now, SharedData data) {
  if (failed_ || !is_leader() || is_handing_over()) return Error{ErrorCode::not_leader, {}};
  if (options_.guards.bounds_uncommitted && log_.last() - commit() >= options_.uncommitted_max) {
    return Error{ErrorCode::log_busy, {}};
  }
  begin(now);
  int error = 0;
  const bool is_done = submit(now, EntryType::command, std::move(data), error);
  const LogIndex index = log_.last();
  after(now);
  if (is_done) return index;
  return Error{error == 0 ? ErrorCode::closing : ErrorCode::memory_full, {}};
}

void ConsensusCore::snapshot_taken(std::uint64_t now, const SnapshotId& snapshot,
                                   std::size_t trailing) {
  // A snapshot that was installed in between is newer.
  if (failed_ || installing_ || snapshot.index <= log_.snapshot().index) return;
  begin(now);
  SEMEL_ASSERT(snapshot.index <= applied_ && log_.term_of(snapshot.index) == snapshot.term);
  ShimMembers members;
  const raft_shim_snapshot taken = to_shim(snapshot, members);
  raft_shim_update update;
  const int error =
      raft_shim_taken(shim_.get(), now, &taken, static_cast<unsigned>(trailing), &update);
  log_.cut(snapshot, trailing);
  carry_out(error, update, {});
  after(now);
}

void ConsensusCore::installed(std::uint64_t now, const SnapshotId& snapshot) {
  if (failed_) return;
  begin(now);
  SEMEL_ASSERT(installing_);
  installing_ = false;
  applied_ = snapshot.index;
  committed_ = std::max(committed_, snapshot.index);
  applied_members_ = snapshot.configuration;
  applied_members_index_ = snapshot.configuration_index;
  log_.restart(snapshot);
  persisted_ = 0;
  ShimMembers members;
  const raft_shim_snapshot done = to_shim(snapshot, members);
  raft_shim_update update;
  const int error = raft_shim_installed(shim_.get(), now, &done, &update);
  carry_out(error, update, {});
  after(now);
}

void ConsensusCore::begin(std::uint64_t now) {
  SEMEL_ASSERT(!busy_);  // an effect has called the core
  busy_ = true;
  sent_at_ = now;
  entries_left_ = options_.apply_entries_max;
  bytes_left_ = options_.apply_bytes_max;
}

// --- effects --------------------------------------------------------------------------------

bool ConsensusCore::carry_out(int error, const raft_shim_update& update,
                              const std::vector<RaftEntry>& own) {
  if (failed_) return false;
  if (error != 0) {
    fail(std::string{"the library says: "} + raft_shim_error_text(error));
    return false;
  }
  if (update.votes) {
    const Status saved = effects_.save_vote(term(), raft_shim_voted_for(shim_.get()));
    if (!saved) {
      fail(saved.error());
      return false;
    }
  }
  if (update.persists && !persist(update, own)) return false;
  if (update.installs) {
    SEMEL_ASSERT(offered_.has_value());
    installing_ = true;
    effects_.install(*offered_);
  }
  note_state();
  for (std::size_t i = 0; i < update.messages; ++i) {
    raft_shim_message message;
    raft_shim_outgoing(shim_.get(), i, &message);
    send(message);
  }
  // With an append that was overtaken, the library's own goes back: to the end of that append.
  committed_ = std::max(committed_, raft_shim_commit(shim_.get()));
  return true;
}

bool ConsensusCore::persist(const raft_shim_update& update, const std::vector<RaftEntry>& own) {
  std::vector<RaftEntry> entries;
  entries.reserve(update.count);
  for (std::size_t i = 0; i < update.count; ++i) {
    if (update.own) {
      SEMEL_ASSERT(update.offset + i < own.size());
      entries.push_back(own[update.offset + i]);
    } else {  // the barrier with which a leader begins
      raft_shim_entry made;
      raft_shim_persisting(shim_.get(), i, &made);
      entries.push_back(
          {made.term, static_cast<EntryType>(made.type),
           std::make_shared<const std::string>(static_cast<const char*>(made.data), made.bytes)});
    }
  }
  if (!update.own) raft_shim_release(shim_.get());
  if (update.first <= committed_ || update.first < log_.first() || update.first > log_.last() + 1) {
    fail("entries from " + std::to_string(update.first) +
         " on would replace committed ones, up to " + std::to_string(committed_) +
         ", or leave a gap after " + std::to_string(log_.last()));
    return false;
  }
  log_.replace(update.first, entries);
  effects_.append(update.first, std::move(entries));
  return true;
}

void ConsensusCore::note_state() {
  const Role now_role = role();
  const Term now_term = term();
  const NodeId now_leader = leader();
  if (now_role == seen_role_ && now_term == seen_term_ && now_leader == seen_leader_) return;
  if (now_role != seen_role_ || now_term != seen_term_) {
    answers_.reset();
  }
  seen_role_ = now_role;
  seen_term_ = now_term;
  seen_leader_ = now_leader;
  effects_.changed();
}

/// Handles the consequences of an event until there are none.
void ConsensusCore::after(std::uint64_t now) {
  bool has_more = true;
  while (has_more && !failed_) {
    report_persisted(now);
    begin_term(now);
    apply_committed(now);
    // A candidate that became the leader can take the report now.
    has_more = persisted_ != 0 && !installing_ && role() != Role::candidate;
  }
  if (!failed_) send_held();
  check_invariants();
  busy_ = false;
}

void ConsensusCore::check_invariants() const noexcept {
  if (failed_ || installing_) return;
  SEMEL_ASSERT(applied_ <= committed_);
  SEMEL_ASSERT(committed_ <= log_.last());
}

SharedData ConsensusCore::empty_entry() {
  static const SharedData nothing = std::make_shared<const std::string>(8, '\0');
  return nothing;
}

/// A leader without an entry of its term does not know which entries are committed.
void ConsensusCore::begin_term(std::uint64_t now) {
  if (failed_ || !is_leader() || is_handing_over() || log_.term_of(log_.last()) == term()) return;
  int error = 0;
  if (!submit(now, EntryType::barrier, empty_entry(), error) && !failed_) {
    fail(std::string{"a leader cannot begin its term: "} + raft_shim_error_text(error));
  }
}

void ConsensusCore::apply_committed(std::uint64_t now) {
  while (!failed_ && !installing_ && applied_ < commit()) {
    const RaftEntry* const next = log_.entry(applied_ + 1);
    if (next == nullptr) {
      return fail("entry " + std::to_string(applied_ + 1) + " is committed and not in the log");
    }
    if (entries_left_ == 0 || bytes_left_ == 0) return;
    --entries_left_;
    bytes_left_ -= std::min(bytes_left_, next->data->size());
    ++applied_;
    const RaftEntry kept = *next;  // the step of a configuration may change the log
    if (kept.type == EntryType::configuration && !apply_configuration(now, applied_, kept)) return;
    effects_.apply(applied_, kept);
  }
}

bool ConsensusCore::apply_configuration(std::uint64_t now, LogIndex index, const RaftEntry& entry) {
  Result<Configuration> members = decode(*entry.data);
  if (!members) {
    fail(members.error());
    return false;
  }
  applied_members_ = *std::move(members);
  applied_members_index_ = index;
  return commit_configuration(now, index, entry);
}

/// Twice does no harm: the library looks only at the newest one that it has.
bool ConsensusCore::commit_configuration(std::uint64_t now, LogIndex index,
                                         const RaftEntry& entry) {
  raft_shim_update update;
  const int error = raft_shim_configured(shim_.get(), now, index, entry.data->data(),
                                         entry.data->size(), &update);
  return carry_out(error, update, {});
}

}  // namespace semel::replication
