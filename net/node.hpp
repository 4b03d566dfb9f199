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
#include "net/claim_spaces.hpp"
#include "net/clients.hpp"
#include "net/config/settings.hpp"
#include "net/deadlines.hpp"
#include "net/keyspace_events.hpp"
#include "net/latency_events.hpp"
#include "net/monitor.hpp"
#include "net/node_stats.hpp"
#include "net/pubsub.hpp"
#include "net/scripts.hpp"
#include "net/slow_log.hpp"
#include "net/test_clock.hpp"
#include "net/ticks.hpp"
#include "net/watches.hpp"
#include "semel/engine.hpp"

namespace semel::net {

struct ClientState;

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
  [[nodiscard]] bool sweep(std::size_t budget);

  Engine& engine_;
  const std::unique_ptr<Settings> own_settings_;
  const SystemTicks system_ticks_;
  const TickSource* ticks_ = &system_ticks_;
  std::atomic<std::uint64_t> client_ids_{1};

 public:
  Settings& settings;
  NodeHooks hooks;
  Acl acl;
  Watches watches;
  ClaimSpaces claims;
  Clients clients;
  Deadlines deadlines;
  NodeStats stats;
  SlowLog slow_log;
  LatencyEvents latency;
  NodeFacts facts;
  std::atomic<std::uint64_t> memory_peak{0};  ///< the most that INFO has seen in use
  TestClock* const test_clock;                ///< null: time is not the clients'
  PubSub pubsub;
  KeyspaceEvents events;
  Monitors monitors;
  Scripts scripts;
};

}  // namespace semel::net
