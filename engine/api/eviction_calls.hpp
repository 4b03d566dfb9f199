// Eviction as a node uses it: the terms, the question before a write, the use of a key.
// See docs/decisions/0085-eviction.md. An engine without terms evicts nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/rules/eviction_rules.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"
#include "semel/result.hpp"

namespace semel::engine {

/// Errors: bad_option (the engine is a replica), memory_full (no room to note uses); then the terms
/// stay as they were.
[[nodiscard]] Status set_eviction(Engine& engine, const EvictionTerms& terms);
/// Called with each key that was evicted, by the thread that evicted it, outside of operations; one
/// for an engine, null: none. It must not evict.
void on_evicted(Engine& engine, Function<void(std::uint8_t db, Bytes key)> sink);

/// Whether counted_bytes() is within the limit of the terms; evicts until it is. To be asked before
/// a command that may need memory. True without such a limit. Progress: waits for another thread
/// that evicts. Not to be called inside a section, where it evicts nothing.
[[nodiscard]] bool keeps_within_limit(Engine& engine) noexcept;
/// What the limit is compared with: memory of records, table and timers, without what lies idle in
/// between.
[[nodiscard]] std::uint64_t counted_bytes(Engine& engine) noexcept;

/// The use of a key; of one that was not used for long, bounds.
struct KeyUse {
  std::uint32_t idle_seconds = 0;
  std::uint32_t frequency = 0;
};
/// None: the database is no cache. Whether there is such a key is not asked.
[[nodiscard]] std::optional<KeyUse> use_of(Engine& engine, KeyRef key) noexcept;
/// A read that is no other call, as TOUCH.
void note_use(Engine& engine, KeyRef key) noexcept;
/// What RESTORE says of a key.
void set_use(Engine& engine, KeyRef key, KeyUse use) noexcept;

/// While it lives, what this thread reads is no use of a key.
class OnlyLooks {
 public:
  explicit OnlyLooks(Engine& engine) noexcept;
  ~OnlyLooks();
  OnlyLooks(const OnlyLooks&) = delete;
  OnlyLooks& operator=(const OnlyLooks&) = delete;

 private:
  bool* flag_;
  bool before_ = false;
};

}  // namespace semel::engine
