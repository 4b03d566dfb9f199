// Requests to the upstream and replies from it, as streams. See session.hpp.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "gateway/proxy/session.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t step_bytes = std::size_t{16} * 1024;
constexpr int interim_replies_max = 16;

/// Writes all of it; each call has its own deadline.
asio::awaitable<error_code> write_all(Stream& stream, std::string_view bytes, Millis within) {
  stream.expires_after(within);
  auto [error, sent] =
      co_await asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), no_throw);
  static_cast<void>(sent);
  co_return error;
}

void append_body(std::string& out, const Framing& framing, std::string_view bytes) {
  if (bytes.empty()) return;
  const bool is_chunked = framing.kind == Framing::Kind::chunked;
  if (is_chunked) out += chunk_line(bytes.size());
  out += bytes;
  if (is_chunked) out += "\r\n";
}

Framing framing_of_request(const Incoming& in) {
  if (in.parser.chunked()) return {Framing::Kind::chunked, 0};
  const auto length = in.parser.content_length();
  return length ? Framing{Framing::Kind::length, *length} : Framing{};
}

/// Whether a request may be sent twice without a guard (RFC 9110, section 9.2.2). A request with a
/// body may not: the body is consumed, and the next request would be read as the body of the
/// repeated head.
bool is_repeatable(const Incoming& in) {
  const std::string_view method = in.request.method;
  return !has_body(framing_of_request(in)) &&
         (method == "GET" || method == "HEAD" || method == "OPTIONS");
}

Framing framing_of_reply(const Incoming& in,
                         const http::response_parser<http::buffer_body>& reply) {
  constexpr unsigned no_content = 204;
  constexpr unsigned not_modified = 304;
  const unsigned status = reply.get().result_int();
  if (status == no_content) return {};
  if (const auto length = reply.content_length()) return {Framing::Kind::length, *length};
  if (in.is_head || status == not_modified) return {};
  return {in.is_1_0 ? Framing::Kind::close : Framing::Kind::chunked, 0};
}

/// Whether two readers could see the end of a reply in different places (RFC 9112, section 6.3).
bool has_two_readings(const http::response_parser<http::buffer_body>& reply) {
  constexpr unsigned no_content = 204;
  const auto codings = reply.get().count(http::field::transfer_encoding);
  const auto coding = reply.get()[http::field::transfer_encoding];
  if (codings > 1 || (codings == 1 && !equal_names({coding.data(), coding.size()}, "chunked"))) {
    return true;
  }
  const bool announces_body = codings > 0 || reply.content_length().value_or(0) > 0;
  return reply.get().result_int() == no_content && announces_body;
}

/// Whether a status 101 switches the connection to a websocket.
bool is_websocket(const http::response_parser<http::buffer_body>& reply) {
  const auto& head = reply.get();
  const auto protocol = head[http::field::upgrade];
  return head.count(http::field::upgrade) == 1 &&
         equal_names({protocol.data(), protocol.size()}, "websocket");
}

/// Set by a coroutine when it ends, waited for by another one of the same thread.
class Event {
 public:
  explicit Event(asio::io_context& io) : timer_(io, asio::steady_timer::time_point::max()) {}
  void set() {
    is_set_ = true;
    timer_.cancel();
  }
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }
  [[nodiscard]] asio::awaitable<void> wait() {
    while (!is_set_) co_await timer_.async_wait(no_throw);
  }

 private:
  asio::steady_timer timer_;
  bool is_set_ = false;
};

/// Copies until one side ends or is silent for `within`.
asio::awaitable<void> copy_bytes(Stream& from, Stream& to, Millis within) {
  std::string room(step_bytes, '\0');
  for (;;) {
    from.expires_after(within);
    auto [error, bytes] = co_await from.async_read_some(asio::buffer(room), no_throw);
    if (error) co_return;
    const error_code failed =
        co_await write_all(to, std::string_view{room}.substr(0, bytes), within);
    if (failed) co_return;
  }
}

}  // namespace

