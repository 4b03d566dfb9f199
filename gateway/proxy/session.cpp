#include "gateway/proxy/session.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <utility>

#include "gateway/proxy/relay.hpp"

namespace semel::gateway {

using asio::use_awaitable;

Session::Session(Worker& worker, Tcp::socket socket, Place place)
    : shared_(worker.shared),
      worker_(worker),
      wire_(std::move(socket)),
      buffer_(limits::header_bytes_max + relay_bytes),
      client_(wire_.peer()),
      place_(std::move(place)) {
  shared_.counters.add(Count::connections);
}

void Session::drain() {
  if (is_idle_) wire_.close();
}

void Session::close() noexcept {
  wire_.close();
  if (wait_ == 0) return;
  static_cast<void>(shared_.claims.at(now_.route->name).cancel_wait(wait_key_, wait_));
  wait_ = 0;
}

asio::awaitable<void> Session::run() {
  const auto self = shared_from_this();
  try {
    wire_.close_in(shared_.options.head_within);
    if (shared_.client_tls) co_await wire_.accept_tls(*shared_.client_tls);
    while (co_await serve_one()) {
    }
    co_await linger();
  } catch (const std::exception&) {  // the client has gone or takes too long, or no memory is left
  }
  wire_.close();
  worker_.sessions.erase(self);
}

asio::awaitable<void> Session::linger() {
  constexpr Millis within{2'000};
  constexpr std::size_t bytes_max = std::size_t{1} << 20;
  wire_.close_in(within);
  co_await wire_.finish();
  std::array<char, 4'096> thrown_away;
  const auto room = asio::buffer(thrown_away);
  for (std::size_t bytes = 0; bytes < bytes_max;) {
    bytes += co_await wire_.tcp().async_read_some(room, use_awaitable);
  }
}

void Session::decide_keeping() {
  // mo: relaxed: it ends with one request more or less
  if (shared_.is_draining.load(std::memory_order_relaxed)) now_.keeps = false;
}

asio::awaitable<bool> Session::read_head(Head& head) {
  head.header_limit(static_cast<std::uint32_t>(limits::header_bytes_max));
  head.body_limit(boost::none);
  if (buffer_.size() == 0) {
    is_idle_ = true;
    // mo: relaxed: who drains closes those that wait
    if (shared_.is_draining.load(std::memory_order_relaxed)) co_return false;
    wire_.close_in(shared_.options.idle_within);
    const auto room = buffer_.prepare(4'096);
    buffer_.commit(co_await wire_.async_read_some(room, use_awaitable));
  }
  is_idle_ = false;
  now_ = {};
  now_.began = shared_.clock.now();
  wire_.close_in(shared_.options.head_within);
  boost::system::error_code error;
  co_await http::async_read_header(wire_, buffer_, head,
                                   asio::redirect_error(use_awaitable, error));
  if (!error) co_return true;
  if (error == http::error::end_of_stream) co_return false;
  shared_.counters.add(Count::bad_requests);
  if (error.category() != make_error_code(http::error::end_of_stream).category()) {
    throw boost::system::system_error{error};
  }
  const bool is_long = error == http::error::header_limit;
  now_.outcome = "bad_request";
  Reply reply = problem(400, "bad-request", "This is no request of HTTP/1.1", error.message());
  if (is_long) reply = problem(431, "head-too-long", "The head of the request is too long");
  co_await send(reply);
  co_return false;
}

asio::awaitable<bool> Session::serve_one() {
  Head head;
  if (!co_await read_head(head)) co_return false;
  shared_.counters.add(Count::requests);
  const auto& message = head.get();
  now_.method = view(message.method_string());
  now_.version = message.version() >= 11 ? 11 : 10;
  const Status fits = check_head(message);
  if (!fits) {
    shared_.counters.add(Count::bad_requests);
    now_.outcome = "bad_request";
    Reply reply = problem(400, "bad-request", "The request is refused", fits.error().detail);
    co_await send(reply);
    co_return false;
  }
  const std::string_view target = view(message.target());
  const std::size_t mark = target.find('?');
  now_.path = target.substr(0, mark);
  if (mark != std::string_view::npos) now_.query = target.substr(mark + 1);
  now_.keeps = message.keep_alive();
  now_.route = shared_.options.routes.find(now_.path);
  const auto keys = values_of(message, "Idempotency-Key");
  const bool is_guarded = now_.route != nullptr && now_.route->guards(now_.method) &&
                          (now_.route->required || !keys.empty());
  if (!is_guarded) {
    co_await pass(head);
    co_return now_.keeps;
  }
  shared_.counters.add(Count::guarded);
  const Result<std::string> key = key_of(keys);
  if (!key.ok()) {
    shared_.counters.add(Count::bad_requests);
    now_.outcome = "no_key";
    now_.keeps = false;  // its body is not read
    Reply reply =
        problem(400, "key-malformed", "Idempotency-Key cannot be read", key.error().detail);
    if (keys.empty()) {
      reply = problem(400, "key-missing", "Idempotency-Key is missing",
                      "This resource wants a key of the client's for each request.");
    }
    co_await send(reply);
    co_return false;
  }
  co_await guard(head, *key);
  co_return now_.keeps;
}

asio::awaitable<void> Session::say_continue(const http::request_header<>& head) {
  const auto expects = values_of(head, "Expect");
  if (expects.empty() || now_.version < 11) co_return;
  static constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
  const auto bytes = asio::buffer(text.data(), text.size());
  co_await asio::async_write(wire_, bytes, use_awaitable);
}

asio::awaitable<void> Session::send(Reply& reply) {
  http::response<http::string_body> message;
  message.version(now_.version);
  message.result(reply.status);
  for (const auto& [name, value] : reply.headers) message.insert(name, value);
  message.body() = std::move(reply.body);
  decide_keeping();
  message.keep_alive(now_.keeps);
  message.prepare_payload();
  now_.status = reply.status;
  note();
  wire_.close_in(shared_.options.io_within);
  co_await http::async_write(wire_, message, use_awaitable);
}

void Session::note() {
  shared_.log->write({.unix_ms = shared_.clock.unix_ms(),
                      .client = client_,
                      .method = now_.method,
                      .path = now_.path,
                      .route = now_.route == nullptr ? std::string_view{} : now_.route->name,
                      .outcome = now_.outcome,
                      .status = now_.status,
                      .took_ms = (shared_.clock.now() - now_.began).count(),
                      .attempt = now_.attempt});
}

// --- unguarded ----------------------------------------------------------------------------------

asio::awaitable<void> Session::pass(Head& head) {
  shared_.counters.add(Count::passed);
  now_.outcome = "passed";
  http::request_parser<http::buffer_body> in{std::move(head)};
  in.body_limit(boost::none);
  auto& message = in.get();
  co_await say_continue(message);
  const bool is_chunked = in.chunked();
  const bool is_head = message.method() == http::verb::head;
  drop_hop_headers(message);
  drop_own_headers(message);
  message.erase(http::field::expect);
  add_forwarded(message, client_, shared_.client_tls != nullptr);
  message.version(11);
  if (is_chunked) message.chunked(true);
  // What has no body and changes nothing may be sent again, when the upstream closes just then.
  const bool repeats = in.is_done() && (message.method() == http::verb::get || is_head);
  std::string why;
  for (bool is_fresh = !repeats;; is_fresh = true) {
    std::unique_ptr<Wire> up = worker_.pool.take(Millis{is_fresh ? 1'000 : 4'000});
    const bool is_pooled = up != nullptr;
    std::optional<Back> back;
    try {
      if (!up) up = co_await worker_.pool.connect(shared_.options.connect_within);
      up->close_in(shared_.options.io_within);
      http::request_serializer<http::buffer_body> out{message};
      co_await http::async_write_header(*up, out, use_awaitable);
      co_await relay_body(wire_, buffer_, in, *up, out, shared_.options.io_within);
      up->close_in(shared_.options.io_within);
      beast::flat_buffer unread;
      co_await pass_back(*up, unread, back);
      give_back(std::move(up), unread, *back);
      co_return;
    } catch (const boost::system::system_error& error) {
      if (now_.status != 0) throw;  // a part of the reply is out
      why = error.code().message();
      if (!repeats || !is_pooled || is_fresh) break;
    }
  }
  shared_.counters.add(Count::upstream_failed);
  now_.outcome = "upstream_failed";
  if (!in.is_done()) now_.keeps = false;
  Reply reply = reply_without_upstream(nullptr, Upstream::unknown, why);
  co_await send(reply);
}

asio::awaitable<void> Session::read_back(Wire& up, beast::flat_buffer& unread,
                                         std::optional<Back>& back, bool skips) {
  do {
    back.emplace();
    back->header_limit(static_cast<std::uint32_t>(2 * limits::header_bytes_max));
    back->body_limit(boost::none);
    if (skips) back->skip(true);
    co_await http::async_read_header(up, unread, *back, use_awaitable);
  } while (back->get().result_int() / 100 == 1);  // early hints, and a 100 that was not asked for
}

asio::awaitable<void> Session::pass_back(Wire& up, beast::flat_buffer& unread,
                                         std::optional<Back>& back) {
  co_await read_back(up, unread, back, now_.method == "HEAD");
  http::response_serializer<http::buffer_body> out{back->get()};
  const bool has_body = !back->is_done();
  co_await write_head(*back, out);
  if (has_body) co_await relay_body(up, unread, *back, wire_, out, shared_.options.io_within);
}

asio::awaitable<void> Session::write_head(Back& back,
                                          http::response_serializer<http::buffer_body>& out) {
  auto& answer = back.get();
  const bool has_open_end = !back.is_done() && (back.chunked() || back.need_eof());
  drop_hop_headers(answer);
  answer.version(now_.version);
  if (has_open_end && now_.version >= 11) answer.chunked(true);
  if (has_open_end && now_.version < 11) now_.keeps = false;
  decide_keeping();
  answer.keep_alive(now_.keeps);
  now_.status = answer.result_int();
  note();
  wire_.close_in(shared_.options.io_within);
  co_await http::async_write_header(wire_, out, use_awaitable);
}

/// Not one that has sent more than it was asked for: that would be the reply to somebody else.
void Session::give_back(std::unique_ptr<Wire> up, const beast::flat_buffer& unread,
                        const Back& back) {
  if (back.is_done() && back.keep_alive() && unread.size() == 0) {
    worker_.pool.give_back(std::move(up));
  }
}

}  // namespace semel::gateway
