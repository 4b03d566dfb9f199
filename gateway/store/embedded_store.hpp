// The store is an engine in this process: calls return at once, and their effect is awaited at the
// configured durability. All waiting requests share one sync.
#pragma once

#include <memory>

#include "gateway/guard/guards.hpp"
#include "gateway/guard/held_replies.hpp"
#include "gateway/shared/bridge.hpp"
#include "gateway/store/claim_store.hpp"

namespace semel::gateway {

class EmbeddedStore final : public ClaimStore {
 public:
  EmbeddedStore(Guards& guards, HeldReplies& held, Durability level, std::shared_ptr<Bridge> bridge)
      : guards_(guards),
        held_(held),
        kept_(guards.kept()),
        level_(level),
        bridge_(std::move(bridge)) {}

  [[nodiscard]] const RequestRules& rules() const noexcept override { return guards_.rules(); }
  [[nodiscard]] Prepared prepare(const Route& route, const Request& request) override {
    return guards_.prepare(route, request);
  }
  [[nodiscard]] bool has_remote_nonces() const noexcept override { return false; }
  [[nodiscard]] asio::awaitable<std::optional<Refusal>> take_nonce(const Route& route,
                                                                   const Request& request) override;
  [[nodiscard]] asio::awaitable<Admission> claim(Work& work) override;
  [[nodiscard]] LeaseState keep(Work& work) override {
    return guards_.keep(work) ? LeaseState::held : LeaseState::lost;
  }
  [[nodiscard]] asio::awaitable<bool> renew(Work& work) override;
  void stop_keeping(const Work& work) noexcept override { kept_->stop(work); }
  [[nodiscard]] asio::awaitable<Completion> complete(const Work& work,
                                                     const RecordedReply& reply) override;
  [[nodiscard]] asio::awaitable<bool> release(const Work& work) override;
  [[nodiscard]] asio::awaitable<bool> doubt(const Work& work, std::string_view why) override;
  [[nodiscard]] asio::awaitable<IssuedToken> issue_token(const Route& issuing,
                                                         const Request& request) override;

 private:
  [[nodiscard]] bool is_kept_at_once() const noexcept { return level_ == Durability::memory; }
  [[nodiscard]] asio::awaitable<Status> confirmed();

  Guards& guards_;
  HeldReplies& held_;
  const std::shared_ptr<KeptLeases> kept_;  // may outlive the guards
  const Durability level_;
  const std::shared_ptr<Bridge> bridge_;
};

}  // namespace semel::gateway
