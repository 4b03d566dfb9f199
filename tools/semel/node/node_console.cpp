#include "tools/semel/node/node_console.hpp"

#include <utility>

#include "net/server/node_session.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

using net::Setting;

namespace {

net::ConsoleOptions console_options(const net::Settings& settings) {
  return {.actions = settings.boolean(Setting::console_actions),
          .origins = settings.list(Setting::console_origin)};
}

}  // namespace

Status NodeConsole::check(const net::Settings& settings) {
  if (!settings.boolean(Setting::console)) return Done{};
  if (!admin_options(settings)) return usage_error("console: it needs an admin-port");
  const Status checked = net::Console::check(console_options(settings));
  return checked ? checked : usage_error(checked.error().detail);
}

void NodeConsole::serve(net::Node& node, Durability level) {
  if (!settings_.boolean(Setting::console)) return;
  batch_ = std::make_unique<net::Batch>();
  console_ = std::make_shared<net::Console>(
      node, clock_, watch_.admin_thread(), console_options(settings_),
      net::ConsoleSources{.values = [this](net::MetricValues& values) { values = watch_.values(); },
                          .ready = [this] { return watch_.ready(); },
                          .make_session =
                              [this, &node, level](const net::SessionInfo& info,
                                                   std::shared_ptr<net::SessionHost> host) {
                                return net::make_node_session(node, *batch_, level, info,
                                                              std::move(host));
                              },
                          .log = [this](const net::ConsoleEvent& event) { log(event); }});
  watch_.show(console_);
}

void NodeConsole::log(const net::ConsoleEvent& event) {
  if (event.space.empty()) {
    return watch_.log().info(
        event.name, {{"user", event.user}, {"address", event.address}, {"reason", event.action}});
  }
  watch_.log().info(event.name, {{"user", event.user},
                                 {"address", event.address},
                                 {"action", event.action},
                                 {"namespace", event.space},
                                 watch_.log().field_of_key(event.key),
                                 {"outcome", event.outcome}});
}

void NodeConsole::end() {
  if (console_ == nullptr) return;
  watch_.show(nullptr);
  console_->close();
  console_.reset();
  batch_.reset();
}

}  // namespace semel::tool
