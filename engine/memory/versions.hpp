// Where versions come from: threads take them in blocks from one counter.
//
//   next_   only uniqueness and growth are asked of it: relaxed.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/assert.hpp"
#include "engine/memory/threads.hpp"

namespace semel::engine {

class VersionSource {
 public:
  /// `is_replica`: versions are those of entries alone, and no other thread takes any.
  explicit VersionSource(Version first, bool is_replica = false) noexcept
      : is_replica_(is_replica), next_(first) {}

  /// The version that a change by this thread would get now: larger than `floor` and than any that
  /// it used.
  [[nodiscard]] Version candidate(ThreadContext& context, Version floor) noexcept {
    if (context.version_next > floor && context.version_next < context.version_end) [[likely]] {
      return context.version_next;
    }
    if (context.decision != nullptr) [[unlikely]]
      return decided(context, floor);
    // Takes no version, as the change is refused: the next entry would have to exceed it.
    if (is_replica_) [[unlikely]]
      return std::max(next(), floor + 1);
    // mo: relaxed: blocks are disjoint and grow; a floor always comes from a
    //     block taken before.
    context.version_next = next_.fetch_add(block, std::memory_order_relaxed);
    context.version_end = context.version_next + block;
    return context.version_next;
  }
  /// Under a section over everything: no version handed out before is used again later. A thread
  /// that applies an entry goes on with the versions of the entry.
  [[nodiscard]] Version fence(Threads& threads, ThreadContext& own) noexcept {
    // No thread is inside an operation, so the others' fields may be written; they see it when they
    // are admitted again.
    threads.for_each([](ThreadContext& context) {
      if (context.decision == nullptr) context.version_next = context.version_end = 0;
    });
    return take(own);
  }
  /// Versions handed out from now on are larger.
  void raise(Version above) noexcept {
    // mo: relaxed: only growth is asked of it.
    Version seen = next_.load(std::memory_order_relaxed);
    while (seen <= above && !next_.compare_exchange_weak(seen, above + 1, std::memory_order_relaxed,
                                                         std::memory_order_relaxed)) {
    }
  }
  /// A version of no thread's block, larger than all that were handed out before: for what lies
  /// beside the table.
  [[nodiscard]] Version take(ThreadContext& own) noexcept {
    if (own.decision != nullptr) [[unlikely]] {
      static_cast<void>(candidate(own, 0));
      return own.version_next++;
    }
    SEMEL_ASSERT(!is_replica_);
    return next_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as for blocks
  }
  [[nodiscard]] Version next() const noexcept {
    return next_.load(std::memory_order_relaxed);  // mo: relaxed: a lower bound
  }

 private:
  static constexpr Version block = 64;

  /// Of an entry of a replicated log, whose versions are larger than all that came before it.
  [[nodiscard]] static Version decided(ThreadContext& context, Version floor) noexcept {
    SEMEL_ASSERT(context.version_next < context.version_end);
    SEMEL_ASSERT(floor < context.version_next);
    // A floor that is larger comes from outside of the replicated log. The key's versions grow all
    // the same.
    context.version_next = std::max(context.version_next, floor + 1);
    return context.version_next;
  }

  const bool is_replica_;
  std::atomic<Version> next_;
};

/// The version that a change decided now will have.
class NextVersion {
 public:
  NextVersion(VersionSource& source, ThreadContext& context, Version floor) noexcept
      : source_(source), context_(context), floor_(floor) {}
  [[nodiscard]] Version operator()() const noexcept { return source_.candidate(context_, floor_); }

 private:
  VersionSource& source_;
  ThreadContext& context_;
  Version floor_;
};

}  // namespace semel::engine
