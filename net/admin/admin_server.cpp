#include "net/admin/admin_server.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/giving_way.hpp"
#include "base/stopwatch.hpp"
#include "net/admin/admin_http.hpp"

namespace semel::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using admin::Response;
using asio::ip::tcp;

constexpr std::size_t first_read_bytes = 512;
// More than the limit of the header, so that the latter is reached first.
constexpr std::size_t buffer_bytes_max = 2 * admin_limits::header_bytes_max;
// How much a client may send behind a refused request before it has read the response.
constexpr std::size_t ignored_bytes_max = 64 * 1024;
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

bool is_host_name(const std::string& text) {
  return !text.empty() && text.size() <= admin_limits::host_bytes_max &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.';
         });
}

}  // namespace

class AdminServer::Impl {
 public:
  Impl(const AdminOptions& options, AdminAnswers answers)
      : options_(options), answers_(std::move(answers)) {}
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
  class Session;
  struct Listener {
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    tcp::socket newcomer;  // accepted, and has no place yet
  };

  [[nodiscard]] static beast::error_code open(tcp::acceptor& acceptor, const tcp::endpoint& at);
  void accept(Listener& listener);
  void admit(Listener& listener);
  [[nodiscard]] bool make_place();
  void forget(const Session* session);
  void tick();

  const AdminOptions options_;
  const AdminAnswers answers_;
  asio::io_context io_{1};
  const std::shared_ptr<AdminThread> posts_ = std::make_shared<AdminThread>(
      [this](std::function<void()> work) { asio::post(io_, std::move(work)); });
  asio::steady_timer ticks_{io_};
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<AdminEndpoint> endpoints_;
  // Used by the thread of the server only.
  std::vector<std::shared_ptr<Session>> sessions_;  // at most connections_max
  std::thread thread_;
};

/// One connection: waits for a first byte, reads a request, responds, and waits again.
class AdminServer::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Impl& server, tcp::socket socket)
      : server_(server), stream_(std::move(socket)), buffer_(buffer_bytes_max) {}

  [[nodiscard]] base::TakenPlace place() const noexcept { return {doing_, since_.passed()}; }

  void wait() {
    begin(Doing::awaits);
    if (buffer_.size() > 0) return read();
    stream_.expires_after(server_.options_.idle_within);
    stream_.async_read_some(
        buffer_.prepare(first_read_bytes),
        [self = this->shared_from_this()](beast::error_code error, std::size_t bytes) {
          if (error) return self->end();
          self->buffer_.commit(bytes);
          self->read();
        });
  }

  void end() {
    beast::error_code ignored;
    stream_.socket().close(ignored);
    stream_.cancel();
    server_.forget(this);
  }

 private:
  using Doing = base::TakenPlace::Doing;
  void begin(Doing doing) noexcept {
    doing_ = doing;
    since_.restart();
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(admin_limits::header_bytes_max));
    parser_->body_limit(admin_limits::body_bytes_max);
    stream_.expires_after(server_.options_.request_within);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code error, std::size_t bytes) {
          // Beast lets a few more bytes pass.
          if (!error && bytes > admin_limits::header_bytes_max) {
            error = http::error::header_limit;
          }
          const bool has_body = !self->parser_->is_done();
          if (!error && has_body &&
              !admin::may_have_body(self->parser_->get(), self->server_.answers_)) {
            error = http::error::unexpected_body;
          }
          if (error) return self->fail(error);
          has_body ? self->read_body() : self->respond();
        });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                       error ? self->fail(error) : self->respond();
                     });
  }

  void fail(beast::error_code error) {
    if (error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return refuse(error);
    }
    end();  // the client disconnected, or took too long
  }

  void respond() {
    const auto& request = parser_->get();
    const bool is_read =
        request.method() == http::verb::get || request.method() == http::verb::head;
    if (admin::is_for_pages(request, server_.answers_) &&
        (is_read || request.method() == http::verb::post)) {
      return ask_for_page();
    }
    send(admin::answer(request, server_.answers_, server_.options_.hosts));
  }

  /// The page may respond later, when this session may be gone. Nothing is read meanwhile.
  void ask_for_page() {
    begin(Doing::works);
    stream_.expires_never();
    beast::error_code failed;
    const tcp::endpoint peer = stream_.socket().remote_endpoint(failed);
    if (failed) return end();
    const tcp::endpoint local = stream_.socket().local_endpoint(failed);
    if (failed) return end();
    server_.answers_.pages(admin::page_request(parser_->get(), peer, local),
                           [session = weak_from_this()](AdminResponse page) {
                             const auto self = session.lock();
                             if (!self || !self->parser_) return;
                             self->send(admin::response_of(std::move(page)));
                           });
  }

  void send(Response response) {
    const auto& request = parser_->get();
    response_ = std::move(response);
    response_.version(request.version());
    response_.keep_alive(request.keep_alive());
    response_.prepare_payload();
    const bool stays = response_.keep_alive();
    if (request.method() == http::verb::head) response_.body().clear();  // its length is kept
    parser_.reset();
    write(stays);
  }

  void refuse(beast::error_code error) {
    response_ = admin::response_of(http::status::bad_request, admin::reason_for(error));
    response_.keep_alive(false);
    response_.prepare_payload();
    write(false);
  }

  void write(bool stays) {
    begin(Doing::answers);
    stream_.expires_after(server_.options_.request_within);
    http::async_write(
        stream_, response_,
        [self = this->shared_from_this(), stays](beast::error_code error, std::size_t) {
          if (error) return self->end();
          self->response_ = {};
          if (stays) return self->wait();
          beast::error_code failed;
          self->stream_.socket().shutdown(tcp::socket::shutdown_send, failed);
          if (failed) return self->end();
          self->stream_.expires_after(self->server_.options_.request_within);
          self->begin(Doing::awaits);  // its end
          self->ignore(0);
        });
  }

  /// Reads and drops input. Closing a socket with unread input would reset the connection, and the
  /// client might lose the response.
  void ignore(std::size_t bytes_so_far) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(buffer_bytes_max),
                            [self = this->shared_from_this(), bytes_so_far](beast::error_code error,
                                                                            std::size_t bytes) {
                              const std::size_t all = bytes_so_far + bytes;
                              if (error || all > ignored_bytes_max) return self->end();
                              self->ignore(all);
                            });
  }

  Impl& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;  // none: it is answered
  Response response_;
  Doing doing_ = Doing::awaits;
  base::Stopwatch since_;
};

