// Nodes of a group that one process embeds, as a service does: each with a directory and an address
// of its own.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/claims.hpp"
#include "semel/group_node.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

class GroupNodes {
 public:
  explicit GroupNodes(unsigned count, Millis calls_wait = Millis{20'000}) : patience_(calls_wait) {
    std::string pattern = (std::filesystem::temp_directory_path() / "semel_nodes_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    for (std::uint64_t id = 1; id <= count; ++id) {
      peers_[id] = "127.0.0.1:" + std::to_string(free_port());
    }
  }
  ~GroupNodes() {
    nodes_.clear();
    std::filesystem::remove_all(path_);
  }
  GroupNodes(const GroupNodes&) = delete;
  GroupNodes& operator=(const GroupNodes&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::map<std::uint64_t, std::string>& peers() const noexcept {
    return peers_;
  }
  [[nodiscard]] ReplicationOptions options(std::uint64_t id) const {
    ReplicationOptions options;
    options.cluster_id = 0x5e3e1;
    options.node_id = id;
    options.directory = path_ + "/" + std::to_string(id);
    options.peers = peers_;
    options.election = Millis{150};
    options.heartbeat = Millis{30};
    options.patience = patience_;
    options.engine.memory_bytes = std::size_t{32} << 20;
    options.report = [this, id](const std::string& what) {
      const base::MutexLock lock{mutex_};
      said_ += std::to_string(id) + ": " + what + "\n";
    };
    return options;
  }
  /// As a service does at its start.
  void open(std::uint64_t id) { open(options(id)); }
  void open(const ReplicationOptions& options) {
    found_once(options);
    auto made = GroupNode::open(options);
    INFO((made.ok() ? std::string{} : made.error().message()));
    REQUIRE(made.ok());
    nodes_[options.node_id] = *std::move(made);
  }
  /// In the life of a directory.
  static void found_once(const ReplicationOptions& options) {
    if (std::filesystem::exists(options.directory)) return;
    const Status founded = GroupNode::found(options);
    INFO((founded ? std::string{} : founded.error().message()));
    REQUIRE(founded);
  }
  void open_all() {
    for (const auto& [id, address] : peers_) open(id);
    REQUIRE(wait_ready());
  }
  void close(std::uint64_t id) { nodes_.erase(id); }

  [[nodiscard]] GroupNode& at(std::uint64_t id) { return *nodes_.at(id); }
  [[nodiscard]] Engine& engine(std::uint64_t id) { return at(id).engine(); }
  [[nodiscard]] LocalRedis& redis(std::uint64_t id) { return at(id).redis(); }
  /// Those that are open know a leader, and use the newest level of features. False: not in time.
  [[nodiscard]] bool wait_ready() {
    return Group::wait_for([this] {
      for (auto& [id, node] : nodes_) {
        const ReplicationStatus status = node->group().status();
        if (!node->group().ready() || status.feature_level != status.feature_level_newest) {
          return false;
        }
      }
      return true;
    });
  }
  /// Waits for it. 0: none in time.
  [[nodiscard]] std::uint64_t leader() {
    std::uint64_t found = 0;
    const bool is_found = Group::wait_for([&] {
      for (auto& [id, node] : nodes_) {
        if (node->group().status().leads) found = id;
      }
      return found != 0;
    });
    return is_found ? found : 0;
  }
  /// An open one that does not lead.
  [[nodiscard]] std::uint64_t follower() {
    const std::uint64_t leads = leader();
    for (auto& [id, node] : nodes_) {
      if (id != leads) return id;
    }
    return 0;
  }
  [[nodiscard]] Claims claims(std::uint64_t id, const std::string& name) {
    auto made = engine(id).claims(name, Policy{});
    INFO(said());
    REQUIRE(made.ok());
    return *std::move(made);
  }
  [[nodiscard]] std::string said() const {
    const base::MutexLock lock{mutex_};
    return said_;
  }

 private:
  const Millis patience_;
  std::string path_;
  std::map<std::uint64_t, std::string> peers_;
  mutable base::Mutex mutex_;
  mutable std::string said_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::unique_ptr<GroupNode>> nodes_;
};

/// The field of a SEMEL command's answer; names and values alternate.
[[nodiscard]] inline std::string field(const Reply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (reply.items[i].text == name) return reply.items[i + 1].text;
  }
  return "(" + to_text(reply) + " has no " + std::string{name} + ")";
}

}  // namespace semel::tests
