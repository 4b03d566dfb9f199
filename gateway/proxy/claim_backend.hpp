// The place of a gateway's claims: an engine in this process, with or without a storage, or nodes.
// It gives each thread the store for its requests, for every policy in turn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "gateway/guard/guards.hpp"
#include "gateway/guard/held_replies.hpp"
#include "gateway/proxy/worker.hpp"
#include "gateway/shared/route_policy.hpp"
#include "gateway/store/node_link.hpp"
#include "semel/storage.hpp"

namespace semel::gateway {

/// prepare(), use() and close() on one thread; the others on any.
class ClaimBackend {
 public:
  /// All arguments must outlive it, and the requests that use it.
  ClaimBackend(const Settings& settings, const Clock& clock, Counters& counters,
               MemoryBudget& memory, CurrentTls& node_tls);
  ~ClaimBackend() { close(); }
  ClaimBackend(const ClaimBackend&) = delete;
  ClaimBackend& operator=(const ClaimBackend&) = delete;

  /// Opens the store of the settings. Errors: those of Storage::open(), recover() and
  /// Engine::open().
  [[nodiscard]] Status open();
  /// Gives the namespaces of `policy` their terms. `tls`: for nodes. Errors: those of
  /// Guards::open() and set_up_node(); the policy in use has its terms again, as far as the store
  /// allows.
  [[nodiscard]] Result<Terms> prepare(std::shared_ptr<const RoutePolicy> policy, CurrentTls& tls);
  /// Makes the result of the last prepare() the one that operators use, too.
  void use();

  /// The reason why requests cannot be served.
  [[nodiscard]] Status ready() const;
  /// Resolves a doubt. Errors: those of Guards::resolve() and resolve_at_node().
  [[nodiscard]] Status resolve(std::string_view route, std::string_view key, bool is_done);
  /// Ends the stores; no request may be running.
  void close();

 private:
  /// Whether requests may still use a policy. The last of them sets `is_over`, on any thread.
  struct Use {
    base::Mutex mutex;
    bool is_over SEMEL_GUARDED_BY(mutex) = false;
  };
  /// The stores of one policy. Kept until no request uses the policy.
  struct Generation {
    std::shared_ptr<Use> use = std::make_shared<Use>();
    std::unique_ptr<RequestRules> rules{};  // of nodes
    std::vector<std::string> declarations{};
    std::unique_ptr<Guards> guards{};  // of an engine
  };
  [[nodiscard]] Status open_engine();
  [[nodiscard]] Result<std::shared_ptr<Generation>> make(const RoutePolicy& policy,
                                                         CurrentTls& tls);
  [[nodiscard]] Terms terms_of(std::shared_ptr<const RoutePolicy> policy, Generation& made);
  [[nodiscard]] std::shared_ptr<Generation> current() const;
  [[nodiscard]] static bool is_over(const Generation& generation);
  void forget_unused();

  const Settings& settings_;
  const Clock& clock_;
  Counters& counters_;
  CurrentTls& node_tls_;
  HeldReplies held_;
  LastTrouble trouble_;
  std::unique_ptr<NodeContext> node_;  // instead of storage and engine
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::shared_ptr<Generation>> generations_;  // the newest last
  std::shared_ptr<const RoutePolicy> policy_;             // in use
  mutable base::Mutex mutex_;
  std::shared_ptr<Generation> current_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::gateway
