// Heads of messages as the gateway writes them, from checked fields: without fields for one
// connection, and with the gateway's own framing. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/rules/message.hpp"
#include "gateway/rules/outcome.hpp"

namespace semel::gateway {

/// How a body ends.
struct Framing {
  enum class Kind : std::uint8_t {
    none,     ///< no body, and no field about one
    length,   ///< Content-Length
    chunked,  ///< Transfer-Encoding: chunked
    close,    ///< the end of the connection; replies only
  };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
};
/// Whether a request with this framing has bytes behind its head.
[[nodiscard]] constexpr bool has_body(const Framing& framing) noexcept {
  return framing.kind == Framing::Kind::chunked || framing.length > 0;
}

struct ForwardOptions {
  std::string_view client_address{};
  std::string_view host{};           ///< of the upstream, in place of the client's; empty: keep
  std::string_view fencing_token{};  ///< as Semel-Fencing-Token; empty: none
  bool is_tls = false;               ///< of the client's connection
  bool trusts_forwarded = false;
  bool is_upgrade = false;  ///< Connection: upgrade, and the client's Upgrade
};

/// The head of a request to the upstream. `target` as the client sent it.
[[nodiscard]] std::string upstream_head(const Request& request, std::string_view target,
                                        const Framing& framing, const ForwardOptions& options);

struct ReplyHead {
  unsigned status = 200;
  std::string_view reason{};  ///< empty: the usual one
  Fields fields{};
  Framing framing{};
  bool is_1_0 = false;  ///< of the client
  bool keep_alive = true;
  std::string_view extra{};  ///< whole lines, each with CR LF
};
[[nodiscard]] std::string client_head(const ReplyHead& head);

/// The fields of a reply as they are recorded: without those for one connection.
[[nodiscard]] std::vector<Field> end_to_end_fields(Fields fields);

/// A complete reply of the gateway's own.
[[nodiscard]] std::string problem_reply(const Refusal& refusal, bool keep_alive, bool is_head);

/// The line in front of a chunk of this size; the chunk is followed by CR LF.
[[nodiscard]] std::string chunk_line(std::size_t bytes);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace semel::gateway
