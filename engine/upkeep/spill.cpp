#include "engine/upkeep/spill.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/assert.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/claim_rules.hpp"
#include "engine/table/rank.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t batch_max = 32;
constexpr Millis idle{1'000};  // of the thread, after a step that is not repeated at once
constexpr Millis failed_pause_max{16'000};  // after spills that failed one after the other

}  // namespace

Spill::Spill(Core& core, const Namespaces& namespaces, Restorer& restorer)
    : core_(core),
      namespaces_(namespaces),
      restorer_(restorer),
      cold_(*core.cold()),
      own_(core.context()),
      shard_bits_(core.keys().shard_bits()),
      // A part is held in memory until it has left the table, at about twice its bytes in there.
      part_bytes_(std::max<std::size_t>(core.options().memory_bytes / 64, 64 * 1024)),
      keeps_(core.journal() != nullptr && core.journal()->wants_spills()) {}

Result<SpillReport> Spill::run() {
  try {
    return run_generation();
  } catch (const std::bad_alloc&) {
    // Collected records must not be left behind: they would get into the next spill's parts.
    cold_.abandon();
    return Error{ErrorCode::memory_full, "no memory for a spill"};
  }
}

Result<SpillReport> Spill::run_generation() {
  SEMEL_ASSERT(!own_.is_inside() && cold_.collected().empty());
  if (core_.journal() != nullptr && !core_.journal()->may_spill()) {
    return Error{ErrorCode::refused, "the journal has records that were not put back yet"};
  }
  // Each mutation up to here is of a record that the walk will meet as it is now, or newer.
  const Ticket cut = keeps_ ? core_.journal()->newest() : 0;
  SEMEL_CHECK(cold_.keep_flushes());
  // Ended generations make room, in memory and among the generations. On an error the next lines
  // say more.
  static_cast<void>(drop_ended());
  SEMEL_CHECK(check_memory());
  SEMEL_CHECK(cold_.begin_generation());
  Status walked = walk();
  if (!walked) cold_.abandon();
  SEMEL_ASSERT(cold_.collected().empty());
  const Status dropped = drop_ended();
  if (!walked) return walked.error();
  if (!dropped) return dropped.error();
  if (keeps_) {
    namespaces_.append_again(
        *core_.journal());  // they stay in memory, like records that may not leave
    core_.journal()->spilled(cut, core_.journal()->newest(), cold_.mark());
  }
  return report_;
}

Status Spill::drop_ended() {
  Status dropped = cold_.drop_ended(now_of(core_.clock()));
  core_.threads().wait_for_others(own_);
  cold_.reclaim();
  core_.cold_side().charge();
  return dropped;
}

/// A part adds less than a hundredth of the limit to what the store holds, so it stays below what
/// attach_cold() accepts.
Status Spill::check_memory() const {
  return core_.cold_side().check_memory(core_.options().memory_bytes / 2);
}

Status Spill::walk() {
  Stop at;
  const auto shards = static_cast<std::uint32_t>(core_.keys().shards().size());
  while (at.shard < shards) {
    // What stays is appended again, inside an operation: it must not find the journal full.
    if (keeps_ && !core_.journal()->accepts_writes()) {
      return Error{ErrorCode::refused, "the journal takes no writes, so nothing more is spilled"};
    }
    collect(at);
    if (cold_.collected_bytes() < part_bytes_ && at.shard < shards) continue;
    SEMEL_CHECK(check_memory());
    SEMEL_CHECK(finish_part(at));
  }
  SEMEL_ASSERT(part_begin_ == Stop{.shard = shards});  // the parts cover all ranks
  return Done{};
}

bool Spill::may_leave(const Entry& entry, Timestamp now) const noexcept {
  const Millis soon = core_.options().spill_ttl_min;
  if (entry.due() <= now || (entry.due() != no_end && entry.due() - now < soon)) return false;
  if (entry.pending()) return false;  // the journal is about to have it
  if (entry.kind() != Kind::claim) return true;
  const Bytes value = entry.value();
  if (value.empty()) return false;
  const auto state = static_cast<ClaimState>(static_cast<unsigned char>(value.front()) & 7);
  return state == ClaimState::done || state == ClaimState::failed;
}

/// Appends what stays to the journal again.
void Spill::keep(const Entry& entry, Timestamp now) {
  SEMEL_ASSERT(keeps_);
  if (entry.pending()) return;  // its own append comes after the cut
  const bool marker = entry.is_delete_marker();
  if (!marker && entry.due() <= now &&
      core_.cold_side().end_of(own_, entry.db(), entry.key()) <= now)
    return;
  Mutation& mutation = kept_.emplace_back();
  fill_mutation(mutation, entry, kept_bytes_.emplace_back());
  const Timestamp beyond = core_.cold_side().end_of(own_, entry.db(), entry.key());
  mutation.keep_until = std::max(marker ? wake_of(entry) : entry.due(), beyond);
  if (!marker) return;
  mutation.type = Mutation::Type::erase;
  mutation.value = {};
  mutation.due = no_end;
}

void Spill::take(const Entry& entry, Timestamp now) {
  if (core_.databases().is_flushed(entry)) return;
  if (!may_leave(entry, now)) {
    if (keeps_) keep(entry, now);
    return;
  }
  SEMEL_ASSERT(!entry.is_delete_marker());  // it means that a copy counts no more
  SEMEL_ASSERT(!entry.pending());
  Mutation mutation;
  fill_mutation(mutation, entry, whole_);
  const std::uint64_t rank = core_.keys().rank_of(entry.db(), entry.key());
  // Segments are met in the order of ranks, so nothing belongs to a part before.
  SEMEL_ASSERT(rank >= first_rank(part_begin_.shard, part_begin_.reversed_index, shard_bits_));
  cold_.collect(rank, mutation);
}

void Spill::step_over(Stop& at, std::uint32_t depth) noexcept {
  SEMEL_ASSERT(depth <= depth_max);
  const std::uint32_t width = 1U << (depth_max - depth);
  // Segments are split and never joined, so the end of one is the beginning of one also later.
  SEMEL_ASSERT(at.reversed_index % width == 0);
  SEMEL_ASSERT(at.reversed_index + width <= directory_size);
  at.reversed_index += width;
  if (at.reversed_index < directory_size) return;
  at.reversed_index = 0;
  ++at.shard;
}

void Spill::collect(Stop& at) {
  SEMEL_ASSERT(at.shard < core_.keys().shards().size() && at.reversed_index < directory_size);
  Shard& shard = core_.keys().shards()[at.shard];
  const Timestamp now = now_of(core_.clock());
  Operation operation{core_, own_};
  operation.admit(shard);
  ShardTable::Segment& segment = *shard.table.locate({reverse16(at.reversed_index)});
  const std::uint32_t count = shard.table.line_count() * slots_per_line;
  words_.clear();
  kept_.clear();
  kept_bytes_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    // mo: acquire [table.publish]: the record is read next.
    const SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
    if (slot::is_record(word & ~slot::frozen)) words_.push_back(word);
  }
  constexpr std::size_t ahead = 12;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (i + ahead < words_.size()) __builtin_prefetch(&core_.keys().entry(words_[i + ahead]));
    take(core_.keys().entry(words_[i]), now);
  }
  // Inside the operation: the mutations point into records.
  // One by one: together they may be more than a journal takes at once, and nothing joins them.
  for (const Mutation& kept : kept_) static_cast<void>(core_.journal()->append({&kept, 1}));
  step_over(at, segment.depth);
}

