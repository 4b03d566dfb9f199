// Joined commits: the changes of one call go to RocksDB in one write with the caller's effects, not
// through the log. joined_commits.hpp describes how the rest of the storage takes that into
// account.
#include <algorithm>

#include "base/assert.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/joint/effects_check.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::JoinedCommit;
using storage::JoinedCommits;

namespace {

constexpr std::string_view own_families[] = {"default", storage::journal_family,
                                             storage::joined_family};

bool is_own(std::string_view name) noexcept {
  return std::find(std::begin(own_families), std::end(own_families), name) !=
         std::end(own_families);
}

Status check_families(const std::vector<rocksdb::ColumnFamilyDescriptor>& families) {
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::string& name = families[i].name;
    const auto bad = [&](const std::string& what) {
      return Error{ErrorCode::bad_option, "column family '" + name + "' " + what};
    };
    if (name.empty()) return bad("has no name");
    if (is_own(name)) return bad("is Semel's own");
    for (std::size_t j = 0; j < i; ++j) {
      if (families[j].name == name) return bad("is named twice");
    }
  }
  return Done{};
}

}  // namespace

// --- the way into the storage -------------------------------------------------------------------

Ticket Storage::Impl::append_beside_joined(std::span<const Mutation> group) {
  if (JoinedCommit* const own = joined_commits_.own(); own != nullptr) return collect(*own, group);
  const Timestamp now = clock_.now();
  const auto encode = [&] {
    std::size_t bytes = 0;
    for (const Mutation& mutation : group) bytes += storage::encoded_bytes(mutation, now);
    std::string all(bytes, '\0');
    char* to = all.data();
    for (const Mutation& mutation : group) to = storage::encode(mutation, durable_clock_, now, to);
    return all;
  };
  switch (joined_commits_.follow(group, now, encode)) {
    case JoinedCommits::Follow::no:
      return fail_if_refused(log_->append(group, durable_clock_, now));
    case JoinedCommits::Follow::yes:
      return log_->tail();  // the joined commit ends when this is in the log
    case JoinedCommits::Follow::full:
      break;
  }
  set_failed({ErrorCode::outcome_unknown,
              "a claim was changed too often while its joined commit was being written"});
  return 0;
}

Ticket Storage::Impl::collect(JoinedCommit& join, std::span<const Mutation> group) {
  const Timestamp now = clock_.now();
  const Ticket ticket = fail_if_refused(log_->reserve());
  if (ticket == 0) {
    join.lost = true;
    return 0;
  }
  // The offset of the reserved record itself; `ticket` is its end, where the next record begins.
  const storage::LogOffset offset = ticket - storage::record_bytes(0);
  std::string bytes;
  for (const Mutation& mutation : group) {
    bytes.resize(storage::encoded_bytes(mutation, now));
    storage::encode(mutation, durable_clock_, now, bytes.data());
    join.blobs.add(storage::span_of(durable_clock_.to_durable_ms(mutation.keep_until),
                                    durable_clock_.to_durable_ms(now), options_.span),
                   offset, bytes);
  }
  SEMEL_ASSERT(offset < ticket);
  joined_commits_.add(join, ticket, group);
  return ticket;
}

bool Storage::Impl::defer(std::function<void()>& then) {
  JoinedCommit* const own = joined_commits_.any() ? joined_commits_.own() : nullptr;
  if (own == nullptr) return false;
  own->afterwards.push_back(std::move(then));
  return true;
}

void Storage::Impl::serve_user() {
  for (rocksdb::ColumnFamilyHandle* family : archive_->families()) {
    effect_families_.add(*family, is_own(family->GetName()));
  }
  user_database_ =
      std::make_unique<storage::UserDatabase>(archive_->database(), effect_families_, joined_gate_);
}

// --- the commit ---------------------------------------------------------------------------------

