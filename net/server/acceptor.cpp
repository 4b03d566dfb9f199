#include "net/server/acceptor.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "net/server/socket_names.hpp"

namespace semel::net {

namespace {

void set_option(int socket, int level, int name, int value) noexcept {
  setsockopt(socket, level, name, &value, sizeof value);
}

void tune_tcp(int socket, Millis keepalive) noexcept {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(keepalive).count();
  if (seconds <= 0) return;
  const int idle = static_cast<int>(std::min<std::int64_t>(seconds, 32'767));
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(idle / 3, 1));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Acceptor::Acceptor(const ServerOptions& options, const ServerHooks& hooks,
                   std::vector<std::unique_ptr<IoThread>>& threads, std::size_t maxclients)
    : log_(hooks),
      threads_(threads),
      home_(*threads.front()),
      maxclients_(maxclients),
      keepalive_ms_(options.keepalive.count()) {}

Status Acceptor::open(const SharedListener& listener) {
  SEMEL_TRY(watched, home_.watched().watch(listener->socket.get(),
                                           [this, listener] { accept_from(*listener); }));
  open_.push_back({listener, watched});
  return Done{};
}

Status Acceptor::begin(const std::vector<SharedListener>& listeners) {
  take_reserve();
  for (const SharedListener& listener : listeners) SEMEL_CHECK(open(listener));
  home_.on_each_tick([this] { tick(); });
  home_.on_drain([this] { close(); });
  return Done{};
}

void Acceptor::replace(const std::vector<SharedListener>& listeners) {
  if (closed_) return;
  std::vector<Open> stays;
  for (Open& each : open_) {
    const bool is_wanted =
        std::find(listeners.begin(), listeners.end(), each.listener) != listeners.end();
    if (is_wanted) {
      stays.push_back(std::move(each));
    } else {
      home_.watched().forget(each.watched);
    }
  }
  open_ = std::move(stays);
  for (const SharedListener& listener : listeners) {
    const bool is_open = std::any_of(open_.begin(), open_.end(),
                                     [&](const Open& each) { return each.listener == listener; });
    if (is_open) continue;
    if (const Status opened = open(listener); !opened) {
      log_.line(LogLevel::warning, opened.error().detail, home_.now());
    } else if (paused_) {
      home_.watched().set(open_.back().watched, false);
    }
  }
}

void Acceptor::close() noexcept {
  closed_ = true;
  for (const Open& open : open_) home_.watched().forget(open.watched);
  open_.clear();  // a listener of a Unix socket removes its file
  reserve_.reset();
}

void Acceptor::accept_from(const Listener& listener) {
  for (int i = 0; i < accepts_max && !paused_; ++i) {
    Descriptor socket{
        accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (socket) {
      complained_ = false;
      welcome(std::move(socket), listener.transport);
    } else if (errno == EAGAIN) {
      return;
    } else if (is_shortage(errno)) {
      out_of_files(listener);
    }
    // Any other error concerns one connection only: the next one may succeed.
  }
}

void Acceptor::welcome(Descriptor socket, Transport transport) {
  if (clients() >= maxclients()) {
    rejected_full_.add();
    log_.line(LogLevel::warning,
              "client " + remote_name(socket.get()) + " is refused: maxclients is " +
                  std::to_string(maxclients()),
              home_.now());
    turn_away(std::move(socket), transport);
    return;
  }
  std::shared_ptr<const TlsContext> context = transport == Transport::tls ? tls() : nullptr;
  if (transport == Transport::tls && context == nullptr) return;
  if (transport != Transport::unix_socket) {
    // mo: relaxed: a setting
    tune_tcp(socket.get(), Millis{keepalive_ms_.load(std::memory_order_relaxed)});
  }
  accepted_.add();
  least_loaded().adopt(std::move(socket), ++last_id_, transport, std::move(context));
}

void Acceptor::turn_away(Descriptor socket, Transport transport) {
  constexpr std::string_view words = "-ERR max number of clients reached\r\n";
  // A client that expects TLS could not read it.
  if (transport != Transport::tls) {
    // Best effort: the connection is closed next in any case.
    static_cast<void>(send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL));
  }
  shutdown(socket.get(), SHUT_WR);
}

/// Handles a lack of descriptors: the kernel keeps reporting the listener as ready. Accepts one
/// client on the reserved descriptor to send it an error, then pauses accepting.
void Acceptor::out_of_files(const Listener& listener) {
  const int error = errno;
  if (reserve_) {
    reserve_.reset();
    Descriptor socket{
        accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (socket) {
      rejected_files_.add();
      turn_away(std::move(socket), listener.transport);
    }
    take_reserve();
  }
  pauses_.add();
  paused_ = true;
  paused_until_ = home_.now() + pause;
  for (const Open& open : open_) home_.watched().set(open.watched, false);
  if (!std::exchange(complained_, true)) {
    log_.line(LogLevel::warning,
              "a connection cannot be accepted (" + std::string{std::strerror(error)} +
                  "); trying again every " + std::to_string(pause.count()) + " ms",
              home_.now());
  }
}

void Acceptor::take_reserve() {
  reserve_ = Descriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
}

void Acceptor::tick() {
  log_.renew(home_.now());
  if (!paused_ || home_.now() < paused_until_) return;
  if (!reserve_) take_reserve();
  paused_ = false;
  for (const Open& open : open_) home_.watched().set(open.watched, true);
}

IoThread& Acceptor::least_loaded() {
  // Starts after the last one, so that equally loaded threads take turns.
  std::size_t best = next_ % threads_.size();
  for (std::size_t i = 1; i < threads_.size(); ++i) {
    const std::size_t at = (next_ + i) % threads_.size();
    if (threads_[at]->connections() < threads_[best]->connections()) best = at;
  }
  next_ = best + 1;
  return *threads_[best];
}

std::size_t Acceptor::clients() const noexcept {
  std::size_t count = 0;
  for (const auto& thread : threads_) count += thread->connections();
  return count;
}

void Acceptor::set_tls(std::shared_ptr<const TlsContext> tls) {
  const base::MutexLock lock{mutex_};
  tls_ = std::move(tls);
}

std::shared_ptr<const TlsContext> Acceptor::tls() {
  const base::MutexLock lock{mutex_};
  return tls_;
}

void Acceptor::add_to(ServerStats& stats) const noexcept {
  stats.accepted += accepted_.get();
  stats.clients += clients();
  stats.rejected_full += rejected_full_.get();
  stats.rejected_files += rejected_files_.get();
  stats.accept_pauses += pauses_.get();
}

}  // namespace semel::net
