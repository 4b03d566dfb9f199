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

#include "gateway/guard/kept_leases.hpp"
#include "gateway/guard/request_rules.hpp"
#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

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

  /// Renews the lease of granted work, at once and then until complete(), release(), doubt() or
  /// kept()->stop(), which the request's end calls: also where memory ends, a lease must not be
  /// kept for good. False: it was over already, since the store was slow. Another request may have
  /// the work.
  [[nodiscard]] bool keep(const Work& work);
  /// May outlive this and the engine.
  [[nodiscard]] std::shared_ptr<KeptLeases> kept() const noexcept;
  /// Records `reply` for duplicates. One that is too long for the route is recorded without its
  /// body, or is a doubt, as the route says.
  [[nodiscard]] Completion complete(const Work& work, const RecordedReply& reply);
  /// Nothing happened: the next request may run. A debounced one is not debounced any more.
  void release(const Work& work);
  /// It may have happened. `why` is kept for the operator. False: the store did not take it; the
  /// claim ends by its lease, as the route says.
  bool doubt(const Work& work, std::string_view why);

  /// A new token for the route `issuing.token_route`. Of the request counts whose it is.
  [[nodiscard]] IssuedToken issue_token(const Route& issuing, const Request& request);

  /// For operators: ends a doubt. Errors: bad_option (no such route), no_such_key (nothing is in
  /// doubt there), those of Claims::resolve().
  [[nodiscard]] Status resolve(std::string_view route, std::string_view claim_key, bool is_done);

  [[nodiscard]] Engine& engine() const noexcept;
  [[nodiscard]] const RequestRules& rules() const noexcept;

 private:
  class Impl;
  explicit Guards(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::gateway
