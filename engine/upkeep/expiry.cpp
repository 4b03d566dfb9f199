#include "engine/upkeep/expiry.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/core_update.hpp"
#include "engine/core/thread_nodes.hpp"
#include "engine/hashes/hash_trim.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/rules/claim_rules.hpp"

namespace semel::engine {

namespace {

/// Retries a timer later that fired while a section held the shard for long. Inside an operation.
void put_off(Core& core, ThreadContext& context, HashBits hash, Timestamp now) {
  core.keys().shard_of(hash).table.for_each_candidate(hash, [&](ShardTable::Word&, SlotWord seen) {
    const Timestamp wake = wake_of(core.keys().entry(seen));
    if (wake <= now && context.timers.push({hash.bits, wake})) context.drain_due = true;
    return true;
  });
}

/// Takes out an ended record or delete marker. False: it has changed or is frozen.
[[nodiscard]] bool sweep(Core& core, ThreadContext& context, HashBits hash, ShardTable::Word& word,
                         SlotWord seen, Timestamp now) {
  const Entry& old = core.keys().entry(seen);
  const Timestamp beyond =
      old.is_delete_marker() ? Timestamp{} : core.cold_side().end_of(context, old.db(), old.key());
  if (beyond <= now) [[likely]] {
    if (!ShardTable::bury(word, seen, old.version())) return false;
    core.committed(context, hash, &old, false, nullptr, no_end);
    return true;
  }
  // It replaced a copy in the cold store that may end later.
  const Entry* const marker = make_delete_marker(core.region(), context, old.db(), old.key(),
                                                 old.version(), beyond, Region::Use::structure);
  if (marker == nullptr) {
    context.timers.push({hash.bits, old.due()});  // dead it is anyway; later there is room
    return true;
  }
  if (!ShardTable::replace(word, seen, core.region().handle_of(marker))) {
    context.cache.free(core.region().handle_of(marker));
    return false;
  }
  core.committed(context, hash, &old, false, marker, wake_of(*marker));
  return true;
}

/// What a trimmed record lies in until it is published.
struct Trimmed {
  Scratch claim;
  std::string hash;
  std::optional<ThreadNodes> nodes;
  std::unique_ptr<HeldChange> held;
};

/// Takes out the parts of a live record that have ended.
Decision trim_any(Core& core, const RecordView& live, Timestamp now, Trimmed& to) {
  if (live.kind != Kind::hash) return trim(live, now, to.claim);
  const LargeHashRules* const large = large_hash_rules(live.value);
  if (large == nullptr) return trim_hash(live, now, to.hash);
  to.held.reset();
  ThreadNodes& nodes = to.nodes.emplace(core.arena(), core.context(), true);
  return large->trim(live, now, nodes, to.hash, to.held);
}

/// When to look at a record again that could not be trimmed.
Timestamp retry_of(const RecordView& live, Timestamp now) noexcept {
  return live.kind == Kind::hash ? std::min(live.due, now + Millis{1'000}) : live.due;
}

void trim_record(Core& core, std::uint8_t stored_db, Bytes key, Timestamp now) {
  Trimmed trimmed;
  bool has_lost_fields = false;
  Version version = 0;
  Timestamp due = no_end;
  const ErrorCode error = update(
      core, {core.keys().databases().shown(stored_db), key}, now,
      [&](const RecordView* live, const NextVersion&) {
        due = live != nullptr ? retry_of(*live, now) : no_end;
        Decision decision = live != nullptr ? trim_any(core, *live, now, trimmed) : Decision{};
        has_lost_fields = decision.action == Action::store && decision.kind == Kind::hash;
        // When a replica gets to it is its own affair, so it may not show.
        decision.keeps_version = core.options().replicated;
        return decision;
      },
      version);
  if (error == ErrorCode::section_held) {
    const Operation operation{core, core.context()};
    return put_off(core, core.context(), core.keys().hash_of(stored_db, key), now);
  }
  if (error == ErrorCode::ok && has_lost_fields) {
    const Operation operation{core, core.context()};
    core.insight().note_fields_ended(core.keys().databases().shown(stored_db), key);
  }
  if (error == ErrorCode::ok || due == no_end) return;
  // Without memory, or a journal that takes it, the result of a claim stays until the record ends,
  // and fields of a hash for a second; they are answered as ended all the same. The timer that
  // brought us here is gone: without another the record would never be looked at again.
  core.context().timers.push({core.keys().hash_of(stored_db, key).bits, due});
}

/// Whether a part of the record is what the timer is for, and not its end.
[[gnu::noinline]] bool is_due_before(const Entry& record, Timestamp wake) noexcept {
  const Timestamp earliest = wake_of(record);
  // Fields of a hash that have ended and could not be taken out have a later timer.
  return earliest == wake || (earliest < wake && record.kind() == Kind::hash);
}

}  // namespace

unsigned timers_alive(Core& core, std::uint64_t hash_bits, Timestamp wake, unsigned at_most) {
  const HashBits hash{hash_bits};
  unsigned alive = 0;
  core.keys().shard_of(hash).table.for_each_candidate(hash, [&](ShardTable::Word&, SlotWord seen) {
    const Entry& record = core.keys().entry(seen);
    if (record.due() == wake || is_due_before(record, wake)) ++alive;
    return alive < at_most;
  });
  return alive;
}

void expire_batch(Core& core, ThreadContext& context, std::span<const std::uint64_t> batch,
                  Timestamp now) {
  struct Trim {
    std::uint8_t db;
    std::string key;
  };
  std::vector<Trim> trims;
  {
    Operation operation{core, context};
    core.keys().prefetch(
        batch.size(), [&](std::size_t i) { return HashBits{batch[i]}; }, sizeof(Entry));
    for (const std::uint64_t bits : batch) {
      const HashBits hash{bits};
      Shard& shard = core.keys().shard_of(hash);
      for (Handle stuck = 1; stuck != 0;) {
        stuck = 0;
        if (!operation.try_admit(shard)) {
          put_off(core, context, hash, now);
          break;
        }
        // One timer, one record: of two with these bits each has a timer of its own.
        shard.table.for_each_candidate(hash, [&](ShardTable::Word& word, SlotWord seen) {
          const Entry& old = core.keys().entry(seen);
          if (old.due() > now) {
            if (wake_of(old) <= now) trims.push_back({old.db(), std::string{old.key()}});
            return true;
          }
          // A timer of the record that was there before; the delete marker has its own.
          if (old.is_delete_marker() && wake_of(old) > now) return true;
          if (!sweep(core, context, hash, word, seen, now)) {
            stuck = slot::handle(seen);  // it changed, or its segment is being replaced
          }
          return false;
        });
        if (stuck != 0) core.keys().help_growth(shard, hash, stuck);
      }
    }
  }
  for (const Trim& trim : trims) trim_record(core, trim.db, trim.key, now);
}

}  // namespace semel::engine
