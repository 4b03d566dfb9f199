// Which replicated log a node has: a random number that is drawn with its directory. A node that
// has lost its disk has another one, and is not the voter that the group counts on.
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
/// The opposite. A suffix that is not an identity stays in the address.
void set_full_address(Member& member, std::string full);
/// Whether the configuration knows another log of this member than `log`.
[[nodiscard]] bool has_other_log(const Configuration& members, NodeId id, const LogIdentity& log);

/// The logs that this node accepts as those of members: those of the configuration, and, until they
/// are in it, those from which it has had replies in the term in which it leads. Only a leader
/// judges the logs of members, and a candidate those of its voters. A follower may have an older
/// configuration, by which its leader would have another log. Belongs to one thread.
class MemberLogs {
 public:
  /// A member has entries of this leader on its disk, and has this log. std::bad_alloc.
  void replied(Term term, NodeId from, const LogIdentity& log);
  /// A member without an entry may have any log. Former members are forgotten, and may come back
  /// with another log. std::bad_alloc.
  [[nodiscard]] std::map<NodeId, LogIdentity> expected(Term term, const Configuration& members);
  /// Whose log is known and not in the configuration yet. std::bad_alloc.
  [[nodiscard]] std::map<NodeId, LogIdentity> to_learn(Term term, const Configuration& members,
                                                       NodeId self, const LogIdentity& own) const;

 private:
  Term term_ = 0;
  std::map<NodeId, LogIdentity> replied_;  // in term_
};

}  // namespace semel::replication
