// See semel/patterns/watchdog.hpp.
//
// Concurrency
//   kept_     under mutex_. A renewal runs under the mutex of its own claim alone, so that a guard
//             that goes waits for the renewal of its claim and for no other.
//   [watchdog.lost]  release store where a renewal is refused  pairs with  acquire load in lost().
//             stale: an owner learns later that it has lost its lease. Cost: nothing that its epoch
//             does not prevent.
#include "semel/patterns/watchdog.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "semel/engine.hpp"
#include "semel/process.hpp"

namespace semel {

struct Watchdog::Guard::Kept {
  Kept(const Claims& of, Bytes name, Epoch number, Millis length)
      : claims(of), key(name), epoch(number), lease(length) {}

  Claims claims;
  std::string key;
  Epoch epoch;
  Millis lease;
  std::mutex mutex;
  Timestamp due{};       // under Impl::mutex_
  bool stopped = false;  // under mutex
  std::atomic<bool> lost{false};
};

class Watchdog::Impl {
 public:
  using Kept = std::shared_ptr<Guard::Kept>;

  Impl(Engine& engine, std::optional<Millis> every) : engine_(engine) {
    if (!every) return;
    pause_ = std::clamp(*every, Millis{1}, Millis{3'600'000});
    thread_ = std::thread{[this] { watch(pause_); }};
  }
  ~Impl() {
    {
      const std::lock_guard lock{mutex_};
      stop_ = true;
    }
    woken_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// False: this is a copy in a child of fork(). Its thread is not here, and whoever held a mutex
  /// at the fork holds it for ever.
  [[nodiscard]] bool is_here() const noexcept { return process_.is_here(); }

  void add(const Kept& kept) {
    if (!is_here()) return;
    const std::lock_guard lock{mutex_};
    kept->due = engine_.now() + pause_of(*kept);
    kept_.push_back(kept);
  }
  void remove(const Kept& kept) noexcept {
    if (!is_here()) return;
    {
      const std::lock_guard lock{mutex_};
      std::erase(kept_, kept);
    }
    // A renewal of it under way ends before its owner goes on.
    const std::lock_guard lock{kept->mutex};
    kept->stopped = true;
  }

  std::size_t poll() {
    if (!is_here()) return 0;
    std::vector<Kept> due;
    const Timestamp now = engine_.now();
    {
      const std::lock_guard lock{mutex_};
      due.reserve(kept_.size());  // before the first is noted as renewed
      for (const Kept& kept : kept_) {
        if (kept->due > now) continue;
        kept->due = now + pause_of(*kept);
        due.push_back(kept);
      }
    }
    std::size_t renewed = 0;
    for (const Kept& kept : due) renewed += renew(*kept) ? 1 : 0;
    return renewed;
  }

  /// Renewed a third of the lease after the last time, or a pause later.
  [[nodiscard]] bool can_keep(Millis lease) const noexcept {
    return pause_ == Millis{0} || lease / 2 >= pause_;
  }

  [[nodiscard]] std::size_t size() const {
    if (!is_here()) return 0;
    const std::lock_guard lock{mutex_};
    return kept_.size();
  }

 private:
  [[nodiscard]] static Millis pause_of(const Guard::Kept& kept) noexcept {
    return std::max(Millis{1}, kept.lease / 3);
  }

  [[nodiscard]] bool renew(Guard::Kept& kept) {
    const std::lock_guard lock{kept.mutex};
    if (kept.stopped) return false;
    const OwnerOutcome outcome =
        kept.claims.renew({.key = kept.key, .epoch = kept.epoch, .lease = kept.lease});
    if (outcome.answer == OwnerAnswer::ok) return true;
    // A disk that does not answer now may do so the next time, while there is a lease left.
    if (outcome.error != ErrorCode::ok) return false;
    kept.stopped = true;
    kept.lost.store(true, std::memory_order_release);  // mo: release [watchdog.lost]
    return false;
  }

  void watch(Millis pause) {
    std::unique_lock lock{mutex_};
    while (!woken_.wait_for(lock, pause, [&] { return stop_; })) {
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
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<Kept> kept_;
  bool stop_ = false;
  Millis pause_{0};  // 0: polled by hand
  std::thread thread_;
};

Watchdog::Watchdog(Engine& engine, std::optional<Millis> every)
    : impl_(std::make_unique<Impl>(engine, every)) {}
Watchdog::~Watchdog() {
  // In a child its memory stays: a condition that somebody waits for cannot be destroyed.
  if (!impl_->is_here()) static_cast<void>(impl_.release());
}

Watchdog::Guard Watchdog::keep(const Claims& claims, Bytes key, Epoch epoch,
                               std::optional<Millis> lease) {
  auto kept =
      std::make_shared<Guard::Kept>(claims, key, epoch, lease.value_or(claims.policy().lease));
  impl_->add(kept);
  return Guard{impl_.get(), std::move(kept)};
}

bool Watchdog::can_keep(Millis lease) const noexcept {
  return impl_->can_keep(lease);
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
