// The state of a script that Semel does not know, at a connection of a node in a group. It runs
// here on copies of its keys; its effect goes through the replicated log, and applies if the keys
// are unchanged (docs/decisions/0044-scripts-by-effect.md).
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
  /// The number of runs, at most. After that the error reports that others keep changing its keys.
  static constexpr std::size_t runs_max = 64;

  /// The next step.
  enum class Step : std::uint8_t { ask, run, take, confirm, judge };
  /// Written by the group's thread before the wait ends, read after it.
  struct Answer {
    ErrorCode error = ErrorCode::ok;
    std::string detail{};
    std::string replies{};
  };

  Step step = Step::ask;
  std::size_t runs = 0;
  bool has_read = false;  ///< since its run, this node's engine has caught up
  ScriptTurns::Turn turn{};
  std::string reply{};
  ScriptTrial::Outcome outcome{};
  std::shared_ptr<Answer> answer{};
};

/// The request for the replicated log. Views into `outcome`.
[[nodiscard]] inline GroupRequest request_of(const ScriptTrial::Outcome& outcome) {
  GroupRequest request{.db = outcome.db, .is_transaction = true};
  for (const ScriptTrial::Read& each : outcome.read) {
    request.watched.push_back({each.db, each.key, each.version});
  }
  for (const std::vector<std::string>& each : outcome.effects) {
    request.requests.emplace_back(each.begin(), each.end());
  }
  return request;
}

}  // namespace semel::net
