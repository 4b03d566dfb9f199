#include "net/node.hpp"

#include <fstream>
#include <iterator>

#include "net/access.hpp"
#include "net/client_state.hpp"

namespace semel::net {

Node::Node(Engine& engine, Settings& from, TestClock* clock)
    : engine_(engine),
      settings(from),
      acl(acl_commands()),
      watches(engine),
      claims(engine),
      test_clock(clock),
      events(engine, pubsub) {
  follow_settings();
}

Node::Node(Engine& engine, TestClock* clock)
    : engine_(engine),
      own_settings_(std::make_unique<Settings>()),
      settings(*own_settings_),
      acl(acl_commands()),
      watches(engine),
      claims(engine),
      test_clock(clock),
      events(engine, pubsub) {
  follow_settings();
}

Node::~Node() = default;

void Node::follow_settings() {
  const auto set_events = [this] {
    static_cast<void>(events.set_flags(settings.text(Setting::notify_keyspace_events)));
  };
  const auto allow_monitors = [this] {
    // mo: relaxed: a setting.
    monitors.allowed.store(settings.boolean(Setting::monitor), std::memory_order_relaxed);
  };
  set_events();
  allow_monitors();
  settings.on_change(Setting::notify_keyspace_events, set_events);
  settings.on_change(Setting::monitor, allow_monitors);
}

std::optional<std::string> Node::open_users() {
  if (const std::string path = settings.text(Setting::aclfile); !path.empty()) {
    std::ifstream file{path, std::ios::binary};
    if (!file) return "aclfile '" + path + "' cannot be read";
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (auto problem = acl.load_file(text, path)) return problem;
  }
  const auto set_password = [this] { acl.set_requirepass(settings.text(Setting::requirepass)); };
  if (!settings.text(Setting::requirepass).empty()) set_password();
  settings.on_change(Setting::requirepass, set_password);
  return std::nullopt;
}

bool Node::asks_for_password() const {
  return acl.open_session().needs_auth();
}

std::string Node::describe(const ClientState& client) const {
  const ClientHandle& handle = *client.handle;
  return "id=" + std::to_string(handle.origin.id) + " addr=" + handle.origin.address +
         " laddr=" + handle.origin.local_address + " name=" + handle.names().name +
         " db=" + std::to_string(client.db) + " user=" + client.user.user().name();
}

void Node::tick() {
  engine_.advance();
  events.drain();
}

}  // namespace semel::net
