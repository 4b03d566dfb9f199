#include "engine/core/core.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <string>

#include "engine/rules/claim_rules.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel::engine {

namespace {

constexpr int looks_for_room = 10'000;  // each yields

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
  // A short read of 192 bytes cannot happen once the pool is up (getrandom(2)).
  while (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
  }
}

}  // namespace

Core::Core(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      reserved_(region_.reserve(options.memory_bytes)),
      arena_(region_),
      versions_(options.first_version),
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
  const Timestamp now = clock_.now();
  wheel_ = std::make_unique<TtlWheel>(region_, now);
  // mo: relaxed: a statistic.
  wheel_time_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  return options_.cold == nullptr ? Status{Done{}} : attach_cold();
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
  if (entry.kind() == Kind::claim) return claim_wake_of(entry.value(), entry.due());
  if (!is_grave(entry)) [[likely]]
    return entry.due();
  std::int64_t end = 0;
  std::memcpy(&end, entry.value().data(), sizeof end);
  return Timestamp{Millis{end}};
}

const Entry* Core::make_grave(ThreadContext& context, std::uint8_t db, Bytes key, Version version,
                              Timestamp end, Region::Use use) {
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

bool Core::wait_for_place(Operation& operation, Place& place, KeyRef key) noexcept {
  do {
    place = place_of(key);
    if (!operation.try_admit(*place.shard)) return false;
  } while (stored_db(key.db) != place.stored_db);
  return true;
}

std::optional<ErrorCode> Core::carry_out(ThreadContext& context, const Place& place,
                                         const Probe& probe, const Change& change,
                                         const Decision& decision, Version& version) {
  MutationSink* const sink = change.sink;
  if (options_.journal != nullptr && !accepts_writes(sink)) [[unlikely]] {
    return ErrorCode::refused;
  }
  // Asked before anything is published: the timer of a live record must not be lost.
  if (!context.timers.is_ready()) [[unlikely]]
    return ErrorCode::memory_full;
  // What the change needs once it is visible, while it can still be refused.
  if (!context.limbo.reserve()) [[unlikely]]
    return refuse(context);
  if (sink != nullptr) [[unlikely]]
    sink->make_room(change.key.size() + decision.value.size(), 1);
  Shard& shard = *place.shard;
  const bool erases = decision.action == Action::erase;
  const Version fresh_version = candidate(context, change.floor);
  const Entry* fresh = nullptr;
  if (probe.state == Probe::State::full) [[unlikely]] {
    if (!shard.table.grow(place.hash, probe.segment)) return ErrorCode::memory_full;
    return std::nullopt;
  }
  if (!erases) {
    if (decision.value.size() > options_.value_bytes_max + value_overhead_max) [[unlikely]] {
      return ErrorCode::value_too_long;
    }
    // A live record can be replaced out of the reserve: an owner must be able to finish.
    const bool precious = change.live || sink != nullptr;
    // Inside a section nobody else can see it before the section's group has been appended.
    const bool pending = options_.journal != nullptr && sink == nullptr;
    fresh = make_entry(
        context, {decision.kind, place.stored_db, decision.due, fresh_version, pending}, change.key,
        decision.value, precious ? Region::Use::structure : Region::Use::record);
    if (fresh == nullptr) [[unlikely]]
      return ErrorCode::memory_full;
  } else if (!make_remains(context, place, probe, change, fresh_version, fresh)) [[unlikely]] {
    return ErrorCode::memory_full;
  }
  const bool won = fresh == nullptr ? shard.table.bury(probe, fresh_version)
                                    : shard.table.publish(probe, region_.handle_of(fresh));
  if (!won) [[unlikely]] {
    if (fresh != nullptr) context.cache.free(region_.handle_of(fresh));
    after_lost_race(context, shard, place.hash, probe);
    return std::nullopt;
  }
  version = context.version_next++;
  if (options_.journal != nullptr) tell(context, change, fresh, erases, version);
  committed(context, place.hash, change.old, change.live, fresh,
            fresh == nullptr ? no_end : wake_of(*fresh));
  if (change.cold != nullptr) [[unlikely]] {
    options_.cold->superseded(rank_of(place.stored_db, change.key), change.cold->part,
                              place.stored_db, change.cold->record.due);
  }
  return ErrorCode::ok;
}

bool Core::make_remains(ThreadContext& context, const Place& place, const Probe& probe,
                        const Change& change, Version version, const Entry*& remains) {
  const Timestamp beyond = cold_end(place.stored_db, change.key);
  if (beyond > change.now || change.old == nullptr) [[unlikely]] {
    // An older copy must not come back.
    remains = make_grave(context, place.stored_db, change.key, version,
                         std::max(beyond, change.now + grave_ttl), Region::Use::structure);
    return remains != nullptr;
  }
  if (slot::distance(probe.prefix) >= grave_distance) [[unlikely]] {
    remains = make_grave(context, place.stored_db, change.key, version, change.now + grave_ttl);
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
  const bool is_grave = due == Timestamp{};
  return {.bytes = Arena::rounded(entry.bytes()),
          .records = is_grave ? 0U : 1U,
          .timed = is_grave || due == no_end ? 0U : 1U};
}

}  // namespace

void Core::tell_expired(ThreadContext& context, const Entry& old) noexcept {
  context.bump(Count::expired);
  for (const auto& subscribed : expired_sinks) {
    callbacks_.run(Callback::expired_sink, [&] {
      subscribed.second({old.kind(), shown_db(old.db()), old.key()});
    });
  }
}

Ticket Core::append(std::span<const Mutation> group) noexcept {
  Ticket ticket = 0;
  callbacks_.run(Callback::journal, [&] { ticket = options_.journal->append(group); });
  return ticket;
}

Ticket Core::newest() noexcept {
  Ticket ticket = 0;
  callbacks_.run(Callback::journal, [&] { ticket = options_.journal->newest(); });
  return ticket;
}

void Core::pace() noexcept {
  callbacks_.run(Callback::journal, [&] { options_.journal->pace(); });
}

bool Core::wait_for(Ticket ticket, Durability level) noexcept {
  bool reached = false;
  callbacks_.run(Callback::journal,
                 [&] { reached = options_.journal->wait(ticket, level).has_value(); });
  return reached;
}

void Core::committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                     const Entry* fresh, Timestamp wake) noexcept {
  Timestamp old_wake = no_end;
  const Weight more = fresh != nullptr ? weight_of(*fresh) : Weight{};
  Weight less;
  if (old != nullptr) {
    less = weight_of(*old);
    old_wake = wake_of(*old);
    if (is_flushed(*old)) [[unlikely]] {
      context.bump(Count::records_flushed, 0 - less.records);
      less.records = 0;  // the flush took it off the others
    } else if (!old_was_live && !is_grave(*old)) {
      tell_expired(context, *old);
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
  if (old == nullptr || is_preserved(*old)) return;
  threads_.retire_record(context, region_.handle_of(old), less.bytes);
}

bool Core::is_preserved(const Entry& old) noexcept {
  // mo: acquire [core.snapshot]: set inside a section, so it cannot change under an operation.
  const Version cut = snapshot_cut.load(std::memory_order_acquire);
  if (old.version() >= cut) [[likely]]
    return false;
  const std::lock_guard lock{preserved_mutex};
  // Without memory to keep it for the snapshot, that ends with an error.
  try {
    preserved.push_back(region_.handle_of(&old));
  } catch (const std::bad_alloc&) {
    preserved_lost = true;  // and its memory with it, as long as the engine lives
  }
  return true;
}

void Core::wait_for_append(const Entry& seen) noexcept {
  for (unsigned spins = 0; seen.pending(); ++spins) {
    if (spins > 1000) std::this_thread::yield();
  }
}

void Core::tell(ThreadContext& context, const Change& change, const Entry* fresh, bool erases,
                Version version) noexcept {
  const Entry* const old = change.old;
  Mutation mutation;
  fill_mutation(mutation, erases && old != nullptr ? *old : *fresh);
  mutation.version = version;
  if (old != nullptr && !is_grave(*old)) {
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
  context.ticket = append({&mutation, 1});
  if (!erases) fresh->set_journalled();
}

void Core::fill_mutation(Mutation& mutation, const Entry& entry) noexcept {
  mutation.type = Mutation::Type::put;
  mutation.kind = entry.kind();
  mutation.db = entry.db();
  mutation.version = entry.version();
  mutation.due = mutation.keep_until = entry.due();
  mutation.key = entry.key();
  mutation.value = {};
  mutation.claim.reset();
  if (entry.kind() != Kind::claim) {
    mutation.value = entry.value();
  } else {
    static_cast<void>(decode(entry.value(), mutation.claim.emplace()));  // we wrote these bytes
  }
}

void Core::erase_exclusive(ShardTable::Word& word, SlotWord seen) {
  const Entry& old = entry(seen);
  // Nobody else is inside, so no segment is frozen and no word changes under us.
  if (!ShardTable::bury(word, seen, old.version())) return;
  ThreadContext& own = threads_.context();
  // Some look at records without being admitted, for a moment: when they have gone on, what was
  // taken out before makes room for this. If none of them does, this record's memory is lost.
  for (int look = 0; look < looks_for_room && !own.limbo.has_room(); ++look) {
    threads_.collect_now(own);
    std::this_thread::yield();
  }
  committed(own, HashBits{}, &old, true, nullptr, no_end);
}

void Core::prefetch_keys(std::span<const Mutation> group) noexcept {
  std::array<HashBits, group_max> hashes{};
  for (std::size_t i = 0; i < group.size(); ++i) hashes[i] = hash_of(group[i].db, group[i].key);
  const Operation operation{*this, threads_.context()};
  prefetch(
      group.size(), [&](std::size_t i) { return hashes[i]; }, 56);
}

ErrorCode Core::restore(const Mutation& mutation, Timestamp now, Timestamp grave_end) {
  if (const ErrorCode bad = check_key(mutation.db, mutation.key); bad != ErrorCode::ok) return bad;
  ThreadContext& own = threads_.context();
  const HashBits hash = hash_of(mutation.db, mutation.key);
  Shard& shard = shard_of(hash);
  Scratch scratch;
  const bool erase = mutation.type == Mutation::Type::erase || mutation.due <= now;
  const Bytes value = mutation.claim ? encode(*mutation.claim, scratch) : mutation.value;
  if (!erase && value.size() > options_.value_bytes_max + value_overhead_max) {
    return ErrorCode::value_too_long;
  }
  if (!erase && mutation.kind == Kind::hash && !is_sound(value)) return ErrorCode::storage_damaged;
  const Entry::Header header{mutation.kind, mutation.db, mutation.due, mutation.version};
  Operation operation{*this, own};
  operation.admit(shard);
  // Raised in a section over everything, so before we were let in, or after we are out and then
  // what we publish ends with the rest.
  if (mutation.version < flushed_below(mutation.db)) return ErrorCode::ok;
  for (Room tried = Room::nothing;;) {
    const Probe probe = shard.table.find(
        hash, [&](Handle handle) { return entry(handle).has_key(mutation.db, mutation.key); });
    const Entry* const old = probe.state == Probe::State::found ? &entry(probe.seen) : nullptr;
    if (old != nullptr && old->version() >= mutation.version) return ErrorCode::ok;
    if (probe.state == Probe::State::full) {
      if (shard.table.grow(hash, probe.segment)) continue;
      if (!operation.reclaim(tried)) return refuse(own);
      operation.admit(shard);
      continue;
    }
    const Entry* const fresh =
        erase ? make_grave(own, mutation.db, mutation.key, mutation.version, grave_end)
              : make_entry(own, header, mutation.key, value, Region::Use::record);
    if (fresh == nullptr || !own.timers.is_ready()) {
      if (fresh != nullptr) own.cache.free(region_.handle_of(fresh));
      if (!operation.reclaim(tried)) return refuse(own);
      operation.admit(shard);
      continue;
    }
    if (shard.table.publish(probe, region_.handle_of(fresh))) {
      committed(own, hash, old, true, fresh, wake_of(*fresh));
      return ErrorCode::ok;
    }
    own.cache.free(region_.handle_of(fresh));
    after_lost_race(own, shard, hash, probe);
  }
}

// --- sections --------------------------------------------------------------------------------

bool Core::wait_for_section(Shard& shard, bool impatient) noexcept {
  // mo: acquire [core.section]: what it did comes before what follows its end.
  const std::uint32_t seen = shard.section.load(std::memory_order_acquire);
  if (!is_held(seen)) return true;
  if (seen == section_held_long && impatient) return false;
  // mo: acquire [core.section]: sleeps while a section holds the shard.
  shard.section.wait(seen, std::memory_order_acquire);
  return true;
}

bool Core::begin_section(std::uint64_t mask) {
  ThreadContext& own = threads_.context();
  bool all_watched = true;
  for (std::size_t i = 0; i < shard_count_; ++i) {
    if ((mask >> i & 1) == 0) continue;
    Shard& shard = shards_[i];
    if (!own.impatient) {
      shard.section_mutex.lock();
    } else {
      // Who waits for a mutex cannot leave, so the word is waited for. For a moment before and
      // after it says so the mutex is held.
      bool locked = false;
      while (!locked && wait_for_section(shard, true)) {
        locked = shard.section_mutex.try_lock();
        if (!locked) std::this_thread::yield();
      }
      if (!locked) {
        end_section(mask & ((std::uint64_t{1} << i) - 1));
        return false;
      }
    }
    ++shard.recent_sections;
    // mo: seq_cst [core.section]: before the barrier in wait_for_others(). What was there was
    //     written under the mutex.
    const std::uint32_t before =
        shard.section.exchange(section_held_now, std::memory_order_seq_cst);
    all_watched = all_watched && before == section_watched;
  }
  threads_.wait_for_others(own, all_watched);
  return true;
}

void Core::prolong_section(std::uint64_t mask) noexcept {
  for (std::size_t i = 0; i < shard_count_; ++i) {
    if ((mask >> i & 1) == 0) continue;
    // mo: release [core.section]: a section still holds the shard.
    shards_[i].section.store(section_held_long, std::memory_order_release);
    shards_[i].section.notify_all();
  }
}

void Core::end_section(std::uint64_t mask) {
  for (std::size_t i = 0; i < shard_count_; ++i) {
    if ((mask >> i & 1) == 0) continue;
    Shard& shard = shards_[i];
    const bool are_many = shard.recent_sections >= recent_sections_many;
    // mo: release [core.section]
    shard.section.store(are_many ? section_watched : section_free, std::memory_order_release);
    shard.section.notify_all();
    shard.section_mutex.unlock();
  }
}

void Core::unwatch_shards() noexcept {
  for (Shard& shard : shards()) {
    // Who holds it is a section, and leaves it as it should be.
    const std::unique_lock lock{shard.section_mutex, std::try_to_lock};
    if (!lock) continue;
    const bool are_many = shard.recent_sections >= recent_sections_many;
    shard.recent_sections = 0;
    // mo: relaxed, then release [core.section]: written under the mutex alone.
    if (!are_many && shard.section.load(std::memory_order_relaxed) == section_watched)
      shard.section.store(section_free, std::memory_order_release);
  }
}

Version Core::fence_versions() noexcept {
  // Nobody is inside an operation, so the other threads' fields may be written; they see it when
  // they are let in again.
  threads_.for_each([](ThreadContext& context) { context.version_next = context.version_end = 0; });
  // mo: relaxed: only uniqueness and growth are asked of it
  return versions_.fetch_add(1, std::memory_order_relaxed);
}

void Core::raise_versions(Version above) noexcept {
  // mo: relaxed: only growth is asked of it.
  Version seen = versions_.load(std::memory_order_relaxed);
  while (seen <= above &&
         !versions_.compare_exchange_weak(seen, above + 1, std::memory_order_relaxed,
                                          std::memory_order_relaxed)) {
  }
}

std::uint8_t Core::shown_db(std::uint8_t stored) const noexcept {
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    if (stored_db(db) == stored) return db;
  }
  return stored;
}

}  // namespace semel::engine
