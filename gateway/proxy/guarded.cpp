// A guarded request: claimed, sent once, its reply kept before the client gets it.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <utility>

#include "gateway/proxy/relay.hpp"
#include "gateway/proxy/session.hpp"

namespace semel::gateway {

using asio::use_awaitable;

/// With a disk, on a thread that may wait for it.
template <class Function>
auto Session::blocking(Function function) -> asio::awaitable<decltype(function())> {
  if (!shared_.options.is_durable) co_return function();
  auto run = [function]() -> asio::awaitable<decltype(function())> { co_return function(); };
  co_return co_await asio::co_spawn(shared_.blocking, std::move(run), use_awaitable);
}

void Session::count(Decision::Why why) {
  struct Row {
    Count what;
    const char* name;
  };
  static constexpr Row rows[] = {{Count::granted, "granted"},   {Count::in_flight, "in_flight"},
                                 {Count::replayed, "replayed"}, {Count::not_kept, "not_kept"},
                                 {Count::mismatch, "mismatch"}, {Count::in_doubt, "in_doubt"},
                                 {Count::busy, "busy"},         {Count::refused, "refused"}};
  const Row& row = rows[static_cast<std::size_t>(why)];
  shared_.counters.add(row.what);
  now_.outcome = row.name;
}

asio::awaitable<bool> Session::read_whole(Whole& whole) {
  const std::size_t most = now_.route->request_bytes_max;
  whole.body_limit(most);
  const auto length = whole.content_length();
  boost::system::error_code error;
  if (length && *length > most) {
    error = http::error::body_limit;  // Beast looks at it with the head alone
  } else {
    co_await say_continue(whole.get());
    wire_.close_in(shared_.options.io_within);
    co_await http::async_read(wire_, buffer_, whole, asio::redirect_error(use_awaitable, error));
  }
  if (!error) co_return true;
  now_.keeps = false;
  now_.outcome = "bad_request";
  shared_.counters.add(Count::bad_requests);
  if (error == http::error::body_limit) {
    Reply reply = problem(413, "body-too-long", "The request is too long to be guarded",
                          "At most " + std::to_string(most) + " bytes.");
    co_await send(reply);
  } else if (error.category() == make_error_code(http::error::end_of_stream).category() &&
             error != http::error::partial_message) {
    Reply reply = problem(400, "bad-request", "The body is no HTTP/1.1", error.message());
    co_await send(reply);
  } else {
    throw boost::system::system_error{error};
  }
  co_return false;
}

asio::awaitable<void> Session::guard(Head& head, const std::string& key) {
  const auto& fields = head.get();
  const auto sent = std::distance(fields.begin(), fields.end());
  Whole whole{std::move(head)};
  if (!co_await read_whole(whole)) co_return;
  // Whose key it is was said in the head: what comes behind the body must not change it.
  if (std::distance(whole.get().begin(), whole.get().end()) != sent) {
    now_.keeps = false;
    now_.outcome = "bad_request";
    shared_.counters.add(Count::bad_requests);
    Reply reply = problem(400, "bad-request", "A guarded request may have no trailers");
    co_await send(reply);
    co_return;
  }
  auto& request = whole.get();
  const Asked asked{.method = now_.method,
                    .path = now_.path,
                    .query = now_.query,
                    .body = request.body(),
                    .header = [&](std::string_view name) { return values_of(request, name); }};
  const std::string of_claim = claim_key(*now_.route, asked, key);
  Claims& claims = shared_.claims.at(now_.route->name);
  const Fingerprint fingerprint = fingerprint_of(*now_.route, asked);
  const Decision decision = co_await decide(claims, of_claim, fingerprint);
  count(decision.why);
  if (decision.what == Decision::What::reply) {
    Reply reply = decision.reply;
    co_await send(reply);
    co_return;
  }
  now_.attempt = decision.attempt;
  co_await run_guarded(claims, of_claim, decision, request);
}

asio::awaitable<Decision> Session::decide(Claims& claims, const std::string& key,
                                          const Fingerprint& fingerprint) {
  const ClaimRequest request{.key = key, .fingerprint = fingerprint, .owner = "gateway"};
  auto claim = [&] { return claims.claim(request); };
  now_.granted = shared_.clock.now();
  ClaimOutcome outcome = co_await blocking(claim);
  Decision decision = decision_of(*now_.route, std::move(outcome), true);
  if (decision.what != Decision::What::wait) co_return decision;
  wire_.close_never();  // nothing is read or written meanwhile
  ClaimOutcome late = co_await wait_for(claims, request);
  now_.granted = {};
  co_return decision_of(*now_.route, std::move(late), false);
}

asio::awaitable<ClaimOutcome> Session::wait_for(Claims& claims, const ClaimRequest& request) {
  struct Waiting {
    explicit Waiting(const asio::any_io_executor& executor) : timer(executor) {
      timer.expires_at(std::chrono::steady_clock::time_point::max());
    }
    asio::steady_timer timer;
    std::optional<ClaimOutcome> outcome{};
  };
  const auto waiting = std::make_shared<Waiting>(wire_.get_executor());
  // Of a thread that ends another's claim: it only leaves the outcome here.
  const auto done = [waiting](ClaimOutcome&& outcome) {
    asio::post(waiting->timer.get_executor(), [waiting, outcome = std::move(outcome)]() mutable {
      waiting->outcome = std::move(outcome);
      waiting->timer.cancel();
    });
  };
  const Timestamp deadline = deadline_after(shared_.engine.now(), now_.route->wait);
  auto begin = [&] { return claims.claim_or_wait(request, deadline, done); };
  wait_key_ = request.key;
  wait_ = co_await blocking(begin);
  while (!waiting->outcome) {
    boost::system::error_code ignored;
    co_await waiting->timer.async_wait(asio::redirect_error(use_awaitable, ignored));
  }
  wait_ = 0;
  co_return *std::move(waiting->outcome);
}

asio::awaitable<void> Session::end(Claims& claims, const std::string& key, Epoch epoch,
                                   Upstream upstream, unsigned status, const Reply* reply) {
  auto write = [&] { return end_claim(claims, *now_.route, key, epoch, upstream, status, reply); };
  if (!co_await blocking(write)) shared_.counters.add(Count::unrecorded);
}

/// A claim that waited for a slow disk, or was granted to a waiter, has less of its lease left than
/// the upstream may take: it is renewed, or the request is not sent.
asio::awaitable<bool> Session::has_whole_lease(Claims& claims, const std::string& key,
                                               Epoch epoch) {
  constexpr Millis fresh{10'000};  // a third of what a lease is longer than the timeout
  Timestamp began = now_.granted;
  bool is_ours = true;
  if (shared_.clock.now() - began > fresh) {
    began = shared_.clock.now();
    auto renew = [&] {
      return claims.renew({.key = key, .epoch = epoch}).answer == OwnerAnswer::ok;
    };
    is_ours = co_await blocking(renew);
  }
  co_return is_ours&& shared_.clock.now() - began <= fresh;
}

namespace {

void prepare(http::request<http::string_body>& request, const Decision& decision,
             const std::string& client, bool is_tls) {
  drop_hop_headers(request);
  drop_own_headers(request);
  request.erase(http::field::expect);
  add_forwarded(request, client, is_tls);
  request.version(11);
  request.set("Semel-Epoch", std::to_string(decision.epoch));
  request.set("Semel-Attempt", std::to_string(decision.attempt));
  request.prepare_payload();
}

}  // namespace

asio::awaitable<void> Session::run_guarded(Claims& claims, const std::string& key,
                                           const Decision& decision,
                                           http::request<http::string_body>& request) {
  Upstream how = Upstream::not_sent;
  std::string why;
  std::string body;
  std::optional<Back> back;
  beast::flat_buffer unread;
  std::unique_ptr<Wire> up;
  wire_.close_never();
  try {
    prepare(request, decision, client_, shared_.client_tls != nullptr);
    auto room = std::make_unique<std::array<char, relay_bytes>>();
    up = worker_.pool.take(Millis{1'000});  // an older one may close just now
    if (!up) up = co_await worker_.pool.connect(shared_.options.connect_within);
    if (co_await has_whole_lease(claims, key, decision.epoch)) {
      how = Upstream::unknown;
      up->close_in(now_.route->timeout);
      co_await http::async_write(*up, request, use_awaitable);
      co_await read_back(*up, unread, back, false);
      while (!back->is_done() && body.size() <= now_.route->reply_bytes_max) {
        const std::size_t got = co_await read_part(*up, unread, *back, room->data(), room->size());
        body.append(room->data(), got);
      }
      how = Upstream::replied;
    } else {
      why = "the claim took too long to be written down";
    }
  } catch (const boost::system::system_error& error) {
    why = error.code().message();
  } catch (const std::exception&) {
    why = "the gateway has no memory";
  }
  if (how != Upstream::replied) {
    shared_.counters.add(Count::upstream_failed);
    now_.outcome = how == Upstream::not_sent ? "not_sent" : "no_reply";
    co_await end(claims, key, decision.epoch, how, 0, nullptr);
    Reply reply = reply_without_upstream(now_.route, how, why);
    co_await send(reply);
    co_return;
  }
  const unsigned status = back->get().result_int();
  if (back->is_done()) {
    Reply reply = reply_of(back->get(), std::move(body));
    co_await end(claims, key, decision.epoch, how, status, &reply);
    for (const std::string_view cookie : values_of(back->get(), "Set-Cookie")) {
      reply.headers.emplace_back("Set-Cookie", cookie);  // it is not kept, and is for this client
    }
    give_back(std::move(up), unread, *back);
    co_await send(reply);
    co_return;
  }
  // It is too long to be kept, and the work is done: the client gets it as it comes.
  co_await end(claims, key, decision.epoch, how, status, nullptr);
  co_await pass_rest(*up, unread, *back, body);
}

asio::awaitable<void> Session::pass_rest(Wire& up, beast::flat_buffer& unread, Back& back,
                                         std::string& first) {
  http::response_serializer<http::buffer_body> out{back.get()};
  co_await write_head(back, out);
  auto& part = back.get().body();
  part.data = first.data();
  part.size = first.size();
  part.more = true;
  boost::system::error_code error;
  co_await http::async_write(wire_, out, asio::redirect_error(use_awaitable, error));
  if (error && error != http::error::need_buffer) throw boost::system::system_error{error};
  co_await relay_body(up, unread, back, wire_, out, shared_.options.io_within);
}

}  // namespace semel::gateway
