// Built without replication.
#include <cstdlib>

#include "net/group/node_group.hpp"

namespace semel::net {

struct NodeGroup::Parts {};

namespace {

Error left_out() {
  return {ErrorCode::bad_option,
          "node-id: this program was built without replication (SEMEL_REPLICATION)"};
}

}  // namespace

NodeGroup::NodeGroup(const Settings& settings) : settings_(settings) {}
NodeGroup::~NodeGroup() = default;

Status NodeGroup::check() const {
  return left_out();
}
Status NodeGroup::prepare() {
  return left_out();
}
Status NodeGroup::open(const Options&, Report) {
  return left_out();
}
Engine& NodeGroup::engine() noexcept {
  std::abort();  // is_open() is false, so this is never called
}
Status NodeGroup::start(Node&) {
  return Done{};
}
void NodeGroup::hand_over() {}
void NodeGroup::stop() {}
NodeGroup::Ending NodeGroup::ending() const {
  return {};
}
Status NodeGroup::ready() const {
  return Done{};
}
Status NodeGroup::reload_tls() {
  return Done{};
}

}  // namespace semel::net
