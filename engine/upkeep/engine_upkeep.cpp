#include "engine/upkeep/engine_upkeep.hpp"

#include <algorithm>
#include <new>

#include "engine/core/figures.hpp"
#include "engine/core/operation.hpp"
#include "engine/upkeep/expiry.hpp"

namespace semel::engine {

EngineUpkeep::EngineUpkeep(Core& core) noexcept : core_(core) {
  core.serve(*this);
}

void EngineUpkeep::start() {
  const base::MutexLock lock{mutex_};
  timers_.start(now_of(core_.clock()));
  publish();
}

namespace {

// A span that is left at 14 sixteenths costs fourteen times the moves of one that is left at one.
constexpr unsigned background_sixteenths = 14;
constexpr std::size_t drain_budget = 256;  // timers that a drain may look at again

/// Marks the thread as one that sweeps, also if it ends by an exception: a mark that stays would
/// refuse all of its later calls of advance() and make_room().
class UpkeepScope {
 public:
  explicit UpkeepScope(ThreadContext& context) noexcept : context_(context) {
    context.in_upkeep = true;
  }
  ~UpkeepScope() { context_.in_upkeep = false; }
  UpkeepScope(const UpkeepScope&) = delete;
  UpkeepScope& operator=(const UpkeepScope&) = delete;

