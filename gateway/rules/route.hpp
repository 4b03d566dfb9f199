// The rules of a route. A request takes the first route that matches its method and path.
// Source: docs/gateway.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/rules/limits.hpp"
#include "semel/policies.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::gateway {

/// "/orders/*/lines/**": a `*` is one segment, or a part of one ("v*"); `**` at the end matches the
/// rest, or nothing. Compared with normal_path().
class PathPattern {
 public:
  PathPattern() = default;
  /// Errors: bad_option (names the pattern and the error).
  [[nodiscard]] static Result<PathPattern> parse(std::string_view text);
  [[nodiscard]] bool fits(std::string_view path) const noexcept;
  /// Whether a lax server, which ignores case and a slash at the end, may match `path`. `path` is
  /// in lower case, without a slash at its end.
  [[nodiscard]] bool fits_laxly(std::string_view path) const noexcept;
  /// Whether this matches every path that `other` matches.
  [[nodiscard]] bool covers(const PathPattern& other) const noexcept;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::vector<std::string> segments_;
  std::vector<std::string> small_segments_;  // the same in small letters, without an empty last one
  bool has_rest_ = false;
};

enum class Guard : std::uint8_t {
  pass,             ///< passed on as it is
  refuse,           ///< 403
  idempotency_key,  ///< once for each Idempotency-Key
  form_token,       ///< once for each token that was issued for it
  debounce,         ///< equal requests are refused for a time
  issue_token,      ///< answers with a token for the route `token_route`
};

/// The meaning of a reply, or of a missing reply, for the claim.
enum class Meaning : std::uint8_t {
  keep,      ///< done: recorded, and replayed to duplicates
  release,   ///< nothing happened: the next request runs
  in_doubt,  ///< it may have happened: nothing runs before an operator has resolved it
};

/// The meaning of a reply that is longer than record_bytes.
enum class TooLarge : std::uint8_t {
  done,      ///< done; duplicates get its status, and that it was not kept
  in_doubt,  ///< as if the outcome was unknown
};

struct FingerprintParts {
  bool method = true;
  bool path = true;
  bool query = true;
  bool body = true;   ///< its bytes
  bool json = false;  ///< the body as JSON in its canonical form
  std::vector<std::string> headers{};
};

/// The scope of a key. At least one member, or `shared`: one client must not read another's reply.
struct ScopeParts {
  bool authorization = true;  ///< the header Authorization, hashed
  bool key_id = false;        ///< the id of the key that signed
  bool shared = false;        ///< all clients are one
  std::vector<std::string> headers{};
};

struct SignaturePolicy {
  bool is_required = false;
  std::vector<std::string> keys{};     ///< ids that may sign; empty: all that are configured
  std::vector<std::string> headers{};  ///< that are signed, besides method, path, query and body
  Millis window{60'000};
  Millis ahead{60'000};
};

struct Route {
  std::string name{};
  std::vector<std::string> methods{};  ///< empty: all
  PathPattern path{};
  Guard guard = Guard::pass;

  bool key_required = true;  ///< false: a request without a key is passed on unguarded
  std::string token_header = "Semel-Form-Token";
  std::string token_route{};
  Millis token_ttl{600'000};
  Millis debounce{2'000};

  ScopeParts scope{};
  FingerprintParts fingerprint{};
  SignaturePolicy signature{};

  Millis lease{60'000};
  Millis keep_for{86'400'000};  ///< how long a reply is replayed
  Millis wait{0};               ///< how long a duplicate waits for the first; 0: 409 at once
  Millis timeout{30'000};       ///< for the head of the upstream's reply, from the first byte sent
  Meaning on_5xx = Meaning::in_doubt;
  Meaning on_timeout = Meaning::in_doubt;    ///< sent, and no reply in time
  Meaning on_broken = Meaning::in_doubt;     ///< sent, and the connection broke
  Meaning on_lease_end = Meaning::in_doubt;  ///< the gateway died, or could not renew
  std::vector<unsigned> release_statuses{408, 425, 429};
  TooLarge too_large = TooLarge::done;
  std::size_t body_bytes = std::size_t{1} << 20;    ///< of a guarded request: 413 above
  std::size_t record_bytes = std::size_t{1} << 20;  ///< of a recorded reply, head included
  bool upgrade = false;                             ///< websockets are passed on
  bool ignores_override = false;                    ///< the upstream ignores X-HTTP-Method-Override

  [[nodiscard]] bool is_claimed() const noexcept {
    return guard == Guard::idempotency_key || guard == Guard::form_token;
  }
  /// Whether the whole body is read before the upstream sees any of the request.
  [[nodiscard]] bool is_buffered() const noexcept {
    return is_claimed() || guard == Guard::debounce || signature.is_required;
  }
  /// Whether the gateway may refuse a request that the upstream alone would accept.
  [[nodiscard]] bool guards() const noexcept {
    return guard != Guard::pass || signature.is_required;
  }
  /// Matches HEAD where GET is named, too: upstreams run it as GET and omit the body.
  [[nodiscard]] bool fits_method(std::string_view method) const noexcept;
  [[nodiscard]] bool fits(std::string_view method, std::string_view normal_path) const noexcept;
};

/// The first route that matches; null: none.
[[nodiscard]] const Route* find_route(std::span<const Route> routes, std::string_view method,
                                      std::string_view normal_path) noexcept;

/// The meaning of a reply with this status.
[[nodiscard]] Meaning meaning_of_status(const Route& route, unsigned status) noexcept;

/// The policy of the route's namespace of claims.
[[nodiscard]] Policy claim_policy(const Route& route) noexcept;

}  // namespace semel::gateway
