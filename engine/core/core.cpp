#include "engine/core/core.hpp"

#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <string>

#include "base/random.hpp"
#include "engine/rules/claim_rules.hpp"
#include "engine/rules/kinds.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t directory_bytes = (std::size_t{1} << depth_max) * sizeof(std::uint64_t);

/// Shards grow at different moments, or the whole table would be half empty at the same time:
/// shard s has 2^(s / count) times the lines of shard 0, rounded up to a prime (table.hpp).
std::uint32_t line_count_of(unsigned shard, unsigned shard_count) noexcept {
  constexpr double smallest = 257;
  const auto is_prime = [](std::uint32_t number) {
    for (std::uint32_t divisor = 2; divisor * divisor <= number; ++divisor) {
      if (number % divisor == 0) return false;
    }
    return true;
  };
  auto count = static_cast<std::uint32_t>(
      std::lround(smallest * std::exp2(static_cast<double>(shard) / shard_count)));
  while (!is_prime(count)) ++count;
  return count;
}

void fill_secret(std::span<unsigned char> secret, std::optional<std::uint64_t> seed) noexcept {
  if (seed) {
    std::uint64_t state = *seed;
    for (unsigned char& byte : secret) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<unsigned char>(state >> 56);
    }
    return;
  }
  base::fill_random(secret);
}

}  // namespace

Core::Core(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      reserved_(region_.reserve(options.memory_bytes, options.memory_room_bytes)),
      arena_(region_),
      versions_(options.first_version, options.replicated),
      threads_(arena_, *this) {
  // Ranks must mean the same in every life of a cold store.
  fill_secret(secret_, options.cold != nullptr ? options.cold->hash_seed() : options.hash_seed);
}

Core::~Core() {
  if (directories_ == nullptr) return;
  std::destroy_n(shards_, shard_count_);
  std::allocator<Shard>{}.deallocate(shards_, options_.shard_count);
  munmap(directories_, directory_bytes * options_.shard_count);
}

Status Core::start() {
  const std::string limit = std::to_string(options_.memory_bytes) + " bytes";
  if (!reserved_ || !arena_.is_ready()) return Error{ErrorCode::out_of_address_space, limit};
  const unsigned count = options_.shard_count;
  void* memory = mmap(nullptr, directory_bytes * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Error{ErrorCode::out_of_address_space, "table directory"};
  directories_ = static_cast<ShardTable::Word*>(memory);
  shard_mask_ = count - 1;
  shards_ = std::allocator<Shard>{}.allocate(count);
  for (unsigned i = 0; i < count; ++i) {
    ShardTable::Word* const directory = directories_ + (std::size_t{i} << depth_max);
    new (&shards_[i]) Shard{region_, threads_, line_count_of(i, count), directory};
    ++shard_count_;
    if (!shards_[i].table.start()) {
      return Error{ErrorCode::bad_option, "memory_bytes = " + limit + ": holds no table of " +
                                              std::to_string(count) + " shards"};
    }
  }
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

void Core::reuse_segment(void* segment) noexcept {
  static_cast<ShardTable::Segment*>(segment)->source->release_segment(segment);
}

std::uint64_t Core::hash64_of(std::uint8_t db, Bytes key) const noexcept {
  const std::uint64_t hash =
      XXH3_64bits_withSecret(key.data(), key.size(), secret_, sizeof secret_);
  return hash ^ (std::uint64_t{db} * 0x9E37'79B9'7F4A'7C15U);
}

Timestamp Core::wake_of(const Entry& entry) noexcept {
  if (!entry.is_delete_marker()) [[likely]]
    return engine::wake_of(entry.kind(), entry.value(), entry.due());
  std::int64_t end = 0;
  std::memcpy(&end, entry.value().data(), sizeof end);
  return Timestamp{Millis{end}};
}

const Entry* Core::make_delete_marker(ThreadContext& context, std::uint8_t db, Bytes key,
                                      Version version, Timestamp end, Region::Use use) {
  const std::int64_t ms = end.time_since_epoch().count();
  const Bytes value{reinterpret_cast<const char*>(&ms), sizeof ms};
  return make_entry(context, {Kind::string, db, Timestamp{}, version}, key, value, use);
}

const Entry* Core::make_entry(ThreadContext& context, const Entry::Header& header, Bytes key,
                              Bytes value, Region::Use use) {
  const Handle handle = context.cache.allocate(Entry::bytes(key.size(), value.size()), use);
  if (handle == 0) [[unlikely]]
    return nullptr;
  Entry* const entry = static_cast<Entry*>(region_.at(handle));
  Entry::write(entry, header, key, value);
  return entry;
}

std::optional<ErrorCode> Core::apply_decision(ThreadContext& context, const KeyLocation& location,
                                              const Probe& probe, const Change& change,
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
  if (probe.state == Probe::State::full) [[unlikely]] {
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
        context,
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
    options_.cold->superseded(rank_of(location.stored_db, change.key), change.cold->part,
                              location.stored_db, change.cold->record.due);
  }
  return ErrorCode::ok;
}

bool Core::make_remains(ThreadContext& context, const KeyLocation& location, const Probe& probe,
                        const Change& change, Version version, const Entry*& remains) {
  const Timestamp beyond = cold_end(location.stored_db, change.key);
  if (beyond > change.now || change.old == nullptr) [[unlikely]] {
    // An older copy must not come back.
    remains = make_delete_marker(context, location.stored_db, change.key, version,
                                 std::max(beyond, change.now + delete_marker_ttl),
                                 Region::Use::structure);
    return remains != nullptr;
  }
  if (slot::distance(probe.prefix) >= delete_marker_distance) [[unlikely]] {
    remains = make_delete_marker(context, location.stored_db, change.key, version,
                                 change.now + delete_marker_ttl);
  }
  return true;
}

void Core::after_lost_race(ThreadContext& context, Shard& shard, HashBits hash,
                           const Probe& probe) {
  context.bump(Count::lost_races);
  if (!ShardTable::is_frozen(probe)) return;
  // Without memory for a copy of our own, the thread that froze the segment has it: let it run.
  if (!shard.table.grow(hash, probe.segment)) std::this_thread::yield();
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
  decisions_->add(hash64_of(0, old.key()), {.call = DecisionCall::ended,
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
  decisions_->add(hash64_of(0, key), {.call = DecisionCall::forget,
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
      subscribed.second({old.kind(), databases_.shown(old.db()), old.key()});
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
    if (databases_.is_flushed(*old)) [[unlikely]] {
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

void Core::wait_for_append(const Entry& seen) noexcept {
  for (unsigned spins = 0; seen.pending(); ++spins) {
    if (spins > 1000) std::this_thread::yield();
  }
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

void Core::fill_mutation(Mutation& mutation, const Entry& entry) noexcept {
  mutation.type = Mutation::Type::put;
  mutation.kind = entry.kind();
  mutation.db = entry.db();
  mutation.version = entry.version();
  mutation.due = mutation.keep_until = entry.due();
  mutation.key = entry.key();
  fill_value(entry.kind(), entry.value(), mutation);
}

}  // namespace semel::engine
