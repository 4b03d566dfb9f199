#include "replication/core/raft_steps.hpp"

#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/raft_shim.h"
#include "replication/core/shim_convert.hpp"

namespace semel::replication {

void RaftSteps::fail(const std::string& what) {
  fail(Error{ErrorCode::storage_damaged, "consensus: " + what});
}
void RaftSteps::fail(const Error& error) {
  if (std::exchange(has_failed_, true)) return;
  parts_.leadership.end();
  parts_.effects.failed(error);
}

// --- steps --------------------------------------------------------------------------------------

Status RaftSteps::start(std::uint64_t now, const StoredState& stored) {
  ShimMembers members;
  raft_shim_snapshot snapshot{};
  if (stored.snapshot) snapshot = to_shim(*stored.snapshot, members);
  const std::vector<raft_shim_entry> entries = to_shim(stored.entries);
  raft_shim_update update;
  const int error = raft_shim_start(parts_.raft.shim(), now, stored.term, stored.voted_for,
                                    stored.snapshot ? &snapshot : nullptr, stored.first,
                                    entries.data(), entries.size(), &update);
  if (error != 0) {
    return Error{ErrorCode::bad_option,
                 std::string{"consensus cannot start: "} + raft_shim_error_text(error)};
  }
  carry_out(0, update, {});
  return Done{};
}

void RaftSteps::tick(std::uint64_t now) {
  raft_shim_update update;
  const int error = raft_shim_tick(parts_.raft.shim(), now, &update);
  carry_out(error, update, {});
}

void RaftSteps::receive(std::uint64_t now, const RaftMessage& message) {
  const std::optional<Member> sender = parts_.raft.member(message.from);
  const ShimMessage in{message, sender ? sender->address : std::to_string(message.from)};
  raft_shim_update update;
  const int error = raft_shim_receive(parts_.raft.shim(), now, &in.get(), &update);
  const auto* const append = std::get_if<AppendRequest>(&message.what);
  carry_out(error, update,
            {.entries = append == nullptr ? nullptr : &append->entries,
             .offer = std::get_if<SnapshotOffer>(&message.what)});
}

Status RaftSteps::submit(std::uint64_t now, EntryType type, SharedData data) {
  const std::vector<RaftEntry> own{{parts_.raft.term(), type, std::move(data)}};
  const std::vector<raft_shim_entry> entries = to_shim(own);
  raft_shim_update update;
  const int error = raft_shim_submit(parts_.raft.shim(), now, entries.data(), &update);
  if (error != 0) return Error{ErrorCode::memory_full, raft_shim_error_text(error)};
  carry_out(0, update, {.entries = &own});
  if (has_failed_) return Error{ErrorCode::closing, {}};
  return Done{};
}

Status RaftSteps::submit_barrier(std::uint64_t now) {
  static const SharedData nothing = std::make_shared<const std::string>(8, '\0');  // the library's
  return submit(now, EntryType::barrier, nothing);
}

bool RaftSteps::can_report_persisted() const noexcept {
  return !has_failed_ && parts_.log.has_persisted() && !parts_.log.is_installing() &&
         parts_.raft.role() != Role::candidate;
}

void RaftSteps::report_persisted(std::uint64_t now) {
  if (!can_report_persisted()) return;
  const LogIndex index = parts_.log.take_persisted();
  if (index <= parts_.raft.stored()) return;
  raft_shim_update update;
  const int error = raft_shim_persisted(parts_.raft.shim(), now, index, &update);
  carry_out(error, update, {});
}

void RaftSteps::snapshot_taken(std::uint64_t now, const SnapshotId& snapshot,
                               std::size_t trailing) {
  ShimMembers members;
  const raft_shim_snapshot taken = to_shim(snapshot, members);
  raft_shim_update update;
  const int error =
      raft_shim_taken(parts_.raft.shim(), now, &taken, static_cast<unsigned>(trailing), &update);
  parts_.log.cut(snapshot, trailing);
  carry_out(error, update, {});
}

void RaftSteps::installed(std::uint64_t now, const SnapshotId& snapshot) {
  ShimMembers members;
  const raft_shim_snapshot done = to_shim(snapshot, members);
  raft_shim_update update;
  const int error = raft_shim_installed(parts_.raft.shim(), now, &done, &update);
  carry_out(error, update, {});
}

void RaftSteps::commit_configuration(std::uint64_t now, LogIndex index, const RaftEntry& entry) {
  raft_shim_update update;
  const int error = raft_shim_configured(parts_.raft.shim(), now, index, entry.data->data(),
                                         entry.data->size(), &update);
  carry_out(error, update, {});
}

void RaftSteps::catch_up(std::uint64_t now, NodeId id) {
  raft_shim_update update;
  const int error = raft_shim_catch_up(parts_.raft.shim(), now, id, &update);
  carry_out(error, update, {});
}

Status RaftSteps::transfer(std::uint64_t now, NodeId id) {
  raft_shim_update update;
  const int error = raft_shim_transfer(parts_.raft.shim(), now, id, &update);
  if (error != 0) {
    return Error{ErrorCode::bad_option, "leadership cannot go to node " + std::to_string(id) +
                                            ": " + raft_shim_error_text(error)};
  }
  carry_out(0, update, {});
  return Done{};
}

// --- what a step asks for -----------------------------------------------------------------------

void RaftSteps::carry_out(int error, const raft_shim_update& update, const Given& given) {
  if (has_failed_) return;
  if (error != 0) return fail(std::string{"the library says: "} + raft_shim_error_text(error));
  if (update.votes) {
    const Status saved = parts_.effects.save_vote(parts_.raft.term(), parts_.raft.voted_for());
    if (!saved) return fail(saved.error());
  }
  if (update.persists && !persist(update, given)) return;
  if (update.installs) {
    SEMEL_ASSERT(given.offer != nullptr);
    parts_.log.begin_install();
    parts_.effects.install(*given.offer);
  }
  note_state();
  for (std::size_t i = 0; i < update.messages; ++i) {
    raft_shim_message message;
    raft_shim_outgoing(parts_.raft.shim(), i, &message);
    const Status sent = parts_.outbox.send(message);
    if (!sent) return fail(sent.error());
  }
  parts_.log.note_commit(parts_.raft.commit());
}

std::vector<RaftEntry> RaftSteps::entries_of(const raft_shim_update& update, const Given& given) {
  std::vector<RaftEntry> entries;
  entries.reserve(update.count);
  if (update.own) {
    SEMEL_ASSERT(given.entries != nullptr && update.offset + update.count <= given.entries->size());
    const auto first = given.entries->begin() + static_cast<std::ptrdiff_t>(update.offset);
    entries.assign(first, first + static_cast<std::ptrdiff_t>(update.count));
    return entries;
  }
  for (std::size_t i = 0; i < update.count; ++i) {  // the barrier with which a leader begins
    raft_shim_entry made;
    raft_shim_persisting(parts_.raft.shim(), i, &made);
    entries.push_back(
        {made.term, static_cast<EntryType>(made.type),
         std::make_shared<const std::string>(static_cast<const char*>(made.data), made.bytes)});
  }
  raft_shim_release(parts_.raft.shim());
  return entries;
}

bool RaftSteps::persist(const raft_shim_update& update, const Given& given) {
  std::vector<RaftEntry> entries = entries_of(update, given);
  MemoryLog& log = parts_.log;
  if (update.first <= log.commit() || update.first < log.first() || update.first > log.last() + 1) {
    fail("entries from " + std::to_string(update.first) +
         " on would replace committed ones, up to " + std::to_string(log.commit()) +
         ", or leave a gap after " + std::to_string(log.last()));
    return false;
  }
  log.replace(update.first, entries);
  parts_.effects.append(update.first, std::move(entries));
  return true;
}

void RaftSteps::note_state() {
  const Role role = parts_.raft.role();
  const Term term = parts_.raft.term();
  const NodeId leader = parts_.raft.leader();
  if (role == seen_role_ && term == seen_term_ && leader == seen_leader_) return;
  if (role != seen_role_ || term != seen_term_) parts_.leadership.reset();
  seen_role_ = role;
  seen_term_ = term;
  seen_leader_ = leader;
  parts_.effects.changed();
}

}  // namespace semel::replication