/// The claim's change must come to this storage by this call, on this thread. Elsewhere it would
/// say "done" without the effects.
Status Storage::Impl::check_caller(const Claims& claims) {
  const auto bad = [](const char* what) { return Error{ErrorCode::bad_option, what}; };
  {
    // The engine of `claims` may have ended: it is not touched before it is known to be ours.
    const base::SharedLock lock{engine_mutex_};
    if (engine_ != &claims.engine())
      return bad("the claims are not of the engine that was recovered from this storage");
  }
  const Engine& engine = claims.engine();
  if (engine.journal() != journal_) return bad("the engine of the claims has another journal");
  if (engine.is_replica()) return bad("the engine is a replica: the log of its group decides");
  if (engine.in_section()) return bad("this thread is inside a section: end it first");
  if (JoinedCommits::is_joining()) return bad("this thread is in a joined commit already");
  return Done{};
}

/// A write on a full disk would stop RocksDB, and with it the storage, until the next open.
Status Storage::Impl::check_space(std::size_t bytes) const {
  constexpr std::size_t margin = std::size_t{4} << 20;
  if (disk_.bytes_free(options_.directory) >= bytes + margin) return Done{};
  return Error{ErrorCode::storage_failed,
               options_.directory + ": no space for " + std::to_string(bytes) + " bytes"};
}

Result<JoinedOutcome> Storage::Impl::complete_joined(Claims& claims, const OwnerCall& call,
                                                     const rocksdb::WriteBatch& effects,
                                                     Durability level) {
  if (is_forked()) return Error{ErrorCode::forked, {}};
  if (level != Durability::logged && level != Durability::synced) {
    return Error{ErrorCode::bad_option,
                 "level = " + std::to_string(static_cast<unsigned>(level)) + ", logged or synced"};
  }
  if (joined_files().family() == nullptr) {
    return Error{ErrorCode::bad_option, options_.directory + ": was not opened by open_storage"};
  }
  SEMEL_CHECK(check_caller(claims));
  storage::JoinedGate::Pass pass{joined_gate_};  // from here on no family is dropped
  SEMEL_CHECK(storage::check_effects(archive_->database(), effect_families_, effects));
  SEMEL_CHECK(check_space(effects.GetDataSize() + call.payload.size()));
  JoinedOutcome outcome;
  JoinedCommit join;
  const bool begun = joined_commits_.begin(join);
  SEMEL_ASSERT(begun);
  outcome.owner = claims.complete(call);
  // A repeat changes nothing. What else this thread changed meanwhile is written without effects.
  outcome.written =
      outcome.owner.answer == OwnerAnswer::ok && join.has_changed(outcome.owner.version);
  SEMEL_CHECK(end_joined(join, outcome.written ? &effects : nullptr, level, pass));
  if (outcome.written || outcome.owner.error != ErrorCode::ok) return outcome;
  // The answer depends on changes of other callers.
  SEMEL_CHECK(wait(newest(), std::max(level, join.level)));
  return outcome;
}

Status Storage::Impl::end_joined(JoinedCommit& join, const rocksdb::WriteBatch* effects,
                                 Durability level, storage::JoinedGate::Pass& pass) {
  joined_commits_.leave(join);
  level = std::max(level, join.level);
  Status status = Done{};
  if (join.lost) {
    status = Error{ErrorCode::outcome_unknown,
                   options_.directory +
                       ": a change was not taken, for want of memory or because "
                       "the storage is being closed"};
  } else if (join.ticket != 0) {
    status = write_joined(join, effects, level);
  }
  // Before any waiter of the commit is released.
  if (!status) set_failed(status.error());
  // A failed write is not synced: RocksDB's log must not be used any more.
  const bool synced = !status || level == Durability::synced;
  joined_commits_.end(join, synced, [&](Bytes mutations, Timestamp when) {
    if (!status) return;
    std::vector<Mutation> group;
    while (!mutations.empty()) {
      const bool is_read = storage::decode(mutations, durable_clock_, when, group.emplace_back());
      SEMEL_ASSERT(is_read);  // append_beside_joined() wrote these bytes
      if (!is_read) return;
    }
    static_cast<void>(log_->append(group, durable_clock_,
                                   when));  // 0: the storage is closing, and no waiter is left
  });
  pass.leave();  // before the callbacks, which may commit in turn
  complete_waiters();
  for (const std::function<void()>& then : join.afterwards) then();
  return status;
}

