// What an operator finds in the log of what clients have done to the node itself: to its settings,
// its users, its scripts, its other clients, and to all of its data at once.
#pragma once

#include <string_view>

#include "net/commands/command.hpp"

namespace semel::net {

/// Whether calls of `row` are logged.
[[nodiscard]] inline bool is_audited(const CommandRow& row) noexcept {
  return (row.facts.bits & (fact_audited | fact_audited_words)) != 0;
}

/// Reports `call` to the node's hook; it has been carried out and answered with `reply`. Secrets
/// are left out, and long words and lists are cut. The event has the command's name, as config_set.
void audit(const Call& call, std::string_view reply);

}  // namespace semel::net
