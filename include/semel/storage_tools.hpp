// Operator tools: verify, inspect, repair and restore a storage directory. None of these may be
// called on a storage that is open, in this process or another.
//
// Source: docs/disk-format.md
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "semel/claim.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// How far a walk over the files is. Called now and then, on the calling thread.
struct StorageProgress {
  std::uint64_t bytes = 0;  ///< read so far
  std::uint64_t bytes_total = 0;
};
using TellProgress = std::function<void(const StorageProgress&)>;

/// One thing that is not as it must be.
struct StorageFinding {
  std::string file;                       ///< path
  std::optional<std::uint64_t> offset{};  ///< none: not known, or the file as a whole
  std::string what{};
  /// What repair would lose by it; none: not known.
  std::optional<std::uint64_t> records_lost{};
  std::optional<std::uint64_t> bytes_lost{};
};

/// The cold store of a storage (semel/cold.hpp): that it fits the storage, and that it is whole.
struct ColdCheck {
  std::string directory{};       ///< empty: none is needed, named or there
  std::uint64_t id = 0;          ///< 0: none is there, or it cannot be read
  std::uint64_t generation = 0;  ///< the newest
  std::uint64_t parts = 0;
  std::uint64_t records = 0;  ///< on disk, live or not
  std::uint64_t bytes = 0;    ///< of all files read
  /// Also: it is missing, is another one, or older than recorded: opening is refused.
  std::vector<StorageFinding> findings{};
};

struct StorageCheck {
  static constexpr std::size_t findings_max = 1'000;
  [[nodiscard]] bool is_sound() const noexcept {
    return findings.empty() && unknown_namespaces.empty() && cold.findings.empty();
  }
  std::vector<StorageFinding> findings;  ///< damage; at most findings_max
  std::uint64_t findings_left_off = 0;   ///< number of further findings
  /// Namespaces that have claims and no terms, and how many claims: opening is refused
  /// (StorageOptions::accept_unknown_namespaces). repair_storage() cannot bring the terms back.
  std::map<std::string, std::uint64_t> unknown_namespaces;
  ColdCheck cold;
  std::uint64_t segments = 0;       ///< of the journal
  std::uint64_t records = 0;        ///< of the journal, all sealed
  std::uint64_t unfinished = 0;     ///< that a killed process had begun; no damage
  std::uint64_t bytes_skipped = 0;  ///< never synced when the power went; no damage
  std::uint64_t files = 0;          ///< behind the journal
  std::uint64_t blobs = 0;
  std::uint64_t mutations = 0;  ///< in journal and blobs
  std::uint64_t bytes = 0;      ///< of all files read
};

/// Reads everything, changes nothing. `cold`: the directory of its cold store; empty: "cold" in
/// `directory`, if that is there or records were spilled. Damage is not an error but a finding.
/// Errors: storage_in_use, storage_newer, storage_failed (no storage is there, or a file cannot be
/// read).
/// Progress: blocks for the disk.
[[nodiscard]] Result<StorageCheck> verify_storage(const std::string& directory,
                                                  const TellProgress& progress = {},
                                                  const std::string& cold = {});

struct StorageRepair {
  StorageCheck found;           ///< before
  bool changed = false;         ///< false: nothing was found, or the loss was not accepted
  std::string moved_to{};       ///< where everything is that was taken out
  std::uint64_t mutations = 0;  ///< that were kept
  Version versions = 0;         ///< nothing up to here will be handed out again
  bool cold_bound = false;      ///< storage and cold store fit each other again
  bool cold_given_up = false;   ///< the storage needs no cold store any more
  /// After it: namespaces whose terms were lost, see StorageCheck.
  std::map<std::string, std::uint64_t> unknown_namespaces{};
};

struct StorageRepairOptions {
  bool accept_loss = false;  ///< false: only report
  std::string cold{};        ///< directory of its cold store; empty: "cold" in that of the storage
  /// The cold store is lost: spilled records are forgotten, so finished work may be done again.
  bool without_cold = false;
};

