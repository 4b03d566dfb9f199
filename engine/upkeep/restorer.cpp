#include "engine/upkeep/restorer.hpp"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "engine/keys/records.hpp"
#include "engine/kinds/kinds.hpp"

namespace semel::engine {

namespace {

constexpr int room_checks_max = 10'000;  // each yields

}  // namespace

void Restorer::erase_exclusive(ShardTable::Word& word, SlotWord seen) {
  const Entry& old = core_.keys().entry(seen);
  // No other thread is inside, so no segment is frozen and no word changes.
  if (!ShardTable::bury(word, seen, old.version())) return;
  ThreadContext& own = core_.threads().context();
  // A few readers look at records for a moment without being admitted: after them, the memory of
  // earlier records makes room in the list. Without room this record's memory is lost.
  for (int check = 0; check < room_checks_max && !own.retired.has_room(); ++check) {
    core_.threads().collect_now(own);
    std::this_thread::yield();
  }
  core_.committed(own, HashBits{}, &old, true, nullptr, no_end);
}

void Restorer::prefetch_keys(std::span<const Mutation> group) noexcept {
  std::array<HashBits, Core::group_max> hashes{};
  for (std::size_t i = 0; i < group.size(); ++i)
    hashes[i] = core_.keys().hash_of(group[i].db, group[i].key);
  const Operation operation{core_, core_.threads().context()};
  core_.keys().prefetch(
      group.size(), [&](std::size_t i) { return hashes[i]; }, 56);
}

bool Restorer::cold_has(Operation& operation, std::uint64_t rank, const Mutation& mutation) {
  ColdRecord copy;
  bool found = false;
  operation.outside([&] {
    const Result<bool> read = core_.cold()->find(rank, mutation.db, mutation.key, copy);
    found = read.ok() && *read;
  });
  return found && copy.record.version >= mutation.version;
}

ErrorCode Restorer::restore(const Mutation& mutation, Timestamp now, Timestamp marker_end) {
  return restore(mutation, now, marker_end, asks_cold_ ? AskCold::yes : AskCold::no);
}

ErrorCode Restorer::restore_marker(const Mutation& erase, Timestamp now, Timestamp marker_end) {
  return restore(erase, now, marker_end, AskCold::no);
}

ErrorCode Restorer::restore(const Mutation& mutation, Timestamp now, Timestamp marker_end,
                            AskCold ask) {
  if (const ErrorCode bad = core_.keys().check(mutation.db, mutation.key); bad != ErrorCode::ok)
    return bad;
  ThreadContext& own = core_.threads().context();
  const HashBits hash = core_.keys().hash_of(mutation.db, mutation.key);
  Shard& shard = core_.keys().shard_of(hash);
  Scratch scratch;
  const bool erase = mutation.type == Mutation::Type::erase || mutation.due <= now;
  const Bytes value = value_of(mutation, scratch);
  if (!erase && value.size() > core_.options().value_bytes_max + value_overhead_max) {
    return ErrorCode::value_too_long;
  }
  if (!erase && !is_sound(mutation.kind, value)) return ErrorCode::storage_damaged;
  const Entry::Header header{mutation.kind, mutation.db, mutation.due, mutation.version};
  Operation operation{core_, own};
  operation.admit(shard);
  // Raised in a section over everything, so before we were admitted, or after we leave and then
  // what we publish ends with the rest.
  if (mutation.version < core_.keys().databases().flushed_below(mutation.db)) return ErrorCode::ok;
  for (Room tried = Room::nothing;;) {
    const TableProbe probe = shard.table.find(hash, [&](Handle handle) {
      return core_.keys().entry(handle).has_key(mutation.db, mutation.key);
    });
    const Entry* const old =
        probe.state == TableProbe::State::found ? &core_.keys().entry(probe.seen) : nullptr;
    if (old != nullptr && old->version() >= mutation.version) return ErrorCode::ok;
    if (old == nullptr && ask == AskCold::yes) {
      ask = AskCold::no;  // no spill runs during restores
      const std::uint64_t rank = core_.keys().rank_of(mutation.db, mutation.key);
      if (core_.cold()->may_hold_until(rank) != Timestamp{}) {
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
        erase ? make_delete_marker(core_.region(), own, mutation.db, mutation.key, mutation.version,
                                   marker_end)
              : make_entry(core_.region(), own, header, mutation.key, value, Region::Use::record);
    if (fresh == nullptr || !own.timers.is_ready()) {
      if (fresh != nullptr) own.cache.free(core_.region().handle_of(fresh));
      if (!operation.reclaim(tried)) return operation.refuse();
      operation.admit(shard);
      continue;
    }
    if (shard.table.publish(probe, core_.region().handle_of(fresh))) {
      core_.committed(own, hash, old, true, fresh, wake_of(*fresh));
      return ErrorCode::ok;
    }
    own.cache.free(core_.region().handle_of(fresh));
    own.bump(Count::lost_races);
    KeySpace::help_growth(shard, hash, probe);
  }
}

bool Restorer::is_recovering() noexcept {
  constexpr unsigned pause = 20;  // visits: two seconds
  // mo: relaxed: a count that is compared with an older one.
  const std::uint64_t calls = calls_.load(std::memory_order_relaxed);
  pause_ = calls == calls_seen_ ? pause_ + 1 : 0;
  calls_seen_ = calls;
  return calls != 0 && pause_ < pause;
}

std::uint32_t Restorer::superseded(std::span<const HeldMutation> asked) noexcept {
  static_assert(EngineHost::superseded_max == Core::group_max);
  SEMEL_ASSERT(asked.size() <= Core::group_max);
  ThreadContext* const own = core_.threads().try_context();
  if (own == nullptr) return 0;
  std::array<HashBits, Core::group_max> hashes{};
  for (std::size_t i = 0; i < asked.size(); ++i)
    hashes[i] = core_.keys().hash_of(asked[i].db, asked[i].key);
  std::uint32_t found = 0;
  Operation operation{core_, *own};
  core_.keys().prefetch(
      asked.size(), [&](std::size_t i) { return hashes[i]; }, sizeof(Entry));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const HeldMutation& held = asked[i];
    Shard& shard = core_.keys().shard_of(hashes[i]);
    // What a section has changed is appended at its end, and is not marked as pending before.
    if (!operation.admit_now(shard) || core_.keys().is_own(*own, shard)) continue;
    const TableProbe probe = shard.table.find(hashes[i], [&](Handle handle) {
      return core_.keys().entry(handle).has_key(held.db, held.key);
    });
    if (probe.state != TableProbe::State::found) continue;
    const Entry& newest = core_.keys().entry(probe.seen);
    // Pending: visible, and not appended yet (docs/decisions/0001-visible-before-durable.md).
    if (newest.version() <= held.version || newest.due() < held.keep_until || newest.pending()) {
      continue;
    }
    found |= std::uint32_t{1} << i;
  }
  return found;
}

}  // namespace semel::engine
