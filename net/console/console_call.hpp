// One request to the console while it is answered, and the fields that several requests have.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/admin/admin_route.hpp"
#include "net/console/request_guard.hpp"
#include "net/node/node.hpp"

namespace semel::net {

struct ConsoleCall {
  AdminRequest request;
  GuardedRequest place;
  boost::json::object fields{};  ///< of the body of a POST
  AdminRespond respond;
};
using SharedCall = std::shared_ptr<ConsoleCall>;

/// A text of the body; `fallback` if it is not there. None: it is no text.
[[nodiscard]] std::optional<std::string_view> text_field(const ConsoleCall& call,
                                                         std::string_view name,
                                                         std::string_view fallback = {});

/// The key of a call.
struct ConsoleKey {
  std::string space;
  std::string key;
  unsigned db = 0;

  [[nodiscard]] std::string table_key() const { return space + ":" + key; }
};
/// From the fields `namespace` and `key`. None: an error has been sent.
[[nodiscard]] std::optional<ConsoleKey> read_key(Node& node, const ConsoleCall& call);

/// Where the leader of the node's group serves clients; empty: not known, or there is no group.
[[nodiscard]] std::string leader_of(Node& node);

}  // namespace semel::net