Status Spill::finish_part(Stop end) {
  const std::uint64_t first =
      first_rank(part_begin_.shard, part_begin_.reversed_index, shard_bits_);
  const bool last_part = end.shard == core_.keys().shards().size();
  const std::uint64_t last =
      last_part ? ~std::uint64_t{0} : first_rank(end.shard, end.reversed_index, shard_bits_) - 1;
  SEMEL_ASSERT(first <= last);
  if (!cold_.collected().empty()) {
    SEMEL_CHECK(cold_.write_part(first, last));
    // From here on every operation that ends a record leaves a delete marker if the part may hold
    // it.
    SEMEL_ASSERT(!own_.is_inside());
    core_.threads().wait_for_others(own_);
    cold_.reclaim();
    SEMEL_CHECK(bar_changed());
    SEMEL_ASSERT(changed_.size() <= cold_.collected().size());
    cold_.reveal();
    report_.records += cold_.collected().size();
    report_.changed += changed_.size();
    ++report_.parts;
    for (const std::uint32_t index : changed_) count_out(index);
    remove_unchanged();
    cold_.end_part();
    SEMEL_ASSERT(cold_.collected().empty());
    tidy_segments(end);
    core_.threads().collect_now(own_);
    core_.cold_side().charge();
  }
  part_begin_ = end;
  return Done{};
}

/// A copy that the table knows better.
void Spill::count_out(std::size_t index) {
  SEMEL_ASSERT(index < cold_.collected().size());
  const Mutation record = cold_.collected_record(index);
  const Operation operation{core_, own_};
  cold_.superseded(cold_.collected()[index].rank, 0, record.db, record.due);
}

