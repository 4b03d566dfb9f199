// The requests that a connection of a node in a group has gathered for the replicated log, and its
// wait.
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
    SessionId session = 0;  ///< if one was requested
  };

  GroupRequest gathered{};
  std::vector<std::string> read_keys{};  ///< of `gathered`, of a connection that tracks
  MemoryUse use = MemoryUse::frees;      ///< of `gathered`
  std::size_t bytes = 0;
  std::size_t fresh = 0;  ///< bytes of input that had arrived before a read was confirmed
  std::shared_ptr<Outcome> outcome{};  ///< of the previous wait; null: none

  [[nodiscard]] bool is_empty() const noexcept { return gathered.requests.empty(); }
  /// Forgets the gathered requests.
  void clear() noexcept {
    gathered = {};
    read_keys.clear();
    use = MemoryUse::frees;
    bytes = 0;
  }
};

/// How a node of a group treats a command.
enum class GroupKind : std::uint8_t {
  here,      ///< it is about the connection or the node
  read,      ///< of the engine; at the leader, after confirmation
  write,     ///< through the replicated log
  script,    ///< runs here; its effect goes through the replicated log
  library,   ///< prepared here, then goes through the replicated log
  not_here,  ///< nodes of a group could not run it alike
};

/// `row` is the row of the subcommand, if there is one.
[[nodiscard]] GroupKind group_kind(const Services& services, ClientState& client,
                                   const CommandRow& row, std::span<const std::string_view> words);
/// Whether every node would need its interpreter for this. `row`: as above.
[[nodiscard]] bool needs_interpreter(const Services& services, ClientState& client,
                                     const CommandRow& row,
                                     std::span<const std::string_view> words);
/// "MOVED 866 127.0.0.1:7001"; empty: no other node is known to lead.
[[nodiscard]] std::string moved_error(const Group& group, std::uint16_t slot);
/// moved_error(), unless this node forwards; or the reason for a missing answer. `slot`: of the
/// first key.
[[nodiscard]] std::string group_error(const Group& group, ErrorCode code, std::uint16_t slot);

}  // namespace semel::net
