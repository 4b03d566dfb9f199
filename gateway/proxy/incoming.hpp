// A request of a client whose head has arrived, and what its head says.
#pragma once

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stopwatch.hpp"
#include "gateway/proxy/heads.hpp"
#include "gateway/shared/route_policy.hpp"
#include "gateway/shared/stream.hpp"
#include "gateway/store/claim_store.hpp"

namespace semel::gateway {

namespace http = beast::http;

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
  std::string key_digest{};
};

/// Reads the head in `text`, which is complete, and chooses the route by `in.policy`. A refusal:
/// the head cannot be served.
[[nodiscard]] std::optional<Refusal> read_head(Incoming& in, std::string_view text,
                                               std::size_t header_limit);
/// The handshake of a websocket. A connection may become nothing else: another protocol could carry
/// requests that no guard sees.
/// Source: RFC 6455, section 4.1
[[nodiscard]] bool asks_for_websocket(const Incoming& in);
[[nodiscard]] Framing framing_of_request(const Incoming& in);
/// Whether a request may be sent twice without a guard (RFC 9110, section 9.2.2). A request with a
/// body may not: the body is consumed, and the next request would be read as the body of the
/// repeated head.
[[nodiscard]] bool is_repeatable(const Incoming& in);

}  // namespace semel::gateway
