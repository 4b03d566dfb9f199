#include "engine/upkeep/evictor.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "engine/core/core_update.hpp"
#include "engine/core/figures.hpp"
#include "engine/rules/hash_value.hpp"
#include "engine/table/rank.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t slots_at_once = 512;  // of one operation: sections wait for it
constexpr std::size_t slots_of_sample = 4'096;
constexpr std::size_t slots_of_small_table = 65'536;
constexpr std::uint32_t searches_skipped = 16;  // of a large table, after one in vain
constexpr std::size_t memory_per_use_byte = 64;

/// A thread that evicts asks for no room itself, and does not wait for a section that takes long.
class Evicting {
 public:
  explicit Evicting(ThreadContext& context) noexcept
      : context_(context),
        in_upkeep_(std::exchange(context.in_upkeep, true)),
        no_wait_(std::exchange(context.no_wait, true)) {}
  ~Evicting() {
    context_.in_upkeep = in_upkeep_;
    context_.no_wait = no_wait_;
  }
  Evicting(const Evicting&) = delete;
  Evicting& operator=(const Evicting&) = delete;

 private:
  ThreadContext& context_;
  const bool in_upkeep_;
  const bool no_wait_;
};

/// As clients see it: fields of a hash may end before.
Timestamp key_end_of(const Entry& record) noexcept {
  return engine::key_end_of(record.kind(), record.value(), record.due());
}

}  // namespace

Status Evictor::set(const EvictionTerms& terms) {
  const base::MutexLock lock{mutex_};
  const bool asks = terms.evicts() || terms.limit_bytes != 0;
  if (asks && core_.options().replicated) {
    return Error{ErrorCode::bad_option, "a node of a group evicts nothing"};
  }
  UseTable& uses = core_.uses();
  if (terms.databases != 0 && !uses.is_started()) {
    const std::size_t bytes = core_.options().memory_bytes / memory_per_use_byte;
    const Error no_room{ErrorCode::memory_full, "no memory to note the use of keys"};
    if (!core_.region().try_charge(bytes)) return no_room;
    if (!uses.start(bytes, now_of(core_.clock()))) {
      core_.region().release(bytes);
      return no_room;
    }
  }
  uses.follow(terms);
  terms_ = terms;
  pool_count_ = 0;
  in_vain_ = false;
  if (terms.seed != 0 || random_ == 0) {
    random_ = terms.seed != 0 ? terms.seed : base::random_number();
  }
  // mo: relaxed: settings, as the next two
  order_.store(terms.evicts() ? terms.order : EvictionOrder::none, std::memory_order_relaxed);
  limit_bytes_.store(terms.limit_bytes, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_relaxed);
  return Done{};
}

void Evictor::set_sink(EvictedSink sink) {
  const base::MutexLock lock{sink_mutex_};
  sink_ = std::move(sink);
}

std::uint64_t Evictor::evict(ThreadContext& context, std::uint64_t bytes, bool waits) {
  SEMEL_ASSERT(context.section == nullptr && !context.is_inside());
  if (!evicts()) return 0;
  std::vector<Evicted> gone;
  std::uint64_t freed = 0;
  {
    base::MutexLock lock{mutex_, std::defer_lock};
    if (waits) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return 0;
    }
    const Evicting evicting{context};
    while (freed < bytes && gone.size() < keys_max) {
      // Its place first: a key that is gone must be told.
      Evicted& evicted = gone.emplace_back();
      if (!evict_one(context, evicted)) {
        gone.pop_back();
        break;
      }
      freed += evicted.bytes;
    }
  }
  if (gone.empty()) return 0;
  context.bump(Count::evicted, gone.size());
  const base::MutexLock lock{sink_mutex_};
  for (const Evicted& each : gone) {
    const auto tell = [&]() SEMEL_NO_THREAD_SAFETY_ANALYSIS { sink_(each.db, each.key); };
    core_.callbacks().run(Callback::expired_sink, tell);
  }
  return freed;
}