Status Spill::bar_changed() {
  changed_.clear();
  const std::span<const ColdPlace> all = cold_.collected();
  for (std::size_t at = 0; at < all.size(); at += batch_max) {
    const std::size_t count = std::min(batch_max, all.size() - at);
    Operation operation{core_, own_};
    const auto hash_at = [&](std::size_t i) { return hash_of_rank(all[at + i].rank, shard_bits_); };
    core_.keys().prefetch(count, hash_at, sizeof(Entry));
    for (std::size_t i = 0; i < count; ++i) {
      Shard& shard = core_.keys().shard_of(hash_at(i));
      operation.admit(shard);
      bool there = false;
      shard.table.for_each_candidate(hash_at(i), [&](ShardTable::Word&, SlotWord seen) {
        there = core_.keys().entry(seen).version() == all[at + i].version;
        return !there;
      });
      if (!there) changed_.push_back(static_cast<std::uint32_t>(at + i));
    }
  }
  // If nothing is left of such a key in the table, nothing would hide its copy. An operation that
  // ends one from now on leaves a delete marker itself.
  for (const std::uint32_t index : changed_) {
    Mutation record = cold_.collected_record(index);
    record.type = Mutation::Type::erase;
    Timestamp end;
    {
      const Operation operation{core_, own_};
      end = core_.cold_side().end_of(own_, record.db, record.key);
    }
    // The part is known to may_hold_until(), so the marker outlives the copy.
    SEMEL_ASSERT(end >= record.due);
    const ErrorCode barred = restorer_.restore_marker(record, now_of(core_.clock()), end);
    if (barred != ErrorCode::ok) return Error{barred, "a delete marker for a record that changed"};
  }
  return Done{};
}

void Spill::remove_unchanged() {
  const std::span<const ColdPlace> all = cold_.collected();
  std::size_t next_changed = 0;
  std::vector<std::uint32_t> left;
  for (std::size_t at = 0; at < all.size(); at += batch_max) {
    const std::size_t count = std::min(batch_max, all.size() - at);
    {
      Operation operation{core_, own_};
      const auto hash_at = [&](std::size_t i) {
        return hash_of_rank(all[at + i].rank, shard_bits_);
      };
      core_.keys().prefetch(count, hash_at, sizeof(Entry));
      for (std::size_t i = 0; i < count; ++i) {
        if (next_changed < changed_.size() && changed_[next_changed] == at + i) {
          ++next_changed;
          continue;
        }
        if (!remove(operation, all[at + i])) left.push_back(static_cast<std::uint32_t>(at + i));
      }
    }
    // Threads with timers to hand over must not wait for the whole spill.
    if (own_.drain_due) core_.upkeep().drain_own_timers(own_);
  }
  SEMEL_ASSERT(next_changed == changed_.size());  // they are in the order of collection
  report_.changed += left.size();
  for (const std::uint32_t index : left) count_out(index);
}

bool Spill::remove(Operation& operation, const ColdPlace& collected) {
  const HashBits hash = hash_of_rank(collected.rank, shard_bits_);
  Shard& shard = core_.keys().shard_of(hash);
  bool removed = false;
  for (Handle stuck = 1; stuck != 0;) {
    stuck = 0;
    operation.admit(shard);
    shard.table.for_each_candidate(hash, [&](ShardTable::Word& word, SlotWord seen) {
      const Entry& old = core_.keys().entry(seen);
      if (old.version() != collected.version || old.is_delete_marker()) return true;
      SEMEL_ASSERT(!old.pending());  // it was collected
      removed = ShardTable::bury(word, seen, old.version());
      if (removed) {
        core_.committed(own_, hash, &old, true, nullptr, no_end);
      } else {
        stuck = slot::handle(seen);
      }
      return false;
    });
    if (stuck != 0) core_.keys().help_growth(shard, hash, stuck);
  }
  return removed;
}

