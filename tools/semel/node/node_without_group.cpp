// Built without replication.
#include <cstdlib>

#include "tools/semel/node/node_group.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class NodeGroup::Inside {};

NodeGroup::NodeGroup(const net::Settings& settings) : settings_(settings) {}
NodeGroup::~NodeGroup() = default;

bool NodeGroup::is_wanted() const {
  return settings_.integer(net::Setting::node_id) != 0;
}
Status NodeGroup::check() const {
  return usage_error("node-id: this program was built without replication (SEMEL_REPLICATION)");
}
Status NodeGroup::prepare() {
  return usage_error("node-id: this program was built without replication (SEMEL_REPLICATION)");
}
Status NodeGroup::open(const Options&, Report) {
  return usage_error("node-id: this program was built without replication (SEMEL_REPLICATION)");
}
bool NodeGroup::is_open() const noexcept {
  return false;
}
Engine& NodeGroup::engine() noexcept {
  std::abort();  // is_open() is false, so this is never called
}
Status NodeGroup::start(net::Node&) {
  return Done{};
}
void NodeGroup::hand_over() {}
void NodeGroup::stop() {}
std::string NodeGroup::failed() const {
  return {};
}
bool NodeGroup::needs_reopen() const {
  return false;
}
Status NodeGroup::ready() const {
  return Done{};
}
bool NodeGroup::uses_tls() const {
  return false;
}
Status NodeGroup::reload_tls() {
  return Done{};
}

}  // namespace semel::tool
