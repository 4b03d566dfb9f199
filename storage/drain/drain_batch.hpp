// Mutations of the journal on their way into files: by span, without those that need not be kept.
//
// A mutation need not be kept if it has ended, or if a later one has replaced it:
// 1. Ask the engine for each mutation of a batch. Its table names a newer record only if the
//    mutation of that record is in the log (EngineHost::superseded).
// 2. Read the tail of the log: the newer mutations are before it.
// 3. Wait until the log is synced up to there.
// 4. Only then write files and release the segments.
//
// A backup copies the files without the journal, so nothing is dropped while one is made
// (Drainer::KeepsAll).
//
// A crash at any step leaves either the older mutation in its segment or the newer one synced in
// the journal. The newer one does not end before the older one could be forgotten, so nothing older
// than both can come back.
#pragma once

#include <cstdint>
#include <vector>

#include "semel/engine.hpp"
#include "semel/engine_host.hpp"
#include "semel/types.hpp"
#include "storage/archive/blob_set.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/start/context.hpp"

namespace semel::storage {

struct DrainCounts {
  std::uint64_t mutations = 0;  ///< that went to files
  std::uint64_t ended = 0;
  std::uint64_t superseded = 0;
};

class DrainBatch {
 public:
  /// `from`: earlier mutations are in the archive already; `parts_from`: groups that begin before
  /// it are ignored. `drops`: superseded mutations are left out.
  DrainBatch(const Context& context, const StoredFiles& files, LiveEngine& engine, bool drops,
             LogOffset from = 0, LogOffset parts_from = 0)
      : context_(context),
        files_(files),
        engine_(engine),
        drops_(drops),
        from_(from),
        ended_ms_(files.ended_now()),
        parts_(parts_from) {
    candidates_.reserve(EngineHost::superseded_max);
  }

  void add(const LogRecord& record);
  /// Sorts the mutations that were added last into those that go to files and those that are
  /// superseded. To be called while their bytes are there.
  void skip_superseded();

  [[nodiscard]] const BlobSet& blobs() const noexcept { return blobs_; }
  [[nodiscard]] const PartCollector& parts() const noexcept { return parts_; }
  [[nodiscard]] const DrainCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] Version largest() const noexcept { return largest_; }
  /// Its seals are valid, so this is a bug or bad memory.
  [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }

 private:
  /// A mutation before it is known whether it must be kept.
  struct Candidate {
    LogOffset offset = 0;
    Bytes bytes;                         // in the segment, or in a group put together from parts
    const MutationBase* base = nullptr;  // of the near form, in the segment's header
    MutationExtent extent;
  };
  [[nodiscard]] std::uint32_t superseded();
  [[nodiscard]] bool may_be_needed(const MutationExtent& extent);

  const Context& context_;
  const StoredFiles& files_;
  LiveEngine& engine_;
  const bool drops_;
  const LogOffset from_;
  const std::uint64_t ended_ms_;  // mutations to be kept until then have ended
  PartCollector parts_;           // of groups that begin in a segment that is kept
  BlobSet blobs_;
  std::vector<Candidate> candidates_;  // at most EngineHost::superseded_max
  Version largest_ = 0;
  DrainCounts counts_;
  bool is_damaged_ = false;
};

}  // namespace semel::storage
