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
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gateway/proxy/access_log.hpp"
#include "gateway/proxy/client_connection.hpp"
#include "gateway/proxy/incoming.hpp"
#include "gateway/proxy/upstream_exchange.hpp"
#include "gateway/proxy/upstream_pool.hpp"
#include "gateway/shared/bridge.hpp"
#include "gateway/shared/counters.hpp"
#include "gateway/shared/route_policy.hpp"
#include "gateway/shared/stream.hpp"
#include "gateway/store/claim_store.hpp"
#include "semel/clock.hpp"

namespace semel::gateway {

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
  [[nodiscard]] ClientWait& wait() noexcept { return client_.wait(); }

 private:
  enum class Upload : std::uint8_t { complete, client_failed, upstream_failed };

  // session.cpp
  [[nodiscard]] std::optional<Refusal> refusal_of(ClientConnection::HeadRead read) const;
  [[nodiscard]] asio::awaitable<bool> serve(Incoming& in);
  [[nodiscard]] asio::awaitable<bool> refuse(Incoming& in, const Refusal& refusal);
  [[nodiscard]] asio::awaitable<bool> issue_token(Incoming& in);
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
  [[nodiscard]] asio::awaitable<Upload> upload(Incoming& in, UpstreamConnection& upstream);
  /// `start`: the part of the body that was read already; consumed when it is sent.
  struct Start {
    CountedText& held;
    std::string_view body;
  };
  [[nodiscard]] asio::awaitable<bool> relay(Incoming& in, UpstreamReply& reply,
                                            std::optional<Start> start, bool is_uploaded,
                                            std::string_view extra);
  [[nodiscard]] std::string head_for_upstream(const Incoming& in, const Framing& framing,
                                              std::string_view token, bool is_upgrade) const;
  [[nodiscard]] bool may_stay(const Incoming& in) const;

  SessionContext& context_;
  const std::shared_ptr<std::set<Session*>> all_;
  Counters& counters_;
  ClientConnection client_;
  const std::string client_address_;
};

}  // namespace semel::gateway
