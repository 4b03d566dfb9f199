// Hints about bases: of the segment that a group is encoded for before it is known to which one it
// comes, and of the segments that are made next. They change once in a segment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "storage/log/mutation_codec.hpp"
#include "storage/log/segment.hpp"

namespace semel::storage {

/// Thread-safe. Values that do not belong together cost bytes, or a group that is encoded again.
class BaseHints {
 public:
  explicit BaseHints(const MutationBase& base) noexcept
      : version_(base.version), ms_(base.ms), next_version_(base.version), next_ms_(base.ms) {}

  /// Of the segment that groups come to.
  [[nodiscard]] MutationBase expected() const noexcept {
    // mo: relaxed, both: hints
    return {version_.load(std::memory_order_relaxed), ms_.load(std::memory_order_relaxed)};
  }
  /// Of a segment that is made now.
  [[nodiscard]] MutationBase next() const noexcept {
    // mo: relaxed, both: hints
    return {next_version_.load(std::memory_order_relaxed),
            next_ms_.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] bool is_entered(const Segment& segment) const noexcept {
    // mo: relaxed: a hint
    return segment.number() == entered_.load(std::memory_order_relaxed);
  }
  /// A group has come to another segment than the one before: the next ones expect its base, and
  /// segments that are made from now on have a base near to the group.
  void enter(const Segment& segment, const MutationBase& newest) noexcept {
    const MutationBase& base = segment.header().base;
    // mo: relaxed, all: hints
    entered_.store(segment.number(), std::memory_order_relaxed);
    version_.store(base.version, std::memory_order_relaxed);
    ms_.store(base.ms, std::memory_order_relaxed);
    // Versions and times grow; a restored mutation may be far behind.
    const auto raise = [](std::atomic<std::uint64_t>& to, std::uint64_t found) {
      // mo: relaxed, both: as above
      to.store(std::max(to.load(std::memory_order_relaxed), found), std::memory_order_relaxed);
    };
    raise(next_version_, newest.version);
    raise(next_ms_, newest.ms);
  }

 private:
  alignas(64) std::atomic<std::uint64_t> entered_{0};
  std::atomic<Version> version_;
  std::atomic<std::uint64_t> ms_;
  std::atomic<Version> next_version_;
  std::atomic<std::uint64_t> next_ms_;
};

}  // namespace semel::storage
