// What is asked of the storage: load, synced callers, recovery, the tail of a claim beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/engine/ours.hpp"
#include "bench/harness/histogram.hpp"
#include "semel/storage.hpp"

namespace semel::bench {

/// CPU time of the calling process, all of its threads.
[[nodiscard]] double process_cpu_ns();

/// An engine, on a storage if there is a directory. Whatever cannot be opened ends the process.
class Ground {
 public:
  /// `directory` empty: no storage.
  Ground(const std::string& directory, Durability durability, std::uint64_t records);

  [[nodiscard]] Engine& engine() noexcept { return *engine_; }
  /// Of a ground with a storage.
  [[nodiscard]] Storage& storage() noexcept { return *storage_; }
  RecoveryReport recover();

  /// Ends both, first the engine. Returns the CPU time that the end of the storage took.
  double close();

 private:
  std::unique_ptr<Storage> storage_;  // outlives the engine
  std::unique_ptr<Engine> engine_;
};

/// Asks again while the storage takes no more work; returns how often it had to. Back-pressure is
/// part of what is measured, so the time of it counts.
template <class Once>
std::uint64_t until_taken(Once&& once) {
  constexpr std::uint64_t pause = 100'000;
  constexpr std::uint64_t refusals_max = 100'000;
  std::uint64_t refusals = 0;
  while (!once()) {
    require(++refusals < refusals_max, "the storage has taken no work for ten seconds");
    pause_ns(pause);
  }
  return refusals;
}

/// SET of a new key with a value of `bytes`; false: refused, nothing was changed. Anything else
/// than a grant is wrong.
[[nodiscard]] bool set_new(Store& store, std::uint64_t index, Bytes bytes);
[[nodiscard]] inline bool set_new(Store& store, std::uint64_t index) {
  const std::uint64_t value = value_of(index);
  return set_new(store, index, bytes_of(value));
}

/// New keys by two threads: SET NX, or claim + complete.
struct Load {
  std::string directory{};  ///< empty: no storage
  Durability durability = Durability::memory;
  bool claims = false;     ///< claim + complete, each pair one operation
  std::size_t batch = 1;   ///< 1..16
  std::uint64_t records;   ///< at most so many operations
  double seconds;          ///< and not longer
  bool look_back = false;  ///< recover afterwards, compare, and weigh the directory
};
struct LoadFigures {
  double rate = 0;         ///< operations a second
  double made = 0;         ///< operations
  double cpu_ns = 0;       ///< of an operation, the closing of the storage included
  double log_bytes = 0;    ///< of a mutation
  double refusals = 0;     ///< calls that had to be repeated
  double disk_bytes = 0;   ///< of a record after everything was closed, recovered and closed again
  double table_bytes = 0;  ///< of them, in RocksDB's tables
};
[[nodiscard]] LoadFigures measure_load(const Load& load);

/// Callers of SET NX at `synced`, each waiting for its answer before it asks again.
struct SyncedSetup {
  std::string directory;
  unsigned callers;
  double seconds;
};
struct SyncedFigures {
  double rate = 0;            ///< answers a second
  double log_bytes = 0;       ///< of a mutation
  double calls_per_sync = 0;  ///< answers for one fdatasync
};
[[nodiscard]] SyncedFigures measure_synced_threads(const SyncedSetup& setup);
/// Callers without a thread of their own: a callback gets the answer and makes the next call.
[[nodiscard]] SyncedFigures measure_synced_callbacks(const SyncedSetup& setup);

/// Open to recovered, with as many threads as StorageOptions has by default. Records a second; the
/// directory holds those of a Load of SETs, from 0 on.
[[nodiscard]] double measure_recovery(const std::string& directory, std::uint64_t records);

/// Claims at memory level of one thread (9 of 10 are repeats), while another makes new records at a
/// steady pace; the storage, if there is one, writes behind both.
struct TailSetup {
  std::string directory;  ///< empty: no storage
  std::uint64_t living;   ///< records there from the start
  double seconds;
};
struct ClaimTails {
  Tail all;
  Tail fresh;             ///< new keys only
  double loaded = 0;      ///< records a second that the other thread made
  double refusals = 0;    ///< of the claims, each repeated until it was taken
  double disk_bytes = 0;  ///< in RocksDB's tables at the end
};
[[nodiscard]] ClaimTails measure_claim_tails(const TailSetup& setup);

}  // namespace semel::bench