/// Empties the segments of what the removals left: a probe passes tombstones, and stops at an empty
/// slot.
void Spill::tidy_segments(Stop end) {
  Stop at = part_begin_;
  while (at.shard < end.shard ||
         (at.shard == end.shard && at.reversed_index < end.reversed_index)) {
    Shard& shard = core_.keys().shards()[at.shard];
    Operation operation{core_, own_};
    operation.admit(shard);
    const HashBits hash{reverse16(at.reversed_index)};
    ShardTable::Segment* const segment = shard.table.locate(hash);
    const std::uint32_t slots = shard.table.line_count() * slots_per_line;
    std::uint32_t records = 0;
    std::uint32_t tombstones = 0;
    for (std::uint32_t i = 0; i < slots; ++i) {
      // mo: relaxed: a guess; grow() looks for itself.
      const SlotWord word = segment->slots()[i].load(std::memory_order_relaxed);
      if (slot::is_record(word & ~slot::frozen)) ++records;
      if (slot::is_tombstone(word)) ++tombstones;
    }
    // Before grow(), which replaces the segment.
    step_over(at, segment->depth);
    if (records * 2 <= slots && tombstones * 8 > slots) {
      static_cast<void>(shard.table.grow(hash, segment));  // without memory it stays as it is
    }
  }
  SEMEL_ASSERT(at == end);
}

// --- when -------------------------------------------------------------------------------------

Result<SpillReport> Spiller::spill() {
  if (core_.cold() == nullptr) return Error{ErrorCode::bad_option, "there is no cold store"};
  const base::MutexLock lock{one_};
  // mo: relaxed: a figure that is compared with the present one; nothing else is read by it
  refused_seen_.store(core_.threads().sum(Count::refused), std::memory_order_relaxed);
  SEMEL_ASSERT(!core_.context().is_inside());
  Result<SpillReport> done = Spill{core_, namespaces_, restorer_}.run();
  (done ? spills_ : failed_).fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  return done;
}

/// Before, a record that is put back later could be older than one that has left, and the store may
/// not have the storage's clock yet (ColdStore::follow_clock).
bool Spiller::is_recovered() const noexcept {
  return core_.journal() == nullptr || core_.journal()->may_spill();
}

bool Spiller::is_due() noexcept {
  if (core_.cold() == nullptr || !is_recovered()) return false;
  const std::size_t limit = core_.options().memory_bytes;
  // A generation costs every lookup a cache line, so it must be worth it: a spill lowers
  // nothing but the memory of records.
  const std::uint64_t records = core_.threads().sum(Count::bytes_records);
  if (records >= limit / 8 && upkeep_.held_bytes() > limit / 100 * core_.options().spill_above) {
    return true;
  }
  // Records that are few but lie everywhere leave no whole span for anything else, and then the
  // table cannot grow: nothing but taking them away makes room.
  const Region& region = core_.region();
  const bool full = region.used_bytes() > region.limit_bytes(Region::Use::record) / 16 * 15;
  if (!full) return false;
  // mo: relaxed: see spill(); with a stale value we start a spill that finds little
  const std::uint64_t seen = refused_seen_.load(std::memory_order_relaxed);
  return records >= limit / 32 || core_.threads().sum(Count::refused) != seen;
}

Status Spiller::drop_ended() {
  SEMEL_ASSERT(core_.cold() != nullptr);
  const base::MutexLock lock{one_};
  return Spill{core_, namespaces_, restorer_}.drop_ended();
}

Millis Spiller::step(Millis every) {
  const Timestamp now = now_of(core_.clock());
  if (now >= next_drop_ && is_recovered()) {
    next_drop_ = now + idle;
    static_cast<void>(drop_ended());  // it has ended all the same, and is tried again
  }
  if (!is_due()) return every;
  const Result<SpillReport> done = spill();
  // The engine goes on after a spill that failed, and refuses new records when memory is full. Each
  // attempt on a disk that fails may leave small files until one succeeds, hence longer pauses.
  if (!done) {
    failed_pause_ = std::clamp(failed_pause_ * 2, idle, failed_pause_max);
    return std::max(every, failed_pause_);
  }
  failed_pause_ = Millis{0};
  // One that found next to nothing that may leave is tried again at leisure.
  constexpr std::uint64_t record_bytes = 50;
  const bool made_room = done->records * record_bytes > core_.options().memory_bytes / 64;
  return made_room ? every : std::max(every, idle);
}

void Spiller::start(Millis every) {
  SEMEL_ASSERT(!thread_.joinable() && core_.cold() != nullptr);
  thread_ = std::thread{[this, every] { run(every); }};
}

void Spiller::run(Millis every) {
  static_cast<void>(pthread_setname_np(pthread_self(), "semel:spill"));  // for people only
  base::MutexLock lock{mutex_};
  Millis pause = every;
  while (!stop_) {
    wake_.wait_for(lock, pause);  // an early end costs one needless look
    if (stop_) return;
    lock.unlock();
    try {
      pause = step(every);
    } catch (const std::bad_alloc&) {
      pause = std::max(every, idle);  // there may be memory by then
    }
    lock.lock();
  }
}

void Spiller::stop() {
  {
    const base::MutexLock lock{mutex_};
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace semel::engine
