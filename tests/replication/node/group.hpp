// A group of replicas in one process, on loopback, each with a directory of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "replication/node/replica.hpp"

namespace semel::tests {

/// A port of this machine that was free a moment ago, another one each time. One thread at a time.
[[nodiscard]] std::uint16_t free_port();

class Group {
 public:
  /// That of a node which is opened; must outlive it.
  using RunnerOf = std::function<replication::RequestRunner*(replication::NodeId, Engine&)>;
  /// `level`: of features, that the release knows which founds it.
  explicit Group(unsigned nodes, std::uint64_t snapshot_every = std::uint64_t{64} << 20,
                 RunnerOf runner = {},
                 replication::FeatureLevel level = replication::feature_level_newest,
                 bool forwards = false);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Opens and starts a node that is not open. `founds`: it may begin the group. `clock` must
  /// outlive it; null: the system's.
  void open(replication::NodeId id, bool founds = true, const Clock* clock = nullptr);
  void close(replication::NodeId id);
  /// Plays a release that knows this level of features, from the node's next opening on.
  void play_release(replication::NodeId id, replication::FeatureLevel level) {
    levels_[id] = level;
  }
  /// Opens a node anew for which a snapshot has come. True: one was.
  bool reopen_where_needed();
  [[nodiscard]] replication::Replica& node(replication::NodeId id) { return *nodes_.at(id); }
  [[nodiscard]] bool is_open(replication::NodeId id) const { return nodes_.at(id) != nullptr; }
  /// The node that leads; waits for it, and opens again what has to be. 0: there is none in time.
  [[nodiscard]] replication::NodeId wait_leader();
  /// Waits until a node has applied all that was answered before.
  [[nodiscard]] bool wait_equal(replication::NodeId id);
  /// False: it does not come true in time.
  [[nodiscard]] static bool wait_for(const std::function<bool()>& is);
  [[nodiscard]] std::string address(replication::NodeId id) const;
  [[nodiscard]] std::string directory(replication::NodeId id) const {
    return path_ + "/" + std::to_string(id);
  }
  [[nodiscard]] std::string said() const;

 private:
  const std::uint64_t snapshot_every_;
  const RunnerOf runner_;
  const bool forwards_;
  std::uint64_t marks_ = 0;
  std::string path_;
  std::map<replication::NodeId, std::string> addresses_;
  std::map<replication::NodeId, std::string> founders_;
  std::map<replication::NodeId, replication::FeatureLevel> levels_;
  std::map<replication::NodeId, std::unique_ptr<replication::Replica>> nodes_;
  mutable std::mutex mutex_;
  std::vector<std::string> said_;
};

}  // namespace semel::tests
