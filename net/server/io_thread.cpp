#include "net/server/io_thread.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace semel::net {

namespace {

constexpr ConnectionName wakes_name = ~ConnectionName{0};
constexpr ConnectionName posts_name = wakes_name - 1;
constexpr ConnectionName tick_name = wakes_name - 2;

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
  timer_ = Descriptor{timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
  if (!epoll_ || !timer_ || wakes_->descriptor() < 0 || posted_.descriptor() < 0 ||
      !add_to(epoll_.get(), wakes_->descriptor(), wakes_name) ||
      !add_to(epoll_.get(), posted_.descriptor(), posts_name) ||
      !add_to(epoll_.get(), timer_.get(), tick_name)) {
    return failed(std::strerror(errno));
  }
  shared_.epoll = epoll_.get();
  watched_.use(epoll_.get());
  shared_.now = now();
  return Done{};
}

void IoThread::start() {
  wait_for_tick();
  thread_ = std::thread{[this] {
    // mo: relaxed: the thread that sets it rings, and the mutex of the wakes orders both
    while (!stops_.load(std::memory_order_relaxed)) serve();
  }};
}

void IoThread::stop() {
  if (thread_.joinable()) {
    const auto stop_now = [this] {
      stops_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in start()
    };
    try {
      post([this, stop_now] {
        cut_all(Ended::cut);
        stop_now();
      });
    } catch (const std::bad_alloc&) {  // functions posted before may not run then
      stop_now();
      wakes_->ring();
    }
    thread_.join();
    cut_all(Ended::cut);  // after a normal stop there is nothing to cut
  }
  wakes_->close();
}

void IoThread::wait_for_tick() {
  const auto ms = outer_.options.tick;
  if (ms == Millis{0}) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ms);
  itimerspec once{};
  once.it_value.tv_sec = seconds.count();
  once.it_value.tv_nsec = std::chrono::nanoseconds{ms - seconds}.count();
  // Set again, it is not readable any more: nothing has to be read. It is valid, so this succeeds.
  timerfd_settime(timer_.get(), 0, &once, nullptr);
}

void IoThread::serve() {
  epoll_event ready[ready_max];
  const int count = epoll_wait(epoll_.get(), ready, ready_max, -1);
  shared_.now = now();
  bool is_round = false;
  for (int i = 0; i < count; ++i) {
    const ConnectionName name = ready[i].data.u64;
    if (name == tick_name) {
      tick();
      wait_for_tick();
    } else if (name == posts_name) {
      posted_.run_all();
    } else {
      is_round = true;
      serve_one(name, ready[i].events);
    }
  }
  if (!is_round) return;
  shared_.counters.rounds.add();
  if (outer_.hooks.on_round) unless_full([&] { outer_.hooks.on_round(shared_.thread); });
}

void IoThread::serve_one(ConnectionName name, std::uint32_t events) {
  if (name == wakes_name) {
    serve_wakeups();
  } else if (WatchedDescriptors::is_of_this(name)) {
    unless_full([&] { watched_.call(name); });
  } else if (SocketConnection* const connection = table_.find(name); connection != nullptr) {
    attempt(*connection, [&] { connection->on_events(events); });
    remove_if_done(ConnectionTable::slot_of(name));
  }
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
