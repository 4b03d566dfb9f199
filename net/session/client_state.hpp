// What a connection remembers from command to command.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/acl.hpp"
#include "net/resp/large_bytes.hpp"
#include "net/resp/resp_writer.hpp"
#include "net/session/client_handle.hpp"
#include "net/session/execution_context.hpp"
#include "net/session/subscriber.hpp"
#include "net/session/tracker.hpp"
#include "net/session/watches.hpp"
#include "net/stats/node_stats.hpp"
#include "net/time/deadlines.hpp"
#include "semel/claims.hpp"

namespace semel::net {

struct CommandRow;
struct ScriptHost;

/// A command between MULTI and EXEC.
struct QueuedCommand {
  const CommandRow* row;
  std::vector<std::string> words;
};

/// From MULTI to EXEC or DISCARD.
struct Transaction {
  std::vector<QueuedCommand> commands;
  std::size_t bytes = 0;
  bool failed = false;  ///< a command was refused: EXEC will not run
};

/// What CLIENT REPLY has asked for.
enum class Replies : std::uint8_t {
  on,
  off,
  skip_next,  ///< after the present command, CLIENT REPLY SKIP
  skip,       ///< of the present command
};

struct ClientState {
  std::shared_ptr<ClientHandle> handle;
  std::uint8_t db = 0;
  Resp dialect = Resp::two;
  AclSession user{};
  bool closes = false;               ///< after the replies that are written
  bool waits = false;                ///< for the reply of handle->reply(); nothing else is run
  bool discards_wait_reply = false;  ///< the reply of handle->reply() is discarded (CLIENT REPLY)
  bool held_back = false;            ///< by CLIENT PAUSE; nothing else is carried out
  bool reads_here = false;           ///< READONLY: of a group, what this node has is recent enough
  bool no_touch = false;             ///< CLIENT NO-TOUCH: its commands are no uses of keys
  bool out_of_memory = false;        ///< when its command began: its scripts may not add to it
  bool has_yielded = false;         ///< its script takes long and has yielded: waits, until it ends
  bool may_yield = false;           ///< its thread can serve others while it has yielded
  bool error_is_counted = false;    ///< of the present command: the same as one before
  std::int64_t slept_ns = 0;        ///< by DEBUG SLEEP, a part of what the present command takes
  std::int64_t script_unix_us = 0;  ///< the time that a script sees; 0: there is none
  Replies replies = Replies::on;
  const ExecutionContext* context = &direct_execution;  ///< of the present command; never null
  std::unique_ptr<Transaction> transaction{};           ///< null: none
  std::unique_ptr<QueuedCommand> waits_for{};  ///< a waiting command, which may lose its right to
                                               ///< an answer
  std::uint64_t waits_since = 0;               ///< the generation of users it was judged by
  std::unique_ptr<Watcher> watcher{};          ///< null: nothing is watched
  std::size_t watched_bytes = 0;               ///< by watcher
  Deadlines::Id deadline = 0;                  ///< of the present wait; 0: none
  const std::string_view* last_command = nullptr;   ///< its row's name; null: none yet
  StatsLane* lane = nullptr;                        ///< of the thread; null: nothing is counted
  SessionId session = 0;                            ///< of claims that end with it; 0: none yet
  std::unique_ptr<Subscriber> subscriber{};         ///< null: has never subscribed
  std::unique_ptr<HeldPushes> held{};               ///< null: nothing
  std::shared_ptr<Tracker> tracker{};               ///< null: it does not track
  std::span<const std::string_view> script_keys{};  ///< of the script that runs now
  bool monitors = false;
  bool is_master = false;                 ///< it is the stream of the server that is followed
  bool pushes_directly = false;           ///< the handle's direct() is on
  std::shared_ptr<ScriptHost> scripts{};  ///< the thread's
  std::optional<Claims> space{};          ///< that it named last
  std::vector<ErrorCode> failures{};      ///< of the engine; while it applies the log
  std::string* out = nullptr;  ///< where the present round's bytes go; null: there is none
  /// What the replies hold by reference; null: they are copied. Outlives this.
  LargeReplies* large = nullptr;

  /// What it holds by name: subscriptions, keys that are watched, messages of a transaction.
  [[nodiscard]] std::size_t kept_bytes() const noexcept {
    constexpr std::size_t subscription_bytes = 128;
    std::size_t bytes = watched_bytes;
    if (subscriber != nullptr) {
      bytes += 2 * subscriber->name_bytes + subscriber->count() * subscription_bytes;
    }
    if (tracker != nullptr) bytes += 2 * tracker->prefix_bytes;
    if (held != nullptr) bytes += held->bytes + held->own.size();
    return bytes;
  }
  [[nodiscard]] bool subscribes() const noexcept {
    return subscriber != nullptr && subscriber->count() != 0;
  }
  /// Commands allowed to a subscribed RESP2 client: other replies could be taken for messages.
  [[nodiscard]] bool only_listens() const noexcept { return dialect == Resp::two && subscribes(); }

  /// A round begins: its requests are carried out, and what they bring goes to `bytes`.
  void begin_round(std::string& bytes) {
    out = &bytes;
    if (monitors || subscribes() || tracker != nullptr) push_directly();
  }
  void end_round() {
    if (pushes_directly) handle->direct(nullptr, nullptr);
    pushes_directly = false;
    out = nullptr;
  }
  /// What this thread pushes to the connection stands in the present round's bytes, in order.
  void push_directly() {
    if (out == nullptr || pushes_directly) return;
    handle->direct(out, large);
    pushes_directly = true;
  }
  /// Bytes that are not subject to CLIENT REPLY. Inside a transaction's reply nothing that others
  /// have pushed may come before them.
  void emit(std::string_view bytes) {
    if (out != nullptr && (context->is_part() || !pushes_directly)) {
      out->append(bytes);
    } else {
      static_cast<void>(handle->push(bytes));
    }
  }
};

}  // namespace semel::net