/// Makes the storage sound again by keeping every record that is whole. Without `accept_loss` it
/// only reports what would be lost. Records of RocksDB's log that RocksDB refuses are left out in
/// place. The old files are moved to `directory`/lost+found-N, not deleted, so twice the space is
/// needed. Versions and epochs go on far above all that were handed out. Killed in the middle, it
/// goes on when it is called again. Column families of the user are copied as far as RocksDB can
/// read them; if one has an order or tables of the user's program, and all has to be copied,
/// nothing is changed. A cold store that does not fit is bound to the storage as it is, unless it
/// belongs to another one; its files are not repaired: a key in a damaged block answers
/// storage_damaged. Errors: as verify_storage(), storage_failed.
[[nodiscard]] Result<StorageRepair> repair_storage(const std::string& directory,
                                                   const StorageRepairOptions& options,
                                                   const TellProgress& progress = {});
[[nodiscard]] Result<StorageRepair> repair_storage(const std::string& directory, bool accept_loss,
                                                   const TellProgress& progress = {});

/// A mutation as it lies on the disk.
struct StoredMutation {
  std::string file;         ///< path of a segment, or of a file behind the journal
  std::uint64_t place = 0;  ///< in the journal; of a blob, before all that is in it
  Mutation mutation;        ///< valid during the call; its times are unix_ms as Timestamp
  std::uint64_t bytes = 0;  ///< as it is encoded
};

struct StorageInfo {
  struct SegmentInfo {
    std::string file;
    std::uint64_t number = 0;
    std::uint64_t begin = 0;  ///< places
    std::uint64_t end = 0;
    std::uint64_t records = 0;
    std::uint64_t unfinished = 0;
    bool damaged = false;
  };
  struct FileInfo {
    std::string file;
    std::string family;
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;     ///< of the journal's family: blobs
    std::uint64_t span_first = 0;  ///< the journal's family only
    std::uint64_t span_last = 0;
  };
  struct PartInfo {
    std::uint64_t number = 0;
    std::uint64_t generation = 0;
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    std::string file;
  };
  /// Of the cold store.
  struct ColdInfo {
    std::uint64_t needed_id = 0;  ///< 0: no record has left the storage
    std::uint64_t needed_generation = 0;
    std::string directory{};  ///< empty: none is there
    std::uint64_t id = 0;
    std::uint64_t generation = 0;
    std::vector<PartInfo> parts{};
  };
  std::uint64_t format = 0;
  std::uint64_t storage_id = 0;
  Version versions = 0;       ///< no version above this was handed out
  std::uint64_t floor = 0;    ///< places before it are void
  std::uint64_t drained = 0;  ///< places before it are in files
  std::uint64_t tail = 0;     ///< the journal was written up to here, by the mark
  std::uint64_t synced = 0;   ///< the same
  std::int64_t line_ms = 0;   ///< the time line, which follows unix time, when last written
  std::string boot_id;
  std::vector<SegmentInfo> segments;
  std::vector<FileInfo> files;
  ColdInfo cold;
};

/// The readable content of a storage; changes nothing. `visit`, if given, sees every mutation that
/// is whole, in no order. Errors: storage_in_use, storage_newer, storage_failed, and
/// storage_damaged where the description cannot be read. `cold` as in verify_storage().
[[nodiscard]] Result<StorageInfo> inspect_storage(
    const std::string& directory, const std::function<void(const StoredMutation&)>& visit = {},
    const std::string& cold = {});

/// Copies a backup made by Storage::backup() to `to`, which must not be there, and raises the
/// versions by 2^48, so that no epoch handed out after the backup was made is ever given again. Its
/// cold store is in "cold" there, and fits no other storage; it may be moved.
/// `to` appears when all of it has reached the disk. Errors: storage_in_use, storage_newer,
/// storage_damaged, storage_failed; then there is no `to`.
[[nodiscard]] Status restore_backup(const std::string& from, const std::string& to,
                                    const TellProgress& progress = {});

/// Removes older backups of the same storage beside the complete one `newest` whose names begin
/// with `prefix`, so that `keep` of these are left, it included, and those that were not completed.
/// Links keep the files that the others share. Errors: storage_failed (`newest` or a backup to
/// remove cannot be read as a backup, or cannot be removed; one that was partly removed counts as
/// not complete).
[[nodiscard]] Status keep_newest_backups(const std::string& newest, const std::string& prefix,
                                         std::size_t keep);

}  // namespace semel