 private:
  ThreadContext& context_;
};

}  // namespace

bool EngineUpkeep::make_room(ThreadContext& context, Room& tried) {
  constexpr std::size_t due_at_once = 10'000;
  constexpr unsigned batches = 64;                                             // some ms
  constexpr Compactor::Effort thorough{.slots = 2'000'000, .sixteenths = 16};  // 10 ms
  // A sweep that trims a record may be refused memory and end up here again.
  if (context.in_upkeep) return false;
  if (core_.large_records().free_some(context, batches)) return true;
  switch (tried) {
    case Room::nothing:
      tried = Room::retired;
      if (!context.retired.empty()) {
        core_.threads().collect_some(context);  // one may be stuck in a journal
        return true;
      }
      [[fallthrough]];
    case Room::retired:
      if (sweep_some_flushed(context)) return true;
      // A section's time stands still, and records of other shards may have to wait for its end.
      if (context.section == nullptr) {
        const std::uint64_t before = core_.threads().sum(Count::bytes_records);
        static_cast<void>(advance(now_of(core_.clock()), due_at_once, false));
        // One that needs many spans comes here again, until nothing is due any more.
        if (core_.threads().sum(Count::bytes_records) < before) return true;
      }
      tried = Room::swept;
      [[fallthrough]];
    case Room::swept:
      tried = Room::gathered;
      if (is_futile()) {
        tried = Room::all;
        return evict_some(context);
      }
      core_.threads().collect_now(context);
      purge_idle();
      return true;
    case Room::gathered:
      tried = Room::moved;
      if (compactor_.step(context, thorough)) return true;
      [[fallthrough]];
    case Room::moved:
    case Room::all:
      tried = Room::all;
      // mo: relaxed: a guess, see engine_upkeep.hpp
      futile_bytes_.store(idle_bytes(), std::memory_order_relaxed);
      if (!evict_some(context)) return false;
      tried = Room::swept;  // the rest may have to be moved together
      return true;
  }
  return false;
}

void EngineUpkeep::free_all_large() noexcept {
  while (core_.large_records().free_some(core_.threads().context(), ~0U)) {
  }
}

bool EngineUpkeep::evict_some(ThreadContext& context) {
  constexpr std::uint64_t enough = 256 * 1024;
  // Records of other shards may have to wait for the end of a section.
  if (!evictor_.evicts() || context.section != nullptr) return false;
  // Where less than half is held it is the order of records that is in the way, not their number.
  if (held_bytes() < core_.region().limit_bytes() / 2) return false;
  try {
    return evictor_.evict(context, enough, false) != 0;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool EngineUpkeep::keeps_within_limit(ThreadContext& context) {
  constexpr std::uint64_t timer_bytes = 16;
  constexpr std::uint64_t slack_max = 64 * 1024;
  const std::uint64_t limit = evictor_.limit_bytes();
  if (limit == 0) return true;
  const std::uint64_t grown =
      context.count(Count::bytes_records) + context.count(Count::timers_logged) * timer_bytes;
  const std::uint32_t generation = evictor_.generation();
  const auto since = static_cast<std::int64_t>(grown - context.room_from);
  if (context.room_generation == generation && since < context.room_bytes) [[likely]]
    return true;
  std::uint64_t held = counted_bytes();
  bool has_evicted = false;
  if (held > limit) {
    context.room_generation = 0;
    if (!evictor_.evicts() || context.section != nullptr || context.in_upkeep) return false;
    // A little more, so that not each of many writes counts and evicts.
    const std::uint64_t slack = std::min(limit / 1024, slack_max);
    has_evicted = evictor_.evict(context, held - limit + slack, true) != 0;
    held = counted_bytes();
    if (held > limit) return has_evicted;
  }
  std::uint64_t threads = 0;
  core_.threads().for_each([&](const ThreadContext&) { ++threads; });
  context.room_generation = generation;
  context.room_from =
      context.count(Count::bytes_records) + context.count(Count::timers_logged) * timer_bytes;
  // Others may add as much before they ask, and so may threads that come later.
  context.room_bytes =
      static_cast<std::int64_t>(std::min((limit - held) / (2 * threads + 1), limit / 128));
  return true;
}

bool EngineUpkeep::sweep_some_flushed(ThreadContext& context) {
  constexpr Compactor::Effort part{.slots = 250'000, .sixteenths = 16};  // some ms
  constexpr int parts_max = 64;
  const std::uint64_t before = core_.threads().sum(Count::records_flushed);
  for (int i = 0; i < parts_max && compactor_.sweeps_flushed(); ++i) {
    if (!compactor_.step(context, part)) break;
    if (core_.threads().sum(Count::records_flushed) < before) return true;
  }
  return false;
}

bool EngineUpkeep::try_charge(std::size_t bytes) {
  ThreadContext& own = core_.threads().context();
  for (Room tried = Room::nothing; !core_.region().try_charge(bytes);) {
    if (!make_room(own, tried)) return false;
  }
  return true;
}

void EngineUpkeep::purge_idle() {
  static_cast<void>(core_.arena().purge_all());
  for (Shard& shard : core_.keys().shards()) shard.pool.trim();
}

std::size_t EngineUpkeep::idle_bytes() noexcept {
  const std::size_t held = held_bytes();
  const std::size_t used = core_.region().used_bytes();
  return used > held ? used - held : 0;
}

bool EngineUpkeep::is_futile() noexcept {
  constexpr std::uint32_t look_every = 64;
  // Not each of many refusals in a row pays for what the one before has tried in vain.
  // mo: relaxed: a guess, see engine_upkeep.hpp
  const std::uint64_t futile = futile_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t idle = idle_bytes();
  const std::uint64_t changed = idle > futile ? idle - futile : futile - idle;
  if (futile == 0 || changed >= Region::span_bytes) return false;
  return futile_skipped_.fetch_add(1, std::memory_order_relaxed) % look_every != 0;  // mo: as above
}

void EngineUpkeep::step_compaction(ThreadContext& context, std::size_t budget) {
  constexpr std::size_t slots_min = 65'536;
  constexpr unsigned pause_max = 64;
  // mo: relaxed: a guess, see engine_upkeep.hpp
  futile_bytes_.store(0, std::memory_order_relaxed);
  core_.region().trim_idle();
  const std::size_t before = idle_bytes();
  const bool waits = idle_trend_.grows(before) &&
                     core_.region().used_bytes() < core_.region().limit_bytes() / 4 * 3;
  const std::size_t usual = std::max<std::size_t>(
      held_bytes() / 8,
      std::min<std::size_t>(std::size_t{2} << 20, core_.region().limit_bytes() / 16));
  if (!compactor_.is_running() && !compactor_.renewal_due() && !compactor_.sweeps_flushed()) {
    if (before <= usual || waits) return;
    if (compact_pause_ != 0) {
      --compact_pause_;
      return;
    }
    purge_idle();
  }
  const std::uint64_t moved = compactor_.moved();
  const bool stepped = compactor_.step(
      context, {.slots = slots_min + budget / 4, .sixteenths = background_sixteenths});
  if (compactor_.is_running()) return;
  // Little to gain: records that cannot be moved now, or memory in other hands.
  const bool in_vain = !stepped || (compactor_.moved() == moved && idle_bytes() > before / 16 * 15);
  compact_pause_ = in_vain ? pause_max : 0;
}

void EngineUpkeep::go_on_compacting() {
  constexpr Compactor::Effort more{.slots = 1'000'000, .sixteenths = background_sixteenths};
  if (compactor_.is_running() || compactor_.sweeps_flushed()) {
    static_cast<void>(compactor_.step(core_.threads().context(), more));
  }
  constexpr unsigned batches = 256;
  static_cast<void>(core_.large_records().free_some(core_.threads().context(), batches));
}

std::size_t EngineUpkeep::compact() {
  ThreadContext& own = core_.threads().context();
  constexpr Compactor::Effort all{.slots = ~std::size_t{0}, .sixteenths = 16};
  const std::size_t before = core_.region().used_bytes();
  // A pass under way may have chosen before records ended, and flushed records go first.
  for (int pass = 0; pass < 3; ++pass) {
    if (!compactor_.step(own, all)) break;
  }
  core_.threads().collect_now(own);
  free_all_large();
  purge_idle();
  while (!core_.region().trim()) {
  }
  const std::size_t after = core_.region().used_bytes();
  return before > after ? before - after : 0;
}

void EngineUpkeep::drain_own_timers(ThreadContext& context) {
  context.drain_due = false;
  core_.large_records().collect_if_due(context);
  base::MutexLock lock{mutex_, std::defer_lock};
  if (!lock.try_lock()) return;  // the thread that holds it drains our queue as well
  ThreadContext& own = context;
  {
    const Operation operation{core_, own};
    if (!timers_.drain(own, own)) compactor_.renew_timers();
  }
  // Without calls of advance(), timers of records that ended early would fill all memory.
  timers_.step_compaction(drain_budget);
}

std::size_t EngineUpkeep::advance(Timestamp now, std::size_t budget, bool wait_for_turn) {
  ThreadContext& own = core_.threads().context();
  if (own.in_upkeep) return budget;
  base::MutexLock lock{mutex_, std::defer_lock};
  if (wait_for_turn) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return budget;
  }
  const UpkeepScope scope{own};
  // The caller read its time before it had the wheel, and others may have been ahead. Judged by the
  // older time a record whose timer fires would be alive, and with its timer gone it would stay.
  now = std::max(now, timers_.wheel().time());
  {
    const Operation operation{core_, own};
    core_.threads().for_each([&](ThreadContext& context) {
      mutex_.assume_held();  // by the function around
      if (!timers_.drain(own, context)) compactor_.renew_timers();
    });
    // A timer of an end that was moved to later may have been set again on its way to the wheel,
    // and that end may have come as well.
    if (!timers_.drain(own, own)) compactor_.renew_timers();
  }
  core_.firing().begin(now);
  Threads::full_fence();
  budget = timers_.advance(now, budget, [&](std::span<const std::uint64_t> batch) {
    try {
      expire_batch(core_, own, batch, now);
    } catch (const std::bad_alloc&) {  // for trims; the batch's timers have left the wheel
      compactor_.renew_timers();
    }
  });
  {
    const Operation operation{core_, own};  // of those that were set again
    if (!timers_.drain(own, own)) compactor_.renew_timers();
  }
  timers_.step_compaction(budget);
  constexpr std::uint64_t look_every = 64;  // calls
  if (++advances_ % look_every == 0) unwatch_shards(core_.keys().shards());
#if defined(SEMEL_VERIFY)
  constexpr std::size_t few = 4'096;  // timers: a wheel of more is not walked each time
  if (timers_.wheel().size() <= few) {
    std::vector<std::string> broken;
    timers_.wheel().check(broken);
    if (!broken.empty()) base::assertion_failed(broken[0].c_str(), __FILE__, __LINE__);
  }
#endif
  // Memory is back when this returns, also if this thread does nothing else; but for what a thread
  // inside an operation may be reading, and for all of it when the budget is used up: the next call
  // gives that back.
  if (budget != 0 && !own.retired.empty()) core_.threads().collect_now(own);
  constexpr unsigned batches = 256;  // of nodes: up to about 10 ms
  static_cast<void>(core_.large_records().free_some(own, batches));
  step_compaction(own, budget);
  publish();
  return budget;
}

std::uint64_t EngineUpkeep::flush_database(std::uint8_t stored, Version below) noexcept {
  const std::uint64_t count = records_in(core_, stored);
  // No thread is inside an operation, so the other threads' fields may be written; see
  // VersionSource::fence().
  core_.threads().for_each([&](ThreadContext& context) {
    // mo: relaxed: see ThreadContext::bump.
    context.db_records[stored].store(0, std::memory_order_relaxed);
  });
  ThreadContext& own = core_.threads().context();
  own.bump(Count::changes, count);
  own.bump(Count::records, 0 - count);
  own.bump(Count::records_flushed, count);
  core_.keys().databases().raise_floor(stored, below);
  compactor_.sweep_flushed_soon();
  return count;
}

void EngineUpkeep::sweep_flushed() {
  compactor_.sweep_flushed(core_.context());
}

std::uint64_t EngineUpkeep::held_bytes() noexcept {
  std::uint64_t bytes = core_.threads().sum(Count::bytes_records) +
                        core_.threads().sum(Count::bytes_nodes) + core_.region().charged_bytes();
  for (const Shard& shard : core_.keys().shards()) bytes += shard.pool.bytes();
  return bytes + wheel_bytes_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
}

std::uint64_t EngineUpkeep::counted_bytes() noexcept {
  std::uint64_t bytes = core_.threads().sum(Count::bytes_records);
  for (const Shard& shard : core_.keys().shards()) {
    // Without the free segments of the pool: one that was replaced serves again.
    bytes += shard.table.segment_count() * ShardTable::segment_bytes(shard.table.line_count());
  }
  return bytes + wheel_bytes_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
}

void EngineUpkeep::publish() noexcept {
  TtlWheel& wheel = timers_.wheel();
  // mo: relaxed: statistics.
  wheel_size_.store(wheel.size(), std::memory_order_relaxed);
  wheel_bytes_.store(wheel.bytes(), std::memory_order_relaxed);
  wheel_time_.store(wheel.time().time_since_epoch().count(), std::memory_order_relaxed);
}

void EngineUpkeep::add_to(Stats& stats) const noexcept {
  // mo: relaxed: statistics.
  stats.wheel_items = wheel_size_.load(std::memory_order_relaxed);
  const Millis wheel_time{wheel_time_.load(std::memory_order_relaxed)};
  stats.wheel_lag = std::max(Millis{0}, now_of(core_.clock()).time_since_epoch() - wheel_time);
  stats.bytes_wheel = wheel_bytes_.load(std::memory_order_relaxed);
}

void EngineUpkeep::check_invariants(std::vector<std::string>& broken) {
  const base::MutexLock lock{mutex_};
  check_records(core_, broken);
  timers_.wheel().check(broken);
}

}  // namespace semel::engine
