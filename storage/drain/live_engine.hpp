// The engine that was recovered from this storage, for as long as it lives; and whether what it has
// superseded may be dropped from the journal instead of being drained.
//
// Concurrency
//   [storage.lost]      an append threw: its change is visible and not in the journal. Release by
//                       that thread before the engine takes it for appended, acquire loads of the
//                       draining thread after it has asked the engine.
//   mutex               keeps the engine alive: shared while its records are rewritten, and while
//                       it is asked which records are superseded.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/mutex.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"
#include "storage/drain/delta_chains.hpp"
#include "storage/sync/health.hpp"

namespace semel::storage {

class LiveEngine {
 public:
  explicit LiveEngine(const Health& health) noexcept : health_(health) {}

  mutable base::SharedMutex mutex;  // see above

  /// After it was recovered. `drops`: superseded mutations need not be drained. Not with joined
  /// commits, which are visible in the table before RocksDB has them.
  void attach(Engine& engine, bool drops) SEMEL_EXCLUDES(mutex);
  /// Called when the engine ends: waits until no thread uses it.
  void detach() noexcept SEMEL_EXCLUDES(mutex);
  /// The engine ends and waits for the holder of the mutex, which should stop early.
  [[nodiscard]] bool is_ending() const noexcept {
    return ends_.load(std::memory_order_relaxed);  // mo: relaxed: a wish
  }
  /// Null: none was recovered, or it has ended.
  [[nodiscard]] Engine* get() const SEMEL_REQUIRES_SHARED(mutex) { return engine_; }
  /// It has a cold store. False until it was attached.
  [[nodiscard]] bool is_tiered() const noexcept {
    return is_tiered_.load(std::memory_order_relaxed);  // mo: relaxed: see [storage.recovered]
  }

  /// Which mutations of its journal may be deltas.
  [[nodiscard]] DeltaChains& chains() noexcept { return chains_; }
  [[nodiscard]] const DeltaChains& chains() const noexcept { return chains_; }

  /// An append threw. The engine keeps its change, and nothing older may be dropped because of it.
  void lose() noexcept {
    chains_.end();
    has_lost_.store(true, std::memory_order_release);  // mo: release [storage.lost]
  }
  /// A hint, which superseded() checks again; or final.
  [[nodiscard]] bool may_drop() const noexcept;
  /// The bits of those that need not be drained. 0 also where the engine cannot be asked.
  [[nodiscard]] std::uint32_t superseded(std::span<const HeldMutation> asked) SEMEL_EXCLUDES(mutex);

 private:
  const Health& health_;
  DeltaChains chains_;
  Engine* engine_ SEMEL_GUARDED_BY(mutex) = nullptr;
  std::uint64_t restores_ SEMEL_GUARDED_BY(mutex) = 0;  // by recover()
  std::atomic<bool> is_tiered_{false};
  std::atomic<bool> drops_{false};
  std::atomic<bool> ends_{false};
  std::atomic<bool> has_lost_{false};  // [storage.lost]
};

}  // namespace semel::storage
