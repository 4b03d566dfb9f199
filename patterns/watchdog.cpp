// See semel/patterns/watchdog.hpp.
//
// Concurrency
//   A renewal holds the mutex of its own claim alone, so that the destructor of a guard waits for
//   the renewal of its claim and for no other. No thread holds both mutexes.
//   [watchdog.lost]  release store where a renewal is refused  pairs with  acquire load in lost().
//             stale: an owner learns later that it has lost its lease. Cost: nothing that its epoch
//             does not prevent.
#include "semel/patterns/watchdog.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "semel/engine.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/once.hpp"
#include "semel/process.hpp"

namespace semel {

struct Watchdog::Guard::Kept {
  Kept(const Claims& of, Bytes name, Epoch number, Millis length)
      : claims(of), key(name), epoch(number), lease(length) {}

  Claims claims;
  std::string key;
  Epoch epoch;
  Millis lease;
  base::Mutex mutex;
  bool stopped SEMEL_GUARDED_BY(mutex) = false;
  std::atomic<bool> lost{false};
};

class Watchdog::Impl {
 public:
  using Kept = std::shared_ptr<Guard::Kept>;

  Impl(Engine& engine, const WatchdogOptions& options)
      : engine_(engine), work_max_(std::clamp(options.work_max, Millis{1}, limits::ttl_max)) {
    if (!options.every) return;
    pause_ = std::clamp(Millis{*options.every}, Millis{1}, Millis{3'600'000});
    thread_ = std::thread{[this] { watch(pause_); }};
  }
  ~Impl() {
    {
      const base::MutexLock lock{mutex_};
      stop_ = true;
    }
    woken_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// False: this is a copy in a child of fork(). Its thread does not exist here, and a mutex that
  /// was locked at the fork stays locked.
  [[nodiscard]] bool is_here() const noexcept { return process_.is_here(); }

  void add(const Kept& kept) {
    if (!is_here()) return;
    const base::MutexLock lock{mutex_};
    const Timestamp now = engine_.now();
    kept_.push_back({kept, deadline_after(now, pause_of(*kept)), deadline_after(now, work_max_)});
  }
  void remove(const Kept& kept) noexcept {
    if (!is_here()) return;
    {
      const base::MutexLock lock{mutex_};
      std::erase_if(kept_, [&](const Entry& entry) { return entry.kept == kept; });
    }
    // A renewal of it under way ends before its owner goes on.
    const base::MutexLock lock{kept->mutex};
    kept->stopped = true;
  }

  std::size_t poll() {
    if (!is_here()) return 0;
    std::vector<Kept> due;
    std::vector<Kept> over;
    const Timestamp now = engine_.now();
    {
      const base::MutexLock lock{mutex_};
      over.reserve(kept_.size());
      due.reserve(kept_.size());  // may throw: before the first is noted as renewed
      for (Entry& entry : kept_) {
        if (entry.due > now) continue;
        entry.due = deadline_after(now, pause_of(*entry.kept));
        (entry.end > now ? due : over).push_back(entry.kept);
      }
    }
    for (const Kept& kept : over) give_up(*kept);
    std::size_t renewed = 0;
    for (const Kept& kept : due) renewed += renew(*kept) ? 1 : 0;
    return renewed;
  }

  /// Renewed a third of the lease after the last time, or a pause later.
  [[nodiscard]] bool can_keep(Millis lease) const noexcept {
    return pause_ == Millis{0} || lease / 2 >= pause_;
  }

  [[nodiscard]] std::uint64_t overran() const noexcept {
    return overran_.load(std::memory_order_relaxed);  // mo: relaxed: statistics
  }
  [[nodiscard]] std::size_t size() const {
    if (!is_here()) return 0;
    const base::MutexLock lock{mutex_};
    return kept_.size();
  }

 private:
  struct Entry {
    Kept kept;
    Timestamp due;  // of the next renewal
    Timestamp end;  // no renewal from then on
  };

  [[nodiscard]] static Millis pause_of(const Guard::Kept& kept) noexcept {
    return std::max(Millis{1}, kept.lease / 3);
  }

  [[nodiscard]] bool renew(Guard::Kept& kept) {
    const base::MutexLock lock{kept.mutex};
    if (kept.stopped) return false;
    const OwnerOutcome outcome =
        kept.claims.renew({.key = kept.key, .epoch = kept.epoch, .lease = kept.lease});
    if (outcome.answer == OwnerAnswer::ok) return true;
    // A disk that does not answer now may do so the next time, while there is a lease left.
    if (outcome.error != ErrorCode::ok && retry_of(outcome.error) != Retry::never) return false;
    kept.stopped = true;
    kept.lost.store(true, std::memory_order_release);  // mo: release [watchdog.lost]
    return false;
  }

  /// It was kept for long enough: its lease runs out from here.
  void give_up(Guard::Kept& kept) {
    const base::MutexLock lock{kept.mutex};
    if (std::exchange(kept.stopped, true)) return;
    overran_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: statistics
    kept.lost.store(true, std::memory_order_release);  // mo: release [watchdog.lost]
  }

  void watch(Millis pause) {
    base::MutexLock lock{mutex_};
    while (!stop_) {
      woken_.wait_for(lock, pause);  // a wait that ends early costs a look at the list
      if (stop_) return;
      lock.unlock();
      try {
        static_cast<void>(poll());
      } catch (const std::bad_alloc&) {  // the next round may have more
      }
      lock.lock();
    }
  }

  Engine& engine_;
  const ProcessMark process_;
  mutable base::Mutex mutex_;
  base::Condition woken_;
  std::vector<Entry> kept_ SEMEL_GUARDED_BY(mutex_);
  bool stop_ SEMEL_GUARDED_BY(mutex_) = false;
  const Millis work_max_;
  std::atomic<std::uint64_t> overran_{0};
  Millis pause_{0};  // 0: polled by hand
  std::thread thread_;
};

Watchdog::Watchdog(Engine& engine, std::optional<Duration> every)
    : Watchdog(engine, WatchdogOptions{.every = every}) {}
Watchdog::Watchdog(Engine& engine, const WatchdogOptions& options)
    : impl_(std::make_unique<Impl>(engine, options)) {}
Watchdog::~Watchdog() {
  // In a child of fork() the memory is leaked: a condition with waiters must not be destroyed.
  if (!impl_->is_here()) static_cast<void>(impl_.release());
}

Watchdog::Guard Watchdog::keep(const Claims& claims, Bytes key, Epoch epoch,
                               std::optional<Duration> lease) {
  auto kept =
      std::make_shared<Guard::Kept>(claims, key, epoch, lease.value_or(claims.policy().lease));
  Claims ns = claims;  // a claim that is over or has no owner is not kept
  if (impl_->can_keep(kept->lease) && detail::is_live(ns, key, epoch)) {
    impl_->add(kept);
  } else {
    kept->lost.store(true, std::memory_order_release);  // mo: release [watchdog.lost]
  }
  return Guard{impl_.get(), std::move(kept)};
}

bool Watchdog::can_keep(Duration lease) const noexcept {
  return impl_->can_keep(lease);
}

Status Watchdog::check(const Watchdog* watchdog, const Claims& claims,
                       std::optional<Duration> lease) {
  const Millis length = lease.value_or(claims.policy().lease);
  if (watchdog == nullptr || watchdog->can_keep(length)) return Done{};
  return Error{ErrorCode::bad_option, "a lease of " + std::to_string(length.count()) +
                                          " ms is less than twice the watchdog's period"};
}

std::uint64_t Watchdog::overran() const noexcept {
  return impl_->overran();
}
std::size_t Watchdog::poll() {
  return impl_->poll();
}
std::size_t Watchdog::kept() const {
  return impl_->size();
}

Watchdog::Guard::Guard(Impl* impl, std::shared_ptr<Kept> kept) noexcept
    : impl_(impl), kept_(std::move(kept)) {}
Watchdog::Guard::Guard(Guard&& other) noexcept
    : impl_(std::exchange(other.impl_, nullptr)), kept_(std::move(other.kept_)) {}
Watchdog::Guard& Watchdog::Guard::operator=(Guard&& other) noexcept {
  if (this == &other) return *this;
  stop();
  impl_ = std::exchange(other.impl_, nullptr);
  kept_ = std::move(other.kept_);
  return *this;
}
Watchdog::Guard::~Guard() {
  stop();
}

void Watchdog::Guard::stop() noexcept {
  if (impl_ != nullptr) impl_->remove(kept_);
  impl_ = nullptr;
}

bool Watchdog::Guard::lost() const noexcept {
  // mo: acquire [watchdog.lost]: nothing is read behind it but this.
  return kept_ != nullptr && kept_->lost.load(std::memory_order_acquire);
}

}  // namespace semel