bool Evictor::evict_one(ThreadContext& context, Evicted& evicted) {
  if (is_futile()) return false;
  for (std::size_t slots : {slots_of_sample, slot_count()}) {
    sample(context, slots);
    while (pool_count_ != 0) {
      const Candidate best = take_best();
      if (!is_still(context, best, evicted)) continue;
      if (erase(context, best, evicted)) return true;
    }
  }
  in_vain_ = true;
  skipped_ = 0;
  changes_ = core_.threads().sum(Count::changes);
  return false;
}

bool Evictor::is_futile() {
  std::uint64_t records = 0;
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    if ((terms_.databases >> db & 1) != 0) {
      records += records_in(core_, core_.databases().stored(db));
    }
  }
  if (records == 0) return true;
  const bool needs_ttl = terms_.only_with_ttl || terms_.order == EvictionOrder::ttl;
  if (needs_ttl && core_.threads().sum(Count::records_with_ttl) == 0) return true;
  if (!std::exchange(in_vain_, false)) return false;
  in_vain_ = true;
  if (core_.threads().sum(Count::changes) == changes_) return true;
  // Other databases change all the time: not each command walks over a large table in vain.
  if (slot_count() > slots_of_small_table && ++skipped_ < searches_skipped) return true;
  in_vain_ = false;
  return false;
}

std::size_t Evictor::slot_count() noexcept {
  std::size_t slots = 0;
  for (const Shard& shard : core_.keys().shards()) {
    slots += shard.table.segment_count() * shard.table.line_count() * slots_per_line;
  }
  return slots;
}

// --- candidates -----------------------------------------------------------------------------

