// What a command may use of the node: the parts that all connections share, by reference. Only
// declared here, so that a command includes the parts it uses and no others, and none of them knows
// the node (net/node/node.hpp), which owns them all.
#pragma once

#include <memory>

namespace semel {
class Engine;
}  // namespace semel

namespace semel::net {

class Acl;
class BusyScripts;
class Group;
class GroupLevel;
class ClientMemory;
class Clients;
class Deadlines;
class Following;
class KeyspaceEvents;
class LatencyEvents;
class MemoryGuard;
class Monitors;
class NodeRole;
class NodeStats;
class PubSub;
class Scripts;
class Settings;
class SlowLog;
class TestClock;
class TickSource;
class Tracking;
class Watches;
struct NodeFacts;
struct NodeHooks;

/// What only the node itself can do.
class NodeControl {
 public:
  /// The users have changed: their connections look at their rights at once, and the log says if
  /// the user default needs no password any more.
  virtual void users_changed() = 0;

 protected:
  ~NodeControl() = default;
};

/// Lives as long as the node.
struct Services {
  Engine& engine;
  Settings& settings;
  NodeHooks& hooks;
  Acl& acl;
  Watches& watches;
  Tracking& tracking;
  const std::shared_ptr<ClientMemory>& client_memory;
  Clients& clients;
  Deadlines& deadlines;
  NodeStats& stats;
  SlowLog& slow_log;
  LatencyEvents& latency;
  NodeFacts& facts;
  TestClock* test_clock;  ///< null: clients may not move the time
  PubSub& pubsub;
  KeyspaceEvents& events;
  Monitors& monitors;
  BusyScripts& busy_scripts;
  Scripts& scripts;
  NodeRole& role;
  MemoryGuard& memory;
  NodeControl& control;
  const TickSource* tick_source;            ///< never null
  Group* group = nullptr;                   ///< that the node belongs to; null: none
  const GroupLevel* group_level = nullptr;  ///< of that group
  Following* following = nullptr;           ///< the link to a master; null: there can be none

  /// What commands are timed by.
  [[nodiscard]] const TickSource& ticks() const noexcept { return *tick_source; }
};

}  // namespace semel::net
