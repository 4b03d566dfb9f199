#include "net/admin/admin_server.hpp"

#include <pthread.h>
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/error.hpp>
#include <exception>
#include <functional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/giving_way.hpp"
#include "net/admin/admin_session.hpp"

namespace semel::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using admin::Session;
using asio::ip::tcp;

constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::chrono::milliseconds place_pause{10};
constexpr std::chrono::seconds tick_every{1};

/// Blocks signals for the new thread; other threads of the process handle them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

Error admin_error(std::string text) {
  return {ErrorCode::bad_option, "admin: " + std::move(text)};
}

Status check_time(std::string_view name, std::chrono::milliseconds time) {
  if (time >= std::chrono::milliseconds{1} && time <= std::chrono::hours{1}) return Done{};
  return admin_error(std::string{name} + " is " + std::to_string(time.count()) +
                     " ms; it must be from 1 ms to 1 h");
}

}  // namespace

class AdminServer::Impl {
 public:
  Impl(const AdminOptions& options, AdminSite site) : options_(options), site_(std::move(site)) {}
  ~Impl() {
    posts_->close();
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Status listen();
  void run();
  [[nodiscard]] const std::vector<AdminEndpoint>& endpoints() const noexcept { return endpoints_; }
  [[nodiscard]] std::shared_ptr<AdminThread> thread() const noexcept { return posts_; }

 private:
  struct Listener {
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    tcp::socket newcomer;     // accepted, and has no place yet
    bool is_waiting = false;  // for a newcomer, or for a pause to end
  };

  [[nodiscard]] beast::error_code open(tcp::acceptor& acceptor, const tcp::endpoint& at) const;
  void work() noexcept;
  void accept(Listener& listener);
  void admit(Listener& listener);
  void pause(Listener& listener, std::chrono::milliseconds time);
  [[nodiscard]] bool make_place();
  void tick();

  const AdminOptions options_;
  const AdminSite site_;
  const Session::Terms terms_{
      .site = site_,
      .guard = options_.guard,
      .request_within = options_.request_within,
      .idle_within = options_.idle_within,
      .ended = [this](const Session* session) {
        std::erase_if(sessions_, [&](const auto& known) { return known.get() == session; });
      }};
  asio::io_context io_{1};
  const std::shared_ptr<AdminThread> posts_ = std::make_shared<AdminThread>(
      [this](std::function<void()> work) { asio::post(io_, std::move(work)); });
  asio::steady_timer ticks_{io_};
  bool is_ticking_ = false;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<AdminEndpoint> endpoints_;
  // Used by the thread of the server only.
  std::vector<std::shared_ptr<Session>> sessions_;  // at most connections_max
  std::thread thread_;
};

beast::error_code AdminServer::Impl::open(tcp::acceptor& acceptor, const tcp::endpoint& at) const {
  beast::error_code error;
  if (acceptor.open(at.protocol(), error)) return error;
  if (acceptor.set_option(asio::socket_base::reuse_address{true}, error)) return error;
  // Otherwise :: would include 0.0.0.0, and a list of both would fail.
  const asio::ip::v6_only only{!options_.dual_stack};
  if (at.address().is_v6() && acceptor.set_option(only, error)) return error;
  if (acceptor.bind(at, error)) return error;
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

Status AdminServer::Impl::listen() {
  for (const std::string& text : options_.addresses) {
    beast::error_code error;
    const auto address = asio::ip::make_address(text, error);
    listeners_.push_back(std::make_unique<Listener>(
        Listener{tcp::acceptor{io_}, asio::steady_timer{io_}, tcp::socket{io_}}));
    tcp::acceptor& acceptor = listeners_.back()->acceptor;
    if (!error) error = open(acceptor, tcp::endpoint{address, options_.port});
    const tcp::endpoint bound = error ? tcp::endpoint{} : acceptor.local_endpoint(error);
    if (error) {
      return admin_error("cannot listen on " + AdminEndpoint{text, options_.port}.text() + ": " +
                         error.message());
    }
    endpoints_.push_back({address.to_string(), bound.port()});
  }
  return Done{};
}

void AdminServer::Impl::run() {
  const SignalsBlocked blocked;
  thread_ = std::thread{[this] { work(); }};
  pthread_setname_np(thread_.native_handle(), "semel-admin");
}

/// Without memory a handler ends with an exception. The thread goes on, and begins again what that
/// handler would have begun.
void AdminServer::Impl::work() noexcept {
  while (!io_.stopped()) {
    try {
      for (const auto& listener : listeners_) {
        if (!listener->is_waiting) accept(*listener);
      }
      if (site_.tick && !is_ticking_) tick();
      io_.run();
    } catch (const std::exception&) {
      std::this_thread::yield();
    }
  }
}

void AdminServer::Impl::accept(Listener& listener) {
  listener.acceptor.async_accept([this, &listener](beast::error_code error, tcp::socket socket) {
    listener.is_waiting = false;
    if (error == asio::error::operation_aborted) return;
    // For example, there are no descriptors left. An immediate retry would fail again.
    if (error) return pause(listener, accept_pause);
    listener.newcomer = std::move(socket);
    admit(listener);
  });
  listener.is_waiting = true;
}

void AdminServer::Impl::pause(Listener& listener, std::chrono::milliseconds time) {
  listener.pause.expires_after(time);
  listener.pause.async_wait([this, &listener](beast::error_code stopped) {
    listener.is_waiting = false;
    if (stopped) return;
    listener.newcomer.is_open() ? admit(listener) : accept(listener);
  });
  listener.is_waiting = true;
}

void AdminServer::Impl::tick() {
  ticks_.expires_after(tick_every);
  ticks_.async_wait([this](beast::error_code stopped) {
    is_ticking_ = false;
    if (stopped) return;
    site_.tick();
    tick();
  });
  is_ticking_ = true;
}

/// Accepts the next one when this one has its place.
void AdminServer::Impl::admit(Listener& listener) {
  if (sessions_.size() >= admin_limits::connections_max && !make_place()) {
    return pause(listener, place_pause);
  }
  SEMEL_ASSERT(sessions_.size() < admin_limits::connections_max);
  tcp::socket newcomer = std::move(listener.newcomer);  // closed if there is no memory for it
  sessions_.push_back(std::make_shared<Session>(terms_, std::move(newcomer)));
  sessions_.back()->start();
  accept(listener);
}

bool AdminServer::Impl::make_place() {
  std::vector<base::TakenPlace> places;
  for (const auto& session : sessions_) places.push_back(session->place());
  const auto chosen = base::gives_way(places);
  if (!chosen) return false;
  const auto leaving = sessions_[*chosen];  // end() removes it from the list
  leaving->end();
  return true;
}

std::string AdminEndpoint::text() const {
  const bool is_v6 = address.find(':') != std::string::npos;
  return (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

Status AdminServer::check(const AdminOptions& options) {
  if (options.addresses.empty() || options.addresses.size() > admin_limits::addresses_max) {
    return admin_error(std::to_string(options.addresses.size()) +
                       " addresses; there must be from 1 to " +
                       std::to_string(admin_limits::addresses_max));
  }
  for (const std::string& text : options.addresses) {
    beast::error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (error) return admin_error("'" + text + "' is not an IP address");
    if (!address.is_loopback() && !options.remote) {
      return admin_error(
          "'" + text +
          "' can be reached from other machines, which could read the metrics without a "
          "password; that must be allowed by name");
    }
  }
  const std::vector<std::string>& hosts = options.guard.hosts;
  if (hosts.size() > admin_limits::hosts_max) {
    return admin_error(std::to_string(hosts.size()) + " hosts; the limit is " +
                       std::to_string(admin_limits::hosts_max));
  }
  for (const std::string& host : hosts) {
    if (!is_admin_host_name(host)) return admin_error("'" + host + "' is not the name of a host");
  }
  SEMEL_CHECK(check_time("request_within", options.request_within));
  return check_time("idle_within", options.idle_within);
}

Result<std::unique_ptr<AdminServer>> AdminServer::start(const AdminOptions& options,
                                                        AdminSite site) {
  SEMEL_CHECK(check(options));
  // Asio throws if there is no descriptor left for it, std::thread if there is no thread.
  try {
    auto impl = std::make_unique<Impl>(options, std::move(site));
    SEMEL_CHECK(impl->listen());
    impl->run();
    return std::unique_ptr<AdminServer>{new AdminServer{std::move(impl)}};
  } catch (const std::system_error& failed) {
    return Error{ErrorCode::no_thread, std::string{"admin: cannot start: "} + failed.what()};
  }
}

AdminServer::AdminServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
AdminServer::~AdminServer() = default;

const std::vector<AdminEndpoint>& AdminServer::endpoints() const noexcept {
  return impl_->endpoints();
}
std::shared_ptr<AdminThread> AdminServer::thread() const noexcept {
  return impl_->thread();
}

}  // namespace semel::net
