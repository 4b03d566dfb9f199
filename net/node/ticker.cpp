#include "net/node/ticker.hpp"

#include <sys/resource.h>

#include <optional>
#include <utility>

#include "base/stopwatch.hpp"

namespace semel::net {

Ticker::Ticker(Node& node, std::function<void()> now_and_then)
    : node_(node), now_and_then_(std::move(now_and_then)), thread_([this] { run(); }) {}

Ticker::~Ticker() {
  {
    const base::MutexLock lock{mutex_};
    stops_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void Ticker::end_waits() noexcept {
  ends_waits_.store(true, std::memory_order_relaxed);  // mo: relaxed: seen some ticks later
}

/// Called repeatedly: a request that was read earlier may begin to wait later.
void Ticker::release_clients() {
  node_.clients.unpause();
  for (const auto& client : node_.clients.all()) {
    client->end_wait("-UNBLOCKED the node is ending\r\n");
    client->resume();  // a request that a fault delays
  }
  node_.busy_scripts.end_all();
}

void Ticker::run() {
  // Lowers the priority of this thread alone: an io thread on the same processor runs first, and
  // this one still gets about a tenth of it. If it is not permitted, the priority stays.
  static_cast<void>(setpriority(PRIO_PROCESS, 0, 10));
  // Small parts with pauses between them: on one processor an io thread waits for each part.
  constexpr std::size_t part = 2'000;
  constexpr auto pause = std::chrono::microseconds{200};
  constexpr auto rest = std::chrono::milliseconds{2};
  constexpr auto release_every = std::chrono::milliseconds{20};
  std::optional<base::Stopwatch> called;
  std::optional<base::Stopwatch> released;
  base::MutexLock lock{mutex_};
  bool more = false;
  while (!stops_) {
    // A wait that ends early costs one tick that comes sooner.
    stopped_.wait_for(lock, more ? pause : std::chrono::microseconds{rest});
    if (stops_) return;
    lock.unlock();
    more = !node_.tick(part);
    if (!called || called->passed() >= often) {
      called.emplace();
      now_and_then_();
    }
    // mo: relaxed: see end_waits
    const bool ends_waits = ends_waits_.load(std::memory_order_relaxed);
    if (ends_waits && (!released || released->passed() >= release_every)) {
      released.emplace();
      release_clients();
    }
    lock.lock();
  }
}

}  // namespace semel::net
