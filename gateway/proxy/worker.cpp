#include "gateway/proxy/worker.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <new>
#include <utility>

#include "base/stopwatch.hpp"

namespace semel::gateway {
namespace {

constexpr Millis accept_pause{100};

/// One thread's part of a bound that all threads share, at least one.
std::size_t share_of(std::size_t all, unsigned threads) {
  return std::max<std::size_t>(1, (all + threads - 1) / threads);
}

}  // namespace

Worker::Worker(const Shared& shared, const Terms& terms)
    : shared_(shared),
      context_{.io = io_,
               .settings = shared.settings,
               .clock = shared.clock,
               .policy = terms.policy,
               .store = {},
               .counters = shared.counters,
               .memory = shared.memory,
               .log = shared.log,
               .is_tls = shared.is_tls,
               .upstream_host = {},
               .bridge = std::make_shared<Bridge>(io_),
               .pool = std::make_shared<UpstreamPool>(
                   io_, shared.settings, shared.upstream, shared.upstream_tls, shared.counters,
                   share_of(shared.settings.upstream_connections, shared.thread_count),
                   shared.settings.upstream_queue / shared.thread_count)} {
  context_.store = terms.make_store(io_, context_.bridge, nullptr);
  if (shared.settings.preserve_host) return;
  const bool is_v6 = shared.upstream.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + shared.upstream.host + "]" : shared.upstream.host;
  const bool is_usual = shared.upstream.port == (shared.upstream.is_tls ? "443" : "80");
  context_.upstream_host = is_usual ? host : host + ":" + shared.upstream.port;
}

Worker::~Worker() {
  stop();
}

Status Worker::listen(const tcp::endpoint& at) {
  const auto failed = [&](const error_code& error) {
    return Error{ErrorCode::bad_option, "cannot listen on " + at.address().to_string() + ":" +
                                            std::to_string(at.port()) + ": " + error.message()};
  };
  error_code error;
  acceptor_.open(at.protocol(), error);
  if (error) return failed(error);
  acceptor_.set_option(asio::socket_base::reuse_address{true}, error);
  if (error) return failed(error);
  if (at.address().is_v6()) acceptor_.set_option(asio::ip::v6_only{false}, error);
  acceptor_.bind(at, error);
  if (error) return failed(error);
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  return error ? Status{failed(error)} : Status{Done{}};
}

Status Worker::listen_with(Worker& first) {
  error_code error;
  const auto protocol = first.acceptor_.local_endpoint(error).protocol();
  const int handle = error ? -1 : fcntl(first.acceptor_.native_handle(), F_DUPFD_CLOEXEC, 0);
  if (handle >= 0) acceptor_.assign(protocol, handle, error);
  if (handle >= 0 && !error) return Done{};
  if (handle >= 0) close(handle);
  return Error{ErrorCode::bad_option, "no descriptor is left for a listening socket"};
}

std::uint16_t Worker::port() const {
  error_code ignored;
  return acceptor_.local_endpoint(ignored).port();
}

void Worker::run() {
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the main thread handles signals
  thread_ = std::thread{[this] { work(); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "semel-gateway");
}

/// Without memory a request ends and accepting begins anew; the thread never ends.
void Worker::work() noexcept {
  while (restart()) {
    try {
      begin_accepting();
      for (bool goes_on = true; goes_on;) {
        goes_on = false;
        try {
          io_.run();
        } catch (const std::exception&) {  // of a handler: all others go on, accepting too
          goes_on = true;
        }
      }
    } catch (const std::exception&) {  // there is no memory to begin accepting
    }
    pause();
  }
}

/// False: stop() was called.
bool Worker::restart() noexcept {
  const base::MutexLock lock{mutex_};
  if (!is_stopping_) io_.restart();
  return !is_stopping_;
}

void Worker::pause() noexcept {
  const base::Stopwatch since;
  base::MutexLock lock{mutex_};
  while (!is_stopping_ && since.passed() < accept_pause) stopped_.wait_for(lock, accept_pause);
}

void Worker::begin_accepting() {
  asio::co_spawn(io_, accept(), [this](const std::exception_ptr& failed) {
    if (failed) io_.stop();  // work() begins anew
  });
}

void Worker::use(const Terms& terms) {
  asio::post(io_, [this, terms] {
    auto store = terms.make_store(io_, context_.bridge, context_.store);
    context_.policy = terms.policy;
    context_.store = std::move(store);
  });
}

void Worker::drain() {
  asio::post(io_, [this] {
    context_.is_draining = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (Session* const session : *context_.sessions) session->drain();
  });
}

void Worker::stop() {
  {
    const base::MutexLock lock{mutex_};
    is_stopping_ = true;
    io_.stop();
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
  context_.bridge->close();
  context_.pool->close();
}

asio::awaitable<void> Worker::accept() {
  while (acceptor_.is_open()) {
    tcp::socket socket{io_};
    auto [error] = co_await acceptor_.async_accept(socket, no_throw);
    if (!error) {
      try {
        admit(std::move(socket));
      } catch (const std::bad_alloc&) {  // this connection is closed
        context_.counters.connections_refused.add();
      }
    } else if (error != asio::error::operation_aborted) {
      // For example, there are no descriptors left. An immediate retry would fail again.
      asio::steady_timer pause{io_};
      pause.expires_after(accept_pause);
      co_await pause.async_wait(no_throw);
    }
  }
}

/// False: no client of this thread is slow.
bool Worker::drop_slowest() {
  ClientWait* slowest = nullptr;
  for (Session* const each : *context_.sessions) {
    slowest = ClientWait::slower_of(slowest, each->wait());
  }
  if (slowest == nullptr) return false;
  context_.counters.clients_dropped.add();
  slowest->end();
  return true;
}

void Worker::admit(tcp::socket socket) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return;
  socket.set_option(tcp::no_delay{true}, error);
  Counters& counters = context_.counters;
  if (counters.connections.get() >= shared_.settings.connections && !drop_slowest()) {
    counters.connections_refused.add();
    if (!context_.is_tls) {
      static constexpr std::string_view full =
          "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
      socket.non_blocking(true, error);
      socket.send(asio::buffer(full.data(), full.size()), 0, error);
    }
    return;
  }
  auto address = remote.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  const auto tls = shared_.client_tls.get();
  Stream stream = tls != nullptr ? Stream{std::move(socket), *tls} : Stream{std::move(socket)};
  auto session = std::make_shared<Session>(context_, std::move(stream), address.to_string());
  asio::co_spawn(
      io_,
      [](std::shared_ptr<Session> served) -> asio::awaitable<void> {
        co_await served->run();
      }(std::move(session)),
      asio::detached);
}

}  // namespace semel::gateway