std::string Session::head_for_upstream(const Incoming& in, const Framing& framing,
                                       std::string_view token, bool is_upgrade) const {
  return upstream_head(in.request, in.target, framing,
                       {.client_address = client_address_,
                        .host = context_.upstream_host,
                        .fencing_token = token,
                        .is_tls = context_.is_tls,
                        .trusts_forwarded = context_.settings.trust_forwarded,
                        .is_upgrade = is_upgrade});
}

asio::awaitable<UpstreamReply> Session::exchange(Incoming& in, const OutgoingRequest& request) {
  UpstreamReply reply;
  UpstreamPool::Acquired acquired = co_await context_.pool->acquire(wait_, request.is_fresh);
  if (acquired.refusal) {
    reply.refusal = *std::move(acquired.refusal);
    co_return reply;
  }
  reply.lease = std::move(acquired.lease);
  reply.lease.connection->account.begin(request.bytes());
  // From here on the upstream may have read it, whatever the result of the write.
  UpstreamConnection& upstream = *reply.lease.connection;
  // A short message is one packet; a long one is sent from where it is.
  const std::string_view start = request.body.substr(0, step_bytes);
  std::string first{request.head};
  first.append(start);
  error_code error = co_await upstream.write(first, in.route->timeout);
  const std::string_view rest = request.body.substr(start.size());
  if (!error && !rest.empty()) error = co_await upstream.write(rest, in.route->timeout);
  // An upstream that has refused a large body and closed may have sent its reply before.
  if (error && error != asio::error::broken_pipe && error != asio::error::connection_reset) {
    const bool is_late = error == beast::error::timeout;
    reply.how = is_late ? UpstreamReply::How::timed_out : UpstreamReply::How::broken;
    reply.refusal = {is_late ? Outcome::upstream_timeout : Outcome::upstream_broken,
                     "sending: " + error.message()};
    co_return reply;
  }
  reply.how = UpstreamReply::How::replied;
  co_return reply;
}

asio::awaitable<void> Session::read_reply_head(Incoming& in, UpstreamReply& reply) {
  UpstreamConnection& upstream = *reply.lease.connection;
  upstream.stream.expires_after(in.route->timeout);
  for (int i = 0; i < interim_replies_max; ++i) {
    reply.parser = std::make_unique<http::response_parser<http::buffer_body>>();
    reply.parser->header_limit(static_cast<std::uint32_t>(limits::reply_head_bytes_max));
    reply.parser->body_limit(boost::none);
    if (in.is_head) reply.parser->skip(true);
    auto [error, used] =
        co_await http::async_read_header(upstream.stream, upstream.buffer, *reply.parser, no_throw);
    static_cast<void>(used);
    if (error) {
      const bool is_late = error == beast::error::timeout;
      reply.how = is_late ? UpstreamReply::How::timed_out : UpstreamReply::How::broken;
      const bool is_http =
          error.category() != make_error_code(http::error::bad_method).category() ||
          error == http::error::end_of_stream || error == http::error::partial_message;
      reply.refusal = {is_late   ? Outcome::upstream_timeout
                       : is_http ? Outcome::upstream_broken
                                 : Outcome::upstream_invalid,
                       "waiting for its reply: " + error.message()};
      co_return;
    }
    constexpr unsigned first_final = 200;
    constexpr unsigned switching = 101;
    const unsigned status = reply.parser->get().result_int();
    if (status == switching && !(in.is_websocket && is_websocket(*reply.parser))) break;
    if (status >= first_final && has_two_readings(*reply.parser)) {
      reply.how = UpstreamReply::How::broken;
      reply.refusal = {Outcome::upstream_invalid,
                       "its reply has a Transfer-Encoding other than chunked, or 204 and a body"};
      co_return;
    }
    if (status >= first_final || status == switching) {
      for (const auto& field : reply.parser->get()) {
        reply.fields.push_back({{field.name_string().data(), field.name_string().size()},
                                {field.value().data(), field.value().size()}});
      }
      co_return;
    }
  }
  reply.how = UpstreamReply::How::broken;
  reply.refusal = {Outcome::upstream_invalid,
                   "status 101 to something else than was asked for, or more than 16 of 1xx"};
}

