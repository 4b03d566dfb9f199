// Memory that is freed: what a refusal does before it answers, and what advance() does by the
// way.
//
// Memory is held by records, table, wheel and what is charged; the rest of what is used lies idle:
// in spans of which only a part lives, in the threads' caches, in retire lists. A refusal is right
// only when all that could come free at once has.
#include <algorithm>

#include "engine/core/core.hpp"

namespace semel::engine {

namespace {

// A span that is left at 14 sixteenths costs fourteen times the moves of one that is left at one.
constexpr unsigned background_sixteenths = 14;

}  // namespace

bool Core::make_room(ThreadContext& context, Room& tried) {
  constexpr std::size_t due_at_once = 10'000;
  constexpr Compactor::Effort thorough{.slots = 2'000'000, .sixteenths = 16};  // 10 ms
  // A sweep that trims a record may be refused memory and end up here again.
  if (context.in_upkeep) return false;
  switch (tried) {
    case Room::nothing:
      tried = Room::retired;
      if (!context.retired.empty()) {
        threads_.collect_some(context);  // one may be stuck in a journal
        return true;
      }
      [[fallthrough]];
    case Room::retired:
      if (sweep_some_flushed(context)) return true;
      // A section's time stands still, and what is due elsewhere may have to wait for it.
      if (context.section == nullptr) {
        const std::uint64_t before = threads_.sum(Count::bytes_records);
        static_cast<void>(advance(now_of(clock_), due_at_once, false));
        // One that needs many spans comes here again, until nothing is due any more.
        if (threads_.sum(Count::bytes_records) < before) return true;
      }
      tried = Room::swept;
      [[fallthrough]];
    case Room::swept:
      tried = Room::gathered;
      if (is_futile()) {
        tried = Room::all;
        return false;
      }
      threads_.collect_now(context);
      static_cast<void>(arena_.purge_all());
      for (Shard& shard : keys_.shards()) shard.pool.trim();
      return true;
    case Room::gathered:
      tried = Room::moved;
      if (compactor_.step(context, thorough)) return true;
      [[fallthrough]];
    case Room::moved:
    case Room::all:
      tried = Room::all;
      // mo: relaxed: a guess, see core.hpp
      futile_bytes_.store(idle_bytes(), std::memory_order_relaxed);
      return false;
  }
  return false;
}

bool Core::sweep_some_flushed(ThreadContext& context) {
  constexpr Compactor::Effort part{.slots = 250'000, .sixteenths = 16};  // some ms
  constexpr int parts_max = 64;
  const std::uint64_t before = threads_.sum(Count::records_flushed);
  for (int i = 0; i < parts_max && compactor_.sweeps_flushed(); ++i) {
    if (!compactor_.step(context, part)) break;
    if (threads_.sum(Count::records_flushed) < before) return true;
  }
  return false;
}

bool Core::try_charge(std::size_t bytes) {
  ThreadContext& own = threads_.context();
  for (Room tried = Room::nothing; !region_.try_charge(bytes);) {
    if (!make_room(own, tried)) return false;
  }
  return true;
}

std::size_t Core::idle_bytes() noexcept {
  const std::size_t held = held_bytes();
  const std::size_t used = region_.used_bytes();
  return used > held ? used - held : 0;
}

bool Core::is_futile() noexcept {
  constexpr std::uint32_t look_every = 64;
  // Not each of many refusals in a row pays for what the one before has tried in vain.
  // mo: relaxed: a guess, see core.hpp
  const std::uint64_t futile = futile_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t idle = idle_bytes();
  const std::uint64_t changed = idle > futile ? idle - futile : futile - idle;
  if (futile == 0 || changed >= Region::span_bytes) return false;
  return futile_skipped_.fetch_add(1, std::memory_order_relaxed) % look_every != 0;  // mo: as above
}

void Core::step_compaction(ThreadContext& context, std::size_t budget) {
  constexpr std::size_t slots_min = 65'536;
  constexpr unsigned pause_max = 64;
  // mo: relaxed: a guess, see core.hpp
  futile_bytes_.store(0, std::memory_order_relaxed);
  region_.trim_idle();
  const std::size_t before = idle_bytes();
  const std::size_t usual = std::max<std::size_t>(
      held_bytes() / 8, std::min<std::size_t>(std::size_t{2} << 20, region_.limit_bytes() / 16));
  if (!compactor_.is_running() && !compactor_.renewal_due() && !compactor_.sweeps_flushed()) {
    if (before <= usual) return;
    if (compact_pause_ != 0) {
      --compact_pause_;
      return;
    }
    static_cast<void>(arena_.purge_all());
    for (Shard& shard : keys_.shards()) shard.pool.trim();
  }
  const std::uint64_t moved = compactor_.moved();
  const bool stepped = compactor_.step(
      context, {.slots = slots_min + budget / 4, .sixteenths = background_sixteenths});
  if (compactor_.is_running()) return;
  // Little to gain: records that cannot be moved now, or memory in other hands.
  const bool in_vain = !stepped || (compactor_.moved() == moved && idle_bytes() > before / 16 * 15);
  compact_pause_ = in_vain ? pause_max : 0;
}

void Core::go_on_compacting() {
  constexpr Compactor::Effort more{.slots = 1'000'000, .sixteenths = background_sixteenths};
  if (compactor_.is_running() || compactor_.sweeps_flushed()) {
    static_cast<void>(compactor_.step(threads_.context(), more));
  }
}

std::size_t Core::compact() {
  ThreadContext& own = threads_.context();
  constexpr Compactor::Effort all{.slots = ~std::size_t{0}, .sixteenths = 16};
  const std::size_t before = region_.used_bytes();
  // What was under way may have chosen before records ended, and what is flushed goes first.
  for (int pass = 0; pass < 3; ++pass) {
    if (!compactor_.step(own, all)) break;
  }
  threads_.collect_now(own);
  static_cast<void>(arena_.purge_all());
  for (Shard& shard : keys_.shards()) shard.pool.trim();
  while (!region_.trim()) {
  }
  const std::size_t after = region_.used_bytes();
  return before > after ? before - after : 0;
}

}  // namespace semel::engine
