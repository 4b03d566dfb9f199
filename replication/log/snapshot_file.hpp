// A snapshot of a replica's state as a file, from which it begins and which it sends to others.
//
//   header   u64 magic | u32 format 1 or 2 | u32 bytes of the front | front | u64 checksum of all
//            of it
//   front    cluster id | index | term | index of the configuration | members | applied | time |
//            open sessions | remembered answers (state/answer_table.hpp) | level of features
//   blocks   u32 bytes | u32 mutations | mutations | u64 checksum, seeded by the block's number
//   end      u32 0 | u32 0 | u64 mutations in all | u64 checksum of the end, seeded likewise
//
// Mutations are those of storage/log/mutation_codec.hpp, and their times are the replicated log's.
// A file gets its name when all of it has reached the disk, so that one with the name is whole or
// damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replication/core/message.hpp"
#include "replication/log/write_behind.hpp"
#include "replication/state/state_machine.hpp"
#include "storage/log/disk.hpp"

namespace semel::replication {

struct SnapshotFront {
  std::uint64_t cluster_id = 0;
  SnapshotId id;
  ReplicaState state;
};

/// "snapshot-%016x-%016x" of index and term.
[[nodiscard]] std::string snapshot_name(const SnapshotId& id);
/// The newest snapshot of a directory by its name, and all others, which are of no use any more.
/// Names of unfinished ones are among the others.
struct SnapshotNames {
  std::optional<std::string> newest{};
  std::vector<std::string> others{};
};
/// Errors: storage_failed.
[[nodiscard]] Result<SnapshotNames> find_snapshots(const std::string& directory);

/// Writes one under a name of its own, and gives it its name at the end. Belongs to one thread.
class SnapshotWriter {
 public:
  /// Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<SnapshotWriter>> create(storage::Disk& disk,
                                                                      const std::string& directory,
                                                                      const SnapshotFront& front);
  /// Removes it, if finish() has not succeeded.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  /// Errors: storage_failed.
  [[nodiscard]] Status add(const Mutation& mutation);
  /// Returns its path when it has reached the disk. Errors: storage_failed.
  [[nodiscard]] Result<std::string> finish();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  SnapshotWriter(storage::Disk& disk, std::string path, std::string name, int descriptor)
      : disk_(disk),
        path_(std::move(path)),
        final_path_(std::move(name)),
        descriptor_(descriptor) {}
  [[nodiscard]] Status write(Bytes bytes);
  [[nodiscard]] Status end_block();

  storage::Disk& disk_;
  const std::string path_;
  const std::string final_path_;
  const int descriptor_;
  std::string block_;
  std::uint32_t in_block_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t mutations_ = 0;
  std::uint64_t bytes_ = 0;
  WriteBehind behind_{disk_};
  bool is_finished_ = false;
};

/// Reads a file and checks all of it. `front` is called first, and then `mutations` for each block;
/// what they are given is valid during the call. An error that they return ends the reading.
/// Errors: storage_failed; storage_damaged, with path and offset; storage_newer.
[[nodiscard]] Status read_snapshot(
    const std::string& path, const std::function<Status(const SnapshotFront&)>& front,
    const std::function<Status(std::span<const Mutation>)>& mutations);

}  // namespace semel::replication
