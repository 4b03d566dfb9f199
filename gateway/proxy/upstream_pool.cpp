#include "gateway/proxy/upstream_pool.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "gateway/shared/dial.hpp"

namespace semel::gateway {
namespace {

constexpr Millis drop_every{500};

/// True if the pooled connection is still clean: no end of file and no unsolicited bytes. Costs a
/// system call, and avoids most requests on a dead connection.
bool is_alive(UpstreamConnection& connection) {
  if (!connection.is_settled()) return false;
  char byte = 0;
  const int handle = connection.stream.tcp_layer().socket().native_handle();
  const auto got = recv(handle, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

UpstreamPool::UpstreamPool(asio::io_context& io, const Settings& settings,
                           const UpstreamAddress& address, const CurrentTls& tls,
                           Counters& counters, std::size_t count, std::size_t queue)
    : io_(io),
      settings_(settings),
      address_(address),
      tls_(tls),
      counters_(counters),
      count_max_(count),
      queue_max_(queue) {
  holders_.reserve(count_max_);
}

asio::awaitable<error_code> UpstreamConnection::write(std::string_view bytes, Millis within) {
  stream.expires_after(within);
  auto [error, sent] =
      co_await asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), no_throw);
  account.sent(sent);
  co_return error;
}

bool UpstreamConnection::is_settled() {
  return account.is_settled() && buffer.size() == 0 && !stream.has_unread();
}

void UpstreamPool::Lease::end() noexcept {
  const auto pool = std::exchange(pool_, nullptr);
  if (pool == nullptr) return;
  pool->holders_.erase(std::find(pool->holders_.begin(), pool->holders_.end(), wait_));
  pool->keep_or_close(std::move(connection));
  pool->release();
}

void UpstreamPool::keep_or_close(std::unique_ptr<UpstreamConnection> connection) noexcept {
  if (connection == nullptr || is_closed_ || !connection->is_settled()) return;
  // Requests that opened new connections leave unused ones behind.
  if (unused_.size() >= count_max_) unused_.erase(unused_.begin());
  connection->unused_for = base::Stopwatch{};
  connection->is_reused = true;
  connection->stream.tcp_layer().expires_never();
  unused_.push_back(std::move(connection));
}

void UpstreamPool::release() noexcept {
  --in_use_;
  while (!waiters_.empty()) {
    const std::shared_ptr<Waiter> next = std::move(waiters_.front());
    waiters_.pop_front();
    next->is_next = true;
    ++in_use_;  // for the waiter that wakes
    next->timer.cancel();
    return;
  }
}

void UpstreamPool::close() noexcept {
  is_closed_ = true;
  unused_.clear();
}

asio::awaitable<bool> UpstreamPool::wait_for_turn() {
  if (in_use_ < count_max_) {
    ++in_use_;
    co_return true;
  }
  if (waiters_.size() >= queue_max_) co_return false;
  const auto waiter = std::make_shared<Waiter>(io_);
  const base::Stopwatch since;
  waiters_.push_back(waiter);
  for (Millis left = settings_.queue_timeout; !waiter->is_next && left > Millis{0};
       left = settings_.queue_timeout - since.passed()) {
    drop_slowest();
    waiter->timer.expires_after(std::min(left, drop_every));
    co_await waiter->timer.async_wait(no_throw);
  }
  if (!waiter->is_next) std::erase(waiters_, waiter);
  co_return waiter->is_next;
}

void UpstreamPool::drop_slowest() noexcept {
  ClientWait* slowest = nullptr;
  for (ClientWait* const each : holders_) slowest = ClientWait::slower_of(slowest, *each);
  if (slowest == nullptr) return;
  counters_.clients_dropped.add();
  slowest->end();
}

std::unique_ptr<UpstreamConnection> UpstreamPool::take_unused() {
  while (!unused_.empty()) {
    std::unique_ptr<UpstreamConnection> last = std::move(unused_.back());
    unused_.pop_back();
    if (last->unused_for.passed() >= settings_.upstream_idle) {  // so are all before it
      unused_.clear();
      return nullptr;
    }
    if (is_alive(*last)) return last;
  }
  return nullptr;
}

asio::awaitable<UpstreamPool::Acquired> UpstreamPool::acquire(ClientWait& wait, bool fresh) {
  const bool is_mine = co_await wait_for_turn();
  if (!is_mine) {
    Acquired busy;
    busy.refusal =
        Refusal{Outcome::upstream_busy,
                std::to_string(count_max_) + " connections of this thread are in use, and " +
                    std::to_string(queue_max_) + " requests may wait for " +
                    std::to_string(settings_.queue_timeout.count()) + " ms",
                Millis{1'000}};
    co_return busy;
  }
  Lease lease{shared_from_this(), wait};
  if (!fresh) lease.connection = take_unused();
  if (lease.connection != nullptr) {
    counters_.upstream_reused.add();
    Acquired acquired;
    acquired.lease = std::move(lease);
    co_return acquired;
  }
  co_return co_await connect(lease);
}

asio::awaitable<UpstreamPool::Acquired> UpstreamPool::connect(Lease& lease) {
  Acquired acquired;
  const auto tls = tls_.get();
  const DialTarget target{.host = address_.host,
                          .port = address_.port,
                          .tls = tls.get(),
                          .is_verified = settings_.upstream_verify,
                          .within = settings_.connect_timeout};
  Dialed dialed = co_await dial(io_, target);
  if (!dialed.stream) {
    counters_.upstream_failed.add();
    acquired.refusal = Refusal{Outcome::upstream_unreachable, std::move(dialed.trouble)};
    co_return acquired;
  }
  lease.connection = std::make_unique<UpstreamConnection>(*std::move(dialed.stream));
  counters_.upstream_opened.add();
  acquired.lease = std::move(lease);
  co_return acquired;
}

}  // namespace semel::gateway
