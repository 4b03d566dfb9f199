#include "net/server/io_thread.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace semel::net {

namespace {

constexpr ConnectionName watched_bit = ConnectionName{1} << 63;
constexpr ConnectionName wakes_name = ~ConnectionName{0};
constexpr std::uint32_t generation_mask = 0x7fff'ffff;

ConnectionName name_at(std::size_t index, std::uint32_t generation) noexcept {
  return ConnectionName{generation & generation_mask} << 32U | index;
}

bool add_to(int epoll, int descriptor, ConnectionName name) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

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
      clock_(outer_.clock),
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
  shared_.now = clock_.now();
  return Done{};
}

void IoThread::start() {
  wait_for_sockets();
  wait_for_tick();
  thread_ = std::thread{[this] { run(); }};
}

void IoThread::run() {
  context_.run();
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
  shared_.now = clock_.now();
  shared_.counters.rounds.add();
  for (int i = 0; i < count; ++i) {
    const ConnectionName name = ready[i].data.u64;
    if (name == wakes_name) {
      serve_wakeups();
    } else if ((name & watched_bit) != 0) {
      const Watched& watched = watched_[name & ~watched_bit];
      if (watched.ready) unless_full([&] { watched.ready(); });
    } else if (SocketConnection* const connection = find(name); connection != nullptr) {
      attempt(*connection, [&] { connection->on_events(ready[i].events); });
      remove_if_done(static_cast<std::uint32_t>(name));
    }
  }
  if (outer_.hooks.on_round) unless_full([&] { outer_.hooks.on_round(shared_.thread); });
}

void IoThread::request_drain(Timestamp deadline) noexcept {
  // mo: relaxed: the mutex of the queue, below, orders it before the wakeup
  drain_request_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  wakes_->ring();
}

void IoThread::take_drain_request() {
  // mo: relaxed: as in request_drain()
  const std::int64_t ms = drain_request_.exchange(no_request, std::memory_order_relaxed);
  if (ms != no_request) drain(Timestamp{Millis{ms}});
}

void IoThread::serve_wakeups() {
  const bool is_complete = wakes_->pop_all(woken_);
  take_drain_request();
  const auto wake = [this](std::size_t index) {
    SocketConnection* const connection = slots_[index].connection.get();
    if (connection == nullptr) return;
    attempt(*connection, [&] { connection->on_wake(); });
    remove_if_done(index);
  };
  if (!is_complete) {
    for (std::size_t index = 0; index < slots_.size(); ++index) wake(index);
    return;
  }
  for (const ConnectionName name : woken_) {
    if (find(name) != nullptr) wake(static_cast<std::uint32_t>(name));
  }
}

SocketConnection* IoThread::find(ConnectionName name) noexcept {
  const std::size_t index = static_cast<std::uint32_t>(name);
  if (index >= slots_.size() || !slots_[index].connection) return nullptr;
  return name_at(index, slots_[index].generation) == name ? slots_[index].connection.get()
                                                          : nullptr;
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
  shared_.now = clock_.now();
  if (free_.empty()) {
    slots_.emplace_back();
    free_.reserve(slots_.capacity());  // so that a connection's end needs no memory
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  ConnectionSlot& slot = slots_[index];
  const ConnectionName name = name_at(index, slot.generation);
  slot.connection =
      std::make_unique<SocketConnection>(shared_, std::move(socket), name, id, transport,
                                         std::make_shared<Waker>(wakes_, name), std::move(layer));
  free_.pop_back();
  ++count_;
  attempt(*slot.connection, [&] { slot.connection->begin(); });
  remove_if_done(index);
}

void IoThread::remove_if_done(std::size_t index) {
  ConnectionSlot& slot = slots_[index];
  if (!slot.connection || !slot.connection->is_done()) return;
  slot.connection.reset();
  ++slot.generation;
  free_.push_back(static_cast<std::uint32_t>(index));
  --count_;
  load_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: a count, not an order
  check_drained();
}

Result<std::size_t> IoThread::watch(int descriptor, std::function<void()> ready) {
  const auto free = std::find_if(watched_.begin(), watched_.end(),
                                 [](const Watched& each) { return each.descriptor < 0; });
  const auto index = static_cast<std::size_t>(free - watched_.begin());
  if (free == watched_.end()) watched_.emplace_back();
  if (add_to(epoll_.get(), descriptor, watched_bit | index)) {
    watched_[index] = {descriptor, std::move(ready)};
    return index;
  }
  return Error{ErrorCode::no_thread,
               "a listener cannot be watched: " + std::string{std::strerror(errno)}};
}

void IoThread::set_watched(std::size_t index, bool on) {
  epoll_event event{};
  event.events = on ? EPOLLIN : 0U;
  event.data.u64 = watched_bit | index;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched_[index].descriptor, &event);
}

void IoThread::forget(std::size_t index) noexcept {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_[index].descriptor, nullptr);
  watched_[index] = {};
}

void IoThread::tick() {
  shared_.now = clock_.now();
  const bool cut = drain_until_ && shared_.now >= *drain_until_;
  if (cut) cut_all(Ended::cut);
  for (std::size_t i = bucket_; i < slots_.size(); i += deadline_buckets) {
    if (!slots_[i].connection) continue;
    attempt(*slots_[i].connection, [&] { slots_[i].connection->check_deadlines(); });
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
  shared_.now = clock_.now();
  if (shared_.now >= deadline) cut_all(Ended::cut);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].connection) continue;
    attempt(*slots_[i].connection, [&] { slots_[i].connection->drain(); });
    remove_if_done(i);
  }
  check_drained();
}

void IoThread::check_drained() {
  if (!drain_until_ || count_ != 0 || std::exchange(has_reported_drained_, true)) return;
  outer_.drained();
}

void IoThread::cut_all(Ended why) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].connection) continue;
    slots_[i].connection->finish(why);
    remove_if_done(i);
  }
}

}  // namespace semel::net
