#include "storage/storage_join.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "semel/engine_host.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/joint/effects_check.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::storage {

namespace {

constexpr std::string_view own_families[] = {"default", journal_family, joined_family};

}  // namespace

bool is_own_family(std::string_view name) noexcept {
  return std::find(std::begin(own_families), std::end(own_families), name) !=
         std::end(own_families);
}

// --- the way into the storage -------------------------------------------------------------------

Ticket JoinedWriter::append(std::span<const Mutation> group) {
  if (JoinedCommit* const own = commits_.own(); own != nullptr) return collect(*own, group);
  const Timestamp now = context_.clock.now();
  const auto encode_all = [&] {
    std::size_t bytes = 0;
    for (const Mutation& mutation : group) bytes += encoded_bytes(mutation, now);
    std::string all(bytes, '\0');
    char* to = all.data();
    for (const Mutation& mutation : group) to = encode(mutation, context_.durable_clock, now, to);
    return all;
  };
  switch (commits_.follow(group, now, encode_all)) {
    case JoinedCommits::Follow::no:
      return health_.fail_if_refused(log_.append(group, context_.durable_clock, now));
    case JoinedCommits::Follow::yes:
      return log_.tail();  // the joined commit ends when this is in the journal
    case JoinedCommits::Follow::full:
      break;
  }
  health_.fail({ErrorCode::outcome_unknown,
                "a claim was changed too often while its joined commit was being written"});
  return 0;
}

Ticket JoinedWriter::collect(JoinedCommit& join, std::span<const Mutation> group) {
  const Timestamp now = context_.clock.now();
  const Ticket ticket = health_.fail_if_refused(log_.reserve());
  if (ticket == 0) {
    join.lost = true;
    return 0;
  }
  // The offset of the reserved record itself; `ticket` is its end, where the next record begins.
  const LogOffset offset = ticket - record_bytes(0);
  std::string bytes;
  for (const Mutation& mutation : group) {
    bytes.resize(encoded_bytes(mutation, now));
    encode(mutation, context_.durable_clock, now, bytes.data());
    join.blobs.add(span_of(context_.durable_clock.to_durable_ms(mutation.keep_until),
                           context_.durable_clock.to_durable_ms(now), context_.options.span),
                   offset, bytes);
  }
  SEMEL_ASSERT(offset < ticket);
  commits_.add(join, ticket, group);
  return ticket;
}

void JoinedWriter::note_terms(LogOffset end) noexcept {
  // mo: relaxed: only the word itself is compared. release [storage.terms]: they are in the
  // journal.
  LogOffset before = terms_end_.load(std::memory_order_relaxed);
  while (before < end && !terms_end_.compare_exchange_weak(before, end, std::memory_order_release,
                                                           std::memory_order_relaxed)) {
  }
}

bool JoinedWriter::defer(Function<void()>& then) {
  JoinedCommit* const own = commits_.any() ? commits_.own() : nullptr;
  if (own == nullptr) return false;
  own->afterwards.push_back(std::move(then));
  return true;
}

void JoinedWriter::serve_user() {
  for (rocksdb::ColumnFamilyHandle* family : files_.archive().families()) {
    effect_families_.add(*family, is_own_family(family->GetName()));
  }
  user_database_ =
      std::make_unique<UserDatabase>(files_.archive().database(), effect_families_, gate_);
}

// --- the commit ---------------------------------------------------------------------------------

/// The claim's change must come to this storage by this call, on this thread. Elsewhere it would
/// say "done" without the effects.
Status JoinedWriter::check_caller(const Claims& claims, const Journal* journal) const {
  const auto bad = [](const char* what) { return Error{ErrorCode::bad_option, what}; };
  {
    // The engine of `claims` may have ended: it is not touched before it is known to be ours.
    const base::SharedLock lock{engine_.mutex};
    if (engine_.get() != &claims.engine())
      return bad("the claims are not of the engine that was recovered from this storage");
  }
  Engine& engine = claims.engine();
  if (engine.host().journal() != journal)
    return bad("the engine of the claims has another journal");
  if (engine.host().is_replica())
    return bad("the engine is a replica: the log of its group decides");
  if (engine.host().in_section()) return bad("this thread is inside a section: end it first");
  if (JoinedCommits::is_joining()) return bad("this thread is in a joined commit already");
  return Done{};
}

/// A write on a full disk would stop RocksDB, and with it the storage, until the next open.
Status JoinedWriter::check_space(std::size_t bytes) const {
  constexpr std::size_t margin = std::size_t{4} << 20;
  if (context_.disk.bytes_free(context_.options.directory) >= bytes + margin) return Done{};
  return Error{ErrorCode::storage_failed,
               context_.options.directory + ": no space for " + std::to_string(bytes) + " bytes"};
}

