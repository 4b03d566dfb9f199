// One connection of a client: reads a head, chooses its route, serves it, and reads the next.
//
//   read_head -> choose -+-> serve_passed    streams both ways
//                        +-> serve_guarded   buffers, claims, records
//                        +-> refuse, issue_token
//
// A guarded request is not tied to its client: nothing of the client is read while the upstream
// works, and the reply is recorded before it is sent. Used by one thread.
//
// g++ 12 destroys temporaries of an awaited expression twice. So coroutines take references and
// views, and every argument is a named object.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "gateway/proxy/access_log.hpp"
#include "gateway/proxy/heads.hpp"
#include "gateway/proxy/upstream_pool.hpp"
#include "gateway/shared/bridge.hpp"
#include "gateway/shared/counters.hpp"
#include "gateway/shared/route_policy.hpp"
#include "gateway/shared/stream.hpp"
#include "gateway/store/claim_store.hpp"
#include "semel/clock.hpp"

namespace semel::gateway {

namespace http = beast::http;

class Session;

/// Shared by the sessions of one thread. Outlives their coroutines.
struct SessionContext {
  asio::io_context& io;
  const Settings& settings;
  const Clock& clock;
  std::shared_ptr<const RoutePolicy> policy;  ///< of requests that begin now
  std::shared_ptr<ClaimStore> store;          ///< likewise
  Counters& counters;
  MemoryBudget& memory;
  AccessLog& log;
  bool is_tls = false;        ///< of clients' connections
  std::string upstream_host;  ///< for the header Host; empty: the client's
  std::shared_ptr<Bridge> bridge;
  std::shared_ptr<UpstreamPool> pool;
  bool is_draining = false;
  /// Shared: at a forced end the last sessions are destroyed with `io`, after this.
  std::shared_ptr<std::set<Session*>> sessions = std::make_shared<std::set<Session*>>();
};

/// A request whose head has arrived.
struct Incoming {
  std::shared_ptr<const RoutePolicy> policy{};  ///< the request's until it ends, as its store
  std::shared_ptr<ClaimStore> store{};
  http::request_parser<http::buffer_body> parser{};
  std::vector<Field> fields{};
  Request request{};
  std::string_view target{};
  const Route* route = nullptr;
  bool is_head = false;
  bool is_1_0 = false;
  bool keep_alive = true;
  bool expects_continue = false;
  bool is_websocket = false;  ///< its handshake, which the route passes on
  // For the log and the counters.
  base::Stopwatch since{};
  Outcome outcome = Outcome::bad_request;
  unsigned status = 0;
  std::uint64_t bytes_sent = 0;
  std::string key_digest{};
};

/// One step of a body: the number of bytes in `room`, and whether the body is complete. A step may
/// have none. `stream` needs its own deadline.
struct BodyStep {
  error_code error{};
  std::size_t bytes = 0;
  bool is_done = false;
};
template <class Parser>
asio::awaitable<BodyStep> read_step(Stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                    std::string& room) {
  BodyStep step;
  if (parser.is_done()) {
    step.is_done = true;
    co_return step;
  }
  auto& body = parser.get().body();
  body.data = room.data();
  body.size = room.size();
  auto [error, used] = co_await http::async_read_some(stream, buffer, parser, no_throw);
  static_cast<void>(used);
  if (error && error != http::error::need_buffer) step.error = error;
  step.bytes = room.size() - body.size;
  step.is_done = parser.is_done();
  co_return step;
}

/// A request as it goes to the upstream.
struct OutgoingRequest {
  std::string head{};
  std::string_view body{};  ///< if all of it is there
  Framing later{};          ///< of a body that follows
  bool is_fresh = false;    ///< on a connection that has served none
  /// The size of the request. None: it ends with a chunk.
  [[nodiscard]] std::optional<std::uint64_t> bytes() const noexcept {
    if (later.kind == Framing::Kind::chunked) return std::nullopt;
    return head.size() + body.size() + later.length;
  }
};

/// A reply of the upstream up to its head; or a refusal.
struct UpstreamReply {
  enum class How : std::uint8_t { replied, not_sent, broken, timed_out };
  How how = How::not_sent;
  Refusal refusal{};  ///< unless replied
  UpstreamPool::Lease lease{};
  std::unique_ptr<http::response_parser<http::buffer_body>> parser{};
  std::vector<Field> fields{};
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(SessionContext& context, Stream stream, std::string client_address);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs until the connection ends.
  [[nodiscard]] asio::awaitable<void> run();
  /// Ends the connection now if it waits for a request, else after this request.
  void drain();
  [[nodiscard]] ClientWait& wait() noexcept { return wait_; }

