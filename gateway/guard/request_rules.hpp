// The gateway's decisions about a request that need no store: required headers, the signature, the
// work it names, and the meaning of a claim's answer.
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
  bool is_claimed = false;  ///< false: not guarded, it is passed on
  std::string key{};        ///< of the claim
  Fingerprint fingerprint{};
  Epoch epoch = 0;  ///< once granted
  // With a remote store the lease ends `lease` after `lease_since` at the earliest.
  std::optional<base::Stopwatch> lease_since{};
  Millis lease{0};
};

/// A request goes on as `work`, or is refused.
struct Prepared {
  std::optional<Refusal> refusal{};
  Work work{};
};

/// The result of a claim.
struct Admission {
  Outcome outcome = Outcome::granted;  ///< granted, replayed, or that of `refusal`
  std::optional<Refusal> refusal{};
  RecordedReply reply{};  ///< replayed
};

/// The result of recording a reply.
enum class Recorded : std::uint8_t {
  yes,
  superseded,  ///< the lease was lost, and another request has the work: `newer` may be its reply
  no,          ///< the store did not record it; the claim stays, and ends in doubt or by its lease
};
struct Completion {
  Recorded recorded = Recorded::yes;
  std::optional<RecordedReply> newer{};
};

/// A new token, or a refusal.
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

/// Immutable after open(), and then thread-safe.
class RequestRules {
 public:
  /// `routes` must live as long as this. Errors: bad_option (a route names an unknown key or route
  /// of tokens).
  [[nodiscard]] static Result<std::unique_ptr<RequestRules>> open(const std::vector<Route>& routes,
                                                                  std::vector<SigningKey> keys);
  /// Returns every error that open() would refuse: a line for each.
  [[nodiscard]] static std::vector<std::string> check(const std::vector<Route>& routes,
                                                      const std::vector<SigningKey>& keys);
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
  /// The route of that name; null: none.
  [[nodiscard]] const Route* find(std::string_view name) const noexcept;

  /// None: the body may be read. `request` has no body yet.
  [[nodiscard]] std::optional<Refusal> check_headers(const Route& route,
                                                     const Request& request) const;
  /// Checks the signature of a request whose headers are valid. None: it is signed with the key's
  /// secret. The store checks time and nonce.
  [[nodiscard]] std::optional<Refusal> check_signature(const Route& route,
                                                       const Request& request) const;
  /// The work of a request whose headers and signature are valid.
  [[nodiscard]] Prepared prepare(const Route& route, const Request& request) const;
  /// A new token for the route `issuing.token_route`. The scope of `request` owns it.
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

/// The refusal of a request that gets no memory: nothing has happened.
[[nodiscard]] Refusal busy(const MemoryBudget& budget);

/// The admission for a claim's answer. Sets the epoch of `work` if it was granted.
[[nodiscard]] Admission admission_of(Work& work, ClaimOutcome&& outcome);
/// The refusal for the check of a signed request; none: accepted. `busy`: the reason of a store
/// that could not record the nonce.
[[nodiscard]] std::optional<Refusal> nonce_refusal(const Route& route, ReplayAnswer answer,
                                                   std::string_view busy);

/// The result of ending a granted claim.
[[nodiscard]] Completion completion_of(OwnerOutcome&& outcome);
/// The bytes to record of a reply: all, or without its body if it is too long for the route. None:
/// the route makes it a doubt. They are views of `reply` or of `room`, which must live as long.
[[nodiscard]] std::optional<std::string_view> record_of(const Route& route,
                                                        const RecordedReply& reply,
                                                        std::string& room);
/// The record of a reply of which only the status can be kept.
[[nodiscard]] std::string record_without_body(const RecordedReply& reply);
inline constexpr std::string_view too_long_for_record = "the reply was longer than record_bytes";

}  // namespace semel::gateway
