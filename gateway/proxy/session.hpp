// One connection of a client.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "gateway/core/guard.hpp"
#include "gateway/proxy/access_log.hpp"
#include "gateway/proxy/counters.hpp"
#include "gateway/proxy/gateway_options.hpp"
#include "gateway/proxy/headers.hpp"
#include "gateway/proxy/upstream.hpp"
#include "gateway/proxy/wire.hpp"
#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"

namespace semel::gateway {

class Session;

/// A place among GatewayOptions::connections_max, until its end.
class Place {
 public:
  explicit Place(std::atomic<unsigned>& taken) noexcept : taken_(&taken) {}
  Place(Place&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
  Place& operator=(Place&&) = delete;
  ~Place() {
    // mo: relaxed: a bound, and a figure
    if (taken_ != nullptr) taken_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<unsigned>* taken_;
};

/// Of all workers.
struct Shared {
  Engine& engine;
  const GatewayOptions options;
  const SystemClock clock{};
  Counters counters{};
  std::map<std::string, Claims> claims{};  // by route
  std::unique_ptr<AccessLog> log{};
  std::unique_ptr<asio::ssl::context> client_tls{};
  std::unique_ptr<asio::ssl::context> upstream_tls{};
  std::atomic<bool> is_draining{false};
  std::atomic<unsigned> connections{0};
  /// Claims that block for the disk, and no connection waits for another's.
  asio::thread_pool blocking{16};
};

/// One thread.
struct Worker {
  Worker(Shared& all, UpstreamAddress address)
      : shared(all), pool(std::move(address), all.upstream_tls.get(), all.clock) {}
  Shared& shared;
  asio::io_context context{1};
  UpstreamPool pool;
  std::set<std::shared_ptr<Session>> sessions{};
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Worker& worker, Tcp::socket socket, Place place);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] asio::awaitable<void> run();
  /// Ends it: at once where it waits for a request, else behind its reply.
  void drain();
  /// Nothing of it is called any more by the engine.
  void close() noexcept;

 private:
  using Head = http::request_parser<http::empty_body>;
  using Whole = http::request_parser<http::string_body>;
  using Back = http::response_parser<http::buffer_body>;
  /// Of the request that is being served.
  struct Now {
    Timestamp began{};
    Timestamp granted{};  ///< the claim: not before; zero: not known
    std::string method{};
    std::string path{};
    std::string query{};
    unsigned version = 11;
    bool keeps = false;  ///< the connection, after it
    const RoutePolicy* route = nullptr;
    const char* outcome = "";
    unsigned status = 0;
    std::uint32_t attempt = 0;
  };

  /// False: the connection ends.
  [[nodiscard]] asio::awaitable<bool> serve_one();
  /// True: the head of a request is there. False: nothing comes any more, or it was refused.
  [[nodiscard]] asio::awaitable<bool> read_head(Head& head);
  [[nodiscard]] asio::awaitable<void> guard(Head& head, const std::string& key);
  [[nodiscard]] asio::awaitable<bool> read_whole(Whole& whole);
  [[nodiscard]] asio::awaitable<Decision> decide(Claims& claims, const std::string& key,
                                                 const Fingerprint& fingerprint);
  [[nodiscard]] asio::awaitable<void> run_guarded(Claims& claims, const std::string& key,
                                                  const Decision& decision,
                                                  http::request<http::string_body>& request);
  [[nodiscard]] asio::awaitable<void> pass(Head& head);
  /// Whether the lease covers the whole timeout of the upstream from now on.
  [[nodiscard]] asio::awaitable<bool> has_whole_lease(Claims& claims, const std::string& key,
                                                      Epoch epoch);
  [[nodiscard]] asio::awaitable<void> pass_back(Wire& up, beast::flat_buffer& unread,
                                                std::optional<Back>& back);
  /// Writes the head of a reply that comes as it is.
  [[nodiscard]] asio::awaitable<void> write_head(Back& back,
                                                 http::response_serializer<http::buffer_body>& out);
  void give_back(std::unique_ptr<Wire> up, const beast::flat_buffer& unread, const Back& back);
  /// The head of the upstream's reply, behind those of 1xx. `skips`: it has no body in any case.
  static asio::awaitable<void> read_back(Wire& up, beast::flat_buffer& unread,
                                         std::optional<Back>& back, bool skips);
  /// Of a guarded reply that is longer than what is kept: `first` and what comes.
  [[nodiscard]] asio::awaitable<void> pass_rest(Wire& up, beast::flat_buffer& unread, Back& back,
                                                std::string& first);
  [[nodiscard]] asio::awaitable<void> say_continue(const http::request_header<>& head);
  /// Takes it. It has a name: g++ 12 destroys temporaries of an awaited expression twice.
  [[nodiscard]] asio::awaitable<void> send(Reply& reply);
  [[nodiscard]] asio::awaitable<ClaimOutcome> wait_for(Claims& claims, const ClaimRequest& request);
  [[nodiscard]] asio::awaitable<void> end(Claims& claims, const std::string& key, Epoch epoch,
                                          Upstream upstream, unsigned status, const Reply* reply);
  /// Behind the last reply: what the client still sends is read and thrown away, for a moment, as
  /// closing on it would take the reply back.
  [[nodiscard]] asio::awaitable<void> linger();
  /// Whether the connection goes on behind the reply that is written now.
  void decide_keeping();
  template <class Function>
  [[nodiscard]] auto blocking(Function function) -> asio::awaitable<decltype(function())>;
  void note();
  void count(Decision::Why why);

  Shared& shared_;
  Worker& worker_;
  Wire wire_;
  beast::flat_buffer buffer_;
  const std::string client_;
  const Place place_;
  Now now_;
  WaitTicket wait_ = 0;  // of wait_key_
  std::string wait_key_;
  bool is_idle_ = true;
};

}  // namespace semel::gateway