 private:
  enum class HeadRead : std::uint8_t { complete, ended, refused };
  enum class Upload : std::uint8_t { complete, client_failed, upstream_failed };

  // session.cpp
  [[nodiscard]] asio::awaitable<HeadRead> read_head(Incoming& in, Refusal& refusal);
  [[nodiscard]] std::optional<Refusal> parse_head(Incoming& in, std::size_t head_bytes);
  [[nodiscard]] std::optional<Refusal> choose_route(Incoming& in) const;
  [[nodiscard]] asio::awaitable<bool> serve(Incoming& in);
  [[nodiscard]] asio::awaitable<bool> refuse(Incoming& in, const Refusal& refusal);
  [[nodiscard]] asio::awaitable<bool> issue_token(Incoming& in);
  [[nodiscard]] asio::awaitable<void> linger();
  /// False: the client has gone, or does not read: no progress within body-timeout, or not all of
  /// it within transfer-timeout.
  [[nodiscard]] asio::awaitable<bool> send(Incoming& in, std::string_view bytes);
  /// Sends a message without copying its body. Consumes `head`.
  [[nodiscard]] asio::awaitable<bool> send(Incoming& in, std::string& head, std::string_view body);
  [[nodiscard]] asio::awaitable<BodyStep> read_body_step(Incoming& in, std::string& room,
                                                         Millis within);
  [[nodiscard]] bool count_buffer() noexcept;
  void note(const Incoming& in);

  // session_guarded.cpp
  [[nodiscard]] asio::awaitable<bool> serve_guarded(Incoming& in);
  [[nodiscard]] asio::awaitable<std::optional<Refusal>> read_body(Incoming& in, CountedText& body);
  [[nodiscard]] asio::awaitable<bool> forward(Incoming& in, Work& work, CountedText& body);
  [[nodiscard]] asio::awaitable<bool> fail(Incoming& in, const Work& work, UpstreamReply& reply);
  [[nodiscard]] asio::awaitable<bool> record(Incoming& in, const Work& work, UpstreamReply& reply,
                                             RecordedReply& recorded);
  [[nodiscard]] asio::awaitable<bool> end_claim(Incoming& in, const Work& work,
                                                UpstreamReply& reply, RecordedReply& recorded,
                                                CountedText& record);
  [[nodiscard]] asio::awaitable<bool> send_recorded(Incoming& in, const RecordedReply& reply,
                                                    std::string_view extra);

  // session_relay.cpp
  [[nodiscard]] asio::awaitable<bool> serve_passed(Incoming& in);
  [[nodiscard]] asio::awaitable<UpstreamReply> exchange(Incoming& in,
                                                        const OutgoingRequest& request);
  [[nodiscard]] asio::awaitable<void> read_reply_head(Incoming& in, UpstreamReply& reply);
  [[nodiscard]] asio::awaitable<Upload> upload(Incoming& in, UpstreamConnection& upstream);
  /// `start`: the part of the body that was read already; consumed when it is sent.
  struct Start {
    CountedText& held;
    std::string_view body;
  };
  [[nodiscard]] asio::awaitable<bool> relay(Incoming& in, UpstreamReply& reply,
                                            std::optional<Start> start, bool is_uploaded,
                                            std::string_view extra);
  [[nodiscard]] asio::awaitable<void> tunnel(Incoming& in, UpstreamReply& reply);
  [[nodiscard]] std::string head_for_upstream(const Incoming& in, const Framing& framing,
                                              std::string_view token, bool is_upgrade) const;
  [[nodiscard]] bool may_stay(const Incoming& in) const;

  SessionContext& context_;
  const std::shared_ptr<std::set<Session*>> all_;
  Counters& counters_;
  Stream stream_;
  ClientWait wait_{stream_};
  const std::string client_address_;
  beast::flat_buffer buffer_;
  MemoryShare buffer_share_;
  bool is_idle_ = true;
};

}  // namespace semel::gateway
