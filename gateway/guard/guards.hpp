// The gateway's decisions over Semel's claims, without sockets: whether a request may reach the
// upstream, and what its reply means.
//
//   check_headers   before the body is read: what is missing is refused early
//   prepare         with the body: signature, nonce, key, fingerprint
//   claim           granted, or why not; the caller then waits for the store's durability
//   complete, release, doubt   exactly one of them after a grant
//
// All calls return what the engine has in memory: nothing is passed on to the upstream or to the
// client before Engine::confirm_async() has answered at the configured level.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/rules/message.hpp"
#include "gateway/rules/outcome.hpp"
#include "gateway/rules/recorded_reply.hpp"
#include "gateway/rules/route.hpp"
#include "semel/claims.hpp"
#include "semel/engine.hpp"
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

/// Thread-safe. Must not outlive the engine.
class Guards {
 public:
  /// Declares the namespaces of `routes`, which must live as long as this. One that is there with
  /// other terms is changed to these. `watch_every`: a thread renews leases that often; none: no
  /// thread, for tests. Errors: those of Engine::claims() and change_namespace(); bad_option (a
  /// route names a key or a route of tokens that is not there).
  [[nodiscard]] static Result<std::unique_ptr<Guards>> open(Engine& engine,
                                                            const std::vector<Route>& routes,
                                                            std::vector<SigningKey> keys,
                                                            std::optional<Millis> watch_every);
  ~Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  /// None: the body may be read. `request` has no body yet.
  [[nodiscard]] std::optional<Refusal> check_headers(const Route& route,
                                                     const Request& request) const;
  /// Uses up the nonce of a signed request.
  [[nodiscard]] Prepared prepare(const Route& route, const Request& request);
  /// Claims `work`, whose `epoch` is set if it was granted.
  [[nodiscard]] Admission claim(Work& work);
  /// For in_flight where the route waits: `done` is called once, on any thread, with the claim's
  /// outcome, for admission_of(). It must not block and must not throw.
  void wait(const Work& work, ClaimCallback done);
  [[nodiscard]] Admission admission_of(Work& work, ClaimOutcome&& outcome) const;

  /// Renews the lease of granted work, at once and then until complete(), release() or doubt(), at
  /// the latest until its own end: also where memory ends, a lease must not be kept for good.
  class Keeper {
   public:
    Keeper(Guards& guards, const Work& work);
    ~Keeper();
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;
    /// False: it was over already, since the store was slow. Another request may have the work.
    [[nodiscard]] bool has_lease() const noexcept { return has_lease_; }

   private:
    Guards& guards_;
    const Work& work_;
    bool has_lease_ = false;
  };
  /// Records `reply` for duplicates. One that is too long for the route is recorded without its
  /// body, or is a doubt, as the route says.
  [[nodiscard]] Completion complete(const Work& work, const RecordedReply& reply);
  /// Nothing happened: the next request may run. A debounced one is not debounced any more.
  void release(const Work& work);
  /// It may have happened. `why` is kept for the operator. False: the store did not take it; the
  /// claim ends by its lease, as the route says.
  bool doubt(const Work& work, std::string_view why);

  /// A new token for the route `issuing.token_route`. Of the request counts whose it is.
  struct IssuedToken {
    std::optional<Refusal> refusal{};
    std::string token{};
  };
  [[nodiscard]] IssuedToken issue_token(const Route& issuing, const Request& request);

  /// For operators: ends a doubt. Errors: bad_option (no such route), no_such_key (nothing is in
  /// doubt there), those of Claims::resolve().
  [[nodiscard]] Status resolve(std::string_view route, std::string_view claim_key, bool is_done);

  [[nodiscard]] Engine& engine() const noexcept;

 private:
  class Impl;
  explicit Guards(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::gateway
