// Where a connection of a node in a group is with a script that Semel does not know: it runs here
// on copies of its keys, and its effect goes through the log, if they are as they were
// (docs/decisions/0044-scripts-by-effect.md).
//
//   turn --> run --> read only: confirm ----- unchanged --> reply
//             ^  '-> effect: through the log -- done -----> reply
//             '------- something has changed -'
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "net/cluster/group.hpp"
#include "net/cluster/script_turns.hpp"
#include "net/scripts/script_trial.hpp"

namespace semel::net {

struct GroupScript {
  /// How often it runs, at most; then the client is told that others change its keys all the time.
  static constexpr std::size_t runs_max = 64;

  /// What comes next.
  enum class Step : std::uint8_t { ask, run, take, confirm, judge };
  /// Written by the group's thread before the wait ends, read after it.
  struct Answer {
    ErrorCode error = ErrorCode::ok;
    std::string detail{};
    std::string replies{};
  };

  Step step = Step::ask;
  std::size_t runs = 0;
  bool has_read = false;  ///< since it ran, this node's engine has caught up
  ScriptTurns::Turn turn{};
  std::string reply{};
  ScriptTrial::Outcome outcome{};
  std::shared_ptr<Answer> answer{};
};

/// What the log is to decide. Views into `outcome`.
[[nodiscard]] inline GroupRequest request_of(const ScriptTrial::Outcome& outcome) {
  GroupRequest request{.db = outcome.db, .is_transaction = true, .grows = outcome.grows};
  for (const ScriptTrial::Read& each : outcome.read) {
    request.watched.push_back({each.db, each.key, each.version});
  }
  for (const std::vector<std::string>& each : outcome.effects) {
    request.requests.emplace_back(each.begin(), each.end());
  }
  return request;
}

}  // namespace semel::net
