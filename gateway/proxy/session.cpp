#include "gateway/proxy/session.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace semel::gateway {

/// Counted while it lives. Not in an unnamed namespace: frames of coroutines have it as a member.
class OpenCount {
 public:
  explicit OpenCount(Counter& counter) noexcept : counter_(counter) { counter_.add(); }
  ~OpenCount() { counter_.subtract(); }
  OpenCount(const OpenCount&) = delete;
  OpenCount& operator=(const OpenCount&) = delete;

 private:
  Counter& counter_;
};

Session::Session(SessionContext& context, Stream stream, std::string client_address)
    : context_(context),
      all_(context.sessions),
      counters_(context.counters),
      client_(context.settings, context.memory, std::move(stream)),
      client_address_(std::move(client_address)) {
  all_->insert(this);
  counters_.connections.add();
}

Session::~Session() {
  all_->erase(this);
  counters_.connections.subtract();
}

void Session::drain() {
  client_.close_if_idle();
}

asio::awaitable<void> Session::run() {
  const auto self = shared_from_this();
  bool stays = co_await client_.begin();
  if (!stays) co_return;
  while (stays && !context_.is_draining) {
    const ClientConnection::HeadRead read = co_await client_.read_head();
    if (read == ClientConnection::HeadRead::ended) break;
    const OpenCount open{context_.counters.requests_open};
    Incoming in;
    std::optional<Refusal> refusal = refusal_of(read);
    if (!refusal) {
      in.policy = context_.policy;
      in.store = context_.store;
      refusal = read_head(in, client_.head(), client_.header_limit());
    }
    client_.consume_head();
    if (refusal) {
      in.keep_alive = false;
      stays = co_await refuse(in, *refusal);
    } else {
      stays = co_await serve(in);
    }
    note(in);
  }
  co_await client_.end();
}

/// None: the head is complete.
std::optional<Refusal> Session::refusal_of(ClientConnection::HeadRead read) const {
  const Settings& settings = context_.settings;
  switch (read) {
    case ClientConnection::HeadRead::busy:
      return busy(context_.memory);
    case ClientConnection::HeadRead::late:
      return Refusal{Outcome::request_timeout, "the head did not arrive within " +
                                                   std::to_string(settings.head_timeout.count()) +
                                                   " ms"};
    case ClientConnection::HeadRead::too_large:
      return Refusal{Outcome::head_too_large,
                     "more than " + std::to_string(settings.head_bytes) + " bytes"};
    case ClientConnection::HeadRead::complete:
    case ClientConnection::HeadRead::ended:
      break;
  }
  return std::nullopt;
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
  const bool is_sent = co_await client_.send(reply);
  if (is_sent && !stays) co_await client_.linger();
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
  const bool is_sent = co_await client_.send(reply);
  const bool goes_on = is_sent && stays;
  co_return goes_on;
}

void Session::note(const Incoming& in) {
  constexpr double second_us = 1e6;
  const auto microseconds = static_cast<std::uint64_t>(in.since.seconds() * second_us);
  const std::uint64_t bytes_sent = client_.take_bytes_sent();
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
                              .bytes_sent = bytes_sent,
                              .microseconds = microseconds,
                              .key_digest = in.key_digest}));
}

}  // namespace semel::gateway
