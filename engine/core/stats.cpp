// Figures and rules of a core: what it holds, and whether that adds up.
#include <algorithm>
#include <string>

#include "engine/core/core.hpp"

namespace semel::engine {

std::uint64_t Core::records_in(std::uint8_t stored_db) {
  std::uint64_t total = 0;
  threads_.for_each([&](ThreadContext& context) {
    // mo: relaxed: see ThreadContext::bump.
    total += context.db_records[stored_db].load(std::memory_order_relaxed);
  });
  return static_cast<std::int64_t>(total) < 0 ? 0 : total;  // see Threads::sum
}

std::uint64_t Core::held_bytes() noexcept {
  std::uint64_t bytes = threads_.sum(Count::bytes_records) + region_.charged_bytes();
  for (const Shard& shard : keys_.shards()) bytes += shard.pool.bytes();
  return bytes + wheel_bytes_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
}

Stats Core::stats() {
  Stats stats;
  stats.records = threads_.sum(Count::records);
  stats.records_with_ttl = threads_.sum(Count::records_with_ttl);
  stats.records_flushed = threads_.sum(Count::records_flushed);
  stats.operations = threads_.sum(Count::operations);
  stats.hits = threads_.sum(Count::hits);
  stats.misses = threads_.sum(Count::misses);
  stats.expired = threads_.sum(Count::expired);
  stats.changes = threads_.sum(Count::changes);
  stats.refused = threads_.sum(Count::refused);
  stats.claims_granted = threads_.sum(Count::claims_granted);
  stats.claims_duplicate = threads_.sum(Count::claims_duplicate);
  stats.takeovers = threads_.sum(Count::takeovers);
  stats.stale_owners = threads_.sum(Count::stale_owners);
  stats.claims_forgotten = threads_.sum(Count::claims_forgotten);
  stats.sections = threads_.sum(Count::sections);
  stats.growth_steps = threads_.sum(Count::growth_steps);
  stats.lost_races = threads_.sum(Count::lost_races);
  for (const Shard& shard : keys_.shards()) {
    stats.slots += shard.table.segment_count() * shard.table.line_count() * slots_per_line;
    stats.bytes_table += shard.pool.bytes();
  }
  stats.probe_lines_max = probe_lines_max;
  // mo: relaxed: statistics.
  stats.wheel_items = wheel_size_.load(std::memory_order_relaxed);
  const Millis wheel_time{wheel_time_.load(std::memory_order_relaxed)};
  stats.wheel_lag = std::max(Millis{0}, now_of(clock_).time_since_epoch() - wheel_time);
  stats.bytes_wheel = wheel_bytes_.load(std::memory_order_relaxed);
  stats.bytes_records = threads_.sum(Count::bytes_records);
  stats.bytes_used = region_.used_bytes();
  stats.bytes_limit = region_.limit_bytes();
  if (const DecisionLog* const decisions = insight_.decisions(); decisions != nullptr) {
    stats.bytes_decisions = decisions->bytes();
    stats.decisions_missed = decisions->missed();
  }
  return stats;
}

void Core::check_invariants(std::vector<std::string>& broken) {
  const base::MutexLock lock{wheel_mutex_};
  std::uint64_t records = 0;
  std::uint64_t flushed = 0;
  std::uint64_t bytes = 0;
  for (std::size_t s = 0; s < keys_.shards().size(); ++s) {
    Shard& shard = keys_.shards()[s];
    const auto where = [&](const char* what, Bytes key) {
      broken.push_back("shard " + std::to_string(s) + ": " + what + ": key " + std::string{key});
    };
    shard.table.for_each_segment([&](ShardTable::Segment& segment) {
      for (std::uint32_t i = 0; i < shard.table.line_count() * slots_per_line; ++i) {
        // mo: acquire [table.publish]
        const SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
        if (slot::is_frozen(word)) broken.push_back("a segment in use is frozen");
        if (!slot::is_record(word)) continue;
        const Entry& record = keys_.entry(word);
        (keys_.databases().is_flushed(record) ? flushed : records) +=
            record.is_delete_marker() ? 0 : 1;
        bytes += Arena::rounded(record.bytes());
        const HashBits hash = keys_.hash_of(record.db(), record.key());
        if (hash.tag() != slot::tag(word)) where("tag differs from hash", record.key());
        if (&keys_.shard_of(hash) != &shard) where("record in the wrong shard", record.key());
        if (record.version() >= versions_.next()) where("version from the future", record.key());
        const TableProbe probe =
            shard.table.find(hash, [&](Handle handle) { return handle == slot::handle(word); });
        if (probe.slot != &segment.slots()[i]) where("record cannot be found", record.key());
        const TableProbe twin = shard.table.find(hash, [&](Handle handle) {
          return keys_.entry(handle).has_key(record.db(), record.key());
        });
        if (twin.slot != &segment.slots()[i]) where("key is there twice", record.key());
      }
    });
  }
  if (records != threads_.sum(Count::records)) {
    broken.push_back("table holds " + std::to_string(records) + " records, counted " +
                     std::to_string(threads_.sum(Count::records)));
  }
  if (flushed != threads_.sum(Count::records_flushed)) {
    broken.push_back("table holds " + std::to_string(flushed) + " flushed records, counted " +
                     std::to_string(threads_.sum(Count::records_flushed)));
  }
  if (bytes != threads_.sum(Count::bytes_records)) {
    broken.push_back("records hold " + std::to_string(bytes) + " bytes, counted " +
                     std::to_string(threads_.sum(Count::bytes_records)));
  }
  if (region_.used_bytes() > region_.ceiling_bytes() + 2 * Region::span_bytes) {
    broken.push_back("memory limit exceeded: " + std::to_string(region_.used_bytes()) + " of " +
                     std::to_string(region_.ceiling_bytes()));
  }
  wheel_->check(broken);
}

}  // namespace semel::engine
