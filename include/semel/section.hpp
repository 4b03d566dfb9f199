// Several keys in one atomic step: Engine::section().
#pragma once

#include <cstdint>
// std::unique_ptr. <memory> brings streams, locales and shared pointers: 3,000 lines for every
// user. libstdc++ has it in <thread> as well.
#if defined(__GLIBCXX__)
#include <thread>
#else
#include <memory>
#endif

#include "semel/op.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

class Engine;

struct KeyRef {
  std::uint8_t db = 0;
  Bytes key;
};

/// Exclusive use of some shards. Operations inside see each other's changes and no
/// others; the journal gets them as one group when the section ends. Time stands still inside.
/// Inside are the operations applied to the section, and every call of Store, Claims and Engine
/// that its thread makes on the keys it holds: such a call does not wait for the journal, commit()
/// does. Until it ends, its thread must not use other keys (two threads could wait for each other),
/// nor wait for a claim. Move-only; end it on the thread that began it.
class Section {
 public:
  ~Section();
  Section(Section&& other) noexcept;
  Section& operator=(Section&&) = delete;

  /// Ends the section and returns when its changes have reached the engine's level. The destructor
  /// alone ends it without waiting. Errors: outcome_unknown, refused.
  [[nodiscard]] Status commit();
  /// The key must be in a shard of the section (always, if it was opened over everything).
  void apply(const StoreOp& op, StoreOutcome& outcome) noexcept;
  /// True if `key` may be used in this section.
  [[nodiscard]] bool covers(const KeyRef& key) const noexcept;
  [[nodiscard]] Timestamp now() const noexcept;
  /// Restricts the section to changes that free memory, which may use the journal's reserve for
  /// them (Journal::accepts_frees). All other changes are refused then. Call before the first
  /// change; no effect on a section within another one.
  void only_frees() noexcept;

  /// Until resume(), the calls of this thread are outside of the section; it still keeps other
  /// threads out. Calls of no_wait threads (EngineHost::set_no_wait) that would wait for it end
  /// with section_held, from now until the section ends. Without effect on a section within another
  /// one.
  void yield() noexcept;
  void resume() noexcept;

  class Impl;

 private:
  friend class Engine;
  friend struct ImplAccess;
  explicit Section(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
