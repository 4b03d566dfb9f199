#include "engine/upkeep/expiry.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/core_update.hpp"
#include "engine/core/thread_nodes.hpp"
#include "engine/hashes/hash_trim.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/rules/claim_rules.hpp"
#include "engine/time/ttl_wheel.hpp"

namespace semel::engine {

namespace {

void push_timer(ThreadContext& context, HashBits hash, Timestamp wake) noexcept {
  if (context.timers.push({hash.bits, wake})) context.drain_due = true;
}

/// The end of the record was moved to later, and it may be waiting for the timer that has come: it
/// gets one at its end. The mark goes after that, so where there is none, there is such a timer.
void set_again(ThreadContext& context, HashBits hash, const Entry& record,
               Timestamp wake) noexcept {
  SEMEL_ASSERT(wake != no_end);
  push_timer(context, hash, wake);
  record.note_early_timer(false);
}

/// A claim that has not ended with its lease: it goes on without an owner, to its own end. Timers
/// that earlier lives have left do the same, each in its own place.
void go_on_without_lease(ThreadContext& context, HashBits hash,
                         const Entry::Head& record) noexcept {
  SEMEL_ASSERT(record.due() != no_end);
  push_timer(context, hash, record.due());
}

/// Whether a record, of which a part has ended, is such a claim: there is nothing to take out.
[[nodiscard]] bool has_outlived_lease(const Entry::Head& record) noexcept {
  return record.is(Kind::claim) && is_leased(record.value());
}

/// Retries a timer later that fired while a section held the shard for long. Inside an operation.
void put_off(Core& core, ThreadContext& context, HashBits hash, Timestamp now) {
  core.keys().shard_of(hash).table.for_each_candidate(hash, [&](ShardTable::Word&, SlotWord seen) {
    const Entry& record = core.keys().entry(seen);
    const Timestamp wake = wake_of(record);
    if (record.has_early_timer()) {
      set_again(context, hash, record, wake);
    } else if (wake <= now) {
      push_timer(context, hash, wake);
    }
    return true;
  });
}

/// The short way for strings and claims that have ended, which nearly all timers are of, and those
/// whose end has moved to later. A batch
/// adds its figures once and retires its memory once. The operation around it does not wait before
/// it is done: no section over everything comes in between, so the sinks, the floors of flushes and
/// the cut of a snapshot stay what they are.
class PlainSweep {
 public:
  static constexpr std::size_t timers_max = TtlWheel::fire_max;

  PlainSweep(Core& core, Operation& operation, std::span<const std::uint64_t> batch,
             Timestamp now) noexcept
      : core_(core),
        context_(operation.context()),
        operation_(operation),
        batch_(batch),
        now_(now) {
    SEMEL_ASSERT(batch.size() <= timers_max);
  }

  /// Takes out what it can. Bit i of what it returns: the timer i is left.
  [[nodiscard, gnu::noinline]] std::uint64_t run() noexcept {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - batch_.size());
    const std::uint64_t held = find_lines();
    find_records();
    // Without a shard that has admitted the operation a section over everything may run.
    if (held == all || !suits()) return all;
    std::uint64_t left = held;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      if (places_[i] == nullptr || (held & bit) != 0 ||
          !(take_out(*places_[i], seen_[i]) || goes_on(i))) [[unlikely]] {
        left |= bit;
      }
    }
    finish();
    return left;
  }

