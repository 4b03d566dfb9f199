#include "engine/core/core.hpp"

#include <algorithm>
#include <string>

#include "engine/rules/claim_rules.hpp"
#include "engine/rules/kinds.hpp"

namespace semel::engine {

Core::Core(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      reserved_(region_.reserve(options.memory_bytes, options.memory_room_bytes)),
      arena_(region_),
      keys_(region_, options_),
      versions_(options.first_version, options.replicated),
      threads_(arena_, keys_) {}

Core::~Core() = default;

Status Core::start() {
  const std::string limit = std::to_string(options_.memory_bytes) + " bytes";
  if (!reserved_ || !arena_.is_ready()) return Error{ErrorCode::out_of_address_space, limit};
  SEMEL_CHECK(keys_.start(region_, threads_));
  if (const Status kept = start_insight(); !kept) return kept;
  const Timestamp now = now_of(clock_);
  {
    const base::MutexLock lock{wheel_mutex_};
    wheel_ = std::make_unique<TtlWheel>(region_, now);
  }
  // mo: relaxed: a statistic.
  wheel_time_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  return options_.cold == nullptr ? Status{Done{}} : attach_cold();
}

Status Core::start_insight() {
  const Error no_room{ErrorCode::bad_option,
                      "memory_bytes = " + std::to_string(options_.memory_bytes) +
                          ": holds no decision log of " +
                          std::to_string(options_.decision_log_bytes) + " bytes"};
  if (options_.decision_log_bytes != 0) {
    auto log = std::make_unique<DecisionLog>();
    if (!log->start(options_.decision_log_bytes)) return no_room;
    if (!region_.try_charge(log->bytes())) return no_room;
    decisions_ = std::move(log);
  }
  if (options_.counts_by_namespace) {
    auto counts = std::make_unique<ClaimCounts>();
    if (!counts->start() || !region_.try_charge(ClaimCounts::bytes())) return no_room;
    claim_counts_ = std::move(counts);
  }
  return Done{};
}

std::optional<ErrorCode> Core::apply_decision(ThreadContext& context, const KeyLocation& location,
                                              const TableProbe& probe, const Change& change,
                                              const Decision& decision, Version& version) {
  MutationSink* const sink = change.sink;
  if (options_.replicated && context.decision == nullptr && !decision.keeps_version) [[unlikely]] {
    return ErrorCode::refused;
  }
  if (options_.journal != nullptr && !accepts(sink, decision.frees())) [[unlikely]] {
    return ErrorCode::refused;
  }
  // Asked before anything is published: the timer of a live record must not be lost.
  if (!context.timers.is_ready()) [[unlikely]]
    return ErrorCode::memory_full;
  // What the change needs once it is visible, while it can still be refused.
  if (!context.retired.reserve()) [[unlikely]]
    return refuse(context);
  if (sink != nullptr) [[unlikely]]
    sink->make_room(change.key.size() + decision.value.size(), 1);
  Shard& shard = *location.shard;
  const bool erases = decision.action == Action::erase, keeps = decision.keeps_version;
  const Version fresh_version = keeps ? change.floor : versions_.candidate(context, change.floor);
  SEMEL_ASSERT(keeps || fresh_version > change.floor);
  if (fresh_version > Entry::version_max) [[unlikely]]
    return ErrorCode::versions_exhausted;
  const Entry* fresh = nullptr;
  if (probe.state == TableProbe::State::full) [[unlikely]] {
    if (!shard.table.grow(location.hash, probe.segment)) return ErrorCode::memory_full;
    return std::nullopt;
  }
  if (!erases) {
    if (decision.value.size() > options_.value_bytes_max + value_overhead_max) [[unlikely]] {
      return ErrorCode::value_too_long;
    }
    // A live record can be replaced out of the reserve: an owner must be able to finish.
    const bool precious = change.live || sink != nullptr;
    // Other threads cannot see a change inside a section before its group has been appended.
    const bool pending = options_.journal != nullptr && sink == nullptr;
    if (!precious && region_.is_over()) [[unlikely]]
      return ErrorCode::memory_full;
    fresh = make_entry(
        region_, context,
        {decision.kind, location.stored_db, decision.due, fresh_version, pending, decision.raw},
        change.key, decision.value, precious ? Region::Use::structure : Region::Use::record);
    if (fresh == nullptr) [[unlikely]]
      return ErrorCode::memory_full;
  } else if (!make_remains(context, location, probe, change, fresh_version, fresh)) [[unlikely]] {
    return ErrorCode::memory_full;
  }
  const bool won = fresh == nullptr ? shard.table.bury(probe, fresh_version)
                                    : shard.table.publish(probe, region_.handle_of(fresh));
  if (!won) [[unlikely]] {
    if (fresh != nullptr) context.cache.free(region_.handle_of(fresh));
    after_lost_race(context, shard, location.hash, probe);
    return std::nullopt;
  }
  version = keeps ? fresh_version : context.version_next++;
  if (!keeps) context.bump(Count::changes);
#if defined(SEMEL_VERIFY)
  if (const char* const broken = broken_by(location, probe, change.old, fresh, version))
    base::assertion_failed(broken, __FILE__, __LINE__);
#endif
  if (options_.journal != nullptr) append_mutation(context, change, fresh, erases, version);
  committed(context, location.hash, change.old, change.live, fresh,
            fresh == nullptr ? no_end : wake_of(*fresh));
  if (change.cold != nullptr) [[unlikely]] {
    options_.cold->superseded(keys_.rank_of(location.stored_db, change.key), change.cold->part,
                              location.stored_db, change.cold->record.due);
  }
  return ErrorCode::ok;
}

bool Core::make_remains(ThreadContext& context, const KeyLocation& location,
                        const TableProbe& probe, const Change& change, Version version,
                        const Entry*& remains) {
  const Timestamp beyond = cold_end(location.stored_db, change.key);
  if (beyond > change.now || change.old == nullptr) [[unlikely]] {
    // An older copy must not come back.
    remains = make_delete_marker(region_, context, location.stored_db, change.key, version,
                                 std::max(beyond, change.now + delete_marker_ttl),
                                 Region::Use::structure);
    return remains != nullptr;
  }
  if (slot::distance(probe.prefix) >= delete_marker_distance) [[unlikely]] {
    remains = make_delete_marker(region_, context, location.stored_db, change.key, version,
                                 change.now + delete_marker_ttl);
  }
  return true;
}

void Core::after_lost_race(ThreadContext& context, Shard& shard, HashBits hash,
                           const TableProbe& probe) {
  context.bump(Count::lost_races);
  KeySpace::help_growth(shard, hash, probe);
}

namespace {

/// What a record adds to the figures.
struct Weight {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t timed = 0;
};

Weight weight_of(const Entry& entry) noexcept {
  const Timestamp due = entry.due();
  const bool is_marker = entry.is_delete_marker();
  return {.bytes = Arena::rounded(entry.bytes()),
          .records = is_marker ? 0U : 1U,
          .timed = is_marker || due == no_end ? 0U : 1U};
}

}  // namespace

void Core::note_ended(const Entry& old) noexcept {
  ClaimRecord record;
  if (!decode(old.value(), record)) return;
  decisions_->add(keys_.hash64_of(0, old.key()), {.call = DecisionCall::ended,
                                                  .changed = true,
                                                  .attempt = record.attempts,
                                                  .at = old.due(),
                                                  .met = record.state,
                                                  .met_epoch = record.epoch,
                                                  .met_lease_until = record.lease_until,
                                                  .met_owner = record.owner});
}

void Core::note_forgotten(ThreadContext& context, Bytes key, Bytes claim, Timestamp now) noexcept {
  context.bump(Count::claims_forgotten);
  ClaimRecord record;
  if (decisions_ == nullptr || !decode(claim, record)) return;
  decisions_->add(keys_.hash64_of(0, key), {.call = DecisionCall::forget,
                                            .answer = 1,
                                            .changed = true,
                                            .attempt = record.attempts,
                                            .at = now,
                                            .met = record.state,
                                            .met_epoch = record.epoch,
                                            .met_lease_until = record.lease_until,
                                            .client = {context.client.data(), context.client_size},
                                            .met_owner = record.owner});
}

void Core::notify_expired(ThreadContext& context, const Entry& old) noexcept {
  context.bump(Count::expired);
  if (decisions_ != nullptr && old.kind() == Kind::claim) note_ended(old);
  for (const auto& subscribed : expired_sinks) {
    callbacks_.run(Callback::expired_sink, [&] {
      subscribed.second({old.kind(), keys_.databases().shown(old.db()), old.key()});
    });
  }
}

ErrorCode Core::wait_for_journal(ThreadContext& own) {
  if (own.section != nullptr) return ErrorCode::ok;  // commit() waits for the whole group
  // A call that changed nothing depends on what it read. That was appended before it was returned
  // (await_journalled), so the newest ticket covers it.
  const bool changed = own.ticket != 0;
  const Ticket ticket = changed ? own.ticket : guarded_journal_.newest();
  own.ticket = 0;
  if (changed) guarded_journal_.pace();
  // Whatever the journal answers, the change is visible: it can no longer be refused.
  return guarded_journal_.wait_for(ticket, options_.durability) ? ErrorCode::ok
                                                                : ErrorCode::outcome_unknown;
}

void Core::committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                     const Entry* fresh, Timestamp wake) noexcept {
  Timestamp old_wake = no_end;
  const Weight more = fresh != nullptr ? weight_of(*fresh) : Weight{};
  Weight less;
  if (old != nullptr) {
    less = weight_of(*old);
    old_wake = wake_of(*old);
    if (keys_.databases().is_flushed(*old)) [[unlikely]] {
      context.bump(Count::records_flushed, 0 - less.records);
      less.records = 0;  // the flush took it off the others
    } else if (!old_was_live && !old->is_delete_marker()) {
      notify_expired(context, *old);
    }
    if (old_was_live && old_wake != no_end && old_wake != wake) context.bump(Count::ended_early);
  }
  // Counters wrap around: one thread adds, another takes away. Most replacements change none.
  if (more.bytes != less.bytes) context.bump(Count::bytes_records, more.bytes - less.bytes);
  if (more.timed != less.timed) context.bump(Count::records_with_ttl, more.timed - less.timed);
  if (more.records != less.records) {
    context.bump(Count::records, more.records - less.records);
    const std::uint8_t db = (fresh != nullptr ? fresh : old)->db();
    ThreadContext::add(context.db_records[db], more.records - less.records);
  }
  if (wake != no_end && (wake != old_wake || !old_was_live)) {
    context.bump(Count::timers_logged);
    if (context.timers.push({hash.bits, wake})) context.drain_due = true;
  }
  if (old == nullptr) return;
  const Handle handle = region_.handle_of(old);
  if (snapshot_cut_.preserve(old->version(), handle)) return;
  threads_.retire_record(context, handle, less.bytes);
}

void Core::append_mutation(ThreadContext& context, const Change& change, const Entry* fresh,
                           bool erases, Version version) noexcept {
  SEMEL_ASSERT(erases || fresh != nullptr);
  const Entry* const old = change.old;
  Mutation mutation;
  fill_mutation(mutation, erases && old != nullptr ? *old : *fresh);
  mutation.version = version;
  if (old != nullptr && !old->is_delete_marker()) {
    mutation.keep_until = std::max(mutation.due, old->due());
  } else if (change.cold != nullptr) {
    const Mutation& copy = change.cold->record;
    mutation.keep_until = std::max(mutation.due, copy.due);
    if (erases) mutation.kind = copy.kind;
  }
  if (erases) {
    mutation.type = Mutation::Type::erase;
    mutation.value = {};
    mutation.claim.reset();
    mutation.due = no_end;
    // As long as there is a copy that it keeps away.
    if (fresh != nullptr) mutation.keep_until = std::max(mutation.keep_until, wake_of(*fresh));
  }
  if (change.sink != nullptr) return change.sink->add(mutation);
  context.ticket = guarded_journal_.append({&mutation, 1});
  if (!erases) fresh->set_journalled();
}

}  // namespace semel::engine
