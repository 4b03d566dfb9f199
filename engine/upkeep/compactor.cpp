#include "engine/upkeep/compactor.hpp"

#include <algorithm>

#include "engine/core/operation.hpp"
#include "engine/kinds/kinds.hpp"

namespace semel::engine {

namespace {

std::uint32_t reversed(std::uint32_t index) noexcept {
  std::uint32_t bits = 0;
  for (unsigned bit = 0; bit < depth_max; ++bit) {
    bits |= ((index >> bit) & 1U) << (depth_max - 1 - bit);
  }
  return bits;
}

}  // namespace

bool Compactor::step(ThreadContext& own, Effort effort) {
  base::MutexLock lock{mutex_, std::defer_lock};
  if (!lock.try_lock()) return false;
  if (!runs_or_begins(own, effort.sixteenths)) return false;
  go_on(own, effort.slots);
  core_.threads().collect_now(own);
  return true;
}

void Compactor::go_on(ThreadContext& own, std::size_t slots) {
  while (slots != 0 && shard_ < core_.keys().shards().size()) slots -= std::min(slots, walk(own));
  if (shard_ == core_.keys().shards().size()) end(own);
}

bool Compactor::runs_or_begins(ThreadContext& own, unsigned sixteenths) {
  // mo: relaxed: under mutex_; a hint
  const bool sweeping = sweeping_.load(std::memory_order_relaxed);
  if (is_running() && !sweeping && sweep_due_.load(std::memory_order_relaxed)) {
    // Flushed records hold more memory than a move of others would free.
    if (renewing_) renew_timers();
    end(own);
  }
  return is_running() || begin(own, sixteenths);
}

void Compactor::sweep_flushed(ThreadContext& own) {
  constexpr Effort part{.slots = 100'000, .sixteenths = 1};
  // One that is under way may have begun before the flush; others may flush for ever.
  for (int passes = 0; passes < 2 && sweeps_flushed();) {
    const base::MutexLock lock{mutex_};
    if (!runs_or_begins(own, part.sixteenths)) return;
    const std::uint32_t shard = shard_;
    const std::uint32_t index = reversed_index_;
    const std::uint32_t slot = slot_;
    go_on(own, part.slots);
    core_.threads().collect_now(own);
    if (!is_running()) {
      ++passes;
    } else if (shard == shard_ && index == reversed_index_ && slot == slot_) {
      return;
    }
  }
}

bool Compactor::begin(ThreadContext& own, unsigned sixteenths) {
  // What threads keep for themselves would be taken for records that live.
  core_.threads().collect_now(own);
  // mo: relaxed: a timer that is dropped later sets it again.
  renewing_ = renewal_due_.exchange(false, std::memory_order_relaxed);
  // mo: relaxed: a later flush sets it again.
  const bool sweeps = sweep_due_.exchange(false, std::memory_order_relaxed);
  sweeping_.store(sweeps, std::memory_order_relaxed);  // mo: relaxed: a hint to others
  // Flushed records are not worth a move: choose when they have gone.
  const bool moves = !sweeps && core_.arena().choose_leaving(sixteenths) != 0;
  if (!moves && !renewing_ && !sweeps) return false;
  shard_ = reversed_index_ = slot_ = 0;
  running_.store(true, std::memory_order_relaxed);  // mo: relaxed: a hint to others
  return true;
}

void Compactor::end(ThreadContext& own) {
  // The old copies are in the pool before what could not be left serves again.
  core_.threads().collect_now(own);
  core_.arena().end_leaving();
  sweeping_.store(false, std::memory_order_relaxed);  // mo: relaxed: a hint to others
  running_.store(false, std::memory_order_relaxed);   // mo: relaxed: a hint to others
}

void Compactor::next_segment(std::uint32_t depth) noexcept {
  const std::uint32_t width = 1U << (depth_max - depth);
  slot_ = 0;
  birth_ = 0;
  reversed_index_ = (reversed_index_ & ~(width - 1)) + width;
  if (reversed_index_ < directory_size) return;
  reversed_index_ = 0;
  ++shard_;
}

std::size_t Compactor::walk(ThreadContext& own) {
  constexpr std::size_t enough = ~std::size_t{0};
  Operation operation{core_, own};
  Shard& shard = core_.keys().shards()[shard_];
  if (!operation.admit_now(shard)) return enough;
  if (core_.snapshot_cut().is_running()) return enough;
  ShardTable::Segment& segment = *shard.table.locate({reversed(reversed_index_)});
  if (segment.birth != birth_) slot_ = 0;  // another has replaced it
  birth_ = segment.birth;
  const std::uint32_t all = shard.table.line_count() * slots_per_line;
  const std::uint32_t first = slot_;
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(all, first + slots_at_once));
  const bool sweeps = sweeping_.load(std::memory_order_relaxed);  // mo: relaxed: under mutex_
  std::size_t moved = 0;
  std::size_t swept = 0;
  bool again = false;
  for (std::uint32_t i = first; i < end; ++i) {
    ShardTable::Word& word = segment.slots()[i];
    // mo: acquire [table.publish]: the record may be read next.
    const SlotWord seen = word.load(std::memory_order_acquire);
    if (!slot::is_record(seen & ~slot::frozen)) continue;
    if (sweeps && core_.databases().is_flushed(core_.keys().entry(seen))) {
      if (sweep_record(own, word, seen)) {
        ++swept;
        continue;
      }
      again = true;  // none of them may be left behind
      if (!slot::is_frozen(seen)) continue;
      const Entry& flushed = core_.keys().entry(seen);
      core_.keys().help_growth(shard, core_.keys().hash_of(flushed.db(), flushed.key()),
                               slot::handle(seen));
      break;
    }
    // Also of those in a segment that another is about to replace: that one is not walked any more.
    if (renewing_) renew_timer(own, core_.keys().entry(seen));
    if (slot::is_frozen(seen)) continue;
    if (!core_.arena().is_leaving(slot::handle(seen))) continue;
    if (move_record(own, word, seen)) ++moved;
  }
  // mo: relaxed: a statistic, one writer
  moved_.store(moved_.load(std::memory_order_relaxed) + moved, std::memory_order_relaxed);
  const std::size_t cost = end - first + moved * slots_per_move + swept * slots_per_sweep;
  if (again) return cost;
  slot_ = end;
  if (end == all) next_segment(segment.depth);
  return cost;
}

bool Compactor::move_record(ThreadContext& context, ShardTable::Word& word, SlotWord seen) {
  const Entry& old = core_.keys().entry(seen);
  if (old.pending()) return false;  // its publisher has yet to write to it
  const Handle handle = core_.arena().allocate_staying(old.bytes());
  if (handle == 0) return false;
  old.copy_to(core_.region().at(handle));
  LargeObject* const large = large_object_of(old);
  if (large != nullptr) share(*large);
  if (!ShardTable::replace(word, seen, handle)) {
    if (large != nullptr) core_.large_records().release_large(context, handle);
    context.cache.free(handle);
    return false;
  }
  core_.large_records().retire(context, old);
  return true;
}

void Compactor::renew_timer(ThreadContext& context, const Entry& record) {
  const Timestamp wake = wake_of(record);
  if (wake == no_end) return;
  const HashBits hash = core_.keys().hash_of(record.db(), record.key());
  if (context.timers.push({hash.bits, wake})) context.drain_due = true;
}

/// The sweep may come by when the key has a new claim: what the log says of that one stays last.
void Compactor::note_flushed(ThreadContext& context, const Entry& old) noexcept {
  const Timestamp now = now_of(core_.clock());
  const KeyLocation location =
      core_.keys().location_of({core_.keys().databases().shown(old.db()), old.key()});
  const TableProbe probe = core_.keys().find(location, old.key());
  const bool is_taken = probe.state == TableProbe::State::found &&
                        core_.keys().databases().lives(core_.keys().entry(probe.seen), now);
  if (!is_taken) {
    return core_.insight().note_forgotten(context, core_.keys().hash64_of(0, old.key()),
                                          old.value(), now);
  };
  context.bump(Count::claims_forgotten);
}

bool Compactor::sweep_record(ThreadContext& context, ShardTable::Word& word, SlotWord seen) {
  if (!context.retired.reserve()) return false;
  const Entry& old = core_.keys().entry(seen);
  // No delete marker: copies in the cold store are flushed as well.
  if (!ShardTable::bury(word, seen, old.version())) return false;
  if (old.kind() == Kind::claim && is_visible(old.kind(), old.value())) [[unlikely]] {
    note_flushed(context, old);
  }
  core_.committed(context, HashBits{}, &old, false, nullptr, no_end);
  return true;
}

}  // namespace semel::engine
