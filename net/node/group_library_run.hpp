// A change of the libraries of functions, at a connection of a node that belongs to a group: the
// connection drafts the change, the group decides it, and the request runs again for its reply
// (docs/decisions/0056-functions-in-a-group.md).
#pragma once

#include <memory>
#include <string>

#include "net/cluster/group.hpp"
#include "net/node/group_request.hpp"
#include "net/session/group_library.hpp"

namespace semel::net {

/// Belongs to one connection; on its thread only.
class GroupLibraryRun {
 public:
  GroupLibraryRun(Node& node, ClientState& client) noexcept : node_(node), client_(client) {}
  GroupLibraryRun(const GroupLibraryRun&) = delete;
  GroupLibraryRun& operator=(const GroupLibraryRun&) = delete;

  /// True: the present request has begun before and runs again.
  [[nodiscard]] bool is_under_way() const noexcept { return asked_ != nullptr; }
  /// Begins `request`, or continues it.
  [[nodiscard]] Taken take(const PresentRequest& request, std::string& out);

 private:
  struct Asked {
    GroupLibrary draft{};
    /// Written by the group's thread before the wait ends, read after it.
    std::shared_ptr<GroupLibraryAnswer> answer = std::make_shared<GroupLibraryAnswer>();
  };

  void submit(std::unique_ptr<Asked> asked);

  Node& node_;
  ClientState& client_;
  std::unique_ptr<Asked> asked_;  // null: none is under way
};

}  // namespace semel::net
