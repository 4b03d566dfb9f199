// Keeps leases while their owners work: renews each when a third of its length has passed.
//
//   Watchdog watchdog{*engine, Millis{1'000}};   // looks each second, on a thread of its own
//   const Watchdog::Guard kept = watchdog.keep(claims, "order-4711", claim.epoch);
//
// A renewal is a compare-and-set on the epoch: one that comes after the end of the work changes
// nothing, and no lease that was lost comes back.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "semel/claims.hpp"
#include "semel/engine.hpp"

namespace semel {

class Watchdog {
 public:
  class Impl;

  /// Stops renewing when it goes. Must not outlive the watchdog.
  class Guard {
   public:
    Guard() noexcept = default;
    ~Guard();
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&& other) noexcept;
    /// The lease was lost: another may have the work.
    [[nodiscard]] bool lost() const noexcept;

   private:
    friend class Watchdog;
    struct Kept;
    Guard(Impl* impl, std::shared_ptr<Kept> kept) noexcept;
    void stop() noexcept;
    Impl* impl_ = nullptr;
    std::shared_ptr<Kept> kept_;
  };

  /// With `every` (1 ms..1 hour, else the nearer of the two) a thread looks that often; without,
  /// poll() is to be called.
  explicit Watchdog(Engine& engine, std::optional<Duration> every = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Whether it looks often enough for leases of this length: at least twice in one. A lock, a
  /// once() and the like with a lease that it cannot keep are refused (bad_option).
  [[nodiscard]] bool can_keep(Duration lease) const noexcept;
  /// Keeps the claim of `key` with this epoch; `lease` none: the policy's. The key is copied.
  [[nodiscard]] Guard keep(const Claims& claims, Bytes key, Epoch epoch,
                           std::optional<Duration> lease = {});
  /// Renews what is due by the engine's clock: a third of its lease after the last renewal.
  /// Returns how many were renewed. Progress: blocks for the journal where a claim does.
  std::size_t poll();
  [[nodiscard]] std::size_t kept() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
