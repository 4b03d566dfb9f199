// Whether there is room for commands that may need memory (flag denyoom), where the node has to ask
// before they run: while a database is a cache, and with a maxmemory that is too small for an
// engine. Otherwise the engine itself refuses what finds no room. See
// docs/decisions/0085-eviction.md.
#pragma once

#include <atomic>

#include "engine/api/eviction_calls.hpp"
#include "semel/engine.hpp"

namespace semel::net {

/// redis-server's words.
inline constexpr const char* out_of_memory_text =
    "OOM command not allowed when used memory > 'maxmemory'.";

/// Thread-safe.
class MemoryGuard {
 public:
  explicit MemoryGuard(Engine& engine) noexcept : engine_(engine) {}
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

  /// Errors: those of engine::set_eviction(); then everything stays.
  [[nodiscard]] Status set(const engine::EvictionTerms& terms) {
    SEMEL_CHECK(engine::set_eviction(engine_, terms));
    // mo: relaxed: a setting; the commands under way do not wait for it
    is_on_.store(terms.limit_bytes != 0, std::memory_order_relaxed);
    has_caches_.store(terms.databases != 0, std::memory_order_relaxed);  // mo: as above
    return Done{};
  }
  /// Whether has_room() has to be asked.
  [[nodiscard]] bool is_on() const noexcept {
    return is_on_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] bool has_caches() const noexcept {
    return has_caches_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  /// Evicts if it must. Progress: waits for another thread that evicts. Not inside a section.
  [[nodiscard]] bool has_room() noexcept { return engine::keeps_within_limit(engine_); }
  /// used_memory, while it is on.
  [[nodiscard]] std::uint64_t counted_bytes() const noexcept {
    return engine::counted_bytes(engine_);
  }

 private:
  Engine& engine_;
  std::atomic<bool> is_on_{false};
  std::atomic<bool> has_caches_{false};
};

}  // namespace semel::net
