#include "replication/node/recovery.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/random.hpp"
#include "replication/core/configuration_codec.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/log/entry_log.hpp"
#include "replication/log/snapshot_file.hpp"
#include "replication/log/tail_file.hpp"
#include "replication/log/vote_file.hpp"
#include "replication/transport/peer_stream.hpp"
#include "storage/log/directory.hpp"

namespace semel::replication {
namespace {

using storage::DirectoryLock;

bool exists(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}
std::string stage_of(const std::string& directory) {
  return directory + "/recovery";
}
std::string whole_of(const std::string& directory) {
  return directory + "/recovered";
}
std::string hex_of(std::uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(number));
  return text;
}

storage::Disk& disk_of(const RecoveryOptions& options) {
  static storage::Disk file_system;
  return options.disk == nullptr ? file_system : *options.disk;
}

/// The files of `path`, and it, one after the other. Not there: done.
Status remove_tree(storage::Disk& disk, const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, code))) {
    return disk.remove(path);
  }
  SEMEL_TRY(names, storage::list_directory(path));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) SEMEL_CHECK(remove_tree(disk, path + "/" + name));
  if (rmdir(path.c_str()) != 0) return storage::system_error(path);
  return Done{};
}

/// Read only: VoteFile::open() would make it.
Result<VoteContent> read_vote(const std::string& directory) {
  const std::string path = directory + "/vote";
  const auto close_file = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close_file)> file{std::fopen(path.c_str(), "re"),
                                                              close_file};
  if (file == nullptr) return storage::system_error(path);
  std::string bytes(VoteFile::file_bytes, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  VoteContent content;
  switch (VoteFile::read(bytes, content)) {
    case VoteFile::Found::content:
      return content;
    case VoteFile::Found::damaged:
      return Error{ErrorCode::storage_damaged, path + ": the vote cannot be read"};
    default:
      return Error{ErrorCode::bad_option,
                   directory + ": this node was never a member of a group; there is nothing in it"};
  }
}

/// Refuses a directory that is not of a node of a group, before anything is locked or read.
Status check_kind(const std::string& directory) {
  if (!exists(directory)) {
    return Error{ErrorCode::bad_option, directory + ": there is no such directory"};
  }
  // The end of a recovery may have the vote and the log in either place.
  if (is_recovery_begun(directory)) return Done{};
  if (exists(directory + "/vote") && exists(directory + "/log")) return Done{};
  return Error{ErrorCode::bad_option,
               directory + ": it is not the directory of a node of a group" +
                   (exists(directory + "/mark") ? ", but that of a storage" : "")};
}

/// What the old group's node has.
struct Old {
  RecoveryFacts facts;
  VoteContent vote;
  std::optional<std::string> snapshot{};  // its path
  SnapshotFront front{};
  std::unique_ptr<EntryLog> log{};
  bool log_joins = true;  // false: the snapshot was installed after the log was written
};

Status read_front(Old& old, const std::string& directory) {
  SEMEL_TRY(names, find_snapshots(directory));
  if (!names.newest) return Done{};
  old.snapshot = directory + "/" + *names.newest;
  bool is_read = false;
  const Error enough{ErrorCode::closing, {}};
  const Status read = read_snapshot(
      *old.snapshot,
      [&](const SnapshotFront& front) -> Status {
        old.front = front;
        is_read = true;
        return enough;
      },
      [](std::span<const Mutation>) { return Status{Done{}}; });
  if (!is_read) return read;
  if (old.front.cluster_id != old.vote.cluster_id) {
    return Error{ErrorCode::storage_damaged, *old.snapshot + " is of another cluster"};
  }
  old.facts.snapshot = old.front.id.index;
  old.facts.members = old.front.id.configuration;
  old.facts.term = std::max(old.facts.term, old.front.id.term);
  return Done{};
}

/// The same rule by which a node starts.
bool joins(const EntryLog& log, const SnapshotId& snapshot) {
  return log.first() <= snapshot.index + 1 && log.last() >= snapshot.index &&
         (log.first() == snapshot.index + 1 || log.term_of(snapshot.index) == snapshot.term);
}

