// The gateway's decisions over Semel's claims, without sockets: whether a request may reach the
// upstream, and what its reply means.
//
//   check_headers   before the body is read: refuses a request with missing fields early
//   prepare         with the body: signature, nonce, key, fingerprint
//   claim           granted, or a refusal; the caller then waits for the store's durability
//   complete, release, doubt   exactly one of them after a grant
//
// All calls return the state in memory: the caller passes nothing on to the upstream or to the
// client before Engine::confirm_async() has answered at the configured level.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/guard/kept_leases.hpp"
#include "gateway/guard/request_rules.hpp"
#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// Thread-safe. Must not outlive the engine.
class Guards {
 public:
  /// Declares the namespaces of `routes`, which must live as long as this. A namespace with other
  /// terms gets these. `watch_every`: the interval at which a thread renews leases; none: no
  /// thread, for tests. Errors: those of Engine::claims() and change_namespace(); bad_option (a
  /// route names an unknown key or route of tokens).
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
  /// Claims `work`, and sets its `epoch` if it is granted.
  [[nodiscard]] Admission claim(Work& work);
  /// For in_flight where the route waits: `done` is called once, on any thread, with the claim's
  /// outcome, for admission_of(). It must not block and must not throw.
  void wait(const Work& work, ClaimCallback done);

  /// Renews the lease of granted work, at once and then until complete(), release(), doubt() or
  /// kept()->stop(). The end of the request calls stop(), also without memory, so that no lease is
  /// renewed forever. False: the lease had already ended, since the store was slow. Another request
  /// may have the work.
  [[nodiscard]] bool keep(const Work& work);
  /// May outlive this and the engine.
  [[nodiscard]] std::shared_ptr<KeptLeases> kept() const noexcept;
  /// Records `reply` for duplicates. A reply that is too long for the route is recorded without its
  /// body, or as a doubt, by the route's `too_large`.
  [[nodiscard]] Completion complete(const Work& work, const RecordedReply& reply);
  /// Records that nothing happened: the next request may run. A debounced request is not debounced
  /// any more.
  void release(const Work& work);
  /// Records a doubt. `why` is kept for the operator. False: the store did not record it; the claim
  /// ends by its lease, and the route's on_lease_end applies.
  bool doubt(const Work& work, std::string_view why);

  /// A new token for the route `issuing.token_route`. The scope of `request` owns it.
  [[nodiscard]] IssuedToken issue_token(const Route& issuing, const Request& request);

  /// Resolves a doubt for an operator. Errors: bad_option (no such route), no_such_key (no doubt
  /// under that key), those of Claims::resolve().
  [[nodiscard]] Status resolve(std::string_view route, std::string_view claim_key, bool is_done);

  [[nodiscard]] Engine& engine() const noexcept;
  [[nodiscard]] const RequestRules& rules() const noexcept;

 private:
  class Impl;
  explicit Guards(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::gateway
