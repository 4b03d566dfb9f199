#include "gateway/proxy/session.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <utility>

#include "gateway/rules/head.hpp"
#include "gateway/rules/route_choice.hpp"
#include "gateway/rules/work_key.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t read_bytes = 4'096;
constexpr std::size_t write_bytes = std::size_t{64} * 1024;
// Beast's buffer also holds the bytes behind the head: the lines of chunks.
constexpr std::size_t spare_bytes = std::size_t{16} * 1024;

std::string_view text_of(const beast::flat_buffer& buffer) {
  const auto bytes = buffer.cdata();
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

/// The handshake of a websocket. A connection may become nothing else: another protocol could carry
/// requests that no guard sees.
/// Source: RFC 6455, section 4.1
bool asks_for_websocket(const Incoming& in) {
  constexpr std::size_t key_characters = 24;  // 16 bytes in base64
  const auto only = [&](std::string_view name) {
    const FieldLookup found = find_field(in.fields, name);
    return found.repeated ? std::string_view{} : found.value.value_or(std::string_view{});
  };
  return in.request.method == "GET" && !in.is_1_0 && in.parser.is_done() &&
         equal_names(only("Upgrade"), "websocket") && has_token(only("Connection"), "upgrade") &&
         only("Sec-WebSocket-Key").size() == key_characters &&
         only("Sec-WebSocket-Version") == "13";
}

/// Counted while it lives.
class Open {
 public:
  explicit Open(Counter& counter) noexcept : counter_(counter) { counter_.add(); }
  ~Open() { counter_.subtract(); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  Counter& counter_;
};

}  // namespace

Session::Session(SessionContext& context, Stream stream, std::string client_address)
    : context_(context),
      all_(context.sessions),
      counters_(context.counters),
      stream_(std::move(stream)),
      client_address_(std::move(client_address)),
      buffer_(context.settings.head_bytes + spare_bytes),
      buffer_share_(context.memory) {
  all_->insert(this);
  counters_.connections.add();
}

Session::~Session() {
  all_->erase(this);
  counters_.connections.subtract();
}

void Session::drain() {
  if (is_idle_) stream_.close();
}

asio::awaitable<void> Session::run() {
  const auto self = shared_from_this();
  if (auto* const tls = stream_.tls_layer()) {
    stream_.expires_after(context_.settings.head_timeout);
    const ClientWait::Now now{wait_};
    auto [error] = co_await tls->async_handshake(asio::ssl::stream_base::server, no_throw);
    if (error) co_return;
  }
  bool stays = true;
  while (stays && !context_.is_draining) {
    Incoming in;
    Refusal refusal;
    const HeadRead read = co_await read_head(in, refusal);
    if (read == HeadRead::ended) break;
    const Open open{context_.counters.requests_open};
    if (read == HeadRead::refused) {
      in.keep_alive = false;
      stays = co_await refuse(in, refusal);
    } else {
      stays = co_await serve(in);
    }
    note(in);
  }
  if (auto* const tls = stream_.tls_layer()) {
    stream_.expires_after(context_.settings.head_timeout);
    auto [ignored] = co_await tls->async_shutdown(no_throw);
    static_cast<void>(ignored);
  }
}

asio::awaitable<Session::HeadRead> Session::read_head(Incoming& in, Refusal& refusal) {
  const Settings& settings = context_.settings;
  std::optional<std::size_t> end;
  wait_.restart();
  is_idle_ = buffer_.size() == 0;
  if (buffer_.capacity() > limits::head_buffer_free) buffer_.shrink_to_fit();
  stream_.expires_after(is_idle_ ? settings.idle_timeout : settings.head_timeout);
  while (!(end = end_of_head(text_of(buffer_)))) {
    if (buffer_.size() >= settings.head_bytes) break;
    const auto room = buffer_.prepare(std::min(read_bytes, buffer_.max_size() - buffer_.size()));
    if (!count_buffer()) {
      refusal = busy(context_.memory);
      co_return HeadRead::refused;
    }
    const ClientWait::Now now{wait_};
    auto [error, bytes] = co_await stream_.async_read_some(room, no_throw);
    if (error == beast::error::timeout && !is_idle_) {
      refusal = {Outcome::request_timeout, "the head did not arrive within " +
                                               std::to_string(settings.head_timeout.count()) +
                                               " ms"};
      co_return HeadRead::refused;
    }
    if (error) co_return HeadRead::ended;
    buffer_.commit(bytes);
    // One deadline for the whole head: a client that sends a byte a second does not move it.
    if (std::exchange(is_idle_, false)) stream_.expires_after(settings.head_timeout);
  }
  is_idle_ = false;
  wait_.restart();
  if (!end || *end > settings.head_bytes) {
    refusal = {Outcome::head_too_large,
               "more than " + std::to_string(settings.head_bytes) + " bytes"};
    co_return HeadRead::refused;
  }
  in.since.restart();
  in.policy = context_.policy;
  in.store = context_.store;
  if (auto refused = parse_head(in, *end)) {
    refusal = *std::move(refused);
    co_return HeadRead::refused;
  }
  co_return HeadRead::complete;
}

/// Counts the head's bytes: in the buffer, and in the parser once it is complete. A small head is
/// part of the connection's own memory.
bool Session::count_buffer() noexcept {
  const std::size_t bytes = buffer_.capacity();
  return buffer_share_.hold(bytes <= limits::head_buffer_free ? 0 : 2 * bytes);
}

std::optional<Refusal> Session::parse_head(Incoming& in, std::size_t head_bytes) {
  const Status checked = check_head(text_of(buffer_).substr(0, head_bytes));
  if (!checked) return Refusal{Outcome::bad_request, checked.error().detail};
  in.parser.header_limit(static_cast<std::uint32_t>(context_.settings.head_bytes + spare_bytes));
  in.parser.body_limit(boost::none);
  error_code error;
  const auto bytes = buffer_.cdata();
  const std::size_t used = in.parser.put(asio::buffer(bytes.data(), head_bytes), error);
  if (error || !in.parser.is_header_done()) {
    return Refusal{Outcome::bad_request, "the head: " + error.message()};
  }
  buffer_.consume(used);
  const auto& head = in.parser.get();
  for (const auto& field : head) {
    if (!is_passed_name(view(field.name_string()))) continue;
    in.fields.push_back({view(field.name_string()), view(field.value())});
  }
  in.target = view(head.target());
  const std::size_t mark = std::min(in.target.find('?'), in.target.size());
  in.request.method = view(head.method_string());
  in.request.path = in.target.substr(0, mark);
  in.request.query = in.target.substr(std::min(mark + 1, in.target.size()));
  in.request.fields = in.fields;
  in.is_head = head.method() == http::verb::head;
  in.is_1_0 = head.version() == 10;
  in.keep_alive = head.keep_alive();
  return choose_route(in);
}

std::optional<Refusal> Session::choose_route(Incoming& in) const {
  const std::string_view method = in.request.method;
  if (method == "CONNECT" || method == "TRACE") {
    return Refusal{Outcome::not_supported, std::string{method} + " is not served"};
  }
  const FieldLookup expect = find_field(in.fields, "Expect");
  if (expect.value) {
    if (!equal_names(*expect.value, "100-continue") || expect.repeated) {
      return Refusal{Outcome::not_supported, "Expect has something else than 100-continue"};
    }
    in.expects_continue = !in.is_1_0;
  }
  const Status passed = check_fields(in.fields);
  if (!passed) return Refusal{Outcome::bad_request, passed.error().detail};
  RouteChoice choice =
      gateway::choose_route(in.policy->routes(), in.policy->default_route(), in.request);
  in.route = choice.route;
  return std::move(choice.refusal);
}

asio::awaitable<bool> Session::serve(Incoming& in) {
  const Route& route = *in.route;
  Refusal refusal{Outcome::route_refused};
  if (route.guard == Guard::refuse) co_return co_await refuse(in, refusal);
  if (find_field(in.fields, "Upgrade").value) {
    in.is_websocket = route.upgrade && !route.guards() && asks_for_websocket(in);
    if (!in.is_websocket) {
      refusal = {Outcome::not_supported, route.upgrade
                                             ? "this is not the handshake of a websocket (RFC 6455)"
                                             : "upgrades are not passed on"};
      co_return co_await refuse(in, refusal);
    }
  }
  if (route.guard == Guard::issue_token) co_return co_await issue_token(in);
  if (route.is_buffered()) co_return co_await serve_guarded(in);
  co_return co_await serve_passed(in);
}

bool Session::may_stay(const Incoming& in) const {
  return in.keep_alive && in.parser.is_done() && !context_.is_draining;
}

asio::awaitable<bool> Session::refuse(Incoming& in, const Refusal& refusal) {
  in.outcome = refusal.outcome;
  in.status = status_of(refusal.outcome);
  const bool stays = may_stay(in);
  const std::string reply = problem_reply(refusal, stays, in.is_head);
  const bool is_sent = co_await send(in, reply);
  if (is_sent && !stays) co_await linger();
  const bool goes_on = is_sent && stays;
  co_return goes_on;
}

asio::awaitable<bool> Session::issue_token(Incoming& in) {
  const IssuedToken issued = co_await in.store->issue_token(*in.route, in.request);
  if (issued.refusal) co_return co_await refuse(in, *issued.refusal);
  in.outcome = Outcome::token_issued;
  in.status = status_of(in.outcome);
  const bool stays = may_stay(in);
  const std::string body = "{\"token\":\"" + issued.token + "\"}\n";
  const std::array<Field, 2> fields{
      {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}}};
  std::string reply = client_head({.status = in.status,
                                   .fields = fields,
                                   .framing = {Framing::Kind::length, body.size()},
                                   .is_1_0 = in.is_1_0,
                                   .keep_alive = stays});
  if (!in.is_head) reply += body;
  const bool is_sent = co_await send(in, reply);
  const bool goes_on = is_sent && stays;
  co_return goes_on;
}

