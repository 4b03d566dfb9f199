// The core and its journal's mutations: restores them as they were, in any order, and answers
// the journal which of them it may forget.
#include <array>
#include <thread>

#include "engine/core/core.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/kinds.hpp"

namespace semel::engine {

namespace {

constexpr int room_checks_max = 10'000;  // each yields

}  // namespace

void Core::erase_exclusive(ShardTable::Word& word, SlotWord seen) {
  const Entry& old = keys_.entry(seen);
  // No other thread is inside, so no segment is frozen and no word changes meanwhile.
  if (!ShardTable::bury(word, seen, old.version())) return;
  ThreadContext& own = threads_.context();
  // Some look at records without being admitted, for a moment: when they have gone on, what was
  // taken out before makes room for this. If none of them does, this record's memory is lost.
  for (int check = 0; check < room_checks_max && !own.retired.has_room(); ++check) {
    threads_.collect_now(own);
    std::this_thread::yield();
  }
  committed(own, HashBits{}, &old, true, nullptr, no_end);
}

void Core::prefetch_keys(std::span<const Mutation> group) noexcept {
  std::array<HashBits, group_max> hashes{};
  for (std::size_t i = 0; i < group.size(); ++i)
    hashes[i] = keys_.hash_of(group[i].db, group[i].key);
  const Operation operation{*this, threads_.context()};
  keys_.prefetch(
      group.size(), [&](std::size_t i) { return hashes[i]; }, 56);
}

bool Core::cold_has(Operation& operation, std::uint64_t rank, const Mutation& mutation) {
  ColdRecord copy;
  bool found = false;
  operation.outside([&] {
    const Result<bool> read = options_.cold->find(rank, mutation.db, mutation.key, copy);
    found = read.ok() && *read;
  });
  return found && copy.record.version >= mutation.version;
}

ErrorCode Core::restore(const Mutation& mutation, Timestamp now, Timestamp marker_end) {
  return restore(mutation, now, marker_end, asks_cold_ ? AskCold::yes : AskCold::no);
}

ErrorCode Core::restore_marker(const Mutation& erase, Timestamp now, Timestamp marker_end) {
  return restore(erase, now, marker_end, AskCold::no);
}

ErrorCode Core::restore(const Mutation& mutation, Timestamp now, Timestamp marker_end,
                        AskCold ask) {
  if (const ErrorCode bad = keys_.check(mutation.db, mutation.key); bad != ErrorCode::ok)
    return bad;
  ThreadContext& own = threads_.context();
  const HashBits hash = keys_.hash_of(mutation.db, mutation.key);
  Shard& shard = keys_.shard_of(hash);
  Scratch scratch;
  const bool erase = mutation.type == Mutation::Type::erase || mutation.due <= now;
  const Bytes value = value_of(mutation, scratch);
  if (!erase && value.size() > options_.value_bytes_max + value_overhead_max) {
    return ErrorCode::value_too_long;
  }
  if (!erase && !is_sound(mutation.kind, value)) return ErrorCode::storage_damaged;
  const Entry::Header header{mutation.kind, mutation.db, mutation.due, mutation.version};
  Operation operation{*this, own};
  operation.admit(shard);
  // Raised in a section over everything, so before we were admitted, or after we leave and then
  // what we publish ends with the rest.
  if (mutation.version < keys_.databases().flushed_below(mutation.db)) return ErrorCode::ok;
  for (Room tried = Room::nothing;;) {
    const TableProbe probe = shard.table.find(hash, [&](Handle handle) {
      return keys_.entry(handle).has_key(mutation.db, mutation.key);
    });
    const Entry* const old =
        probe.state == TableProbe::State::found ? &keys_.entry(probe.seen) : nullptr;
    if (old != nullptr && old->version() >= mutation.version) return ErrorCode::ok;
    if (old == nullptr && ask == AskCold::yes) {
      ask = AskCold::no;  // nothing spills meanwhile
      const std::uint64_t rank = keys_.rank_of(mutation.db, mutation.key);
      if (options_.cold->may_hold_until(rank) != Timestamp{}) {
        if (cold_has(operation, rank, mutation)) return ErrorCode::ok;
        operation.admit(shard);
        continue;
      }
    }
    if (probe.state == TableProbe::State::full) {
      if (shard.table.grow(hash, probe.segment)) continue;
      if (!operation.reclaim(tried)) return operation.refuse();
      operation.admit(shard);
      continue;
    }
    const Entry* const fresh =
        erase ? make_delete_marker(region_, own, mutation.db, mutation.key, mutation.version,
                                   marker_end)
              : make_entry(region_, own, header, mutation.key, value, Region::Use::record);
    if (fresh == nullptr || !own.timers.is_ready()) {
      if (fresh != nullptr) own.cache.free(region_.handle_of(fresh));
      if (!operation.reclaim(tried)) return operation.refuse();
      operation.admit(shard);
      continue;
    }
    if (shard.table.publish(probe, region_.handle_of(fresh))) {
      committed(own, hash, old, true, fresh, wake_of(*fresh));
      return ErrorCode::ok;
    }
    own.cache.free(region_.handle_of(fresh));
    own.bump(Count::lost_races);
    KeySpace::help_growth(shard, hash, probe);
  }
}

std::uint32_t Core::superseded(std::span<const HeldMutation> asked) noexcept {
  static_assert(EngineHost::superseded_max == group_max);
  SEMEL_ASSERT(asked.size() <= group_max);
  ThreadContext* const own = threads_.try_context();
  if (own == nullptr) return 0;
  std::array<HashBits, group_max> hashes{};
  for (std::size_t i = 0; i < asked.size(); ++i)
    hashes[i] = keys_.hash_of(asked[i].db, asked[i].key);
  std::uint32_t found = 0;
  Operation operation{*this, *own};
  keys_.prefetch(
      asked.size(), [&](std::size_t i) { return hashes[i]; }, sizeof(Entry));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const HeldMutation& held = asked[i];
    Shard& shard = keys_.shard_of(hashes[i]);
    // What a section has changed is appended at its end, and is not marked as pending before.
    if (!operation.admit_now(shard) || keys_.is_own(*own, shard)) continue;
    const TableProbe probe = shard.table.find(
        hashes[i], [&](Handle handle) { return keys_.entry(handle).has_key(held.db, held.key); });
    if (probe.state != TableProbe::State::found) continue;
    const Entry& newest = keys_.entry(probe.seen);
    // Pending: visible, and not appended yet (docs/decisions/0001-visible-before-durable.md).
    if (newest.version() <= held.version || newest.due() < held.keep_until || newest.pending()) {
      continue;
    }
    found |= std::uint32_t{1} << i;
  }
  return found;
}

}  // namespace semel::engine
