// Keeps leases while their owners work: renews each when a third of its length has passed.
//
//   Watchdog watchdog{*engine, Millis{1'000}};   // looks each second, on a thread of its own
//   const Watchdog::Guard kept = watchdog.keep(claims, "order-4711", claim.epoch);
//
// It does so for an hour at most (WatchdogOptions::work_max): work that hangs would keep its key
// for ever. After that the lease runs out as if there were no watchdog, and the guard is lost.
//
// A renewal is a compare-and-set on the epoch: one that comes after the end of the work changes
// nothing, and no lease that was lost comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "semel/claims.hpp"
#include "semel/engine.hpp"

namespace semel {

struct WatchdogOptions {
  /// 1 ms..1 hour, else the nearer of the two: a thread looks that often. None: poll() is to be
  /// called.
  std::optional<Duration> every{};
  Millis work_max{3'600'000};  ///< how long one claim is kept, 1..limits::ttl_max, else the nearer
};

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
  Watchdog(Engine& engine, const WatchdogOptions& options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Whether it looks often enough for leases of this length: at least twice in one.
  [[nodiscard]] bool can_keep(Duration lease) const noexcept;
  /// What every call that takes a watchdog (locks, once(), consume_once(), consume_batch(),
  /// Debounce and C's) asks before it claims. `watchdog` null: there is nothing to be kept. Errors:
  /// bad_option (a lease of `lease`, none: the policy's, that it cannot keep).
  [[nodiscard]] static Status check(const Watchdog* watchdog, const Claims& claims,
                                    std::optional<Duration> lease);
  /// Keeps the claim of `key` with this epoch; `lease` none: the policy's. The key is copied. With
  /// a lease that it cannot keep, and of a claim that is not held with this epoch or whose lease is
  /// over, the guard is lost from the beginning.
  [[nodiscard]] Guard keep(const Claims& claims, Bytes key, Epoch epoch,
                           std::optional<Duration> lease = {});
  /// Renews each claim that is due by the engine's clock: a third of its lease after the last
  /// renewal. Returns how many were renewed. Progress: blocks for the journal where a claim does.
  std::size_t poll();
  [[nodiscard]] std::size_t kept() const;
  /// How many claims were given up because they were kept for `work_max`.
  [[nodiscard]] std::uint64_t overran() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
