// The group as a node sees it. Every change goes through the replicated log: a connection submits
// its requests, every node runs them when it applies the entry, and the replies return at the node
// that received them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/logged/command.hpp"
#include "engine/types/stream.hpp"
#include "net/cluster/script_turns.hpp"
#include "net/session/claim_repeats.hpp"
#include "net/session/group_level.hpp"
#include "semel/claims.hpp"
#include "semel/function.hpp"
#include "semel/op.hpp"
#include "semel/replication.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// Requests of one client, in order or as a transaction, as they are in the replicated log. The
/// views are valid during the call that receives them.
using GroupRequest = replication::RequestCommand;

/// What a request does to the group's memory. One that grows is refused when that is full.
enum class MemoryUse : std::uint8_t { frees, grows };

struct GroupReply {
  ErrorCode error = ErrorCode::ok;  ///< not_leader, log_busy: nothing was changed; outcome_unknown
  std::string replies{};
  std::string detail{};  ///< of an error; may be empty
};

/// The answer to a change of libraries.
struct GroupLibraryAnswer {
  ErrorCode error = ErrorCode::ok;  ///< as in GroupReply; refused: the group cannot have any yet
  std::string detail{};             ///< of an error; may be empty
  replication::LibraryVerdict verdict{};
};

struct GroupMember : ReplicationMember {
  std::string client_address{};       ///< host:port; empty: not known
  std::uint64_t match = 0;            ///< entries that it has on its disk; known to the leader
  std::uint64_t bytes_sent = 0;       ///< to it, by this node
  std::uint64_t frames_received = 0;  ///< of it
};

/// Splits "host:port" and "[v6]:port".
[[nodiscard]] std::pair<std::string, std::string> host_and_port(const std::string& address);

/// The state of the group when it was last read.
struct GroupView : ReplicationProgress {
  std::uint64_t cluster_id = 0;
  std::uint64_t node_id = 0;
  std::uint64_t elections = 0;
  bool is_changing = false;     ///< a change of members is not committed
  std::uint64_t log_bytes = 0;  ///< on the disk
  std::uint64_t snapshot_bytes_sent = 0;
  std::uint64_t snapshot_bytes_received = 0;
  std::uint64_t refused = 0;  ///< connections of non-members
  std::vector<GroupMember> members{};
};

class Group : public ClaimRepeats, public GroupLevel {
 public:
  virtual ~Group() = default;
  [[nodiscard]] ScriptTurns& script_turns() noexcept { return script_turns_; }
  // --- from any thread --------------------------------------------------------------------------
  [[nodiscard]] virtual bool leads() const noexcept = 0;
  /// Whether submit() forwards to the leader when this node does not lead.
  [[nodiscard]] virtual bool forwards() const noexcept = 0;
  [[nodiscard]] virtual GroupView view() const = 0;
  /// Proposes the request. `done` is called once, on some thread, and must be quick. A request that
  /// grows is refused when the node's memory is full (memory_full): after it is in the replicated
  /// log it is too late.
  virtual void submit(GroupRequest request, MemoryUse use,
                      std::function<void(GroupReply)> done) = 0;
  /// The same for a change of function libraries. It is applied here when `done` is called.
  virtual void change_libraries(const replication::LibraryChange& change,
                                std::function<void(GroupLibraryAnswer)> done) = 0;
  /// Calls `done` when the engine has every change acknowledged before the call, by any node.
  virtual void read(std::function<void(ErrorCode)> done) = 0;

  /// Opens a session for claims bound to a connection of this node. Errors: those of submit().
  virtual void open_session(std::function<void(ErrorCode, SessionId)> done) = 0;
  /// Closes the session eventually, if there is a leader: at the latest the next process of this
  /// node closes it.
  virtual void close_session(SessionId session) noexcept = 0;
  /// The group's time, as far as this node knows it.
  [[nodiscard]] virtual Timestamp now() const noexcept = 0;

  /// Calls `done` once, when a claim may be free or answered differently (its error is ok: submit
  /// it again), or at `deadline` of the group's time (timed_out). It may run on the thread that
  /// applies entries: it must not block, nor call the engine. `ticket` is written before. False:
  /// `outcome` is the answer, and `done` is not called. `name`: of a namespace.
  [[nodiscard]] virtual bool wait_for_change(Bytes name, Bytes key, Timestamp deadline,
                                             ClaimCallback done, WaitTicket& ticket,
                                             ClaimOutcome& outcome) = 0;
  /// The same of objects: when one of `keys` has elements of `kind`. `arrival`: the ticket of the
  /// first wait of this command, whose place it keeps among those of this node; 0: this is the
  /// first. Not ok: it does not wait, and `done` is not called.
  struct ObjectWait {
    std::span<const KeyRef> keys;
    Kind kind = Kind::list;
    Timestamp deadline = no_end;
    WaitTicket arrival = 0;
    std::span<const engine::StreamId> behind{};    ///< of streams, one of each key
    std::optional<std::string_view> group_name{};  ///< of XREADGROUP, instead
  };
  [[nodiscard]] virtual ErrorCode wait_for_object(const ObjectWait& wait,
                                                  Function<void(ErrorCode)> done,
                                                  WaitTicket& ticket) = 0;
  /// The same of claims: when one of `keys` of the namespace is free.
  struct SlotWait {
    Bytes name;
    std::span<const std::string> keys;
    Timestamp deadline = no_end;
    WaitTicket arrival = 0;
  };
  [[nodiscard]] virtual ErrorCode wait_for_slot(const SlotWait& wait,
                                                Function<void(ErrorCode)> done,
                                                WaitTicket& ticket) = 0;
  virtual void stop_waiting(WaitTicket ticket) noexcept = 0;
  /// The last id of a stream, as this node has it; 0-0: there is no stream. None: ask again.
  [[nodiscard]] virtual std::optional<engine::StreamId> last_id_of(const KeyRef& key) = 0;

  // --- for operators, at the leader; they block for a moment ------------------------------------
  enum class Change : std::uint8_t { add, promote, demote, remove, transfer, upgrade };
  /// `id` 0 of a transfer: any member that is up to date. `address`: of an add. Errors: not_leader,
  /// refused (too early, with the reason), bad_option (with the reason), closing.
  [[nodiscard]] virtual Status change(Change what, std::uint64_t id,
                                      const std::string& address) = 0;

 private:
  ScriptTurns script_turns_;
};

}  // namespace semel::net
