// A script that Semel does not know, at a connection of a node that belongs to a group
// (net/cluster/group_script.hpp). Each wait ends with an empty reply, and the request runs again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/cluster/group_script.hpp"
#include "net/node/group_request.hpp"

namespace semel::net {

/// Belongs to one connection; on its thread only.
class GroupScriptRun {
 public:
  GroupScriptRun(Node& node, ClientState& client) noexcept : node_(node), client_(client) {}
  GroupScriptRun(const GroupScriptRun&) = delete;
  GroupScriptRun& operator=(const GroupScriptRun&) = delete;

  /// True: the present request has begun before and runs again.
  [[nodiscard]] bool is_under_way() const noexcept { return script_ != nullptr; }
  /// Begins `request`, or continues it.
  [[nodiscard]] Taken take(const PresentRequest& request, std::string& out);
  /// The client has disconnected: gives its turn to the next script.
  void end() noexcept { script_.reset(); }

 private:
  enum class Next : std::uint8_t { go_on, wait, end };  // `end`: the script's reply is there

  [[nodiscard]] Next step(const PresentRequest& request);
  [[nodiscard]] Next ask_for_turn(const PresentRequest& request);
  [[nodiscard]] Next run(const PresentRequest& request);
  [[nodiscard]] Next take_outcome();
  [[nodiscard]] Next confirm();
  [[nodiscard]] Next judge();
  [[nodiscard]] Next run_again();
  [[nodiscard]] Next fail(std::string_view text);
  [[nodiscard]] Next fail(const GroupScript::Answer& answer);
  void read();

  Node& node_;
  ClientState& client_;
  std::unique_ptr<GroupScript> script_;  // null: none is under way
  std::uint16_t slot_ = 0;               // of its first key
};

}  // namespace semel::net