asio::awaitable<void> Session::linger() {
  // Closing a socket with unread input resets the connection, and the reply may be lost.
  constexpr Millis linger_time{1'000};
  constexpr std::size_t linger_bytes = std::size_t{256} * 1024;
  if (stream_.tls_layer() != nullptr) co_return;
  error_code failed;
  stream_.tcp_layer().socket().shutdown(tcp::socket::shutdown_send, failed);
  stream_.expires_after(linger_time);
  std::string ignored(read_bytes, '\0');
  for (std::size_t all = 0; !failed && all < linger_bytes;) {
    auto [error, bytes] = co_await stream_.async_read_some(asio::buffer(ignored), no_throw);
    failed = error;
    all += bytes;
  }
}

asio::awaitable<BodyStep> Session::read_body_step(Incoming& in, std::string& room, Millis within) {
  const ClientWait::Now now{wait_};
  stream_.expires_after(within);
  co_return co_await read_step(stream_, buffer_, in.parser, room);
}

asio::awaitable<bool> Session::send(Incoming& in, std::string_view bytes) {
  const base::Stopwatch since;
  const ClientWait::Now now{wait_};
  while (!bytes.empty()) {
    const Millis left = context_.settings.transfer_timeout - since.passed();
    if (left <= Millis{0}) co_return false;
    const std::string_view piece = bytes.substr(0, write_bytes);
    stream_.expires_after(std::min(left, context_.settings.body_timeout));
    auto [error, sent] =
        co_await asio::async_write(stream_, asio::buffer(piece.data(), piece.size()), no_throw);
    in.bytes_sent += sent;
    if (error) co_return false;
    bytes.remove_prefix(piece.size());
  }
  co_return true;
}

asio::awaitable<bool> Session::send(Incoming& in, std::string& head, std::string_view body) {
  // A short message is one packet; a long one is sent from where it is.
  const std::string_view first = body.substr(0, read_bytes);
  head.append(first);
  const bool is_begun = co_await send(in, head);
  std::string{}.swap(head);
  if (!is_begun) co_return false;
  co_return co_await send(in, body.substr(first.size()));
}

void Session::note(const Incoming& in) {
  constexpr double second_us = 1e6;
  const auto microseconds = static_cast<std::uint64_t>(in.since.seconds() * second_us);
  const RoutePolicy& policy = in.policy != nullptr ? *in.policy : *context_.policy;
  context_.counters.count_request(policy.counts_of(in.route), in.outcome, in.status, microseconds);
  if (!context_.log.is_on()) return;
  context_.log.add(json_line({.unix_ms = context_.clock.unix_ms(),
                              .client = client_address_,
                              .method = in.request.method,
                              .path = in.request.path,
                              .route = in.route == nullptr ? std::string_view{} : in.route->name,
                              .outcome = in.outcome,
                              .status = in.status,
                              .bytes_sent = in.bytes_sent,
                              .microseconds = microseconds,
                              .key_digest = in.key_digest}));
}

}  // namespace semel::gateway
