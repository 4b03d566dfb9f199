// A shard: a table, its segment memory, and the flag by which a section has both to itself.
//
// Concurrency
//   [core.section]  a shard's section flag. Set by a Section before its membarrier, read by every
//                   operation after its announcement: one of the two sees the other. Cleared with
//                   release, read with acquire: what the section did is visible afterwards.
//                   Where sections are frequent the shard is left watched: operations announce
//                   themselves to it by an exchange (20 cycles), sections need no membarrier (9 us
//                   and an interrupt for each thread that runs). An operation that saw it unwatched
//                   had announced itself before the membarrier of the section that left it so.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/mutex.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/segment_pool.hpp"
#include "engine/memory/threads.hpp"
#include "engine/table/table.hpp"

namespace semel::engine {

struct StdSync {
  template <class T>
  using atomic = std::atomic<T>;
  static constexpr bool vector_lines = has_vector_lines;
};
using ShardTable = Table<StdSync, SegmentPool>;

struct alignas(128) Shard {
  // States of `section`.
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t held_now = 1;
  static constexpr std::uint32_t held_long = 2;  ///< by a section that takes long
  static constexpr std::uint32_t watched = 3;    ///< free
  [[nodiscard]] static constexpr bool is_held(std::uint32_t section) noexcept {
    return section == held_now || section == held_long;
  }

  Shard(Region& region, Threads& threads, std::uint32_t line_count,
        ShardTable::Word* directory) noexcept
      : table(pool, line_count, directory),
        pool(region, threads, ShardTable::segment_bytes(line_count)) {}

  /// Sleeps until the section that holds the shard changes its state, if one holds it. False: it
  /// takes long, and `no_wait` says not to sleep then.
  [[nodiscard]] bool wait_for_section(bool no_wait) noexcept;

  std::atomic<std::uint32_t> section{free};  // [core.section]
  ShardTable table;
  SegmentPool pool;
  alignas(64) base::Mutex section_mutex;
  // Since the last unwatch_shards().
  std::uint32_t recent_sections SEMEL_GUARDED_BY(section_mutex) = 0;
};

// `mask`: a bit for each of `shards`.

[[nodiscard]] constexpr std::uint64_t mask_of_all(std::span<Shard> shards) noexcept {
  return shards.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << shards.size()) - 1;
}

// begin_section() locks the section_mutex of each shard in the mask, end_section() unlocks it. The
// analysis follows neither a set of locks nor a lock that outlives its function. It is right all
// the same: both use a shard only while its mutex is held, and a section ends what it has begun, by
// the same mask.

/// Stops all operations on the shards in `mask`. False: a no_wait thread would have to wait for a
/// section that takes long; nothing is held.
[[nodiscard]] bool begin_section(std::span<Shard> shards, std::uint64_t mask,
                                 Threads& threads) SEMEL_NO_THREAD_SAFETY_ANALYSIS;
/// Starts them again.
void end_section(std::span<Shard> shards, std::uint64_t mask) SEMEL_NO_THREAD_SAFETY_ANALYSIS;
/// Of a section that holds `mask`: it takes long from now on. Ends the waits of no_wait threads.
void prolong_section(std::span<Shard> shards, std::uint64_t mask) noexcept;
/// Frees watched shards in which sections have become rare.
void unwatch_shards(std::span<Shard> shards) noexcept;

}  // namespace semel::engine
