// Requests of a connection of a node in a group. Each one runs here, runs here after a confirmed
// read from the leader, or is proposed to the replicated log.
//
// Writes that follow each other are gathered and proposed together. Any other request waits until
// they are proposed, so that replies come in the order of requests. A request that waits for the
// group is given again, with the same words, when the wait has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "net/cluster/group_round.hpp"
#include "net/node/group_library_run.hpp"
#include "net/node/group_request.hpp"
#include "net/node/group_script_run.hpp"
#include "net/resp/large_bytes.hpp"

namespace semel::net {

class BlockingCommand;

/// Belongs to one connection, on its thread only. The constructor's arguments must outlive it.
class GroupSession {
 public:
  GroupSession(Node& node, ClientState& client, LargeReplies& large) noexcept
      : node_(node),
        client_(client),
        large_(large),
        library_(node, client),
        script_(node, client) {}
  GroupSession(const GroupSession&) = delete;
  GroupSession& operator=(const GroupSession&) = delete;

  /// `may_join`: the request may be proposed together with the gathered writes.
  [[nodiscard]] Taken take(const PresentRequest& request, bool may_join, std::string& out);
  /// No write is gathered.
  [[nodiscard]] bool is_empty() const noexcept { return round_.is_empty(); }
  /// Proposes the gathered writes, if there are any; the connection waits for their replies.
  void submit();
  /// The first `bytes` of the round's input have run.
  void forget_input(std::size_t bytes) noexcept;
  /// The client has disconnected.
  void end() noexcept { script_.end(); }

 private:
  struct Write;

  [[nodiscard]] Taken write(const PresentRequest& request, bool may_join, std::string& out);
  [[nodiscard]] Write judge(const PresentRequest& request, bool may_join) const;
  [[nodiscard]] bool answers_now(const PresentRequest& request, std::string& out);
  [[nodiscard]] Taken read(const PresentRequest& request, bool may_join, std::string& out);
  [[nodiscard]] Taken refuse(std::string_view text, std::string& out);
  [[nodiscard]] Taken refuse(const PresentRequest& request, ErrorCode why, std::string& out);
  enum class Opening : std::uint8_t { open, asked, refused };
  [[nodiscard]] Opening take_session(const PresentRequest& request, std::string& out);
  void gather(const PresentRequest& request, const SharedScript& script);
  void submit_wait(const PresentRequest& request, std::unique_ptr<BlockingCommand> command);
  void gather_transaction();
  void gather_read_keys(const CommandRow& row, std::span<const std::string_view> words);
  [[nodiscard]] Tracking::Message message_of_reads() const;
  void address_round();

  Node& node_;
  ClientState& client_;
  LargeReplies& large_;
  GroupRound round_;
  GroupLibraryRun library_;
  GroupScriptRun script_;
};

}  // namespace semel::net
