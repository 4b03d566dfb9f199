#include "net/server/io_thread.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace semel::net {

namespace {

constexpr ConnectionName wakes_name = ~ConnectionName{0};
/// For work that runs again soon: without memory this turn is skipped.
template <class Do>
void unless_full(Do&& what) {
  try {
    what();
  } catch (const std::bad_alloc&) {
  }
}

/// A request that finds no memory ends its own connection, and no other.
template <class Do>
void attempt(SocketConnection& connection, Do&& what) {
  try {
    what();
  } catch (const std::bad_alloc&) {
    connection.finish(Ended::no_memory);
  }
}

}  // namespace

IoThread::IoThread(Context outer, std::size_t index)
    : outer_(std::move(outer)),
      work_(boost::asio::make_work_guard(context_)),
      sockets_ready_(context_),
      timer_(context_),
      wakes_(std::make_shared<WakeQueue>()),
      shared_{.hooks = outer_.hooks,
              .limits = outer_.options.limits,
              .log = LogGate{outer_.hooks},
              .thread = index} {}

IoThread::~IoThread() {
  stop();
}

Status IoThread::open() {
  const auto failed = [](const std::string& reason) {
    return Error{ErrorCode::no_thread, "an io thread cannot be set up: " + reason};
  };
  epoll_ = Descriptor{epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll_ || wakes_->descriptor() < 0 ||
      !add_to(epoll_.get(), wakes_->descriptor(), wakes_name)) {
    return failed(std::strerror(errno));
  }
  boost::system::error_code error;
  sockets_ready_.assign(epoll_.get(), error);
  if (error) return failed(error.message());
  shared_.epoll = epoll_.get();
  watched_.use(epoll_.get());
  shared_.now = now();
  return Done{};
}

void IoThread::start() {
  wait_for_sockets();
  wait_for_tick();
  thread_ = std::thread{[this] { context_.run(); }};
}

void IoThread::stop() {
  if (thread_.joinable()) {
    try {
      post([this] {
        cut_all(Ended::cut);
        context_.stop();
      });
    } catch (const std::bad_alloc&) {  // functions posted before do not run then
      context_.stop();
    }
    thread_.join();
    cut_all(Ended::cut);  // after a normal stop there is nothing to cut
  }
  wakes_->close();
  // The set belongs to epoll_; Asio only watches it.
  if (sockets_ready_.is_open()) sockets_ready_.release();
}

void IoThread::wait_for_sockets() {
  sockets_ready_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this](const boost::system::error_code& error) {
                              if (error) return;
                              serve();
                              wait_for_sockets();
                            });
}

void IoThread::wait_for_tick() {
  if (outer_.options.tick == Millis{0}) return;
  timer_.expires_after(outer_.options.tick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    tick();
    wait_for_tick();
  });
}

void IoThread::serve() {
  epoll_event ready[ready_max];
  const int count = epoll_wait(epoll_.get(), ready, ready_max, 0);
  shared_.now = now();
  shared_.counters.rounds.add();
  for (int i = 0; i < count; ++i) {
    const ConnectionName name = ready[i].data.u64;
    if (name == wakes_name) {
      serve_wakeups();
    } else if (WatchedDescriptors::is_of_this(name)) {
      unless_full([&] { watched_.call(name); });
    } else if (SocketConnection* const connection = table_.find(name); connection != nullptr) {
      attempt(*connection, [&] { connection->on_events(ready[i].events); });
      remove_if_done(ConnectionTable::slot_of(name));
    }
  }
  if (outer_.hooks.on_round) unless_full([&] { outer_.hooks.on_round(shared_.thread); });
}

void IoThread::request_drain(Timestamp deadline) noexcept {
  // mo: relaxed: the mutex of the queue, below, orders it before the wakeup
  drain_request_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  wakes_->ring();
}

