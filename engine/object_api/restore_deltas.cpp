// Changes of objects that a journal has kept as trails are put back.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/keys/records.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/objects/edit_trail.hpp"
#include "engine/objects/large_object.hpp"
#include "engine/upkeep/restorer.hpp"

namespace semel {
namespace engine {

const Entry* Restorer::make_successor(const Entry& old, std::span<const Mutation> deltas,
                                      ErrorCode& error) {
  std::vector<Bytes> trails;
  trails.reserve(deltas.size());
  for (const Mutation& delta : deltas) trails.push_back(delta.trail);
  std::string value;
  const Mutation& last = deltas.back();
  error = ErrorCode::storage_damaged;
  std::string whole;  // of a large object
  const Bytes before = whole_bytes(last.kind, old.value(), whole);
  const HashTrailFacts of_hash{.due = last.due, .seed = core_.keys().hash64_of(last.db, last.key)};
  if (!apply_trails(last.kind, before, trails, value, of_hash)) return nullptr;
  if (!is_sound(last.kind, value)) return nullptr;
  error = ErrorCode::value_too_long;
  if (value.size() > core_.options().value_bytes_max + value_overhead_max) return nullptr;
  error = ErrorCode::memory_full;
  const Entry::Header header{last.kind, last.db, last.due, last.version};
  return make_entry(core_.region(), core_.threads().context(), header, last.key, value,
                    Region::Use::record);
}

ErrorCode Restorer::restore_deltas(std::span<const Mutation> deltas, Timestamp now,
                                   std::size_t& done) {
  done = 0;
  if (deltas.empty()) return ErrorCode::ok;
  const std::uint8_t db = deltas.front().db;
  const Bytes key = deltas.front().key;
  if (const ErrorCode bad = core_.keys().check(db, key); bad != ErrorCode::ok) return bad;
  ThreadContext& own = core_.threads().context();
  const HashBits hash = core_.keys().hash_of(db, key);
  Shard& shard = core_.keys().shard_of(hash);
  Operation operation{core_, own};
  operation.admit(shard);
  const auto pass_over = [&](auto&& is_over) {
    while (done != deltas.size() && is_over(deltas[done])) ++done;
  };
  const Version flushed = core_.keys().databases().flushed_below(db);
  pass_over([&](const Mutation& each) { return each.version < flushed || each.due <= now; });
  for (Room tried = Room::nothing; done != deltas.size();) {
    const TableProbe probe = shard.table.find(
        hash, [&](Handle handle) { return core_.keys().entry(handle).has_key(db, key); });
    if (probe.state != TableProbe::State::found) {
      // A storage with a cold store writes no deltas. Those from before it had one are older than
      // every copy, for which restore() may have passed over their base.
      const std::uint64_t rank = core_.keys().rank_of(db, key);
      if (asks_cold_ && cold_has(operation, rank, deltas.back())) done = deltas.size();
      return ErrorCode::ok;
    }
    const Entry& old = core_.keys().entry(probe.seen);
    pass_over([&](const Mutation& each) { return each.version <= old.version(); });
    std::size_t end = done;
    for (Version base = old.version(); end != deltas.size() && deltas[end].base == base; ++end) {
      const Mutation& each = deltas[end];
      if (each.kind != old.kind() || each.due != old.due()) return ErrorCode::storage_damaged;
      base = each.version;
    }
    if (end == done || old.is_delete_marker()) return ErrorCode::ok;
    ErrorCode error = ErrorCode::ok;
    const Entry* const fresh = make_successor(old, deltas.subspan(done, end - done), error);
    if (fresh == nullptr && error != ErrorCode::memory_full) return error;
    if (fresh == nullptr || !own.timers.is_ready()) {
      if (fresh != nullptr) own.cache.free(core_.region().handle_of(fresh));
      if (!operation.reclaim(tried)) return operation.refuse();
      operation.admit(shard);
      continue;
    }
    if (shard.table.publish(probe, core_.region().handle_of(fresh))) {
      core_.committed(own, hash, &old, true, fresh, wake_of(*fresh));
      done = end;
      return ErrorCode::ok;
    }
    own.cache.free(core_.region().handle_of(fresh));
    own.bump(Count::lost_races);
    KeySpace::help_growth(shard, hash, probe);
  }
  return ErrorCode::ok;
}

}  // namespace engine

Result<std::size_t> restore_deltas(Engine& engine, std::span<const Mutation> deltas) {
  if (deltas.empty()) return std::size_t{0};
  const auto is_right = [](const Mutation& delta) {
    return is_delta(delta) && delta.type == Mutation::Type::put && delta.base < delta.version &&
           delta.version <= limits::version_max && delta.db < limits::db_count;
  };
  std::size_t done = 0;
  engine::Core& core = engine::impl_of(engine).core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  engine::Restorer& restorer = engine::impl_of(engine).restorer();
  ErrorCode error = ErrorCode::storage_damaged;
  if (std::all_of(deltas.begin(), deltas.end(), is_right)) {
    restorer.note_call();
    core.versions().raise(deltas.back().version);
    error = restorer.restore_deltas(deltas, engine::now_of(engine.clock()), done);
  }
  if (core.context().drain_due) core.upkeep().drain_own_timers(core.context());
  if (error == ErrorCode::ok) return done;
  return Error{error, "a change of a key of " + std::to_string(deltas.front().key.size()) +
                          " bytes, version " + std::to_string(deltas[done].version)};
}

}  // namespace semel
