// Which log a node has: a random number that is drawn with its directory. A node that has lost its
// disk has another one, and is not the voter that the group counts on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "replication/core/message.hpp"

namespace semel::replication {

/// With the identity behind it, if it is known: "host:port,host:port#" and 32 hexadecimal digits.
/// This is how configurations have it in the log, in snapshots and on the wire. Groups below
/// feature_level_identities have none.
[[nodiscard]] std::string full_address(const Member& member);
/// The opposite. What is no identity stays in the address.
void set_full_address(Member& member, std::string full);
/// Whether the configuration knows another log of this member than `log`.
[[nodiscard]] bool has_other_log(const Configuration& members, NodeId id, const LogIdentity& log);

/// Which logs this node takes for those of members: those of the configuration, and, until they are
/// in it, those from which it has had replies in the term in which it leads. Only who counts on a
/// member judges its log: the leader, and a candidate of those that vote for it. Who follows may
/// have an older configuration, by which its leader would have another log. Belongs to one thread.
class MemberLogs {
 public:
  /// A member has entries of this leader on its disk, and has this log. std::bad_alloc.
  void replied(Term term, NodeId from, const LogIdentity& log);
  /// None: whatever log it has. Who is no member any more is forgotten, and may come back with
  /// another one. std::bad_alloc.
  [[nodiscard]] std::map<NodeId, LogIdentity> expected(Term term, const Configuration& members);
  /// Whose log is known and not in the configuration yet. std::bad_alloc.
  [[nodiscard]] std::map<NodeId, LogIdentity> to_learn(Term term, const Configuration& members,
                                                       NodeId self, const LogIdentity& own) const;

 private:
  Term term_ = 0;
  std::map<NodeId, LogIdentity> replied_;  // in term_
};

}  // namespace semel::replication