Result<JoinedOutcome> JoinedWriter::complete(Claims& claims, const OwnerCall& call,
                                             const rocksdb::WriteBatch& effects, Durability level,
                                             const Journal* journal) {
  if (level != Durability::logged && level != Durability::synced) {
    return Error{ErrorCode::bad_option,
                 "level = " + std::to_string(static_cast<unsigned>(level)) + ", logged or synced"};
  }
  if (!files_.has_joined()) {
    return Error{ErrorCode::bad_option,
                 context_.options.directory + ": was not opened by open_storage"};
  }
  SEMEL_CHECK(check_caller(claims, journal));
  JoinedGate::Pass pass{gate_};  // from here on no family is dropped
  SEMEL_CHECK(check_effects(files_.archive().database(), effect_families_, effects));
  SEMEL_CHECK(check_space(effects.GetDataSize() + call.payload.size()));
  JoinedOutcome outcome;
  JoinedCommit join;
  const bool begun = commits_.begin(join);
  SEMEL_ASSERT(begun);
  outcome.owner = claims.complete(call);
  // A repeat changes nothing. Other changes of this thread in the commit are written without
  // effects.
  outcome.written =
      outcome.owner.answer == OwnerAnswer::ok && join.has_changed(outcome.owner.version);
  SEMEL_CHECK(end(join, outcome.written ? &effects : nullptr, level, pass));
  if (outcome.written || outcome.owner.error != ErrorCode::ok) return outcome;
  // The answer depends on changes of other callers.
  SEMEL_CHECK(waiters_.wait(log_.tail(), std::max(level, join.level)));
  return outcome;
}

Status JoinedWriter::end(JoinedCommit& join, const rocksdb::WriteBatch* effects, Durability level,
                         JoinedGate::Pass& pass) {
  commits_.leave(join);
  level = std::max(level, join.level);
  Status status = Done{};
  if (join.lost) {
    status = Error{ErrorCode::outcome_unknown,
                   context_.options.directory +
                       ": a change was not taken, for want of memory or because "
                       "the storage is being closed"};
  } else if (join.ticket != 0) {
    status = write(join, effects, level);
  }
  // Before any waiter of the commit is released.
  if (!status) health_.fail(status.error());
  // A failed write is not synced: RocksDB's log must not be used any more.
  const bool synced = !status || level == Durability::synced;
  commits_.end(join, synced, [&](Bytes mutations, Timestamp when) {
    if (!status) return;
    std::vector<Mutation> group;
    while (!mutations.empty()) {
      const bool is_read = decode(mutations, context_.durable_clock, when, group.emplace_back());
      SEMEL_ASSERT(is_read);  // append() wrote these bytes
      if (!is_read) return;
    }
    static_cast<void>(log_.append(group, context_.durable_clock,
                                  when));  // 0: the storage is closing, and no waiter is left
  });
  pass.leave();  // before the callbacks, which may commit in turn
  waiters_.complete();
  for (const Function<void()>& then : join.afterwards) then();
  return status;
}

Status JoinedWriter::write(const JoinedCommit& join, const rocksdb::WriteBatch* effects,
                           Durability level) {
  if (health_.has_failed()) return health_.unknown();
  // A copy: the caller's batch stays unchanged, and its size limit does not apply.
  rocksdb::WriteBatch batch;
  if (effects != nullptr) batch = rocksdb::WriteBatch{effects->Data()};
  rocksdb::ColumnFamilyHandle* const family = files_.joined().family();
  rocksdb::Status status;
  for (const auto& [span, blobs] : join.blobs.spans()) {
    for (const BlobSet::Blob& blob : blobs) {
      if (status.ok()) status = batch.Put(family, blob.key.bytes(), blob.bytes);
    }
  }
  // A joined commit does not go through the journal. Without this a power cut could leave its claim
  // and take the terms of the claim's namespace, and the storage would be refused. Waits only after
  // a namespace was declared or changed.
  const LogOffset terms =
      terms_end_.load(std::memory_order_acquire);  // mo: acquire [storage.terms]
  SEMEL_CHECK(waiters_.await_log(terms, "the terms of a namespace"));
  rocksdb::WriteOptions options;
  options.sync = level == Durability::synced;
  const std::uint64_t before = files_.archive().database().GetLatestSequenceNumber();
  const Status written = files_.archive().guarded([&] {
    if (status.ok()) status = files_.archive().database().Write(options, &batch);
    return status.ok() ? Status{Done{}} : error_of(status, context_.options.directory + "/rocksdb");
  });
  if (!written) return Error{ErrorCode::outcome_unknown, written.error().detail};
  // This write has at least these numbers. The newest may belong to another write that is not
  // synced.
  if (options.sync) files_.reached_sequence(before + batch.Count());
  return Done{};
}

}  // namespace semel::storage