Status read_log(Old& old, const RecoveryOptions& options) {
  SEMEL_TRY(log, EntryLog::open({.directory = options.directory,
                                 .disk = &disk_of(options),
                                 .segment_bytes = options.segment_bytes,
                                 .log_id = old.vote.cluster_id,
                                 .only_reads = true}));
  old.log = std::move(log);
  old.facts.last = old.facts.snapshot;
  if (old.snapshot) {
    old.log_joins = joins(*old.log, old.front.id);
  } else if (old.log->first() != 1) {
    return Error{ErrorCode::storage_damaged, options.directory + ": the log begins with entry " +
                                                 std::to_string(old.log->first()) +
                                                 ", and there is no snapshot of what was before"};
  }
  if (!old.log_joins) return Done{};
  for (LogIndex index = old.facts.snapshot + 1; index <= old.log->last(); ++index) {
    old.facts.last = index;
    old.facts.term = std::max(old.facts.term, old.log->term_of(index));
    if (old.log->type_of(index) != static_cast<std::uint8_t>(EntryType::configuration)) continue;
    SEMEL_TRY(data, old.log->read(index));
    SEMEL_TRY(members, decode_configuration(data));
    old.facts.members = std::move(members);
  }
  return Done{};
}

Status choose_address(RecoveryFacts& facts, const RecoveryOptions& options) {
  facts.address = options.address;
  for (const Member& each : facts.members) {
    if (each.id == facts.node_id && facts.address.empty()) facts.address = each.address;
  }
  if (!facts.address.empty()) return check_member_address(facts.address);
  return Error{ErrorCode::bad_option, "node " + std::to_string(facts.node_id) +
                                          " was not a member when it was stopped: its address is "
                                          "needed"};
}

/// The steps that an interrupted recovery still needs.
Result<Old> read_begun(const RecoveryOptions& options) {
  Old old;
  const std::string whole = whole_of(options.directory);
  SEMEL_TRY(vote, read_vote(exists(whole + "/vote") ? whole : options.directory));
  if (vote.cluster_id != options.cluster_id) {
    return Error{ErrorCode::bad_option, options.directory + ": a recovery as cluster " +
                                            hex_of(vote.cluster_id) +
                                            " was cut off; only that one can be ended"};
  }
  old.vote = vote;
  old.facts.cluster_id = vote.cluster_id;
  old.facts.node_id = vote.node_id;
  old.facts.term = vote.term;
  old.facts.is_begun = true;
  return old;
}

Result<Old> read_old(const RecoveryOptions& options) {
  if (options.cluster_id == 0) return Error{ErrorCode::bad_option, "a cluster id is not 0"};
  const std::string& directory = options.directory;
  if (is_recovery_begun(directory)) return read_begun(options);
  Old old;
  SEMEL_TRY(vote, read_vote(directory));
  old.vote = vote;
  old.facts.cluster_id = vote.cluster_id;
  old.facts.node_id = vote.node_id;
  old.facts.term = vote.term;
  if (options.node_id != 0 && options.node_id != vote.node_id) {
    return Error{ErrorCode::bad_option,
                 directory + " is that of node " + std::to_string(vote.node_id)};
  }
  if (options.cluster_id == vote.cluster_id) {
    return Error{ErrorCode::bad_option, directory + ": its group has the cluster id " +
                                            hex_of(vote.cluster_id) +
                                            "; the new one needs another"};
  }
  SEMEL_CHECK(read_front(old, directory));
  SEMEL_CHECK(read_log(old, options));
  if (old.facts.last == 0) {
    return Error{ErrorCode::bad_option, directory + ": this node has nothing of its group yet"};
  }
  SEMEL_CHECK(choose_address(old.facts, options));
  return old;
}

// --- the new state -------------------------------------------------------------------------------

Status copy_snapshot(const Old& old, const Configuration& alone, const RecoveryOptions& options) {
  if (!old.snapshot) return Done{};
  std::unique_ptr<SnapshotWriter> writer;
  const Status copied = read_snapshot(
      *old.snapshot,
      [&](const SnapshotFront& front) -> Status {
        SnapshotFront next = front;
        next.cluster_id = options.cluster_id;
        next.id.configuration = alone;
        SEMEL_TRY(made,
                  SnapshotWriter::create(disk_of(options), stage_of(options.directory), next));
        writer = std::move(made);
        return Done{};
      },
      [&](std::span<const Mutation> some) -> Status {
        for (const Mutation& each : some) SEMEL_CHECK(writer->add(each));
        return Done{};
      });
  SEMEL_CHECK(copied);
  SEMEL_TRY(path, writer->finish());
  return Done{};
}

