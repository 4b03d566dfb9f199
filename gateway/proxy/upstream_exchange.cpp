#include "gateway/proxy/upstream_exchange.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace semel::gateway {
namespace {

constexpr int interim_replies_max = 16;

/// Writes all of it; each call has its own deadline.
asio::awaitable<error_code> write_all(Stream& stream, std::string_view bytes, Millis within) {
  stream.expires_after(within);
  auto [error, sent] =
      co_await asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), no_throw);
  static_cast<void>(sent);
  co_return error;
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

/// Copies until one side ends or is silent for `within`.
asio::awaitable<void> copy_bytes(Stream& from, Stream& to, Millis within) {
  std::string room(body_step_bytes, '\0');
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

asio::awaitable<UpstreamReply> exchange(UpstreamPool& pool, ClientWait& wait,
                                        const OutgoingRequest& request, Millis within) {
  UpstreamReply reply;
  UpstreamPool::Acquired acquired = co_await pool.acquire(wait, request.is_fresh);
  if (acquired.refusal) {
    reply.refusal = *std::move(acquired.refusal);
    co_return reply;
  }
  reply.lease = std::move(acquired.lease);
  reply.lease.connection->account.begin(request.bytes());
  // From here on the upstream may have read it, whatever the result of the write.
  UpstreamConnection& upstream = *reply.lease.connection;
  // A short message is one packet; a long one is sent from where it is.
  const std::string_view start = request.body.substr(0, body_step_bytes);
  std::string first{request.head};
  first.append(start);
  error_code error = co_await upstream.write(first, within);
  const std::string_view rest = request.body.substr(start.size());
  if (!error && !rest.empty()) error = co_await upstream.write(rest, within);
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

asio::awaitable<void> read_reply_head(const Incoming& in, UpstreamReply& reply) {
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

asio::awaitable<void> tunnel(asio::io_context& io, ClientConnection& client, UpstreamReply& reply,
                             Millis within) {
  UpstreamConnection& upstream = *reply.lease.connection;
  std::string head = client_head({.status = reply.parser->get().result_int(),
                                  .fields = end_to_end_fields(reply.fields),
                                  .extra = "Connection: upgrade\r\n"});
  const FieldLookup protocol = find_field(reply.fields, "Upgrade");
  const std::string line = "Upgrade: " + std::string{protocol.value.value_or("")} + "\r\n\r\n";
  head.replace(head.size() - 2, 2, line);
  const auto behind = upstream.buffer.cdata();
  head.append(static_cast<const char*>(behind.data()), behind.size());
  const bool is_sent = co_await client.send(head);
  if (!is_sent) co_return;
  const std::string_view first = client.unread();
  const error_code failed = co_await write_all(upstream.stream, first, within);
  if (failed) co_return;
  client.be_idle();
  Event ended{io};
  asio::co_spawn(
      io,
      [](Stream& from, Stream& to, Millis silent, Event& done) -> asio::awaitable<void> {
        co_await copy_bytes(from, to, silent);
        from.close();
        to.close();
        done.set();
      }(client.stream(), upstream.stream, within, ended),
      asio::detached);
  co_await copy_bytes(upstream.stream, client.stream(), within);
  client.stream().close();
  upstream.stream.close();
  co_await ended.wait();
}

}  // namespace semel::gateway
