// Requests to the upstream and replies from it, as streams. See session.hpp.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "gateway/proxy/session.hpp"

namespace semel::gateway {
namespace {

void append_body(std::string& out, const Framing& framing, std::string_view bytes) {
  if (bytes.empty()) return;
  const bool is_chunked = framing.kind == Framing::Kind::chunked;
  if (is_chunked) out += chunk_line(bytes.size());
  out += bytes;
  if (is_chunked) out += "\r\n";
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

asio::awaitable<Session::Upload> Session::upload(Incoming& in, UpstreamConnection& upstream) {
  const Framing framing = framing_of_request(in);
  std::string room(body_step_bytes, '\0');
  std::string out;
  while (!in.parser.is_done()) {
    const BodyStep step =
        co_await client_.read_body(in.parser, room, context_.settings.body_timeout);
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
  UpstreamReply reply =
      co_await exchange(*context_.pool, client_.wait(), request, in.route->timeout);
  Event uploaded{context_.io};
  Upload upload_result = Upload::complete;
  const bool has_upload = !in.parser.is_done() && reply.how == UpstreamReply::How::replied;
  if (has_upload) {
    if (in.expects_continue && client_.unread().empty()) {
      static_cast<void>(
          co_await client_.send("HTTP/1.1 100 Continue\r\n\r\n"));  // upload() sees it
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
    UpstreamReply again =
        co_await exchange(*context_.pool, client_.wait(), repeat, in.route->timeout);
    reply = std::move(again);
    if (reply.how == UpstreamReply::How::replied) co_await read_reply_head(in, reply);
  }
  if (reply.how != UpstreamReply::How::replied) {
    if (reply.lease.connection != nullptr) reply.lease.connection->stream.close();
    if (has_upload && !uploaded.is_set()) client_.stream().tcp_layer().cancel();
    if (has_upload) co_await uploaded.wait();
    if (upload_result == Upload::client_failed) {
      reply.refusal = {Outcome::bad_request, "the body ended early, or did not arrive in time"};
    }
    co_return co_await refuse(in, reply.refusal);
  }
  constexpr unsigned switching = 101;
  if (reply.parser->get().result_int() == switching) {
    in.status = switching;
    co_await tunnel(context_.io, client_, reply, context_.settings.idle_timeout);
    co_return false;
  }
  const bool is_uploaded = !has_upload || (uploaded.is_set() && upload_result == Upload::complete);
  bool stays = co_await relay(in, reply, std::nullopt, is_uploaded, "");
  if (has_upload && !uploaded.is_set()) {
    // The reply came before the end of the request: the rest of the request is discarded.
    client_.stream().tcp_layer().cancel();
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
    const std::string_view piece = start->body.substr(0, body_step_bytes);
    append_body(out, framing, piece);
    start->body.remove_prefix(piece.size());
    const bool is_sent = co_await client_.send(out);
    if (!is_sent) co_return false;
    out.clear();
  }
  if (start) start->held.clear();
  std::string room(body_step_bytes, '\0');
  bool is_done = parser.is_done();
  // The part of the body that has arrived is sent with the head; the head does not wait for the
  // rest.
  while (!is_done) {
    if (!out.empty() && upstream.buffer.size() == 0) {
      const bool is_sent = co_await client_.send(out);
      if (!is_sent) co_return false;
      out.clear();
    }
    upstream.stream.expires_after(context_.settings.body_timeout);
    const BodyStep step = co_await read_step(upstream.stream, upstream.buffer, parser, room);
    // The client sees a body that ends too early, as the gateway does.
    if (step.error) co_return false;
    append_body(out, framing, std::string_view{room}.substr(0, step.bytes));
    is_done = step.is_done;
    if (out.size() >= body_step_bytes) {
      const bool is_sent = co_await client_.send(out);
      if (!is_sent) co_return false;
      out.clear();
    }
  }
  if (framing.kind == Framing::Kind::chunked) out += last_chunk;
  upstream.account.reply_ended(parser.keep_alive());
  if (is_uploaded) reply.lease = {};  // a slow client holds no connection
  const bool is_sent = co_await client_.send(out);
  const bool goes_on = is_sent && stays;
  co_return goes_on;
}

}  // namespace semel::gateway