/// The entries behind the snapshot, and behind them the only configuration that counts.
Status copy_log(const Old& old, const Configuration& alone, const RecoveryOptions& options) {
  SEMEL_TRY(log, EntryLog::open({.directory = stage_of(options.directory),
                                 .disk = &disk_of(options),
                                 .segment_bytes = options.segment_bytes,
                                 .log_id = options.cluster_id}));
  if (old.snapshot) SEMEL_CHECK(log->restart(old.front.id.index, old.front.id.term));
  for (LogIndex index = old.facts.snapshot + 1; index <= old.facts.last; ++index) {
    SEMEL_TRY(data, old.log->read(index));
    const LogEntry entry{.index = index,
                         .term = old.log->term_of(index),
                         .type = old.log->type_of(index),
                         .data = data};
    SEMEL_CHECK(log->append({&entry, 1}));
  }
  SEMEL_TRY(data, encode_configuration(alone));
  const LogEntry entry{.index = old.facts.last + 1,
                       .term = old.facts.term + 1,
                       .type = static_cast<std::uint8_t>(EntryType::configuration),
                       .data = *data};
  SEMEL_CHECK(log->append({&entry, 1}));
  return log->sync();
}

Status write_stage(const Old& old, const RecoveryOptions& options) {
  storage::Disk& disk = disk_of(options);
  const std::string stage = stage_of(options.directory);
  SEMEL_CHECK(remove_tree(disk, stage));
  SEMEL_CHECK(storage::make_new_directory(stage));
  const Configuration alone{{old.facts.node_id, old.facts.address, MemberRole::voter}};
  SEMEL_CHECK(copy_snapshot(old, alone, options));
  SEMEL_CHECK(copy_log(old, alone, options));
  SEMEL_TRY(votes, VoteFile::open(disk, stage + "/vote"));
  VoteContent vote;
  vote.cluster_id = options.cluster_id;
  vote.node_id = old.facts.node_id;
  vote.term = old.facts.term + 1;
  vote.voted_for = old.facts.node_id;
  return votes->write_and_sync(vote);
}

/// Each step may have been taken before.
Status install(const RecoveryOptions& options, DirectoryLock& lock) {
  storage::Disk& disk = disk_of(options);
  const std::string& directory = options.directory;
  const std::string whole = whole_of(directory);
  if (exists(whole + "/log")) {  // the new snapshot has not left, so those here are the old ones
    SEMEL_TRY(old, find_snapshots(directory));
    if (old.newest) old.others.push_back(*old.newest);
    for (const std::string& name : old.others) SEMEL_CHECK(disk.remove(directory + "/" + name));
    // It names segments that are removed now. The new one is moved after the log; the log is
    // complete without it.
    SEMEL_CHECK(disk.remove(directory + "/" + TailFile::name));
    SEMEL_CHECK(remove_tree(disk, directory + "/log"));
    SEMEL_CHECK(disk.rename(whole + "/log", directory + "/log"));
  }
  const std::string tail = std::string{"/"} + TailFile::name;
  if (exists(whole + tail)) SEMEL_CHECK(disk.rename(whole + tail, directory + tail));
  SEMEL_TRY(made, find_snapshots(whole));
  if (made.newest)
    SEMEL_CHECK(disk.rename(whole + "/" + *made.newest, directory + "/" + *made.newest));
  if (exists(whole + "/vote")) SEMEL_CHECK(disk.rename(whole + "/vote", directory + "/vote"));
  SEMEL_CHECK(lock.write({.storage_id = options.cluster_id, .incarnation = base::random_number()},
                         disk.boot_id()));
  SEMEL_CHECK(remove_tree(disk, whole));
  return disk.sync_file(directory + "/vote");
}

}  // namespace

bool is_recovery_begun(const std::string& directory) {
  return exists(whole_of(directory));
}

Result<RecoveryFacts> look_before_recovery(const RecoveryOptions& options) {
  SEMEL_CHECK(check_kind(options.directory));
  SEMEL_TRY(lock, DirectoryLock::acquire(options.directory, DirectoryLock::Missing::accept));
  SEMEL_TRY(old, read_old(options));
  return std::move(old.facts);
}

Result<RecoveryFacts> recover_single(const RecoveryOptions& options) {
  SEMEL_CHECK(check_kind(options.directory));
  SEMEL_TRY(lock, DirectoryLock::acquire(options.directory, DirectoryLock::Missing::create));
  SEMEL_TRY(old, read_old(options));
  if (!old.facts.is_begun) {
    storage::Disk& disk = disk_of(options);
    const std::string stage = stage_of(options.directory);
    if (const Status written = write_stage(old, options); !written) {
      // Leftovers have no effect, and the next call removes them.
      static_cast<void>(remove_tree(disk, stage));
      return written.error();
    }
    SEMEL_CHECK(disk.rename(stage, whole_of(options.directory)));
  }
  SEMEL_CHECK(install(options, lock));
  return std::move(old.facts);
}

}  // namespace semel::replication
