#include "replication/node/replica_disk.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "replication/core/configuration_codec.hpp"
#include "replication/log/identity_file.hpp"
#include "replication/node/recovery.hpp"
#include "semel/engine_host.hpp"

namespace semel::replication {
namespace {

Status open_votes(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk& found) {
  SEMEL_TRY(votes, VoteFile::open(disk, options.directory + "/vote"));
  SEMEL_TRY(what, votes->read(found.vote));
  if (what == VoteFile::Found::damaged) {
    return Error{ErrorCode::storage_damaged,
                 votes->path() + ": the vote cannot be read; this node must join anew"};
  }
  if (what == VoteFile::Found::content &&
      (found.vote.cluster_id != options.cluster_id || found.vote.node_id != options.node_id)) {
    char cluster[20];
    std::snprintf(cluster, sizeof cluster, "%llx",
                  static_cast<unsigned long long>(found.vote.cluster_id));
    return Error{ErrorCode::bad_option, options.directory + " is of node " +
                                            std::to_string(found.vote.node_id) + " of cluster " +
                                            cluster};
  }
  found.vote.cluster_id = options.cluster_id;
  found.vote.node_id = options.node_id;
  found.votes = std::move(votes);
  return Done{};
}

/// A directory in which nothing is has promised nothing: its log is a new one, whatever is left of
/// an earlier one. Otherwise it is the one that was there before.
Status open_identity(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk& found) {
  SEMEL_TRY(file, IdentityFile::open(disk, options.directory + "/identity"));
  IdentityContent content;
  SEMEL_TRY(what, file->read(content));
  if (what == IdentityFile::Found::damaged) {
    return Error{ErrorCode::storage_damaged,
                 file->path() + ": which log this is cannot be read; this node must join anew"};
  }
  const bool is_empty = !found.stored.snapshot && found.log->last() == 0;
  const bool is_ours = what == IdentityFile::Found::content &&
                       content.cluster_id == options.cluster_id &&
                       content.node_id == options.node_id;
  if (is_empty || !is_ours) {
    content.cluster_id = options.cluster_id;
    content.node_id = options.node_id;
    content.high = base::random_number() | 1;  // neither is 0
    content.low = base::random_number() | 1;
    SEMEL_CHECK(file->write_and_sync(content));
  }
  found.identity = {content.high, content.low};
  return Done{};
}

/// Whether the group commits without this node: it has no vote.
bool is_joining(NodeId self, const Configuration& members) {
  return std::none_of(members.begin(), members.end(), [&](const Member& each) {
    return each.id == self && each.role == MemberRole::voter;
  });
}

Status load_snapshot(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk& found) {
  SEMEL_TRY(names, find_snapshots(options.directory));
  if (!names.newest) return Done{};
  const std::string path = options.directory + "/" + *names.newest;
  struct stat info {};
  if (stat(path.c_str(), &info) == 0)
    found.snapshot_bytes = static_cast<std::uint64_t>(info.st_size);
  SEMEL_CHECK(read_snapshot(
      path,
      [&](const SnapshotFront& front) -> Status {
        if (front.cluster_id != options.cluster_id) {
          return Error{ErrorCode::bad_option, path + " is of another cluster"};
        }
        found.stored.snapshot = front.id;
        if (is_joining(options.node_id, front.id.configuration)) storage::yield_to_others();
        return found.state->restore(front.state);
      },
      [&](std::span<const Mutation> some) { return found.state->engine().host().restore(some); }));
  // Only now: until the newest is known to be whole, an older one may be needed by hand.
  for (const std::string& other : names.others) {
    SEMEL_CHECK(disk.remove(options.directory + "/" + other));
  }
  return Done{};
}

/// The log continues the snapshot, or the snapshot was installed after it was written.
Status join_log(ReplicaDisk& found) {
  EntryLog& log = *found.log;
  if (found.stored.snapshot) {
    const SnapshotId& snapshot = *found.stored.snapshot;
    const bool joins =
        log.first() <= snapshot.index + 1 && log.last() >= snapshot.index &&
        (log.first() == snapshot.index + 1 || log.term_of(snapshot.index) == snapshot.term);
    if (!joins) {
      SEMEL_CHECK(log.restart(snapshot.index, snapshot.term));
      SEMEL_CHECK(log.sync());
    }
  } else if (log.first() != 1) {
    return Error{ErrorCode::storage_damaged, "the log begins with entry " +
                                                 std::to_string(log.first()) +
                                                 ", and there is no snapshot of what was before"};
  }
  found.stored.first = log.first();
  for (LogIndex index = log.first(); index <= log.last(); ++index) {
    SEMEL_TRY(data, log.read(index));
    found.stored.entries.push_back({log.term_of(index), static_cast<EntryType>(log.type_of(index)),
                                    std::make_shared<const std::string>(std::move(data))});
  }
  return Done{};
}

/// All first members begin with the same entry.
Status found_group(const ReplicaOptions& options, ReplicaDisk& found) {
  Configuration members;
  for (const auto& [id, address] : options.founders) {
    members.push_back({id, address, MemberRole::voter});
  }
  if (!options.founders.contains(options.node_id)) {
    return Error{ErrorCode::bad_option, "node " + std::to_string(options.node_id) +
                                            " is not among the first members of its group"};
  }
  SEMEL_TRY(data, encode_configuration(members));
  const LogEntry entry{.index = 1,
                       .term = 1,
                       .type = static_cast<std::uint8_t>(EntryType::configuration),
                       .data = *data};
  SEMEL_CHECK(found.log->append({&entry, 1}));
  SEMEL_CHECK(found.log->sync());
  found.vote.term = 1;
  return found.votes->write_and_sync(found.vote);
}

}  // namespace

Result<ReplicaDisk> open_disk(const ReplicaOptions& options, storage::Disk& disk) {
  SEMEL_CHECK(storage::make_directory(options.directory));
  if (is_recovery_begun(options.directory)) {
    return Error{ErrorCode::bad_option,
                 options.directory +
                     ": its recovery was cut off; end it with the same `semel cluster recover`"};
  }
  ReplicaDisk found;
  // First the log: it locks the directory.
  SEMEL_TRY(log, EntryLog::open({.directory = options.directory,
                                 .disk = &disk,
                                 .segment_bytes = options.segment_bytes,
                                 .log_id = options.cluster_id,
                                 .accepts_copy = options.accepts_copy}));
  found.log = std::move(log);
  SEMEL_CHECK(open_votes(options, disk, found));
  found.time = KeptTime::open(options.directory, options.cluster_id, disk);
  SEMEL_TRY(state, StateMachine::open(options.engine, options.level));
  found.state = std::move(state);
  // On a thread of its own: it lowers its priority, which the caller's thread could not undo.
  std::future<Status> loading;
  try {
    loading = std::async(std::launch::async, [&] { return load_snapshot(options, disk, found); });
  } catch (const std::system_error&) {
    return Error{ErrorCode::no_thread, "the thread that reads the snapshot"};
  }
  SEMEL_CHECK(loading.get());
  SEMEL_CHECK(open_identity(options, disk, found));
  const bool is_new = !found.stored.snapshot && found.log->last() == 0 && found.vote.term == 0;
  if (is_new && options.founds) {
    SEMEL_CHECK(found_group(options, found));
  } else if (is_new && !options.founders.empty()) {
    return Error{ErrorCode::bad_option, options.directory +
                                            " has no group: of a new group, prepare it once "
                                            "(--cluster-init); if its disk was lost, this "
                                            "node has to be added under another number"};
  } else if (options.founds) {
    return Error{ErrorCode::bad_option, options.directory + " has a group already"};
  }
  SEMEL_CHECK(join_log(found));
  const bool is_empty = found.stored.entries.empty() && !found.stored.snapshot;
  if (!is_empty && found.vote.term == 0) {
    return Error{ErrorCode::storage_damaged,
                 options.directory +
                     "/vote is empty, and there are entries: this node may have "
                     "voted, and must join anew"};
  }
  found.stored.term = found.vote.term;
  found.stored.voted_for = found.vote.voted_for;
  return found;
}

}  // namespace semel::replication
