// MONITOR.
#include "net/commands/handlers.hpp"
#include "net/events/monitor.hpp"

namespace semel::net::handlers {

void monitor(Call& call) {
  if (call.context().is_part()) {
    return call.fail("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  // mo: relaxed: a setting
  if (!call.services.monitors.allowed.load(std::memory_order_relaxed)) {
    return call.fail("ERR MONITOR is not allowed on this node; the setting 'monitor' allows it");
  }
  if (call.client.monitors) return;  // a second one is not answered, as in redis-server
  call.services.monitors.add(call.client);
  call.client.push_directly();
  call.reply.ok();
}

}  // namespace semel::net::handlers
