// Renews leases while their owners work: each one when a third of its length has passed.
//
//   Watchdog watchdog{*engine, Millis{1'000}};   // looks each second, on a thread of its own
//   const Watchdog::Guard kept = watchdog.keep(claims, "order-4711", claim.epoch);
//
// A lease is renewed for an hour at most (WatchdogOptions::work_max), since work that hangs would
// keep its key forever. After that the lease runs out, and the guard is lost.
//
// A renewal is a compare-and-set on the epoch: a late renewal, after the end of the work, changes
// nothing, and a lost lease does not come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "semel/claims.hpp"
#include "semel/engine.hpp"

namespace semel {

struct WatchdogOptions {
  /// The period of a thread that renews leases, clamped to 1 ms..1 hour. None: the caller calls
  /// poll().
  std::optional<Duration> every{};
  Millis work_max{3'600'000};  ///< how long one claim is kept, clamped to 1..limits::ttl_max
};

class Watchdog {
 public:
  class Impl;

  /// Its destructor stops the renewals. Must not outlive the watchdog.
  class Guard {
   public:
    Guard() noexcept = default;
    ~Guard();
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&& other) noexcept;
    /// The lease was lost: another owner may have the work.
    [[nodiscard]] bool lost() const noexcept;

   private:
    friend class Watchdog;
    struct Kept;
    Guard(Impl* impl, std::shared_ptr<Kept> kept) noexcept;
    void stop() noexcept;
    Impl* impl_ = nullptr;
    std::shared_ptr<Kept> kept_;
  };

  /// With `every` (clamped to 1 ms..1 hour) a thread polls at this period; else the caller calls
  /// poll().
  explicit Watchdog(Engine& engine, std::optional<Duration> every = {});
  Watchdog(Engine& engine, const WatchdogOptions& options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Whether the watchdog polls often enough for leases of this length: at least twice in each.
  [[nodiscard]] bool can_keep(Duration lease) const noexcept;
  /// The check of every call that takes a watchdog (locks, once(), consume_once(),
  /// consume_batch(), Debounce and those of C), before its claim. `watchdog` null: ok. `lease`
  /// none: the policy's. Errors: bad_option (the lease is too short for can_keep()).
  [[nodiscard]] static Status check(const Watchdog* watchdog, const Claims& claims,
                                    std::optional<Duration> lease);
  /// Renews the claim of `key` with this epoch; `lease` none: the policy's. The key is copied. The
  /// guard is lost from the beginning if the lease is too short for can_keep(), if the claim is not
  /// held with this epoch, or if its lease is over.
  [[nodiscard]] Guard keep(const Claims& claims, Bytes key, Epoch epoch,
                           std::optional<Duration> lease = {});
  /// Renews each claim that is due by the engine's clock: a third of its lease after the last
  /// renewal. Returns the number of renewals. Progress: blocks for the journal, as a claim does.
  std::size_t poll();
  [[nodiscard]] std::size_t kept() const;
  /// The number of claims that were given up after `work_max`.
  [[nodiscard]] std::uint64_t overran() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
