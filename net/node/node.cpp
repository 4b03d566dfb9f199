#include "net/node/node.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "base/hex.hpp"
#include "net/commands/access.hpp"
#include "net/session/client_state.hpp"

namespace semel::net {
namespace {

/// Tells two lives of a node apart; nothing secret.
std::string new_run_id() {
  constexpr std::size_t length = 40;
  std::random_device random;
  std::string id;
  while (id.size() < length) id += base::hex_digits[random() % base::hex_digits.size()];
  return id;
}

/// The first line of the file at `path`. Or what is wrong with it.
std::optional<std::string> read_password(const std::string& path, std::string& password) {
  constexpr std::size_t bytes_max = 4096;  // as of requirepass
  const std::string about = "requirepass-file '" + path + "' ";
  std::ifstream file{path, std::ios::binary};
  std::string text(bytes_max + 2, '\0');
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(text.size())).eof()) {
    return about + (file ? "has more than 4096 bytes" : "cannot be read");
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) return about + "is empty";
  if (text.size() > bytes_max) return about + "has more than 4096 bytes";
  password = std::move(text);
  return std::nullopt;
}

}  // namespace

Node::Node(Engine& engine, Settings& from, TestClock* clock)
    : engine_(engine),
      settings(from),
      acl(acl_commands()),
      watches(engine),
      test_clock(clock),
      events(engine, pubsub),
      scripts(settings) {
  begin();
}

Node::Node(Engine& engine, TestClock* clock)
    : engine_(engine),
      own_settings_(std::make_unique<Settings>()),
      settings(*own_settings_),
      acl(acl_commands()),
      watches(engine),
      test_clock(clock),
      events(engine, pubsub),
      scripts(settings) {
  begin();
}

Node::~Node() = default;

void Node::follow_events() {
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

void Node::follow_memory() {
  const std::size_t whole = engine_.stats().bytes_limit;
  const auto follow = [this, whole] {
    client_memory->set_limit(clients_bytes_of(settings.text(Setting::maxmemory_clients), whole));
  };
  follow();
  settings.on_change(Setting::maxmemory_clients, follow);
}

void Node::begin() {
  follow_events();
  follow_memory();
  settings.on_change(Setting::requirepass, [this] {
    acl.set_requirepass(settings.text(Setting::requirepass));
    users_changed();
  });
  settings.on_change(Setting::protected_mode, [this] { review_clients(); });
  facts.run_id = new_run_id();
  facts.started_ms = engine_.clock().now().time_since_epoch().count();
  facts.started_unix_ms = engine_.clock().unix_ms();
  const auto follow = [this] {
    slow_log.set_limit_us(settings.integer(Setting::slowlog_log_slower_than));
    slow_log.set_length(static_cast<std::uint64_t>(settings.integer(Setting::slowlog_max_len)));
    latency.set_limit_ms(settings.integer(Setting::latency_monitor_threshold));
  };
  follow();
  for (const Setting setting : {Setting::slowlog_log_slower_than, Setting::slowlog_max_len,
                                Setting::latency_monitor_threshold}) {
    settings.on_change(setting, follow);
  }
}

std::optional<std::string> Node::open_users() {
  if (const std::string path = settings.text(Setting::aclfile); !path.empty()) {
    std::ifstream file{path, std::ios::binary};
    if (!file) return "aclfile '" + path + "' cannot be read";
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (auto problem = acl.load_file(text, path)) return problem;
  }
  std::string password = settings.text(Setting::requirepass);
  if (const std::string path = settings.text(Setting::requirepass_file); !path.empty()) {
    if (!password.empty()) return "requirepass and requirepass-file are both set";
    if (auto problem = read_password(path, password)) return problem;
  }
  if (!password.empty()) acl.set_requirepass(password);
  // mo: relaxed: nobody else is there yet
  was_open_.store(!asks_for_password(), std::memory_order_relaxed);
  return std::nullopt;
}

void Node::review_clients() {
  for (const auto& handle : clients.all()) handle->review();
}

void Node::users_changed() {
  // Those who are idle or only listen would learn of it with their next command.
  review_clients();
  const bool is_open = !asks_for_password();
  // mo: relaxed: only who changes it speaks of it
  if (was_open_.exchange(is_open, std::memory_order_relaxed) == is_open || !is_open) return;
  tell({.level = LogLevel::warning,
        .name = "default_user_open",
        .user = "default",
        .text = settings.boolean(Setting::protected_mode)
                    ? "needs no password any more; protected-mode lets only this machine in"
                    : "needs no password any more, and protected-mode is off: everybody who "
                      "reaches the port may use the node"});
}

bool Node::asks_for_password() const {
  return acl.open_session().needs_auth();
}

std::string Node::describe(const ClientState& client) const {
  const Timestamp now = engine_.clock().now();
  show_client(client, now);
  std::string line = line_of(*client.handle, now);
  line.pop_back();
  return line;
}

bool Node::tick(std::size_t budget) {
  const bool done = sweep(budget);
  const Timestamp now = engine_.clock().now();
  deadlines.poll(now);
  if (clients.pausing()) clients.unpause_after(now);
  if (client_memory->is_over()) clients.evict(*client_memory);
  stats.sample(now.time_since_epoch().count());
  return done;
}

bool Node::sweep(std::size_t budget) {
  constexpr std::int64_t ns_per_ms = 1'000'000;
  const std::int64_t began = ticks_->ns();
  // Deadlines are looked at by the same thread, also while a script takes long.
  const bool was_impatient = engine_.set_impatient(true);
  const bool done = engine_.advance(budget) != 0;
  static_cast<void>(engine_.set_impatient(was_impatient));
  events.drain();
  const std::int64_t ns = ticks_->ns() - began;
  if (latency.takes(ns)) {
    latency.add("expire-cycle", engine_.clock().unix_ms() / 1000, ns / ns_per_ms);
  }
  return done;
}

}  // namespace semel::net
