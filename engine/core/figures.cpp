// Figures and rules of a core: what it holds, and whether that adds up.
#include "engine/core/figures.hpp"

#include <algorithm>
#include <string>

#include "engine/core/core.hpp"

namespace semel::engine {

std::uint64_t records_in(Core& core, std::uint8_t stored_db) {
  std::uint64_t total = 0;
  core.threads().for_each([&](ThreadContext& context) {
    // mo: relaxed: see ThreadContext::bump.
    total += context.db_records[stored_db].load(std::memory_order_relaxed);
  });
  return static_cast<std::int64_t>(total) < 0 ? 0 : total;  // see Threads::sum
}

Stats stats_of(Core& core) {
  Stats stats;
  stats.records = core.threads().sum(Count::records);
  stats.records_with_ttl = core.threads().sum(Count::records_with_ttl);
  stats.records_flushed = core.threads().sum(Count::records_flushed);
  stats.operations = core.threads().sum(Count::operations);
  stats.hits = core.threads().sum(Count::hits);
  stats.misses = core.threads().sum(Count::misses);
  stats.expired = core.threads().sum(Count::expired);
  stats.evicted = core.threads().sum(Count::evicted);
  stats.changes = core.threads().sum(Count::changes);
  stats.refused = core.threads().sum(Count::refused);
  stats.claims_granted = core.threads().sum(Count::claims_granted);
  stats.claims_duplicate = core.threads().sum(Count::claims_duplicate);
  stats.takeovers = core.threads().sum(Count::takeovers);
  stats.stale_owners = core.threads().sum(Count::stale_owners);
  stats.claims_forgotten = core.threads().sum(Count::claims_forgotten);
  stats.sections = core.threads().sum(Count::sections);
  stats.growth_steps = core.threads().sum(Count::growth_steps);
  stats.lost_races = core.threads().sum(Count::lost_races);
  for (const Shard& shard : core.keys().shards()) {
    stats.slots += shard.table.segment_count() * shard.table.line_count() * slots_per_line;
    stats.bytes_table += shard.pool.bytes();
  }
  stats.probe_lines_max = probe_lines_max;
  stats.bytes_records =
      core.threads().sum(Count::bytes_records) + core.threads().sum(Count::bytes_nodes);
  stats.bytes_used = core.region().used_bytes();
  stats.bytes_limit = core.region().limit_bytes();
  if (const DecisionLog* const decisions = core.insight().decisions(); decisions != nullptr) {
    stats.bytes_decisions = decisions->bytes();
    stats.decisions_missed = decisions->missed();
  }
  return stats;
}

void check_records(Core& core, std::vector<std::string>& broken) {
  std::uint64_t records = 0;
  std::uint64_t flushed = 0;
  std::uint64_t bytes = 0;
  for (std::size_t s = 0; s < core.keys().shards().size(); ++s) {
    Shard& shard = core.keys().shards()[s];
    const auto where = [&](const char* what, Bytes key) {
      broken.push_back("shard " + std::to_string(s) + ": " + what + ": key " + std::string{key});
    };
    shard.table.for_each_segment([&](ShardTable::Segment& segment) {
      for (std::uint32_t i = 0; i < shard.table.line_count() * slots_per_line; ++i) {
        // mo: acquire [table.publish]
        const SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
        if (slot::is_frozen(word)) broken.push_back("a segment in use is frozen");
        if (!slot::is_record(word)) continue;
        const Entry& record = core.keys().entry(word);
        (core.keys().databases().is_flushed(record) ? flushed : records) +=
            record.is_delete_marker() ? 0 : 1;
        bytes += Arena::rounded(record.bytes());
        if (const LargeObject* const large = large_object_of(record)) {
          const bool has_keys = record.kind() != Kind::list;
          const char* const wrong = large->tree().check_invariants(has_keys);
          if (wrong != nullptr) where(wrong, record.key());
        }
        const HashBits hash = core.keys().hash_of(record.db(), record.key());
        if (hash.tag() != slot::tag(word)) where("tag differs from hash", record.key());
        if (&core.keys().shard_of(hash) != &shard) where("record in the wrong shard", record.key());
        if (record.version() >= core.versions().next())
          where("version from the future", record.key());
        const TableProbe probe =
            shard.table.find(hash, [&](Handle handle) { return handle == slot::handle(word); });
        if (probe.slot != &segment.slots()[i]) where("record cannot be found", record.key());
        const TableProbe twin = shard.table.find(hash, [&](Handle handle) {
          return core.keys().entry(handle).has_key(record.db(), record.key());
        });
        if (twin.slot != &segment.slots()[i]) where("key is there twice", record.key());
      }
    });
  }
  if (records != core.threads().sum(Count::records)) {
    broken.push_back("table holds " + std::to_string(records) + " records, counted " +
                     std::to_string(core.threads().sum(Count::records)));
  }
  if (flushed != core.threads().sum(Count::records_flushed)) {
    broken.push_back("table holds " + std::to_string(flushed) + " flushed records, counted " +
                     std::to_string(core.threads().sum(Count::records_flushed)));
  }
  if (bytes != core.threads().sum(Count::bytes_records)) {
    broken.push_back("records hold " + std::to_string(bytes) + " bytes, counted " +
                     std::to_string(core.threads().sum(Count::bytes_records)));
  }
  if (core.region().used_bytes() > core.region().ceiling_bytes() + 2 * Region::span_bytes) {
    broken.push_back("memory limit exceeded: " + std::to_string(core.region().used_bytes()) +
                     " of " + std::to_string(core.region().ceiling_bytes()));
  }
}

}  // namespace semel::engine
