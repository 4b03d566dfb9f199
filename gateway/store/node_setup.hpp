// Calls of a node outside of requests: at the start, and by operators. These calls block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/guard/request_rules.hpp"
#include "gateway/store/node_link.hpp"

namespace semel::gateway {

struct NodeSetup {
  std::string group{};                      ///< for NodeContext
  std::vector<std::string> declarations{};  ///< the commands that each connection begins with
};
/// Finds a node, within 10 s, and gives the namespaces of the routes their terms. Errors: refused
/// (no node can be reached), bad_option (a node refuses the login, the group or the terms; names
/// which).
[[nodiscard]] Result<NodeSetup> set_up_node(const NodeContext& context, const RequestRules& rules);

/// Resolves a doubt. Errors: bad_option (no such route), no_such_key (no doubt under that key),
/// refused (the node does not answer, or does not allow it).
[[nodiscard]] Status resolve_at_node(const NodeContext& context, const RequestRules& rules,
                                     std::string_view route, std::string_view key, bool is_done);

}  // namespace semel::gateway
