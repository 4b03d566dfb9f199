// What the gateway decides about a request without a store: what its headers must have, who signed
// it, which work it is, and what the answer of a claim means for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stopwatch.hpp"
#include "gateway/guard/memory.hpp"
#include "gateway/rules/message.hpp"
#include "gateway/rules/outcome.hpp"
#include "gateway/rules/recorded_reply.hpp"
#include "gateway/rules/route.hpp"
#include "gateway/rules/work_key.hpp"
#include "semel/claims.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// A secret that requests are signed with.
struct SigningKey {
  std::string id{};
  std::string secret{};
};

/// A request whose headers and body are in order.
struct Work {
  const Route* route = nullptr;
  bool is_claimed = false;  ///< false: nothing to claim, it is passed on
  std::string key{};        ///< of the claim
  Fingerprint fingerprint{};
  Epoch epoch = 0;  ///< once granted
  // Of a store that is elsewhere: the lease ends `lease` after `lease_since` at the earliest.
  std::optional<base::Stopwatch> lease_since{};
  Millis lease{0};
};

/// A request goes on as `work`, or is refused.
struct Prepared {
  std::optional<Refusal> refusal{};
  Work work{};
};

/// What became of a claim.
struct Admission {
  Outcome outcome = Outcome::granted;  ///< granted, replayed, or that of `refusal`
  std::optional<Refusal> refusal{};
  RecordedReply reply{};  ///< replayed
};

/// How a reply was written down.
enum class Recorded : std::uint8_t {
  yes,
  superseded,  ///< the lease was lost, and another request has the work: `newer` may be its reply
  no,          ///< the store did not take it; the claim stays, and ends in doubt or by its lease
};
struct Completion {
  Recorded recorded = Recorded::yes;
  std::optional<RecordedReply> newer{};
};

/// A new token; or why there is none.
struct IssuedToken {
  std::optional<Refusal> refusal{};
  std::string token{};
};

/// Stands for one claim: a new token, and the key that it will have.
struct NewToken {
  std::optional<Refusal> refusal{};
  std::string token{};
  std::string key{};
};

/// As it is once open() has returned; thread-safe.
class RequestRules {
 public:
  /// `routes` must live as long as this. Errors: bad_option (a route names a key or a route of
  /// tokens that is not there).
  [[nodiscard]] static Result<std::unique_ptr<RequestRules>> open(const std::vector<Route>& routes,
                                                                  std::vector<SigningKey> keys);
  /// What open() refuses, all of it: a line for each mistake.
  [[nodiscard]] static std::vector<std::string> check(const std::vector<Route>& routes,
                                                      const std::vector<SigningKey>& keys);
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
  /// The route of that name; null: none.
  [[nodiscard]] const Route* find(std::string_view name) const noexcept;

  /// None: the body may be read. `request` has no body yet.
  [[nodiscard]] std::optional<Refusal> check_headers(const Route& route,
                                                     const Request& request) const;
  /// Of a request whose headers are in order. None: the key's secret has signed it. Its time and
  /// nonce are the store's affair.
  [[nodiscard]] std::optional<Refusal> check_signature(const Route& route,
                                                       const Request& request) const;
  /// Of a request whose headers and signature are in order: the work.
  [[nodiscard]] Prepared prepare(const Route& route, const Request& request) const;
  /// A new token for the route `issuing.token_route`. Of the request counts whose it is.
  [[nodiscard]] NewToken new_token(const Route& issuing, const Request& request) const;
  /// The secrets of the key `id`, if `policy` allows it.
  [[nodiscard]] std::vector<std::string> secrets_of(const SignaturePolicy& policy,
                                                    std::string_view id) const;

 private:
  RequestRules(const std::vector<Route>& routes, std::vector<SigningKey> keys)
      : routes_(routes), keys_(std::move(keys)) {}
  void check(const Route& route, std::vector<std::string>& errors) const;

  const std::vector<Route>& routes_;
  const std::vector<SigningKey> keys_;
};

inline constexpr std::string_view namespace_prefix = "gw.";
inline constexpr std::string_view nonce_prefix = "gw-nonce.";
inline constexpr std::string_view owner_label = "gateway";

/// Of a request that gets no memory: nothing has happened.
[[nodiscard]] Refusal busy(const MemoryBudget& budget);

/// What the answer to a claim means. Sets the epoch of `work` if it was granted.
[[nodiscard]] Admission admission_of(Work& work, ClaimOutcome&& outcome);
/// What a check of a signed request means; none: accepted. `busy`: why, of a store that could not
/// take the nonce.
[[nodiscard]] std::optional<Refusal> nonce_refusal(const Route& route, ReplayAnswer answer,
                                                   std::string_view busy);

/// How the end of a granted claim went.
[[nodiscard]] Completion completion_of(OwnerOutcome&& outcome);
/// What is recorded of a reply: its bytes, or without its body if it is too long for the route.
/// None: it is a doubt, as the route says. Of `reply`, or of `room`, which must live as long.
[[nodiscard]] std::optional<std::string_view> record_of(const Route& route,
                                                        const RecordedReply& reply,
                                                        std::string& room);
/// Of a reply of which nothing but its status can be kept.
[[nodiscard]] std::string record_without_body(const RecordedReply& reply);
inline constexpr std::string_view too_long_for_record = "the reply was longer than record_bytes";

}  // namespace semel::gateway
