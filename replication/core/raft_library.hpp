// One instance of libraft, and what it knows: roles, terms, members and their progress. Its steps
// are made by RaftSteps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "replication/core/consensus_options.hpp"
#include "replication/core/message.hpp"
#include "semel/result.hpp"

struct raft_shim;

namespace semel::replication {

enum class Role : std::uint8_t { follower, candidate, leader };

/// Belongs to one thread.
class RaftLibrary {
 public:
  /// Errors: bad_option (also: the library is of another release than 0.22), memory_full.
  [[nodiscard]] static Result<RaftLibrary> make(const ConsensusOptions& options);

  [[nodiscard]] Role role() const noexcept;
  [[nodiscard]] bool is_leader() const noexcept { return role() == Role::leader; }
  [[nodiscard]] Term term() const noexcept;
  [[nodiscard]] NodeId voted_for() const noexcept;
  [[nodiscard]] NodeId leader() const noexcept;  ///< 0: not known
  [[nodiscard]] bool is_handing_over() const noexcept;
  [[nodiscard]] std::uint64_t next_timeout() const noexcept;

  // --- the log ----------------------------------------------------------------------------------
  [[nodiscard]] LogIndex stored() const noexcept;  ///< on the disk of this node
  /// With an append that was overtaken it goes back: to the end of that append. MemoryLog::commit()
  /// does not.
  [[nodiscard]] LogIndex commit() const noexcept;
  /// Of the leader: what a member has on its disk; 0: not known.
  [[nodiscard]] LogIndex match(NodeId id) const noexcept;
  /// Of the leader, of a member that becomes a voter: as raft_shim_catch_up_state().
  [[nodiscard]] int catch_up_state(NodeId id) const noexcept;

  // --- members ----------------------------------------------------------------------------------
  [[nodiscard]] Configuration members() const;  ///< the newest, committed or not
  [[nodiscard]] std::optional<Member> member(NodeId id) const;
  /// A change of members is not committed, as far as this node knows.
  [[nodiscard]] bool is_changing_members() const noexcept { return changing_index() != 0; }
  /// The index of that change; 0: there is none.
  [[nodiscard]] LogIndex changing_index() const noexcept;
  /// The index of members().
  [[nodiscard]] LogIndex members_index() const noexcept;

  /// For a step.
  [[nodiscard]] raft_shim* shim() noexcept { return shim_.get(); }

 private:
  struct Deleter {
    void operator()(raft_shim* shim) const noexcept;
  };
  explicit RaftLibrary(raft_shim* shim) noexcept : shim_(shim) {}

  std::unique_ptr<raft_shim, Deleter> shim_;  // never null, unless it was moved from
};

}  // namespace semel::replication
