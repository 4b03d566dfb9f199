// The store of claims as the requests of one thread see it, local or remote.
//
//   prepare, take_nonce   the signer, and the work
//   claim                 granted or not, and stored at the store's durability
//   keep                  the lease, until the request ends
//   complete, release, doubt   exactly one of them after a grant
//
// When an awaitable returns, its result is durable: the upstream may see the request, the client
// the reply.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "gateway/guard/request_rules.hpp"
#include "gateway/shared/stream.hpp"

namespace semel::gateway {

enum class LeaseState : std::uint8_t {
  held,
  lost,    ///< another request may have the work
  unsure,  ///< renew() decides
};

/// Used by one thread. Shared by its requests: at a forced end the last ones outlive their thread.
class ClaimStore {
 public:
  ClaimStore() = default;
  virtual ~ClaimStore() = default;
  ClaimStore(const ClaimStore&) = delete;
  ClaimStore& operator=(const ClaimStore&) = delete;

  [[nodiscard]] virtual const RequestRules& rules() const noexcept = 0;
  /// Signature and work of a request whose headers are valid and whose body has arrived.
  [[nodiscard]] virtual Prepared prepare(const Route& route, const Request& request) = 0;
  /// Whether take_nonce() has to be awaited even if claim() follows.
  [[nodiscard]] virtual bool has_remote_nonces() const noexcept = 0;
  /// Uses up the nonce of a signed request. A refusal: it was used before, or the result is
  /// unknown.
  [[nodiscard]] virtual asio::awaitable<std::optional<Refusal>> take_nonce(
      const Route& route, const Request& request) = 0;

  /// Claims `work`, and waits for another owner as long as its route allows. `work` must not move
  /// until the request ends.
  [[nodiscard]] virtual asio::awaitable<Admission> claim(Work& work) = 0;
  /// Renews the lease of granted work from now on, until it is ended or stop_keeping().
  [[nodiscard]] virtual LeaseState keep(Work& work) = 0;
  /// False: the lease is lost, or too short to start the work.
  [[nodiscard]] virtual asio::awaitable<bool> renew(Work& work) = 0;
  virtual void stop_keeping(const Work& work) noexcept = 0;

  [[nodiscard]] virtual asio::awaitable<Completion> complete(const Work& work,
                                                             const RecordedReply& reply) = 0;
  /// Records that nothing happened: the next request may run. False: it was not recorded, and the
  /// claim ends by its lease.
  [[nodiscard]] virtual asio::awaitable<bool> release(const Work& work) = 0;
  /// Records that it may have happened. False as above.
  [[nodiscard]] virtual asio::awaitable<bool> doubt(const Work& work, std::string_view why) = 0;
  [[nodiscard]] virtual asio::awaitable<IssuedToken> issue_token(const Route& issuing,
                                                                 const Request& request) = 0;
};

/// Stops the renewal of a lease at the end of the request.
class Keeping {
 public:
  Keeping(std::shared_ptr<ClaimStore> store, const Work& work) noexcept
      : store_(std::move(store)), work_(work) {}
  ~Keeping() { store_->stop_keeping(work_); }
  Keeping(const Keeping&) = delete;
  Keeping& operator=(const Keeping&) = delete;

 private:
  const std::shared_ptr<ClaimStore> store_;
  const Work& work_;
};

}  // namespace semel::gateway
