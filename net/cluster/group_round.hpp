// What a connection of a node in a group has gathered for the log, and what it waits for.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "net/cluster/group.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

struct GroupRound {
  static constexpr std::size_t requests_max = 256;
  static constexpr std::size_t bytes_max = std::size_t{32} << 10;

  /// Written by the group's thread before the wait ends, read after it.
  struct Outcome {
    ErrorCode read = ErrorCode::ok;
    SessionId session = 0;  ///< where one was asked for
  };

  GroupRequest gathered{};
  std::size_t bytes = 0;
  std::size_t fresh = 0;  ///< so many bytes of the input had come before a read was confirmed
  std::shared_ptr<Outcome> outcome{};  ///< of the wait before; null: of none

  [[nodiscard]] bool is_empty() const noexcept { return gathered.requests.empty(); }
};

/// How a node of a group treats a command.
enum class GroupKind : std::uint8_t {
  here,      ///< it is about the connection or the node
  read,      ///< of the engine; the leader's, when it is confirmed
  write,     ///< through the log
  script,    ///< it runs here, and its effect goes through the log
  library,   ///< it is worked out here, and goes through the log
  not_here,  ///< a group cannot carry it out alike on all nodes
};

/// `row` is that of a subcommand, if there is one.
[[nodiscard]] GroupKind group_kind(const Services& services, ClientState& client,
                                   const CommandRow& row, std::span<const std::string_view> words);
/// Whether each node would need its interpreter to carry this out. `row`: as above.
[[nodiscard]] bool needs_interpreter(const Services& services, ClientState& client,
                                     const CommandRow& row,
                                     std::span<const std::string_view> words);
/// "MOVED 866 127.0.0.1:7001"; empty: no other node is known to lead.
[[nodiscard]] std::string moved_error(const Group& group, std::uint16_t slot);
/// That, unless this node hands over; or why there is no answer. `slot`: of the first key.
[[nodiscard]] std::string group_error(const Group& group, ErrorCode code, std::uint16_t slot);

}  // namespace semel::net
