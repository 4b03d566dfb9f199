#include "storage/drain/live_engine.hpp"

#include "base/assert.hpp"
#include "semel/engine_host.hpp"

namespace semel::storage {

void LiveEngine::attach(Engine& engine, bool drops) {
  const base::ExclusiveLock lock{mutex};
  engine_ = &engine;
  restores_ = engine.host().restores();
  // mo: relaxed: hints, all three; the tier is read after [storage.recovered]
  drops_.store(drops, std::memory_order_relaxed);
  ends_.store(false, std::memory_order_relaxed);
  const bool is_tiered = engine.host().cold_store() != nullptr;
  is_tiered_.store(is_tiered, std::memory_order_relaxed);
  // The cold store takes records, and then the journal forgets all that is older than them.
  if (drops) chains_.begin(!is_tiered);
}

void LiveEngine::detach() noexcept {
  ends_.store(true, std::memory_order_relaxed);  // mo: relaxed: a wish to hurry
  chains_.end();
  const base::ExclusiveLock lock{mutex};
  engine_ = nullptr;
}

bool LiveEngine::may_drop() const noexcept {
  // mo: relaxed: only hints; each is checked again, or is final
  return drops_.load(std::memory_order_relaxed) && !health_.is_closing() && !health_.has_failed() &&
         !has_lost_.load(std::memory_order_relaxed) && !is_ending();
}

std::uint32_t LiveEngine::superseded(std::span<const HeldMutation> asked) {
  SEMEL_ASSERT(asked.size() <= EngineHost::superseded_max);
  if (asked.empty() || !may_drop() || !mutex.try_lock_shared()) return 0;
  const base::SharedLock lock{mutex, std::adopt_lock};
  if (engine_ == nullptr) return 0;
  const std::uint32_t found = engine_->host().superseded(asked);
  // A record that somebody has restored since is in the table, and not in the log.
  if (engine_->host().restores() != restores_) return 0;
  return has_lost_.load(std::memory_order_acquire) ? 0 : found;  // mo: acquire [storage.lost]
}

}  // namespace semel::storage
