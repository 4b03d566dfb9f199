// The level of features of the group that a node belongs to, as commands ask about it.
#pragma once

#include <string>

namespace semel::net {

class GroupLevel {
 public:
  /// Why the group's log may not have commands of lists, sets, sorted sets and streams yet, to be
  /// put behind the name of a command; empty: it may. From any thread; without a lock once it may.
  [[nodiscard]] virtual std::string lacks_objects() const = 0;

 protected:
  ~GroupLevel() = default;
};

}  // namespace semel::net
