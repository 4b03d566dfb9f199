// What all connections of one node share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/acl/acl.hpp"
#include "net/events/keyspace_events.hpp"
#include "net/events/monitor.hpp"
#include "net/events/pubsub.hpp"
#include "net/resp/client_memory.hpp"
#include "net/resp/log_level.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/clients.hpp"
#include "net/session/watches.hpp"
#include "net/settings/settings.hpp"
#include "net/stats/latency_events.hpp"
#include "net/stats/node_stats.hpp"
#include "net/stats/slow_log.hpp"
#include "net/time/deadlines.hpp"
#include "net/time/test_clock.hpp"
#include "net/time/ticks.hpp"
#include "semel/engine.hpp"

namespace semel::net {

struct ClientState;

/// Something that an operator wants to find in the log. The views are valid during the call.
struct NodeEvent {
  LogLevel level = LogLevel::notice;
  std::string_view name{};     ///< a word of our own; bursts are counted by it
  std::string_view address{};  ///< of the client
  std::string_view user{};
  std::string_view text{};  ///< without secrets; from clients, so any bytes
};

/// What only the program around a node can do. Each may be empty.
struct NodeHooks {
  /// SHUTDOWN; returns at once.
  std::function<void()> shutdown{};
  /// Puts `text` in the place of a file's content, all or nothing. False: it could not.
  std::function<bool(const std::string& path, std::string_view text)> replace_file{};
  /// CONFIG REWRITE. Returns the error for the reply.
  std::function<std::optional<std::string>()> rewrite_config{};
  /// Somebody at `address` gave a wrong password for `user`, or one that may not log in.
  std::function<void(std::string_view user, std::string_view address)> login_denied{};
  /// From any thread.
  std::function<void(const NodeEvent& event)> event{};
  /// redis.log of a script.
  std::function<void(lua::LogLevel level, std::string_view text)> script_log{};
};

/// What INFO tells of the process; whoever starts it fills it in, before the first connection.
struct NodeFacts {
  std::uint16_t tcp_port = 0;
  std::string executable{};
  std::string config_file{};
  std::string run_id{};         ///< 40 hex digits; made up when the node begins
  std::int64_t started_ms = 0;  ///< on the engine's clock
  std::int64_t started_unix_ms = 0;
  bool journals = false;  ///< what is written is on a disk, or on its way there
};

class Node {
 public:
  /// `engine` and `settings` must live as long as this. `clock`: the engine's own, if clients may
  /// move it.
  Node(Engine& engine, Settings& settings, TestClock* clock = nullptr);
  /// With all settings at their defaults.
  explicit Node(Engine& engine, TestClock* clock = nullptr);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] std::uint64_t next_client_id() noexcept {
    return client_ids_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a number
  }
  /// Takes the users from the settings aclfile and requirepass. Returns what is wrong.
  [[nodiscard]] std::optional<std::string> open_users();
  /// Whether who does not log in is refused.
  [[nodiscard]] bool asks_for_password() const;
  /// The users have changed: their connections look at once, and the log says if now the user
  /// default needs no password.
  void users_changed();
  void tell(const NodeEvent& event) const {
    if (hooks.event) hooks.event(event);
  }
  /// A client's line, as CLIENT INFO has it.
  [[nodiscard]] std::string describe(const ClientState& client) const;
  /// Lets what is due happen; to be called every few ms, and after the clock was moved. Removes at
  /// most about `budget` ended records. False: there are more, so call again soon.
  bool tick(std::size_t budget = 1'000'000);

  /// What commands are timed by; the system's, unless another one is set before the first
  /// connection, which must live as long as this.
  [[nodiscard]] const TickSource& ticks() const noexcept { return *ticks_; }
  void set_ticks(const TickSource& ticks) noexcept { ticks_ = &ticks; }

 private:
  void begin();
  void follow_events();
  void review_clients();
  void follow_memory();
  [[nodiscard]] bool sweep(std::size_t budget);

  Engine& engine_;
  const std::unique_ptr<Settings> own_settings_;
  const SystemTicks system_ticks_;
  const TickSource* ticks_ = &system_ticks_;
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
  Deadlines deadlines;
  NodeStats stats;
  SlowLog slow_log;
  LatencyEvents latency;
  NodeFacts facts;
  std::atomic<std::uint64_t> memory_peak{0};  ///< the most that INFO has seen in use
  TestClock* const test_clock;                ///< null: time is not the clients'
  PubSub pubsub{client_memory};
  KeyspaceEvents events;
  Monitors monitors;
  Scripts scripts;
};

}  // namespace semel::net
