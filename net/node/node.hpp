// A node: the state that all of its connections share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/replica/own_state.hpp"
#include "net/acl/acl.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/commands/services.hpp"
#include "net/events/keyspace_events.hpp"
#include "net/events/monitor.hpp"
#include "net/events/pubsub.hpp"
#include "net/node/node_memory.hpp"
#include "net/resp/client_memory.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/session/clients.hpp"
#include "net/session/node_role.hpp"
#include "net/session/tracking.hpp"
#include "net/session/watches.hpp"
#include "net/settings/settings.hpp"
#include "net/stats/latency_events.hpp"
#include "net/stats/node_stats.hpp"
#include "net/stats/slow_log.hpp"
#include "net/time/deadlines.hpp"
#include "net/time/test_clock.hpp"
#include "net/time/ticks.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"

namespace semel::net {

class Node final : private NodeControl {
 public:
  /// `engine` and `from` must live as long as this. `clock`: the engine's own, if clients may
  /// move it.
  Node(Engine& engine, Settings& from, TestClock* clock = nullptr);
  /// With all settings at their defaults.
  explicit Node(Engine& engine, TestClock* clock = nullptr);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  /// The parts of the node that commands use.
  [[nodiscard]] Services& services() noexcept { return services_; }
  [[nodiscard]] std::uint64_t next_client_id() noexcept {
    return client_ids_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a number
  }
  /// Reads the users from the settings aclfile, requirepass and requirepass-file. The detail of an
  /// error is its whole text.
  [[nodiscard]] Status open_users();
  /// Whether clients must log in.
  [[nodiscard]] bool asks_for_password() const;
  /// Does the work that is due: call it every few ms, and after the clock was moved. Removes about
  /// `budget` expired records at most. False: there are more, so call again soon.
  bool tick(std::size_t budget = 1'000'000);

  /// The clock that times commands: the system's, unless another is set before the first
  /// connection. It must outlive this.
  [[nodiscard]] const TickSource& ticks() const noexcept { return services_.ticks(); }
  void set_ticks(const TickSource& ticks) noexcept { services_.tick_source = &ticks; }
  /// For a thread inside the node: in a group, its handlers read the state of this node.
  [[nodiscard]] engine::OwnState own_state() noexcept {
    return engine::OwnState{services_.group == nullptr ? nullptr : &engine_};
  }
  /// Sets the group of this node, which has the same engine. Before the first connection; the group
  /// must outlive the connections.
  void set_group(Group& group) noexcept;
  /// What REPLICAOF asks; before the first connection. It must outlive the connections.
  void set_following(Following& following) noexcept { services_.following = &following; }

 private:
  void users_changed() override;
  void begin();
  void follow_events();
  void review_clients();
  void follow_memory();
  [[nodiscard]] bool sweep(std::size_t budget);

  Engine& engine_;
  const std::unique_ptr<Settings> own_settings_;
  const SystemTicks system_ticks_;
  std::atomic<std::uint64_t> client_ids_{1};
  std::atomic<bool> was_open_{true};  // whether the user default needed no password

 public:
  Settings& settings;
  NodeHooks hooks;
  Acl acl;
  Watches watches;
  /// Outlives the node with those whom it is sent to.
  const std::shared_ptr<ClientMemory> client_memory = std::make_shared<ClientMemory>();
  Clients clients;
  Tracking tracking{engine_, watches, clients};
  Deadlines deadlines;
  NodeStats stats;
  SlowLog slow_log;
  LatencyEvents latency;
  NodeFacts facts;
  TestClock* const test_clock;  ///< null: clients cannot move the clock
  PubSub pubsub{client_memory};
  KeyspaceEvents events;
  Monitors monitors;
  BusyScripts busy_scripts;
  Scripts scripts;
  NodeRole role;
  NodeMemory memory{engine_, settings, events, tracking};

 private:
  Services services_{.engine = engine_,
                     .settings = settings,
                     .hooks = hooks,
                     .acl = acl,
                     .watches = watches,
                     .tracking = tracking,
                     .client_memory = client_memory,
                     .clients = clients,
                     .deadlines = deadlines,
                     .stats = stats,
                     .slow_log = slow_log,
                     .latency = latency,
                     .facts = facts,
                     .test_clock = test_clock,
                     .pubsub = pubsub,
                     .events = events,
                     .monitors = monitors,
                     .busy_scripts = busy_scripts,
                     .scripts = scripts,
                     .role = role,
                     .memory = memory.guard,
                     .control = *this,
                     .tick_source = &system_ticks_};
};

}  // namespace semel::net