 private:
  /// The home line of each. Bit i of what it returns: a section holds the shard.
  [[nodiscard]] std::uint64_t find_lines() noexcept {
    std::uint64_t held = 0;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const HashBits hash{batch_[i]};
      Shard& shard = core_.keys().shard_of(hash);
      places_[i] = shard.table.line_at(hash, 0);
      __builtin_prefetch(places_[i]);
      if (!operation_.admit_now(shard)) [[unlikely]]
        held |= std::uint64_t{1} << i;
    }
    return held;
  }
  /// Whether an end concerns nothing but the table and the figures.
  [[nodiscard]] bool suits() noexcept {
    last_kind_ = core_.insight().only_counts_ends_of(Kind::claim) ? Kind::claim : Kind::string;
    return core_.insight().only_counts_ends_of(last_kind_) && core_.cold() == nullptr &&
           !core_.snapshot_cut().is_running() && context_.retired.reserve();
  }
  /// From the line of each to the slot; null: it is elsewhere, if it is there.
  void find_records() noexcept {
    std::uint64_t elsewhere = 0;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (look_at(i, 0)) [[likely]]
        continue;
      const HashBits hash{batch_[i]};
      elsewhere |= std::uint64_t{1} << i;
      places_[i] = core_.keys().shard_of(hash).table.line_at(hash, 1);
      __builtin_prefetch(places_[i]);
    }
    for (; elsewhere != 0; elsewhere &= elsewhere - 1) {
      const auto i = static_cast<std::size_t>(__builtin_ctzll(elsewhere));
      if (!look_at(i, 1)) places_[i] = nullptr;
    }
  }
  [[nodiscard]] bool look_at(std::size_t i, unsigned distance) noexcept {
    const auto found = ShardTable::candidate_in(places_[i], HashBits{batch_[i]}, distance);
    if (found.slot == nullptr) return false;
    places_[i] = found.slot;
    seen_[i] = found.seen;
    core_.keys().prefetch_record(found.seen, sizeof(Entry));
    return true;
  }
  /// False: it is not such a record, or it has changed or is frozen.
  [[nodiscard]] bool take_out(ShardTable::Word& word, SlotWord seen) noexcept {
    const Entry::Head old = core_.keys().entry(seen).head();
    const Version version = old.version();
    const std::uint8_t db = old.db();
    if (old.lives_at(now_) || old.is_delete_marker() || old.kind() > last_kind_ ||
        version < core_.databases().flushed_below(db)) [[unlikely]] {
      return false;
    }
    const std::size_t bytes = Arena::rounded(old.bytes());
    if (!ShardTable::bury(word, seen, version)) [[unlikely]]
      return false;
    if (db != db_) [[unlikely]] {
      add_db_records();
      db_ = db;
    }
    handles_[count_++] = slot::handle(seen);
    bytes_ += bytes;
    return true;
  }
  /// Of a record that was not taken out: false: it has not gone on with all that this timer is for.
  [[nodiscard, gnu::noinline]] bool goes_on(std::size_t i) noexcept {
    const Entry& record = core_.keys().entry(seen_[i]);
    const Entry::Head head = record.head();
    if (!head.lives_at(now_) || head.kind() > Kind::claim ||
        !ShardTable::is_only_candidate(*places_[i], seen_[i])) {
      return false;
    }
    const Timestamp wake = wake_of(head);
    if (wake <= now_) {
      if (!has_outlived_lease(head)) return false;
      go_on_without_lease(context_, HashBits{batch_[i]}, head);
    } else if (head.has_early_timer()) {
      set_again(context_, HashBits{batch_[i]}, record, wake);
    }
    return true;
  }
  void add_db_records() noexcept {
    ThreadContext::add(context_.db_records[db_], db_counted_ - count_);
    db_counted_ = count_;
  }
  void finish() noexcept {
    if (count_ == 0) return;
    add_db_records();
    context_.bump(Count::records, 0 - count_);
    context_.bump(Count::records_with_ttl, 0 - count_);
    context_.bump(Count::bytes_records, 0 - bytes_);
    context_.bump(Count::expired, count_);
    core_.threads().retire_records(context_, std::span{handles_}.first(count_), bytes_);
  }

  Core& core_;
  ThreadContext& context_;
  Operation& operation_;
  const std::span<const std::uint64_t> batch_;
  const Timestamp now_;
  Kind last_kind_ = Kind::string;  // of those that it takes out
  std::uint8_t db_ = 0;            // of the record before
  std::uint64_t db_counted_ = 0;   // of count_, those in db_records
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::array<ShardTable::Word*, timers_max> places_;  // a line, then a slot in it
  std::array<SlotWord, timers_max> seen_;
  std::array<Handle, timers_max> handles_;
};

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

unsigned timers_alive(Core& core, ThreadContext& context, std::uint64_t hash_bits, Timestamp wake,
                      unsigned at_most) {
  const HashBits hash{hash_bits};
  unsigned alive = 0;
  core.keys().shard_of(hash).table.for_each_candidate(hash, [&](ShardTable::Word&, SlotWord seen) {
    const Entry& record = core.keys().entry(seen);
    if (record.due() == wake || is_due_before(record, wake)) {
      ++alive;
    } else if (record.has_early_timer() && wake < wake_of(record)) {
      set_again(context, hash, record, wake_of(record));
    }
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
    for (std::uint64_t left = PlainSweep{core, operation, batch, now}.run(); left != 0;
         left &= left - 1) {
      const HashBits hash{batch[static_cast<std::size_t>(__builtin_ctzll(left))]};
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
            const Timestamp wake = wake_of(old);
            if (wake <= now && has_outlived_lease(old)) {
              go_on_without_lease(context, hash, old);
            } else if (wake <= now) {
              trims.push_back({old.db(), std::string{old.key()}});
            } else if (old.has_early_timer()) {
              set_again(context, hash, old, wake);
            }
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
