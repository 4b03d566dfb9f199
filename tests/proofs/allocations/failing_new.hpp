// operator new that fails on request, on the requesting thread or on the storage's own.
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

  /// The same for all threads whose names begin with `name`, counted together: the `first`-th
  /// fails, and `more` after it. `name` must live until disarm_background().
  static void arm_background(std::uint64_t first, std::uint64_t more,
                             const char* name = "semel:") noexcept;
  /// Not what Asio takes for its operations.
  static void spare_asio() noexcept;
  /// Where `spares` says so, only the `first`-th fails.
  static void spare(bool (*spares)() noexcept) noexcept;
  /// True: one has failed.
  static bool disarm_background() noexcept;
};

}  // namespace semel::proofs