void Evictor::sample(ThreadContext& context, std::size_t slots) {
  const bool is_random = terms_.order == EvictionOrder::random;
  unsigned wanted = is_random ? 1 : std::max(terms_.samples, 1U);
  const std::uint64_t random = base::next_random(random_);
  const auto shard_count = static_cast<std::uint32_t>(core_.keys().shards().size());
  // A slot beyond the end of a segment is taken modulo its length by walk().
  Stop at{.shard = static_cast<std::uint32_t>(random % shard_count),
          .reversed_index = static_cast<std::uint32_t>(random >> 8 & 0xffff),
          .slot = static_cast<std::uint32_t>(random >> 24 & 0xffff'ffff)};
  const std::size_t most = slots + slots_at_once;  // it begins in the middle of a segment
  for (std::size_t looked = 0; looked < most && wanted != 0;) {
    looked += std::max<std::size_t>(walk(context, at, wanted), 1);
  }
}

std::size_t Evictor::walk(ThreadContext& context, Stop& at, unsigned& wanted) {
  const auto next_shard = [&] {
    at.slot = at.reversed_index = 0;
    at.shard = (at.shard + 1) % static_cast<std::uint32_t>(core_.keys().shards().size());
  };
  Operation operation{core_, context};
  Shard& shard = core_.keys().shards()[at.shard];
  if (!operation.admit_now(shard)) {
    next_shard();
    return slots_at_once;
  }
  const Timestamp now = core_.now(context);
  ShardTable::Segment& segment = *shard.table.locate({reverse16(at.reversed_index)});
  const std::uint32_t all = shard.table.line_count() * slots_per_line;
  const std::uint32_t first = at.slot % all;
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(all, first + slots_at_once));
  std::uint32_t i = first;
  for (; i < end && wanted != 0; ++i) {
    // mo: acquire [table.publish]: the record is read next.
    const SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
    if (!slot::is_record(word & ~slot::frozen)) continue;
    const Entry& record = core_.keys().entry(word);
    if (!may_go(record, now)) continue;
    --wanted;
    const HashBits hash = core_.keys().hash_of(record.db(), record.key());
    add({.score = score_of(record, hash, now), .version = record.version(), .hash = hash});
  }
  at.slot = i;
  if (i < all) return i - first;
  const std::uint32_t width = 1U << (depth_max - segment.depth);
  at.slot = 0;
  at.reversed_index = (at.reversed_index & ~(width - 1)) + width;
  if (at.reversed_index >= directory_size) next_shard();
  return i - first;
}

bool Evictor::may_go(const Entry& record, Timestamp now) {
  if (record.kind() == Kind::claim || record.is_delete_marker() || record.pending()) return false;
  if (!core_.databases().lives(record, now)) return false;
  const bool needs_ttl = terms_.only_with_ttl || terms_.order == EvictionOrder::ttl;
  if (needs_ttl && key_end_of(record) == no_end) return false;
  return (terms_.databases >> core_.databases().shown(record.db()) & 1) != 0;
}

std::uint64_t Evictor::score_of(const Entry& record, HashBits hash, Timestamp now) {
  switch (terms_.order) {
    case EvictionOrder::lru:
      return core_.uses().use_of(hash, now).idle_seconds;
    case EvictionOrder::lfu:
      return use::counter_max - core_.uses().use_of(hash, now).frequency;
    case EvictionOrder::ttl:
      return ~static_cast<std::uint64_t>(key_end_of(record).time_since_epoch().count());
    case EvictionOrder::random:
    case EvictionOrder::none:
      break;
  }
  return 0;
}

void Evictor::add(const Candidate& candidate) {
  const auto pool = std::span{pool_}.first(pool_count_);
  for (const Candidate& each : pool) {
    if (each.version == candidate.version) return;
  }
  if (pool_count_ < pool_max) {
    pool_[pool_count_++] = candidate;
    return;
  }
  const auto lowest = std::min_element(
      pool.begin(), pool.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  if (lowest->score < candidate.score) *lowest = candidate;
}

Evictor::Candidate Evictor::take_best() {
  SEMEL_ASSERT(pool_count_ != 0);
  const auto pool = std::span{pool_}.first(pool_count_);
  const auto best = std::max_element(
      pool.begin(), pool.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  return std::exchange(*best, pool_[--pool_count_]);
}

bool Evictor::is_still(ThreadContext& context, const Candidate& candidate, Evicted& evicted) {
  Operation operation{core_, context};
  Shard& shard = core_.keys().shard_of(candidate.hash);
  if (!operation.admit_now(shard)) return false;
  const Timestamp now = core_.now(context);
  bool is = false;
  // Called at once, under this function's mutex.
  const auto look = [&](ShardTable::Word&, SlotWord seen) SEMEL_NO_THREAD_SAFETY_ANALYSIS {
    const Entry& record = core_.keys().entry(seen);
    if (record.version() != candidate.version) return true;
    if (!may_go(record, now)) return false;
    const std::uint64_t score = score_of(record, candidate.hash, now);
    if (score < candidate.score) {  // it was used since
      const auto pool = std::span{pool_}.first(pool_count_);
      if (std::any_of(pool.begin(), pool.end(),
                      [&](const Candidate& other) { return other.score > score; })) {
        return false;
      }
    }
    evicted.db = core_.databases().shown(record.db());
    evicted.key = record.key();
    evicted.bytes = Arena::rounded(record.bytes());
    is = true;
    return false;
  };
  shard.table.for_each_candidate(candidate.hash, look);
  return is;
}

bool Evictor::erase(ThreadContext& context, const Candidate& candidate, const Evicted& evicted) {
  Timestamp now = core_.now(context);
  bool erases = false;
  const auto decide = [&](const RecordView* live, const NextVersion&) {
    erases = live != nullptr && live->version == candidate.version && live->kind != Kind::claim;
    Decision decision;
    decision.only_looks = true;
    if (erases) decision.action = Action::erase;
    return decision;
  };
  Version version = 0;
  const ErrorCode error = update(core_, {evicted.db, evicted.key}, now, decide, version);
  return error == ErrorCode::ok && erases;
}

}  // namespace semel::engine
