// Time in the core: from the threads' timers to the wheel, from the wheel to the records that end.
#include <algorithm>
#include <array>
#include <string>

#include "engine/core/core.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/claim_rules.hpp"

namespace semel::engine {

void Core::drain(ThreadContext& context) {
  // Where most timed records end early (locks, tokens), most timers are dead before they reach
  // the wheel: looking at each costs a cache hit, keeping them all costs memory for their whole
  // ttl.
  const auto read = [&](Count which) {
    // mo: relaxed: a guess.
    return context.counts[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
  };
  const std::uint64_t ended = read(Count::ended_early);
  const std::uint64_t logged = read(Count::timers_logged);
  const bool many_ended = (ended - context.drained_ended) * 4 >= logged - context.drained_logged;
  context.drained_ended = ended;
  context.drained_logged = logged;
  // A key that comes and goes within a millisecond leaves many timers of the same time.
  struct Same {
    std::uint64_t hash_bits = 0;
    Timestamp wake{};
    unsigned scheduled = 0;
  };
  std::array<Same, 16> recent{};
  TtlWheel& wheel = *wheel_;
  context.timers.drain([&](const TimerEntry& timer) {
    if (!many_ended) return wheel.schedule(timer);
    Same& same = recent[(timer.hash_bits ^
                         static_cast<std::uint64_t>(timer.wake.time_since_epoch().count())) %
                        recent.size()];
    if (same.hash_bits != timer.hash_bits || same.wake != timer.wake) {
      same = {timer.hash_bits, timer.wake, 0};
    }
    if (timers_alive(timer.hash_bits, timer.wake, same.scheduled + 1) <= same.scheduled)
      return true;
    if (!wheel.schedule(timer)) return false;
    ++same.scheduled;
    return true;
  });
  if (context.timers.has_dropped()) compactor_.renew_timers();
}

void Core::drain_own_timers(ThreadContext& context) {
  context.drain_due = false;
  base::MutexLock lock{wheel_mutex_, std::defer_lock};
  if (!lock.try_lock()) return;  // the thread that holds it drains our queue as well
  ThreadContext& own = context;
  {
    const Operation operation{*this, own};
    drain(own);
  }
  // Without calls of advance(), timers of records that ended early would fill all memory.
  step_wheel_compaction(drain_budget);
}

unsigned Core::timers_alive(std::uint64_t hash_bits, Timestamp wake, unsigned at_most) {
  const HashBits hash{hash_bits};
  unsigned alive = 0;
  keys_.shard_of(hash).table.for_each_candidate(hash, [&](ShardTable::Word&, SlotWord seen) {
    const Entry& record = keys_.entry(seen);
    if (record.due() == wake || wake_of(record) == wake) ++alive;
    return alive < at_most;
  });
  return alive;
}

std::size_t Core::advance(Timestamp now, std::size_t budget, bool wait_for_turn) {
  ThreadContext& own = threads_.context();
  if (own.in_upkeep) return budget;
  base::MutexLock lock{wheel_mutex_, std::defer_lock};
  if (wait_for_turn) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return budget;
  }
  own.in_upkeep = true;
  // The caller read its time before it had the wheel, and others may have been ahead. Judged by the
  // older time a record whose timer fires would be alive, and with its timer gone it would stay.
  now = std::max(now, wheel_->time());
  {
    const Operation operation{*this, own};
    threads_.for_each([&](ThreadContext& context) {
      wheel_mutex_.assume_held();  // by the function around
      drain(context);
    });
  }
  budget = wheel_->advance(
      now, budget, [&](std::span<const std::uint64_t> batch) { expire_batch(own, batch, now); });
  step_wheel_compaction(budget);
  constexpr std::uint64_t look_every = 64;  // calls
  if (++advances_ % look_every == 0) unwatch_shards(keys_.shards());
#if defined(SEMEL_VERIFY)
  constexpr std::size_t few = 4'096;  // timers: a wheel of more is not walked each time
  if (wheel_->size() <= few) {
    std::vector<std::string> broken;
    wheel_->check(broken);
    if (!broken.empty()) base::assertion_failed(broken[0].c_str(), __FILE__, __LINE__);
  }
#endif
  // Memory is back when this returns, also if this thread does nothing else; but for what a thread
  // inside an operation may be reading, which the next call gives back.
  if (!own.retired.empty()) threads_.collect_now(own);
  step_compaction(own, budget);
  own.in_upkeep = false;
  // mo: relaxed: statistics.
  wheel_size_.store(wheel_->size(), std::memory_order_relaxed);
  wheel_bytes_.store(wheel_->bytes(), std::memory_order_relaxed);
  wheel_time_.store(wheel_->time().time_since_epoch().count(), std::memory_order_relaxed);
  return budget;
}

void Core::step_wheel_compaction(std::size_t budget) {
  // Timers of records that ended early take memory from the same limit as the records.
  const std::size_t slack = std::clamp<std::size_t>(region_.limit_bytes() >> 12, 1'024, 65'536);
  // Without memory for records, what they leave is all that owners have to end their work with:
  // every timer beyond one for each record is looked for, and sooner again.
  const bool is_short = region_.used_bytes() >= region_.limit_bytes(Region::Use::record);
  const std::size_t per_record = is_short ? 1 : 2;
  if (!compacting_) {
    compact_above_ = std::min(
        compact_above_, is_short ? compacted_to_ + compacted_to_ / 16 : 3 * wheel_->size() + slack);
    if (wheel_->size() < std::max(slack, compact_above_)) return;
    const std::uint64_t timed = threads_.sum(Count::records_with_ttl);
    if (wheel_->size() < std::max(per_record * timed + slack, compact_above_)) return;
  }
  ThreadContext& own = threads_.context();
  const Operation operation{*this, own};
  compacting_ = !wheel_->compact(
      std::max<std::size_t>(budget, slack),
      [&](std::uint64_t bits, Timestamp wake) { return timers_alive(bits, wake, 1) != 0; });
  // Not again before there is something new to find, however little was found this time.
  compacted_to_ = wheel_->size();
  compact_above_ = compacted_to_ + compacted_to_ / 2;
}

void Core::put_off(ThreadContext& context, HashBits hash, Timestamp now) {
  keys_.shard_of(hash).table.for_each_candidate(hash, [&](ShardTable::Word&, SlotWord seen) {
    const Timestamp wake = wake_of(keys_.entry(seen));
    if (wake <= now && context.timers.push({hash.bits, wake})) context.drain_due = true;
    return true;
  });
}

void Core::expire_batch(ThreadContext& context, std::span<const std::uint64_t> batch,
                        Timestamp now) {
  struct Trim {
    std::uint8_t db;
    std::string key;
  };
  std::vector<Trim> trims;
  {
    Operation operation{*this, context};
    keys_.prefetch(
        batch.size(), [&](std::size_t i) { return HashBits{batch[i]}; }, sizeof(Entry));
    for (const std::uint64_t bits : batch) {
      const HashBits hash{bits};
      Shard& shard = keys_.shard_of(hash);
      for (Handle stuck = 1; stuck != 0;) {
        stuck = 0;
        if (!operation.try_admit(shard)) {
          put_off(context, hash, now);
          break;
        }
        // One timer, one record: of two with these bits each has a timer of its own.
        shard.table.for_each_candidate(hash, [&](ShardTable::Word& word, SlotWord seen) {
          const Entry& old = keys_.entry(seen);
          if (old.due() > now) {
            if (wake_of(old) <= now) trims.push_back({old.db(), std::string{old.key()}});
            return true;
          }
          // A timer of the record that was there before; the delete marker has its own.
          if (old.is_delete_marker() && wake_of(old) > now) return true;
          if (!sweep(context, hash, word, seen, now)) {
            stuck = slot::handle(seen);  // it changed, or its segment is being replaced
          }
          return false;
        });
        if (stuck != 0) keys_.help_growth(shard, hash, stuck);
      }
    }
  }
  for (const Trim& trim : trims) trim_record(trim.db, trim.key, now);
}

bool Core::sweep(ThreadContext& context, HashBits hash, ShardTable::Word& word, SlotWord seen,
                 Timestamp now) {
  const Entry& old = keys_.entry(seen);
  const Timestamp beyond =
      old.is_delete_marker() ? Timestamp{} : cold_.end_of(context, old.db(), old.key());
  if (beyond <= now) [[likely]] {
    if (!ShardTable::bury(word, seen, old.version())) return false;
    committed(context, hash, &old, false, nullptr, no_end);
    return true;
  }
  // It replaced a copy in the cold store that may end later.
  const Entry* const marker = make_delete_marker(region_, context, old.db(), old.key(),
                                                 old.version(), beyond, Region::Use::structure);
  if (marker == nullptr) {
    context.timers.push({hash.bits, old.due()});  // dead it is anyway; later there is room
    return true;
  }
  if (!ShardTable::replace(word, seen, region_.handle_of(marker))) {
    context.cache.free(region_.handle_of(marker));
    return false;
  }
  committed(context, hash, &old, false, marker, wake_of(*marker));
  return true;
}

void Core::trim_record(std::uint8_t stored_db, Bytes key, Timestamp now) {
  Scratch scratch;
  Version version = 0;
  Timestamp due = no_end;
  const ErrorCode error = update(
      *this, {keys_.databases().shown(stored_db), key}, now,
      [&](const RecordView* live, const NextVersion&) {
        due = live != nullptr ? live->due : no_end;
        Decision decision = live != nullptr ? trim(*live, now, scratch) : Decision{};
        // When a replica gets to it is its own affair, so it may not show.
        decision.keeps_version = options_.replicated;
        return decision;
      },
      version);
  if (error == ErrorCode::section_held) {
    const Operation operation{*this, threads_.context()};
    return put_off(threads_.context(), keys_.hash_of(stored_db, key), now);
  }
  if (error == ErrorCode::ok || due == no_end) return;
  // Without memory, or a journal that takes it, the result stays until the record ends; it is
  // answered as ended all the same. The timer that brought us here is gone: without another the
  // record would never be looked at again.
  threads_.context().timers.push({keys_.hash_of(stored_db, key).bits, due});
}

}  // namespace semel::engine
