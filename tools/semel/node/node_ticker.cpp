#include "tools/semel/node/node_ticker.hpp"

#include <sys/resource.h>

#include <utility>

namespace semel::tool {

Ticker::Ticker(net::Node& node, std::function<void()> now_and_then)
    : node_(node), now_and_then_(std::move(now_and_then)), thread_([this] { run(); }) {}

Ticker::~Ticker() {
  {
    const std::lock_guard lock{mutex_};
    stops_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

void Ticker::end_waits() noexcept {
  ends_waits_.store(true, std::memory_order_relaxed);  // mo: relaxed: seen some ticks later
}

/// Called again and again: a request that was read before may begin to wait after.
void Ticker::release_clients() {
  node_.clients.unpause();
  for (const auto& client : node_.clients.all()) {
    client->end_wait("-UNBLOCKED the node is ending\r\n");
  }
  node_.scripts.end_all();
}

void Ticker::run() {
  // Of this thread alone: where it shares a processor with an io thread, that goes first. It still
  // gets a tenth of it. Without the right to it all goes on as before.
  static_cast<void>(setpriority(PRIO_PROCESS, 0, 10));
  // Small parts and a pause between them: on one processor an io thread waits for each.
  constexpr std::size_t part = 2'000;
  constexpr auto pause = std::chrono::microseconds{200};
  constexpr auto rest = std::chrono::milliseconds{2};
  constexpr auto release_every = std::chrono::milliseconds{20};
  using Time = std::chrono::steady_clock::time_point;
  Time called{};
  Time released{};
  std::unique_lock lock{mutex_};
  bool more = false;
  while (!stopped_.wait_for(lock, more ? pause : std::chrono::microseconds{rest},
                            [this] { return stops_; })) {
    lock.unlock();
    more = !node_.tick(part);
    const Time now = std::chrono::steady_clock::now();
    if (now - called >= often) {
      called = now;
      now_and_then_();
    }
    // mo: relaxed: see end_waits
    if (ends_waits_.load(std::memory_order_relaxed) && now - released >= release_every) {
      released = now;
      release_clients();
    }
    lock.lock();
  }
}

}  // namespace semel::tool
