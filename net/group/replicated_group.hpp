// The group of a node, by its replica: requests become proposals, and answers replies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/cluster/group.hpp"
#include "replication/node/memory_gate.hpp"
#include "replication/node/replica.hpp"

namespace semel::net {

/// How one node of a group treats its clients.
struct GroupTerms {
  std::uint64_t cluster_id = 0;
  std::uint64_t node_id = 0;
  bool forwards = false;               ///< ReplicaOptions::forwards
  replication::ProposalTerms calls{};  ///< of requests and reads of clients
  /// Of this node, for members that do not announce an address for clients. Empty: those have none.
  std::string client_port{};
};

class ReplicatedGroup final : public Group {
 public:
  /// `replica` must outlive this.
  ReplicatedGroup(replication::Replica& replica, GroupTerms terms);

  [[nodiscard]] bool leads() const noexcept override { return replica_.is_leader(); }
  [[nodiscard]] bool forwards() const noexcept override { return terms_.forwards; }
  [[nodiscard]] GroupView view() const override;
  [[nodiscard]] std::string lacks_objects() const override;
  void submit(GroupRequest request, MemoryUse use, std::function<void(GroupReply)> done) override;
  void change_libraries(const replication::LibraryChange& change,
                        std::function<void(GroupLibraryAnswer)> done) override;
  void read(std::function<void(ErrorCode)> done) override;
  void open_session(std::function<void(ErrorCode, SessionId)> done) override;
  void close_session(SessionId session) noexcept override;
  [[nodiscard]] Timestamp now() const noexcept override { return replica_.clock().now(); }
  [[nodiscard]] bool wait_for_change(Bytes name, Bytes key, Timestamp deadline, ClaimCallback done,
                                     WaitTicket& ticket, ClaimOutcome& outcome) override {
    return engine::wait_for_change(replica_.engine(), name, key, deadline, std::move(done), ticket,
                                   outcome);
  }
  [[nodiscard]] ErrorCode wait_for_object(const ObjectWait& wait, Function<void(ErrorCode)> done,
                                          WaitTicket& ticket) override {
    return engine::wait_for_object(
        replica_.engine(),
        {wait.keys, wait.kind, wait.deadline, wait.arrival, wait.behind, wait.group_name},
        std::move(done), ticket);
  }
  [[nodiscard]] ErrorCode wait_for_slot(const SlotWait& wait, Function<void(ErrorCode)> done,
                                        WaitTicket& ticket) override {
    return engine::wait_for_slot(replica_.engine(),
                                 {wait.name, wait.keys, wait.deadline, wait.arrival},
                                 std::move(done), ticket);
  }
  void stop_waiting(WaitTicket ticket) noexcept override {
    engine::stop_waiting(replica_.engine(), ticket);
  }
  [[nodiscard]] std::optional<engine::StreamId> last_id_of(const KeyRef& key) override {
    return engine::last_id_of(replica_.engine(), key);
  }
  [[nodiscard]] bool repeat_claim(const Claims& claims, const ClaimRequest& request,
                                  ClaimOutcome& outcome) override {
    using engine::Ends;
    const auto repeats = [&](Ends ends) {
      return engine::repeat_claim(replica_.engine(), claims, request, ends, outcome);
    };
    // A full group takes no later end in a sliding window. The work is done all the same.
    return repeats(Ends::may_move) ||
           (claims.policy().sliding_max != Millis{0} && is_full() && repeats(Ends::stay));
  }
  [[nodiscard]] Status change(Change what, std::uint64_t id, const std::string& address) override;

 private:
  [[nodiscard]] std::string client_address(const std::string& address) const;
  [[nodiscard]] GroupMember member_of(const replication::ReplicaStatus& status,
                                      const replication::Member& member) const;
  [[nodiscard]] bool is_full();

  replication::Replica& replica_;
  const GroupTerms terms_;
  replication::MemoryGate gate_;
  mutable std::atomic<bool> has_objects_{false};
};

}  // namespace semel::net
