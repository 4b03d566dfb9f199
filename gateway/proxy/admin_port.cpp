#include "gateway/proxy/admin_port.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <map>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/giving_way.hpp"
#include "base/hex.hpp"
#include "base/stopwatch.hpp"
#include "gateway/rules/message.hpp"
#include "gateway/shared/stream.hpp"

namespace semel::gateway {
namespace {

namespace http = beast::http;
constexpr std::size_t head_bytes_max = std::size_t{8} * 1024;
constexpr unsigned connections_max = 16;
constexpr Millis request_within{5'000};
constexpr Millis accept_pause{100};
constexpr Millis place_pause{10};

using AdminRequest = http::request<http::empty_body>;
using AdminReply = http::response<http::string_body>;

AdminReply reply_of(http::status status, std::string body) {
  AdminReply reply{status, 11};
  reply.set(http::field::content_type, "text/plain; charset=utf-8");
  reply.set(http::field::cache_control, "no-store");
  reply.body() = std::move(body);
  return reply;
}

/// None: a '%' does not begin an escape.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const bool is_whole = text.size() - i > 2;
    const int high = is_whole ? base::hex_value(text[i + 1]) : -1;
    const int low = is_whole ? base::hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::map<std::string, std::string, std::less<>> parameters_of(std::string_view query) {
  std::map<std::string, std::string, std::less<>> found;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view one = query.substr(0, end);
    const std::size_t equals = std::min(one.find('='), one.size());
    if (auto value = decoded(one.substr(std::min(equals + 1, one.size())))) {
      found.insert_or_assign(std::string{one.substr(0, equals)}, *std::move(value));
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return found;
}

/// Whether the request names this port. A DNS-rebinding page points its own name to this machine;
/// the browser then sends requests here as to the page's own origin, with any header. Their Host is
/// the page's name.
bool is_for_this_machine(const AdminRequest& request, const std::vector<std::string>& hosts) {
  if (request.count(http::field::host) != 1 || request.count(http::field::origin) != 0)
    return false;
  const auto field = request[http::field::host];
  std::string_view host{field.data(), field.size()};
  const std::size_t last = host.find_last_not_of("0123456789");
  if (last != std::string_view::npos && host[last] == ':') host = host.substr(0, last);
  const auto is_host = [&](std::string_view known) { return equal_names(known, host); };
  return is_host("127.0.0.1") || is_host("[::1]") || is_host("localhost") ||
         std::any_of(hosts.begin(), hosts.end(), is_host);
}

/// Whether the request carries the token; false if there is no token.
bool has_token(const AdminRequest& request, const AdminCalls& calls) {
  if (!calls.token || request.count(http::field::authorization) != 1) return false;
  const auto field = request[http::field::authorization];
  return calls.token->is_in({field.data(), field.size()});
}

/// One request, and who sent it.
struct Asked {
  const AdminRequest& request;
  std::string_view client;
  std::string_view path;
  std::string_view query;
};

AuditLine audit_line(const Asked& asked, const AdminReply& reply) {
  const auto method = asked.request.method_string();
  return {.client = asked.client,
          .method = {method.data(), method.size()},
          .path = asked.path,
          .status = reply.result_int()};
}

AdminReply resolve(const Asked& asked, const AdminCalls& calls) {
  const auto parameters = parameters_of(asked.query);
  const auto value = [&](std::string_view name) {
    const auto found = parameters.find(name);
    return found == parameters.end() ? std::string{} : found->second;
  };
  const std::string how = value("as");
  const std::string route = value("route");
  const std::string key = value("key");
  AdminReply reply = reply_of(http::status::ok, "ok\n");
  if (!calls.token && asked.request["Semel-Admin"] != "yes") {  // a page cannot know the token
    reply = reply_of(http::status::forbidden, "the header 'Semel-Admin: yes' is missing\n");
  } else if (how != "done" && how != "released") {
    reply = reply_of(http::status::bad_request, "as is done or released\n");
  } else if (const Status done = calls.resolve(route, key, how == "done"); !done) {
    const bool is_missing = done.error().code == ErrorCode::no_such_key;
    reply = reply_of(is_missing ? http::status::not_found : http::status::bad_request,
                     done.error().message() + "\n");
  }
  AuditLine line = audit_line(asked, reply);
  line.route = route;
  line.key = key;
  line.as = how;
  calls.audit(line);
  return reply;
}

/// Open to every client of the port. The reasons name nodes and files, and are for operators only.
std::optional<AdminReply> health(const Asked& asked, const AdminCalls& calls) {
  if (asked.path == "/healthz" || asked.path == "/livez") return reply_of(http::status::ok, "ok\n");
  if (asked.path != "/readyz") return std::nullopt;
  const Status ready = calls.ready();
  if (ready) return reply_of(http::status::ok, "ok\n");
  const bool may_know = calls.token ? has_token(asked.request, calls)
                                    : is_for_this_machine(asked.request, calls.hosts);
  return reply_of(http::status::service_unavailable,
                  may_know ? ready.error().message() + "\n" : "not ready\n");
}

AdminReply answer(const Asked& asked, const AdminCalls& calls) {
  const http::verb method = asked.request.method();
  const bool is_get = method == http::verb::get || method == http::verb::head;
  if (is_get) {
    if (auto reply = health(asked, calls)) return *std::move(reply);
  }
  if (calls.token && !has_token(asked.request, calls)) {
    AdminReply reply = reply_of(http::status::unauthorized, "Authorization: Bearer TOKEN\n");
    reply.set(http::field::www_authenticate, "Bearer");
    calls.audit(audit_line(asked, reply));
    return reply;
  }
  if (!calls.token && !is_for_this_machine(asked.request, calls.hosts)) {
    AdminReply reply = reply_of(http::status::forbidden,
                                "Host has to be 127.0.0.1, [::1], localhost or one of admin-hosts, "
                                "and no page may ask\n");
    if (method == http::verb::post) calls.audit(audit_line(asked, reply));
    return reply;
  }
  if (asked.path == "/resolve") {
    if (method == http::verb::post) return resolve(asked, calls);
    return reply_of(http::status::method_not_allowed, "POST\n");
  }
  if (!is_get) return reply_of(http::status::method_not_allowed, "GET or HEAD\n");
  if (asked.path != "/metrics") {
    return reply_of(http::status::not_found, "there is /metrics, /healthz, /readyz and /resolve\n");
  }
  AdminReply reply = reply_of(http::status::ok, calls.metrics());
  reply.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
  return reply;
}

AdminReply answer(const AdminRequest& request, const std::string& client, const AdminCalls& calls) {
  const std::string_view target{request.target().data(), request.target().size()};
  const std::size_t mark = std::min(target.find('?'), target.size());
  return answer({.request = request,
                 .client = client,
                 .path = target.substr(0, mark),
                 .query = target.substr(std::min(mark + 1, target.size()))},
                calls);
}

std::string client_of(const tcp::socket& socket) {
  error_code error;
  const auto from = socket.remote_endpoint(error);
  return error ? std::string{} : from.address().to_string();
}

}  // namespace

class AdminPort::Impl {
 public:
  explicit Impl(AdminCalls calls) : calls_(std::move(calls)) {}
  ~Impl() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Status listen(const Address& at) {
    error_code error;
    std::string host = at.host.empty() ? "::" : at.host;  // all addresses, of IPv4 as well
    if (host == "localhost") host = "127.0.0.1";
    const auto address = asio::ip::make_address(host, error);
    if (!error) acceptor_.open(tcp::endpoint{address, 0}.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address{true}, error);
    if (!error) acceptor_.bind({address, at.port}, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (!error) return Done{};
    return Error{ErrorCode::bad_option, "admin: cannot listen on " + at.host + ":" +
                                            std::to_string(at.port) + ": " + error.message()};
  }
  void run() {
    asio::co_spawn(io_, accept(), asio::detached);
    sigset_t all{};
    sigset_t before{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread{[this] {
      for (bool goes_on = true; goes_on;) {
        goes_on = false;
        try {
          io_.run();
        } catch (const std::exception&) {  // a handler has no memory: the others go on
          goes_on = true;
        }
      }
    }};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), "semel-gw-admin");
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  using Doing = base::TakenPlace::Doing;
  /// One of connections_max.
  struct Connection {
    Connection(tcp::socket socket, std::vector<Connection*>& others)
        : stream(std::move(socket)), all(others) {
      all.push_back(this);
    }
    ~Connection() { std::erase(all, this); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    beast::tcp_stream stream;
    std::vector<Connection*>& all;
    Doing doing = Doing::awaits;
    base::Stopwatch since{};
  };

  [[nodiscard]] asio::awaitable<void> accept() {
    asio::steady_timer pause{io_};
    for (;;) {
      tcp::socket socket{io_};
      auto [error] = co_await acceptor_.async_accept(socket, no_throw);
      if (error == asio::error::operation_aborted) co_return;
      while (!error && open_.size() >= connections_max && !make_place()) {
        pause.expires_after(place_pause);
        co_await pause.async_wait(no_throw);
      }
      if (error) {
        pause.expires_after(accept_pause);
        co_await pause.async_wait(no_throw);
        continue;
      }
      try {
        asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
      } catch (const std::bad_alloc&) {  // this connection is closed
        continue;
      }
    }
  }
  [[nodiscard]] bool make_place() {
    std::vector<base::TakenPlace> places;
    for (const Connection* const each : open_) {
      places.push_back({each->doing, each->since.passed()});
    }
    const auto chosen = base::gives_way(places);
    if (!chosen) return false;
    open_[*chosen]->stream.close();  // serve() ends
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(*chosen));
    return true;
  }
  /// One request per connection: operators and scrapers need no more.
  [[nodiscard]] asio::awaitable<void> serve(tcp::socket socket) {
    const std::string client = client_of(socket);
    Connection connection{std::move(socket), open_};
    beast::tcp_stream& stream = connection.stream;
    stream.expires_after(request_within);  // for all of it
    beast::flat_buffer buffer{2 * head_bytes_max};
    http::request_parser<http::empty_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(head_bytes_max));
    auto [error, bytes] = co_await http::async_read(stream, buffer, parser, no_throw);
    static_cast<void>(bytes);
    const bool is_gone = error == http::error::end_of_stream || error == beast::error::timeout ||
                         error == asio::error::operation_aborted;
    if (is_gone) co_return;
    connection.doing = Doing::answers;
    connection.since.restart();
    AdminReply reply = error ? reply_of(http::status::bad_request, error.message() + "\n")
                             : answer(parser.get(), client, calls_);
    reply.keep_alive(false);
    reply.prepare_payload();
    if (parser.is_header_done() && parser.get().method() == http::verb::head) {
      reply.body().clear();
    }
    auto [failed, sent] = co_await http::async_write(stream, reply, no_throw);
    static_cast<void>(failed);
    static_cast<void>(sent);
    error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  const AdminCalls calls_;
  std::vector<Connection*> open_;  // outlives the coroutines of io_
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  std::uint16_t port_ = 0;
  std::thread thread_;
};

AdminPort::AdminPort(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
AdminPort::~AdminPort() = default;

Result<std::unique_ptr<AdminPort>> AdminPort::start(const Address& at, AdminCalls calls) {
  // Asio throws if there is no descriptor left for it, std::thread if there is no thread.
  try {
    auto impl = std::make_unique<Impl>(std::move(calls));
    SEMEL_CHECK(impl->listen(at));
    impl->run();
    return std::unique_ptr<AdminPort>{new AdminPort{std::move(impl)}};
  } catch (const std::system_error& failed) {
    return Error{ErrorCode::no_thread, std::string{"admin: cannot start: "} + failed.what()};
  }
}

std::uint16_t AdminPort::port() const noexcept {
  return impl_->port();
}

}  // namespace semel::gateway
