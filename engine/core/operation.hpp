// One operation on the table: a thread announces it, and sections and operations wait for each
// other. See [core.section] in shard.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/core/core.hpp"

namespace semel::engine {

/// An operation as far as a first look, which answers most calls. Nothing here waits; a call that
/// must, or that needs more, goes on with an Operation.
class OperationStart {
 public:
  [[gnu::always_inline]] OperationStart(Threads& threads, ThreadContext& context) noexcept
      : threads_(threads), context_(context) {
    threads_.enter(context_);
  }
  [[gnu::always_inline]] ~OperationStart() {
    if (is_inside_) threads_.leave(context_);
  }
  OperationStart(const OperationStart&) = delete;
  OperationStart& operator=(const OperationStart&) = delete;

  [[gnu::always_inline]] void leave() noexcept {
    threads_.leave(context_);
    is_inside_ = false;
  }
  /// An Operation made with Operation::Entered goes on with it.
  [[gnu::always_inline]] void hand_over() noexcept { is_inside_ = false; }

 private:
  Threads& threads_;
  ThreadContext& context_;
  bool is_inside_ = true;
};

/// Inside one operation; sections wait for it, it waits for sections.
class Operation {
 public:
  Operation(Core& core, ThreadContext& context) noexcept : core_(core), context_(context) {
    core_.threads().enter(context_);
  }
  /// Goes on with an operation that an OperationStart has handed over.
  struct Entered {};
  Operation(Core& core, ThreadContext& context, Entered) noexcept
      : core_(core), context_(context) {}
  ~Operation() { core_.threads().leave(context_); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  [[nodiscard]] static bool is_free(const Shard& shard) noexcept {
    // mo: acquire [core.section]: the operation sees all changes of the section that ended.
    return shard.section.load(std::memory_order_acquire) == Shard::free;
  }
  /// To be called before touching a shard; may leave and enter again. Waits for every section.
  void admit(Shard& shard) noexcept {
    while (!is_free(shard)) [[unlikely]] {
        if (core_.keys().is_own(context_, shard) || passes_watched(shard)) return;
        static_cast<void>(wait(shard, false));
      }
  }
  /// The same, but false where a no_wait thread would wait for a section that takes long.
  [[nodiscard]] bool try_admit(Shard& shard) noexcept {
    while (!is_free(shard)) [[unlikely]] {
        if (core_.keys().is_own(context_, shard) || passes_watched(shard)) return true;
        if (!wait(shard, context_.no_wait)) return false;
      }
    return true;
  }

  /// The same, but false instead of waiting.
  [[nodiscard]] bool admit_now(Shard& shard) noexcept {
    return is_free(shard) || core_.keys().is_own(context_, shard) || passes_watched(shard);
  }

  /// admit() for a call that goes elsewhere to wait. `map`: of the databases, by which `location`
  /// was found.
  [[nodiscard, gnu::always_inline]] static inline bool admits(const KeyLocation& location,
                                                              const DatabaseMap& databases,
                                                              std::uint64_t map) noexcept {
    return is_free(*location.shard) && databases.map() == map;
  }
  /// The rest of admits(): of a shard that is watched, but free.
  [[nodiscard, gnu::noinline]] static bool admits_watched(Core& core, ThreadContext& context,
                                                          const KeyLocation& location,
                                                          std::uint64_t map) noexcept {
    return passes_watched(core, context, *location.shard) && core.databases().map() == map;
  }
  /// Returns when no section holds the key's shard. Finds `location` again if the databases were
  /// swapped since. False: the section is a long one, and the thread does not wait for those
  /// (section_held).
  [[nodiscard]] bool admit(KeyLocation& location, KeyRef key) noexcept {
    if (!is_free(*location.shard) || core_.databases().stored(key.db) != location.stored_db)
        [[unlikely]] {
      return admit_after_wait(location, key);
    }
    return true;
  }

  [[nodiscard]] ThreadContext& context() const noexcept { return context_; }

  /// Reads the clock again if this operation has waited since it was read.
  void keep_up(Timestamp& now) noexcept {
    if (!waited_) [[likely]]
      return;
    waited_ = false;
    now = std::max(now, core_.now(context_));
  }
  void note_wait() noexcept { waited_ = true; }

  /// Runs `work`, which may block, outside of the operation. Admit and find again after it.
  template <class Work>
  void outside(Work&& work) {
    waited_ = true;
    core_.threads().leave(context_);
    work();
    core_.threads().enter(context_);
  }
  /// After a refusal, see Core::make_room(). True: admit and try again.
  [[nodiscard]] bool reclaim(Room& tried);
  /// Counts a refusal for want of memory.
  [[nodiscard]] ErrorCode refuse() noexcept {
    context_.bump(Count::refused);
    return ErrorCode::memory_full;
  }

 private:
  /// Announces itself so that a section which needs no membarrier sees it. False: one is there.
  [[nodiscard]] bool passes_watched(const Shard& shard) noexcept {
    return passes_watched(core_, context_, shard);
  }
  [[nodiscard]] static bool passes_watched(Core& core, ThreadContext& context,
                                           const Shard& shard) noexcept {
    core.threads().announce_again(context);
    // mo: seq_cst [core.section]: after the announcement, and before nothing else.
    return !Shard::is_held(shard.section.load(std::memory_order_seq_cst));
  }
  /// Leaves, waits for the section that holds the shard to change its state, and enters again.
  /// False: it takes long, and `no_wait` says not to wait then.
  [[nodiscard]] bool wait(Shard& shard, bool no_wait) noexcept;
  [[nodiscard]] bool admit_after_wait(KeyLocation& location, KeyRef key) noexcept;

  Core& core_;
  ThreadContext& context_;
  bool waited_ = false;  // since the time of the call was read
};

}  // namespace semel::engine
