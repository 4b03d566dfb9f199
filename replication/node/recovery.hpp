// A group whose majority is lost goes on from the directory of one node that is left: under a new
// cluster id, with that node as the only member. Nodes of the old group cannot take part any more.
//
// All data of the node is kept, also entries that were perhaps never committed. Data that only the
// others had is lost, and the numbers of their entries, which are fences, are given out again.
//
//   DIR/recovery/    the new state while it is written: without effect
//   DIR/recovered/   the same when it is whole, and is being moved to its places: the directory is
//                    of the new group from then on, and recover_single() must end it
//
// Neither a killed process nor a power cut leaves anything else.
#pragma once

#include <cstdint>
#include <string>

#include "replication/core/message.hpp"
#include "semel/result.hpp"
#include "storage/log/disk.hpp"

namespace semel::replication {

struct RecoveryOptions {
  std::string directory;
  std::uint64_t cluster_id = 0;  ///< of the new group; not that of the old one
  NodeId node_id = 0;            ///< whose directory it must be; 0: it is not checked
  std::string address{};         ///< of the node as a member; empty: as the old group knew it
  std::size_t segment_bytes = std::size_t{16} << 20;
  storage::Disk* disk = nullptr;  ///< null: the file system
};

struct RecoveryFacts {
  std::uint64_t cluster_id = 0;  ///< of the old group; if is_begun of the new one
  NodeId node_id = 0;
  Term term = 0;
  LogIndex snapshot = 0;  ///< 0: there is none
  LogIndex last = 0;      ///< of its entries
  Configuration members{};
  std::string address{};  ///< that the node will have
  bool is_begun = false;  ///< an earlier call was cut off: only the end is missing
};

/// The state from which recover_single() would begin. Changes nothing. Errors: bad_option (names
/// the fault), storage_in_use, storage_failed, storage_damaged, storage_newer.
[[nodiscard]] Result<RecoveryFacts> look_before_recovery(const RecoveryOptions& options);

/// Does it. After an error the directory is as it was, or a further call finishes the recovery, and
/// no node starts with it before. Errors: as above.
[[nodiscard]] Result<RecoveryFacts> recover_single(const RecoveryOptions& options);

/// Whether recover_single() was cut off in `directory` when there was no way back.
[[nodiscard]] bool is_recovery_begun(const std::string& directory);

}  // namespace semel::replication