asio::awaitable<Session::Upload> Session::upload(Incoming& in, UpstreamConnection& upstream) {
  const Framing framing = framing_of_request(in);
  std::string room(step_bytes, '\0');
  std::string out;
  while (!in.parser.is_done()) {
    const BodyStep step = co_await read_body_step(in, room, context_.settings.body_timeout);
    if (step.error) co_return Upload::client_failed;
    out.clear();
    append_body(out, framing, std::string_view{room}.substr(0, step.bytes));
    if (step.is_done && framing.kind == Framing::Kind::chunked) out += last_chunk;
    if (out.empty()) continue;
    const error_code failed = co_await upstream.write(out, in.route->timeout);
    if (failed) co_return Upload::upstream_failed;
    if (step.is_done) upstream.account.sent_last_chunk();
  }
  co_return Upload::complete;
}

asio::awaitable<bool> Session::serve_passed(Incoming& in) {
  in.outcome = Outcome::passed;
  const Framing framing = framing_of_request(in);
  const OutgoingRequest request{.head = head_for_upstream(in, framing, {}, in.is_websocket),
                                .later = framing,
                                .is_fresh = in.is_websocket};
  UpstreamReply reply = co_await exchange(in, request);
  Event uploaded{context_.io};
  Upload upload_result = Upload::complete;
  const bool has_upload = !in.parser.is_done() && reply.how == UpstreamReply::How::replied;
  if (has_upload) {
    if (in.expects_continue && buffer_.size() == 0) {
      static_cast<void>(co_await send(in, "HTTP/1.1 100 Continue\r\n\r\n"));  // upload() sees it
    }
    asio::co_spawn(
        context_.io,
        [](Session& session, Incoming& incoming, UpstreamReply& to, Upload& result,
           Event& done) -> asio::awaitable<void> {
          result = co_await session.upload(incoming, *to.lease.connection);
          // The upstream would wait for the rest.
          if (result == Upload::client_failed) to.lease.connection->stream.close();
          done.set();
        }(*this, in, reply, upload_result, uploaded),
        asio::detached);
  }
  if (reply.how == UpstreamReply::How::replied) co_await read_reply_head(in, reply);
  const bool was_reused = reply.lease.connection != nullptr && reply.lease.connection->is_reused;
  if (reply.how == UpstreamReply::How::broken && was_reused && is_repeatable(in)) {
    // The upstream has closed a connection of the pool just now; this request has no effect.
    const OutgoingRequest repeat{.head = request.head, .later = framing, .is_fresh = true};
    UpstreamReply again = co_await exchange(in, repeat);
    reply = std::move(again);
    if (reply.how == UpstreamReply::How::replied) co_await read_reply_head(in, reply);
  }
  if (reply.how != UpstreamReply::How::replied) {
    if (reply.lease.connection != nullptr) reply.lease.connection->stream.close();
    if (has_upload && !uploaded.is_set()) stream_.tcp_layer().cancel();
    if (has_upload) co_await uploaded.wait();
    if (upload_result == Upload::client_failed) {
      reply.refusal = {Outcome::bad_request, "the body ended early, or did not arrive in time"};
    }
    co_return co_await refuse(in, reply.refusal);
  }
  constexpr unsigned switching = 101;
  if (reply.parser->get().result_int() == switching) {
    co_await tunnel(in, reply);
    co_return false;
  }
  const bool is_uploaded = !has_upload || (uploaded.is_set() && upload_result == Upload::complete);
  bool stays = co_await relay(in, reply, std::nullopt, is_uploaded, "");
  if (has_upload && !uploaded.is_set()) {
    // The reply came before the end of the request: the rest of the request is discarded.
    stream_.tcp_layer().cancel();
    if (reply.lease.connection != nullptr) reply.lease.connection->stream.close();
    co_await uploaded.wait();
    stays = false;
  }
  if (upload_result != Upload::complete) stays = false;
  co_return stays;
}

