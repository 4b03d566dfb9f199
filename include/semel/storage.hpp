// Durability: a Journal over RocksDB, and the way back into an engine.
//
//   auto storage = Storage::open({.directory = dir}, clock);
//   auto engine = Engine::open({.clock = &clock, .journal = storage.get(),
//                               .durability = Durability::logged,
//                               .first_version = storage->first_version()});
//   storage->recover(*engine);
//
// Source: docs/disk-format.md, docs/guarantees.md
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"

namespace semel {

struct StorageOptions {
  std::string directory{};  ///< made if it is not there; one process at a time
  /// What was logged is synced this often; a power cut takes at most that much. 1..60,000 ms.
  Millis sync_every{1'000};
  /// Mutations that wait to be written. Above it new work is refused. 1 MiB..1 GiB.
  std::size_t queue_bytes = std::size_t{64} << 20;
  /// What ends within one such span leaves the disk together. 1 s..1 day.
  Millis span{3'600'000};
  unsigned recovery_threads = 2;  ///< 1..64
};

struct RecoveryProgress {
  std::uint64_t bytes = 0;        ///< read so far
  std::uint64_t bytes_total = 0;  ///< about
  std::uint64_t mutations = 0;
};

struct RecoveryReport {
  std::uint64_t mutations = 0;  ///< read and put back, or found to be older than another
  std::uint64_t ended = 0;      ///< of them, records whose time has ended
  std::uint64_t bytes = 0;
};

struct StorageStats {
  bool accepting = true;        ///< false: new work is refused
  std::string trouble;          ///< why, in words; empty: none
  std::uint64_t groups = 0;     ///< commits written
  std::uint64_t syncs = 0;      ///< of them, and of the interval, with fdatasync
  std::uint64_t mutations = 0;  ///< written
  std::uint64_t bytes = 0;      ///< written to the log
  std::uint64_t bytes_queued = 0;
  std::uint64_t bytes_disk = 0;  ///< of all files, about
};

class Storage final : public Journal {
 public:
  /// Errors: bad_option, storage_in_use, storage_damaged (names the file), storage_newer (written
  /// by a later release), storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Storage>> open(const StorageOptions& options,
                                                             const Clock& clock);
  /// Writes what is queued and syncs it.
  ~Storage() override;

  /// Larger than any version ever handed out by an engine on this storage.
  [[nodiscard]] Version first_version() const noexcept;

  /// Puts everything back into `engine`, which is new and not used by anybody yet. `progress` is
  /// called now and then, by one thread at a time. Errors: storage_damaged, memory_full.
  [[nodiscard]] Result<RecoveryReport> recover(
      Engine& engine, const std::function<void(const RecoveryProgress&)>& progress = {});

  // Journal
  [[nodiscard]] Ticket append(std::span<const Mutation> group) override;
  [[nodiscard]] Status wait(Ticket ticket, Durability level) override;
  [[nodiscard]] Ticket newest() const override;
  [[nodiscard]] bool accepts_writes() const noexcept override;

  /// Makes the disk smaller by what has ended. The storage itself forgets ended spans as they end,
  /// which frees whole files; this also rewrites the files they share. Progress: blocks for that.
  [[nodiscard]] Status drop_ended();

  [[nodiscard]] StorageStats stats() const;

  class Impl;

 private:
  explicit Storage(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
