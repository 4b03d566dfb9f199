// The figures of an engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "semel/types.hpp"

namespace semel {

/// How a claim was answered, as it is counted by namespace. `other`: regranted, kept_failure by an
/// owner, too_new, unknown, unprotected.
enum class ClaimCount : std::uint8_t {
  granted,
  takeover,
  replay,
  in_flight,
  mismatch,
  in_doubt,
  too_old,
  poison,
  busy,
  other,
};
inline constexpr std::size_t claim_count_count = 10;

struct NamespaceCounts {
  std::string name{};  ///< empty: all namespaces without counters of their own
  std::array<std::uint64_t, claim_count_count> counts{};  ///< by ClaimCount
};

struct Stats {
  std::uint64_t records = 0;  ///< in the table, with expired ones that are not swept yet
  std::uint64_t records_with_ttl = 0;
  std::uint64_t records_flushed = 0;  ///< ended by a flush, and not removed yet
  std::uint64_t operations = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t expired = 0;  ///< records removed because their time ended
  std::uint64_t evicted = 0;  ///< keys of caches that were removed for want of memory
  std::uint64_t refused = 0;  ///< operations refused for memory
  std::uint64_t changes = 0;  ///< of records by calls: stored, changed, removed; not by time
  std::uint64_t claims_granted = 0;
  std::uint64_t claims_duplicate = 0;  ///< in_flight, replay, kept_failure
  std::uint64_t takeovers = 0;
  std::uint64_t stale_owners = 0;
  std::uint64_t claims_forgotten = 0;  ///< by forget(), del or a flush: their work may run again
  std::uint64_t sections = 0;
  std::uint64_t growth_steps = 0;  ///< segments split or rebuilt
  std::uint64_t lost_races = 0;    ///< compare-and-set retries
  std::uint64_t waiters = 0;
  std::uint64_t slots = 0;  ///< of the table; records / slots is the load
  std::uint64_t probe_lines_max = 0;
  std::uint64_t wheel_items = 0;
  Millis wheel_lag{0};              ///< how far advance() is behind
  std::uint64_t bytes_records = 0;  ///< allocated to records, rounding included
  std::uint64_t bytes_table = 0;
  std::uint64_t bytes_wheel = 0;
  std::uint64_t bytes_used = 0;  ///< taken from the memory limit, free lists included
  std::uint64_t bytes_limit = 0;
  std::uint64_t spills = 0;
  std::uint64_t spills_failed = 0;
  std::uint64_t namespaces = 0;
  std::uint64_t namespaces_dropped = 0;
  std::uint64_t bytes_namespaces = 0;
  std::uint64_t bytes_decisions = 0;   ///< of the decision log
  std::uint64_t decisions_missed = 0;  ///< that are not in it, because threads met in it
  std::uint64_t callbacks_threw = 0;   ///< exceptions that left a callback, see Callback
};

struct SpillReport {
  std::uint64_t records = 0;  ///< written to the cold store
  std::uint64_t parts = 0;
  std::uint64_t changed = 0;  ///< records that changed before they could leave the table
};

}  // namespace semel
