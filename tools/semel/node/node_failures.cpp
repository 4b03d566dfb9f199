#include "tools/semel/node/node_failures.hpp"

#include "tools/semel/shared/service_signals.hpp"

namespace semel::tool {

void NodeFailures::look() {
  look_at_storage();
  look_at_group();
}

/// A failed storage works again only after it is opened anew: the node ends with an error, and its
/// supervisor restarts it.
void NodeFailures::look_at_storage() {
  constexpr unsigned looks_between = 10;  // a second: the statistics lock parts of the storage
  if (++looks_ % looks_between != 0 || storage_failed()) return;
  if (!settings_.boolean(net::Setting::exit_on_storage_failure)) return;
  const auto stats = storage_.stats();
  if (!stats || !stats->failed) return;
  // mo: relaxed: ask_for_end() orders it before the end
  storage_failed_.store(true, std::memory_order_relaxed);
  watch_.fail("the storage has failed, and the node ends: " + stats->trouble);
  ask_for_end();
}

/// Restarts with the snapshot that was received, or exits for its supervisor to restart it.
void NodeFailures::look_at_group() {
  if (!group_.is_open() || group_ended()) return;
  const net::NodeGroup::Ending ending = group_.ending();
  if (ending.reason.empty()) return;
  // mo: relaxed: ask_for_end() orders it before the end
  group_ended_.store(true, std::memory_order_relaxed);
  if (!ending.needs_reopen) watch_.fail("the node ends: " + ending.reason);
  ask_for_end();
}

}  // namespace semel::tool
