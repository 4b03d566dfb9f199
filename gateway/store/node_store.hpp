// The store is a node, or a group: claims are SEMEL.* commands of a connection.
// docs/decisions/0048-http-gateway.md defines the meaning of a missing answer for each step.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "gateway/guard/held_replies.hpp"
#include "gateway/store/claim_store.hpp"
#include "gateway/store/node_caller.hpp"

namespace semel::gateway {

namespace limits {
inline constexpr std::size_t given_back_max = 1'024;  ///< in the background, of a thread
}  // namespace limits

class NodeStore final : public ClaimStore, public std::enable_shared_from_this<NodeStore> {
 public:
  /// `link`: of the thread; null: a new one.
  NodeStore(asio::io_context& io, const RequestRules& rules, HeldReplies& held,
            const NodeContext& context, std::shared_ptr<NodeLink> link);
  ~NodeStore() override;

  [[nodiscard]] const RequestRules& rules() const noexcept override { return rules_; }
  [[nodiscard]] Prepared prepare(const Route& route, const Request& request) override;
  [[nodiscard]] bool has_remote_nonces() const noexcept override { return true; }
  [[nodiscard]] asio::awaitable<std::optional<Refusal>> take_nonce(const Route& route,
                                                                   const Request& request) override;
  [[nodiscard]] asio::awaitable<Admission> claim(Work& work) override;
  [[nodiscard]] LeaseState keep(Work& work) override;
  [[nodiscard]] asio::awaitable<bool> renew(Work& work) override;
  void stop_keeping(const Work& work) noexcept override;
  [[nodiscard]] asio::awaitable<Completion> complete(const Work& work,
                                                     const RecordedReply& reply) override;
  [[nodiscard]] asio::awaitable<bool> release(const Work& work) override;
  [[nodiscard]] asio::awaitable<bool> doubt(const Work& work, std::string_view why) override;
  [[nodiscard]] asio::awaitable<IssuedToken> issue_token(const Route& issuing,
                                                         const Request& request) override;
  [[nodiscard]] const std::shared_ptr<NodeLink>& link() const noexcept { return link_; }

 private:
  /// A claim without an owner: to be released.
  struct Orphan {
    std::string name;
    std::string key;
    std::string claim;  ///< the command; empty: `epoch` is known
    Epoch epoch = 0;
    Millis within{0};
  };

  /// A lease under renewal.
  struct Kept {
    Work* work = nullptr;
    bool is_under_way = false;  ///< a renewal
  };

  [[nodiscard]] asio::awaitable<NodeCall> call(const std::string& command, Millis within);
  [[nodiscard]] asio::awaitable<NodeCall> call(const NodeCommand& command, Millis within);
  [[nodiscard]] asio::awaitable<bool> end(const Work& work, std::string_view why,
                                          std::string_view how, Millis within);
  void give_back(Orphan orphan);
  [[nodiscard]] asio::awaitable<void> give_back_now(Orphan orphan);
  [[nodiscard]] asio::awaitable<void> renew_kept();
  [[nodiscard]] asio::awaitable<void> renew_one(const Work* work, Epoch epoch, Millis within,
                                                std::string command);
  void start_renewing();

  asio::io_context& io_;
  const RequestRules& rules_;
  HeldReplies& held_;
  const NodeContext& context_;
  const std::shared_ptr<NodeLink> link_;
  std::map<const Work*, Kept> kept_;
  bool is_renewing_ = false;
  std::size_t given_back_ = 0;  // under way
};

}  // namespace semel::gateway