void IoThread::serve_wakeups() {
  const bool is_complete = wakes_->pop_all(woken_);
  // mo: relaxed: as in request_drain()
  const std::int64_t ms = drain_request_.exchange(no_request, std::memory_order_relaxed);
  if (ms != no_request) drain(Timestamp{Millis{ms}});
  const auto wake = [this](std::size_t slot) {
    SocketConnection* const connection = table_.at(slot);
    if (connection == nullptr) return;
    attempt(*connection, [&] { connection->on_wake(); });
    remove_if_done(slot);
  };
  if (!is_complete) {
    for (std::size_t slot = 0; slot < table_.slots(); ++slot) wake(slot);
    return;
  }
  for (const ConnectionName name : woken_) {
    if (table_.find(name) != nullptr) wake(ConnectionTable::slot_of(name));
  }
}

void IoThread::adopt(Descriptor socket, std::uint64_t id, Transport transport,
                     std::shared_ptr<const TlsContext> tls) {
  load_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count, not an order
  // Without memory the socket is closed: a reply needs memory, too.
  const auto lost = [this] {
    shared_.counters.ended[static_cast<std::size_t>(Ended::no_memory)].add();
    load_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: a count, not an order
  };
  try {
    post([this, lost, socket = std::move(socket), id, transport, tls = std::move(tls)]() mutable {
      try {
        begin_connection(std::move(socket), id, transport, tls.get());
      } catch (const std::bad_alloc&) {
        lost();
      }
    });
  } catch (const std::bad_alloc&) {
    lost();
  }
}

void IoThread::begin_connection(Descriptor socket, std::uint64_t id, Transport transport,
                                const TlsContext* tls) {
  std::unique_ptr<TlsLayer> layer = tls != nullptr ? TlsLayer::accept(*tls) : nullptr;
  if (drain_until_ || (tls != nullptr && layer == nullptr)) {
    load_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: a count, not an order
    return;
  }
  shared_.now = now();
  const std::size_t slot = table_.add([&](ConnectionName name) {
    return std::make_unique<SocketConnection>(shared_, std::move(socket), name, id, transport,
                                              std::make_shared<Waker>(wakes_, name),
                                              std::move(layer));
  });
  SocketConnection& connection = *table_.at(slot);
  attempt(connection, [&] { connection.begin(); });
  remove_if_done(slot);
}

void IoThread::remove_if_done(std::size_t slot) {
  if (!table_.remove_if_done(slot)) return;
  load_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: a count, not an order
  check_drained();
}

void IoThread::tick() {
  shared_.now = now();
  const bool cut = drain_until_ && shared_.now >= *drain_until_;
  if (cut) cut_all(Ended::cut);
  for (std::size_t i = bucket_; i < table_.slots(); i += deadline_buckets) {
    SocketConnection* const connection = table_.at(i);
    if (connection == nullptr) continue;
    attempt(*connection, [&] { connection->check_deadlines(); });
    remove_if_done(i);
  }
  bucket_ = (bucket_ + 1) % deadline_buckets;
  shared_.log.renew(shared_.now);
  for (const auto& function : ticks_) unless_full(function);
  if (outer_.hooks.on_tick) unless_full([&] { outer_.hooks.on_tick(shared_.thread); });
}

void IoThread::drain(Timestamp deadline) {
  if (before_drain_) unless_full(before_drain_);
  drain_until_ = deadline;
  shared_.now = now();
  if (shared_.now >= deadline) cut_all(Ended::cut);
  for (std::size_t i = 0; i < table_.slots(); ++i) {
    SocketConnection* const connection = table_.at(i);
    if (connection == nullptr) continue;
    attempt(*connection, [&] { connection->drain(); });
    remove_if_done(i);
  }
  check_drained();
}

void IoThread::check_drained() {
  if (!drain_until_ || table_.count() != 0 || std::exchange(has_reported_drained_, true)) return;
  outer_.drained();
}

void IoThread::cut_all(Ended why) {
  for (std::size_t i = 0; i < table_.slots(); ++i) {
    if (table_.at(i) == nullptr) continue;
    table_.at(i)->finish(why);
    remove_if_done(i);
  }
}

}  // namespace semel::net