asio::awaitable<bool> Session::relay(Incoming& in, UpstreamReply& reply, std::optional<Start> start,
                                     bool is_uploaded, std::string_view extra) {
  auto& parser = *reply.parser;
  UpstreamConnection& upstream = *reply.lease.connection;
  const Framing framing = framing_of_reply(in, parser);
  in.status = parser.get().result_int();
  const bool stays = may_stay(in) && is_uploaded && framing.kind != Framing::Kind::close;
  const std::vector<Field> fields = end_to_end_fields(reply.fields);
  const auto reason = parser.get().reason();
  std::string out = client_head({.status = in.status,
                                 .reason = {reason.data(), reason.size()},
                                 .fields = fields,
                                 .framing = framing,
                                 .is_1_0 = in.is_1_0,
                                 .keep_alive = stays,
                                 .extra = extra});
  while (start && !start->body.empty()) {
    const std::string_view piece = start->body.substr(0, step_bytes);
    append_body(out, framing, piece);
    start->body.remove_prefix(piece.size());
    const bool is_sent = co_await send(in, out);
    if (!is_sent) co_return false;
    out.clear();
  }
  if (start) start->held.clear();
  std::string room(step_bytes, '\0');
  bool is_done = parser.is_done();
  // The part of the body that has arrived is sent with the head; the head does not wait for the
  // rest.
  while (!is_done) {
    if (!out.empty() && upstream.buffer.size() == 0) {
      const bool is_sent = co_await send(in, out);
      if (!is_sent) co_return false;
      out.clear();
    }
    upstream.stream.expires_after(context_.settings.body_timeout);
    const BodyStep step = co_await read_step(upstream.stream, upstream.buffer, parser, room);
    // The client sees a body that ends too early, as the gateway does.
    if (step.error) co_return false;
    append_body(out, framing, std::string_view{room}.substr(0, step.bytes));
    is_done = step.is_done;
    if (out.size() >= step_bytes) {
      const bool is_sent = co_await send(in, out);
      if (!is_sent) co_return false;
      out.clear();
    }
  }
  if (framing.kind == Framing::Kind::chunked) out += last_chunk;
  upstream.account.reply_ended(parser.keep_alive());
  if (is_uploaded) reply.lease = {};  // a slow client holds no connection
  const bool is_sent = co_await send(in, out);
  const bool goes_on = is_sent && stays;
  co_return goes_on;
}

asio::awaitable<void> Session::tunnel(Incoming& in, UpstreamReply& reply) {
  UpstreamConnection& upstream = *reply.lease.connection;
  in.status = reply.parser->get().result_int();
  std::string head = client_head({.status = in.status,
                                  .fields = end_to_end_fields(reply.fields),
                                  .extra = "Connection: upgrade\r\n"});
  const FieldLookup protocol = find_field(reply.fields, "Upgrade");
  const std::string line = "Upgrade: " + std::string{protocol.value.value_or("")} + "\r\n\r\n";
  head.replace(head.size() - 2, 2, line);
  const auto behind = upstream.buffer.cdata();
  head.append(static_cast<const char*>(behind.data()), behind.size());
  const bool is_sent = co_await send(in, head);
  if (!is_sent) co_return;
  const Millis within = context_.settings.idle_timeout;
  const auto early = buffer_.cdata();
  const std::string_view first{static_cast<const char*>(early.data()), early.size()};
  const error_code failed = co_await write_all(upstream.stream, first, within);
  if (failed) co_return;
  is_idle_ = true;  // a gateway that drains does not wait for it
  Event ended{context_.io};
  asio::co_spawn(
      context_.io,
      [](Stream& from, Stream& to, Millis silent, Event& done) -> asio::awaitable<void> {
        co_await copy_bytes(from, to, silent);
        from.close();
        to.close();
        done.set();
      }(stream_, upstream.stream, within, ended),
      asio::detached);
  co_await copy_bytes(upstream.stream, stream_, within);
  stream_.close();
  upstream.stream.close();
  co_await ended.wait();
}

}  // namespace semel::gateway
