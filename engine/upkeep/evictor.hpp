// Evicts keys of caches when memory is short: see docs/decisions/0085-eviction.md.
//
// Goals      never a claim, nor a key of a database that is no cache; an eviction is a change, as a
//            DEL is: journalled, seen by WATCH, with a delete marker where the cold store has a
//            copy; keys go in about the order of redis-server.
// Non-goals  the exact order of use: some keys are compared, the best candidates are remembered.
//
// Candidates are met from a random slot of the table on. The sixteen best wait in a pool, each by
// hash and version: a changed record is no candidate any more, and one that was used since
// has to be as good as the next. Shards that a section holds are passed over, so that nothing waits
// for a script that takes long.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "engine/core/core.hpp"
#include "engine/core/operation.hpp"
#include "engine/rules/eviction_rules.hpp"
#include "semel/function.hpp"
#include "semel/result.hpp"

namespace semel::engine {

/// Called with each key that was evicted, by the thread that evicted it, outside of operations.
using EvictedSink = Function<void(std::uint8_t db, Bytes key)>;

/// Thread-safe.
class Evictor {
 public:
  explicit Evictor(Core& core) noexcept : core_(core) {}

  /// Errors: bad_option (a replica evicts nothing), memory_full (no room to note uses).
  [[nodiscard]] Status set(const EvictionTerms& terms);
  [[nodiscard]] EvictionOrder order() const noexcept {
    return order_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  /// 0: none.
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept {
    return limit_bytes_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  /// Another one after each set().
  [[nodiscard]] std::uint32_t generation() const noexcept {
    return generation_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] bool evicts() const noexcept { return order() != EvictionOrder::none; }

  /// Evicts keys until their records took `bytes`, at most keys_max. Returns the bytes. Not inside
  /// an operation or section. `waits`: for another thread that evicts; else it may return 0.
  [[nodiscard]] std::uint64_t evict(ThreadContext& context, std::uint64_t bytes, bool waits);
  static constexpr unsigned keys_max = 256;

  void set_sink(EvictedSink sink);

 private:
  static constexpr std::size_t pool_max = 16;
  struct Candidate {
    std::uint64_t score = 0;  // the largest goes first
    Version version = 0;
    HashBits hash{};
  };
  struct Evicted {
    std::uint8_t db = 0;
    std::string key{};
    std::uint64_t bytes = 0;
  };
  /// Where a walk is. The directory index has its bits reversed, as in scan.cpp.
  struct Stop {
    std::uint32_t shard = 0;
    std::uint32_t reversed_index = 0;
    std::uint32_t slot = 0;
  };

  /// False: there is none, or none that can be had now.
  [[nodiscard]] bool evict_one(ThreadContext& context, Evicted& evicted) SEMEL_REQUIRES(mutex_);
  /// Puts candidates into the pool, from a random slot on; looks at no more than about `slots`.
  void sample(ThreadContext& context, std::size_t slots) SEMEL_REQUIRES(mutex_);
  /// A part of a segment. Returns how many slots.
  [[nodiscard]] std::size_t walk(ThreadContext& context, Stop& at, unsigned& wanted)
      SEMEL_REQUIRES(mutex_);
  [[nodiscard]] bool may_go(const Entry& record, Timestamp now) SEMEL_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t score_of(const Entry& record, HashBits hash, Timestamp now)
      SEMEL_REQUIRES(mutex_);
  void add(const Candidate& candidate) SEMEL_REQUIRES(mutex_);
  [[nodiscard]] Candidate take_best() SEMEL_REQUIRES(mutex_);
  /// Whether the candidate is as good as it was, or better than the rest; then `evicted` names it.
  [[nodiscard]] bool is_still(ThreadContext& context, const Candidate& candidate, Evicted& evicted)
      SEMEL_REQUIRES(mutex_);
  [[nodiscard]] bool erase(ThreadContext& context, const Candidate& candidate,
                           const Evicted& evicted);
  /// Whether nothing was found, and there is little hope that this has changed.
  [[nodiscard]] bool is_futile() SEMEL_REQUIRES(mutex_);
  [[nodiscard]] std::size_t slot_count() noexcept;

  Core& core_;
  std::atomic<EvictionOrder> order_{EvictionOrder::none};
  std::atomic<std::uint64_t> limit_bytes_{0};
  std::atomic<std::uint32_t> generation_{1};
  base::Mutex mutex_;
  EvictionTerms terms_ SEMEL_GUARDED_BY(mutex_);
  std::array<Candidate, pool_max> pool_ SEMEL_GUARDED_BY(mutex_);
  std::size_t pool_count_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t random_ SEMEL_GUARDED_BY(mutex_) = 0;
  bool in_vain_ SEMEL_GUARDED_BY(mutex_) = false;       // the last search
  std::uint64_t changes_ SEMEL_GUARDED_BY(mutex_) = 0;  // when it ended
  std::uint32_t skipped_ SEMEL_GUARDED_BY(mutex_) = 0;  // since then
  base::Mutex sink_mutex_;
  EvictedSink sink_ SEMEL_GUARDED_BY(sink_mutex_);
};

}  // namespace semel::engine