/// A joined commit does not go through the log. Without this a power cut could leave its claim and
/// take the terms of the claim's namespace, and the storage would be refused. Waits only after a
/// namespace was declared or changed.
Status Storage::Impl::sync_terms() {
  // mo: acquire [storage.terms]
  const storage::LogOffset end = terms_end_.load(std::memory_order_acquire);
  const storage::Stopwatch time;
  for (;;) {
    const std::uint32_t seen = waiters_signal_.seen();
    // mo: acquire [storage.failed]
    if (failed_.load(std::memory_order_acquire)) return unknown();
    // mo: acquire [storage.synced]
    if (synced_.load(std::memory_order_acquire) >= end) return Done{};
    request_sync(end);
    const Millis left = options_.confirm_within - time.passed();
    if (left <= Millis{0}) {
      return Error{ErrorCode::outcome_unknown,
                   "the terms of a namespace could not be synced within confirm_within = " +
                       std::to_string(options_.confirm_within.count()) + " ms"};
    }
    waiters_signal_.wait(seen, left);
  }
}

Status Storage::Impl::write_joined(const JoinedCommit& join, const rocksdb::WriteBatch* effects,
                                   Durability level) {
  // mo: acquire [storage.failed]
  if (failed_.load(std::memory_order_acquire)) return unknown();
  // A copy: the caller's batch stays unchanged, and its size limit does not apply.
  rocksdb::WriteBatch batch;
  if (effects != nullptr) batch = rocksdb::WriteBatch{effects->Data()};
  rocksdb::ColumnFamilyHandle* const family = joined_files().family();
  rocksdb::Status status;
  for (const auto& [span, blobs] : join.blobs.spans()) {
    for (const storage::BlobSet::Blob& blob : blobs) {
      if (status.ok()) status = batch.Put(family, blob.key.bytes(), blob.bytes);
    }
  }
  SEMEL_CHECK(sync_terms());
  rocksdb::WriteOptions options;
  options.sync = level == Durability::synced;
  const std::uint64_t before = archive_->database().GetLatestSequenceNumber();
  const Status written = archive_->guarded([&] {
    if (status.ok()) status = archive_->database().Write(options, &batch);
    return status.ok() ? Status{Done{}}
                       : storage::error_of(status, options_.directory + "/rocksdb");
  });
  if (!written) return Error{ErrorCode::outcome_unknown, written.error().detail};
  // This write has at least these numbers. The newest may belong to another write that is not
  // synced.
  if (options.sync) reached_sequence(before + batch.Count());
  return Done{};
}

void Storage::Impl::reached_sequence(std::uint64_t sequence) noexcept {
  // mo: relaxed: only the word itself is compared. release [storage.rocks_sequence]: the checkpoint
  //     may only name numbers of synced writes.
  std::uint64_t before = rocks_sequence_.load(std::memory_order_relaxed);
  while (before < sequence &&
         !rocks_sequence_.compare_exchange_weak(before, sequence, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
}

void Storage::Impl::request_joined_sync(Ticket ticket) {
  if (joined_commits_.unsynced_before(ticket) && joined_commits_.request_sync())
    sync_signal_.raise();
}

// --- semel/rocksdb.hpp --------------------------------------------------------------------------

Result<std::unique_ptr<Storage>> open_storage(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  SEMEL_CHECK(check_families(families));
  families.emplace_back(storage::joined_family, storage::joined_options());
  SEMEL_TRY(storage, Storage::Impl::open(options, clock, std::move(families)));
  StorageAccess::impl(*storage).serve_user();
  return storage;
}

rocksdb::DB& database(Storage& storage) noexcept {
  return StorageAccess::impl(storage).user_database();
}

rocksdb::ColumnFamilyHandle* family(Storage& storage, const std::string& name) noexcept {
  return is_own(name) ? nullptr : StorageAccess::impl(storage).archive().family(name);
}

Result<JoinedOutcome> complete_joined(Storage& storage, Claims& claims, const OwnerCall& call,
                                      const rocksdb::WriteBatch& effects, Durability level) {
  return StorageAccess::impl(storage).complete_joined(claims, call, effects, level);
}

}  // namespace semel
