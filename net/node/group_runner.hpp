// Runs the entries of a group's replicated log on each of its nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/cluster/group.hpp"
#include "net/node/node.hpp"
#include "net/session/client_state.hpp"
#include "net/stats/node_stats.hpp"

namespace semel::net {

/// Only on the thread that applies entries.
class GroupRunner {
 public:
  /// `node` must outlive this.
  explicit GroupRunner(Node& node);
  ~GroupRunner();
  GroupRunner(const GroupRunner&) = delete;
  GroupRunner& operator=(const GroupRunner&) = delete;

  struct Result {
    std::string replies;
    std::vector<ErrorCode> failures;  ///< errors of the engine, in order
  };
  /// Whether this release knows the command of the words. Any thread.
  [[nodiscard]] static bool knows(std::span<const std::string_view> words) noexcept;
  /// Within the scope of an entry. std::bad_alloc.
  [[nodiscard]] Result run(const GroupRequest& request);
  /// Applies a change of the group's libraries to the node. Within the scope of an entry, or before
  /// the first one. Errors: storage_newer (this release refuses the change). std::bad_alloc.
  [[nodiscard]] Status change_libraries(const LibraryChange& change);

 private:
  void begin();
  void run_each(const GroupRequest& request, std::string& replies);
  void run_transaction(const GroupRequest& request, std::string& replies);
  void run_one(const std::vector<std::string_view>& words, RespWriter& reply);
  [[nodiscard]] bool has_changed(const GroupRequest& request);
  void note_conflict(const GroupRequest& request);

  Node& node_;
  ClientState client_;
  HeldLane lane_;
};

}  // namespace semel::net
