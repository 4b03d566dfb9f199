// Joined commits: the changes of one call go to RocksDB in one write with the caller's effects, not
// through the journal. joined_commits.hpp describes how the rest of the storage takes that into
// account.
//
// Concurrency
//   [storage.terms]     the end of the newest terms of a namespace in the journal: release by the
//                       thread that appended them, acquire load before a joined commit is written.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "semel/claims.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/rocksdb.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/joint/effect_families.hpp"
#include "storage/joint/joined_commits.hpp"
#include "storage/joint/joined_gate.hpp"
#include "storage/joint/user_database.hpp"
#include "storage/journal/log.hpp"
#include "storage/start/context.hpp"
#include "storage/sync/health.hpp"
#include "storage/sync/waiters.hpp"

namespace semel::storage {

/// Not of the user.
[[nodiscard]] bool is_own_family(std::string_view name) noexcept;

/// Thread-safe.
class JoinedWriter {
 public:
  JoinedWriter(const Context& context, Log& log, StoredFiles& files, const LiveEngine& engine,
               JoinedCommits& commits, Health& health, Waiters& waiters) noexcept
      : context_(context),
        log_(log),
        files_(files),
        engine_(engine),
        commits_(commits),
        health_(health),
        waiters_(waiters) {}

  /// For open_storage(), before anything is written.
  void serve_user();
  [[nodiscard]] rocksdb::DB& database() noexcept {
    return user_database_ != nullptr ? *user_database_ : files_.archive().database();
  }
  /// A backup closes it.
  [[nodiscard]] JoinedGate& gate() noexcept { return gate_; }

  // --- the way into the storage ------------------------------------------------------------------
  /// Appends while a commit is in progress: to this thread's commit, after another one that has
  /// changed one of the keys, or to the journal. Returns as Log::append().
  [[nodiscard]] Ticket append(std::span<const Mutation> group);
  /// The journal has terms of a namespace up to `end`.
  void note_terms(LogOffset end) noexcept;
  /// Takes `then` into this thread's commit, whose end calls it. False: it is in none.
  [[nodiscard]] bool defer(Function<void()>& then);

  /// complete_joined() of semel/rocksdb.hpp. `journal`: what the engine must append to.
  [[nodiscard]] Result<JoinedOutcome> complete(Claims& claims, const OwnerCall& call,
                                               const rocksdb::WriteBatch& effects, Durability level,
                                               const Journal* journal);

 private:
  [[nodiscard]] Ticket collect(JoinedCommit& join, std::span<const Mutation> group);
  [[nodiscard]] Status check_caller(const Claims& claims, const Journal* journal) const
      SEMEL_EXCLUDES(engine_.mutex);
  [[nodiscard]] Status check_space(std::size_t bytes) const;
  /// `effects` null: without any.
  [[nodiscard]] Status end(JoinedCommit& join, const rocksdb::WriteBatch* effects, Durability level,
                           JoinedGate::Pass& pass);
  [[nodiscard]] Status write(const JoinedCommit& join, const rocksdb::WriteBatch* effects,
                             Durability level);

  const Context& context_;
  Log& log_;
  StoredFiles& files_;
  const LiveEngine& engine_;
  JoinedCommits& commits_;
  Health& health_;
  Waiters& waiters_;
  JoinedGate gate_;
  EffectFamilies effect_families_;
  std::unique_ptr<UserDatabase> user_database_;  // null: not opened by open_storage
  std::atomic<LogOffset> terms_end_{0};          // [storage.terms]
};

}  // namespace semel::storage
