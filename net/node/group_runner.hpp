// Carries out what the log of a group says, on each of its nodes.
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

/// Of the one thread that applies entries.
class GroupRunner {
 public:
  /// `node` must outlive this.
  explicit GroupRunner(Node& node);
  ~GroupRunner();
  GroupRunner(const GroupRunner&) = delete;
  GroupRunner& operator=(const GroupRunner&) = delete;

  struct Result {
    std::string replies;
    std::vector<ErrorCode> failures;  ///< of the engine, in order
  };
  /// Whether the words are those of commands here. Any thread.
  [[nodiscard]] static bool knows(std::span<const std::string_view> words) noexcept;
  /// Within the scope of an entry. std::bad_alloc.
  [[nodiscard]] Result run(const GroupRequest& request);
  /// The node's libraries follow those of the group. Within the scope of an entry, or before the
  /// first one. Errors: storage_newer (here the change is refused). std::bad_alloc.
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
