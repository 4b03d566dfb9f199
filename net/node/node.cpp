#include "net/node/node.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <utility>

#include "base/file_text.hpp"
#include "base/hex.hpp"
#include "base/random.hpp"
#include "net/cluster/group.hpp"
#include "net/commands/access.hpp"
#include "net/settings/setting_limits.hpp"
#include "net/time/held_clock.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

/// Distinguishes two runs of a node; not a secret.
std::string new_run_id() {
  std::array<std::uint8_t, 20> bytes{};
  base::fill_random(bytes);
  return base::hex_of(bytes);
}

Error bad(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

/// The first line of the file at `path`.
Result<std::string> read_password(const std::string& path) {
  constexpr std::size_t bytes_max = 4096;  // as of requirepass
  const std::string about = "requirepass-file '" + path + "' ";
  std::ifstream file{path, std::ios::binary};
  std::string text(bytes_max + 2, '\0');
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(text.size())).eof()) {
    return bad(about + (file ? "has more than 4096 bytes" : "cannot be read"));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) return bad(about + "is empty");
  if (text.size() > bytes_max) return bad(about + "has more than 4096 bytes");
  return text;
}

}  // namespace

Node::Node(Engine& engine, Settings& from, TestClock* clock)
    : engine_(engine),
      settings(from),
      acl(acl_commands()),
      watches(engine),
      stats(all_commands().size()),
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
      stats(all_commands().size()),
      test_clock(clock),
      events(engine, pubsub),
      scripts(settings) {
  // The engine was opened with its limit before this node; the setting takes it over.
  static_cast<void>(
      settings.assign(Setting::maxmemory, std::to_string(engine.stats().bytes_limit), {}));
  begin();
}

Node::~Node() = default;

void Node::set_group(Group& group) noexcept {
  services_.group = &group;
  services_.group_level = &group;
  facts.started_ms = SystemClock{}.now().time_since_epoch().count();
  facts.started_unix_ms = SystemClock{}.unix_ms();
}

void Node::follow_events() {
  const auto set_events = [this] {
    // The setting has refused letters that are none of a class of events.
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
  const auto follow = [this] {
    const std::size_t whole = engine_.stats().bytes_limit;
    client_memory->set_limit(clients_bytes_of(settings.text(Setting::maxmemory_clients), whole));
  };
  follow();
  settings.on_change(Setting::maxmemory_clients, follow);
  facts.maxmemory = settings.integer(Setting::maxmemory);
  settings.on_change(Setting::maxmemory, follow);  // a share of it is for clients
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
  static_assert(slowlog_entries_max == SlowLog::length_max);
  const auto follow = [this] {
    tracking.set_keys_max(
        static_cast<std::size_t>(settings.integer(Setting::tracking_table_max_keys)));
    slow_log.set_limit_us(settings.integer(Setting::slowlog_log_slower_than));
    slow_log.set_length(static_cast<std::uint64_t>(settings.integer(Setting::slowlog_max_len)));
    latency.set_limit_ms(settings.integer(Setting::latency_monitor_threshold));
    stats.set_counts_times(settings.boolean(Setting::latency_tracking));
    acl.log().set_length(static_cast<std::size_t>(settings.integer(Setting::acllog_max_len)));
    acl.set_first_channels(settings.choice<FirstChannels>(Setting::acl_pubsub_default));
  };
  follow();
  for (const Setting setting :
       {Setting::slowlog_log_slower_than, Setting::slowlog_max_len,
        Setting::latency_monitor_threshold, Setting::latency_tracking, Setting::acllog_max_len,
        Setting::acl_pubsub_default, Setting::tracking_table_max_keys}) {
    settings.on_change(setting, follow);
  }
}

Status Node::open_users() {
  if (const std::string path = settings.text(Setting::aclfile); !path.empty()) {
    const std::optional<std::string> text = base::read_file(path);
    if (!text) return bad("aclfile '" + path + "' cannot be read");
    SEMEL_CHECK(acl.load_file(*text, path));
  }
  std::string password = settings.text(Setting::requirepass);
  if (const std::string path = settings.text(Setting::requirepass_file); !path.empty()) {
    if (!password.empty()) return bad("requirepass and requirepass-file are both set");
    SEMEL_TRY(read, read_password(path));
    password = std::move(read);
  }
  if (!password.empty()) acl.set_requirepass(password);
  // mo: relaxed: before the first connection
  was_open_.store(!asks_for_password(), std::memory_order_relaxed);
  return Done{};
}

void Node::review_clients() {
  for (const auto& handle : clients.all()) handle->review();
}

void Node::users_changed() {
  // Clients that are idle or only subscribe would notice it with their next command.
  review_clients();
  const bool is_open = !asks_for_password();
  // mo: relaxed: only the thread that changes it logs it
  if (was_open_.exchange(is_open, std::memory_order_relaxed) == is_open || !is_open) return;
  hooks.report(
      {.level = LogLevel::warning,
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

bool Node::tick(std::size_t budget) {
  const engine::OwnState inside = own_state();
  // As in Redis, nothing is removed while writes are held back; expired records stay unreadable.
  // mo: relaxed: of DEBUG SET-ACTIVE-EXPIRE; takes effect soon
  const bool may_sweep = !clients.pausing() && facts.sweeps.load(std::memory_order_relaxed);
  const bool done = !may_sweep || sweep(budget);
  const Timestamp now = engine_.clock().now();
  deadlines.poll(now);
  if (clients.pausing()) clients.unpause_after(now);
  if (client_memory->is_over()) clients.evict(*client_memory);
  stats.sample(now.time_since_epoch().count());
  return done;
}

bool Node::sweep(std::size_t budget) {
  // A node that follows a master removes a key only when the master does.
  const HeldClock::Hold hold{role.follows()};
  constexpr std::int64_t ns_per_ms = 1'000'000;
  const std::int64_t began = ticks().ns();
  // Deadlines are looked at by the same thread, also while a script takes long.
  const bool previous_no_wait = engine_.host().set_no_wait(true);
  const bool done = engine_.advance(budget) != 0;
  static_cast<void>(engine_.host().set_no_wait(previous_no_wait));
  events.drain();
  tracking.send(true);
  const std::int64_t ns = ticks().ns() - began;
  if (latency.takes(ns)) {
    latency.add("expire-cycle", engine_.clock().unix_ms() / 1000, ns / ns_per_ms);
  }
  return done;
}

}  // namespace semel::net