beast::error_code AdminServer::Impl::open(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  beast::error_code error;
  if (acceptor.open(at.protocol(), error)) return error;
  if (acceptor.set_option(asio::socket_base::reuse_address{true}, error)) return error;
  // Otherwise :: would include 0.0.0.0, and a list of both would fail.
  if (at.address().is_v6() && acceptor.set_option(asio::ip::v6_only{true}, error)) return error;
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
  for (const auto& listener : listeners_) accept(*listener);
  if (answers_.tick) tick();
  const SignalsBlocked blocked;
  thread_ = std::thread{[this] { io_.run(); }};
  pthread_setname_np(thread_.native_handle(), "semel-admin");
}

void AdminServer::Impl::accept(Listener& listener) {
  listener.acceptor.async_accept([this, &listener](beast::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      listener.newcomer = std::move(socket);
      return admit(listener);
    }
    // For example, there are no descriptors left. An immediate retry would fail again.
    listener.pause.expires_after(accept_pause);
    listener.pause.async_wait([this, &listener](beast::error_code stopped) {
      if (!stopped) accept(listener);
    });
  });
}

void AdminServer::Impl::tick() {
  ticks_.expires_after(tick_every);
  ticks_.async_wait([this](beast::error_code stopped) {
    if (stopped) return;
    answers_.tick();
    tick();
  });
}

/// Accepts the next one when this one has its place.
void AdminServer::Impl::admit(Listener& listener) {
  if (sessions_.size() >= admin_limits::connections_max && !make_place()) {
    listener.pause.expires_after(place_pause);
    listener.pause.async_wait([this, &listener](beast::error_code stopped) {
      if (!stopped) admit(listener);
    });
    return;
  }
  SEMEL_ASSERT(sessions_.size() < admin_limits::connections_max);
  sessions_.push_back(std::make_shared<Session>(*this, std::move(listener.newcomer)));
  sessions_.back()->wait();
  accept(listener);
}

bool AdminServer::Impl::make_place() {
  std::vector<base::TakenPlace> places;
  for (const auto& session : sessions_) places.push_back(session->place());
  const auto chosen = base::gives_way(places);
  if (!chosen) return false;
  const auto leaving = sessions_[*chosen];  // end() takes it out
  leaving->end();
  return true;
}

void AdminServer::Impl::forget(const Session* session) {
  std::erase_if(sessions_, [&](const auto& known) { return known.get() == session; });
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
  if (options.hosts.size() > admin_limits::hosts_max) {
    return admin_error(std::to_string(options.hosts.size()) + " hosts; the limit is " +
                       std::to_string(admin_limits::hosts_max));
  }
  for (const std::string& host : options.hosts) {
    if (!is_host_name(host)) return admin_error("'" + host + "' is not the name of a host");
  }
  SEMEL_CHECK(check_time("request_within", options.request_within));
  return check_time("idle_within", options.idle_within);
}

Result<std::unique_ptr<AdminServer>> AdminServer::start(const AdminOptions& options,
                                                        AdminAnswers answers) {
  SEMEL_CHECK(check(options));
  SEMEL_ASSERT(answers.metrics && answers.ready);
  // Asio throws if there is no descriptor left for it, std::thread if there is no thread.
  try {
    auto impl = std::make_unique<Impl>(options, std::move(answers));
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
