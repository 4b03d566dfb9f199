// Follows a redis-server, or another server with its protocol of replication, from REPLICAOF or the
// setting replicaof to REPLICAOF NO ONE.
//
// Threads: MasterLink's, from the first follow() on. Clients' commands come from any thread.
#pragma once

#include <memory>

#include "base/mutex.hpp"
#include "net/follow/follow_state.hpp"
#include "net/node/node.hpp"

namespace semel::net {

class MasterLink;

class Follower final : public Following {
 public:
  /// `node` must outlive this.
  explicit Follower(Node& node);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// By the setting, before the first connection. The detail of an error is for the operator.
  [[nodiscard]] Status begin();
  /// The node ends: nothing of the master runs any more. It stays a replica.
  void end();

  [[nodiscard]] Status follow(const MasterAddress& master) override;
  void stop() override;
  [[nodiscard]] FollowView view() const override;

 private:
  /// Once. Errors: no_thread.
  [[nodiscard]] Status open() SEMEL_REQUIRES(asking_);

  Node& node_;
  FollowState state_;
  base::Mutex asking_;  // one follow() or stop() at a time
  std::unique_ptr<MasterLink> link_ SEMEL_GUARDED_BY(asking_);
  bool has_ended_ SEMEL_GUARDED_BY(asking_) = false;
};

}  // namespace semel::net
