// Failures after which a node ends: of its storage, and of its part in a group.
#pragma once

#include <atomic>

#include "net/group/node_group.hpp"
#include "net/settings/settings.hpp"
#include "tools/semel/node/node_storage.hpp"
#include "tools/semel/node/node_watch.hpp"

namespace semel::tool {

class NodeFailures {
 public:
  /// All must outlive this.
  NodeFailures(const net::Settings& settings, NodeWatch& watch, NodeStorage& storage,
               net::NodeGroup& group)
      : settings_(settings), watch_(watch), storage_(storage), group_(group) {}

  /// To be called by one thread, every 100 ms: after a failure it writes the reason and asks for
  /// the end of the process, once.
  void look();

  // From any thread.
  [[nodiscard]] bool storage_failed() const noexcept {
    return storage_failed_.load(std::memory_order_relaxed);  // mo: relaxed: ask_for_end() orders it
  }
  [[nodiscard]] bool group_ended() const noexcept {
    return group_ended_.load(std::memory_order_relaxed);  // mo: relaxed: as above
  }

 private:
  void look_at_storage();
  void look_at_group();

  const net::Settings& settings_;
  NodeWatch& watch_;
  NodeStorage& storage_;
  net::NodeGroup& group_;
  unsigned looks_ = 0;
  // Written by the thread that looks, before it asks for the end.
  std::atomic<bool> storage_failed_{false};
  std::atomic<bool> group_ended_{false};
};

}  // namespace semel::tool
