// operator new that fails on request, on the requesting thread only.
#pragma once

#include <cstdint>

namespace semel::proofs {

/// The allocations of this thread from now on, up to the one that fails.
class FailingNew {
 public:
  /// The `which`-th from now on fails, 1 for the next, and only that one.
  static void arm(std::uint64_t which) noexcept;
  /// None fails any more; disarm() still returns the result.
  static void hold() noexcept;
  /// Allocations that are not freed yet, of all threads.
  static std::int64_t live() noexcept;
  /// True: it has failed.
  static bool disarm() noexcept;
};

}  // namespace semel::proofs
