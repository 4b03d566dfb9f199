// A conversation without a socket: bytes of requests in, bytes of replies out.
//
// Requests that came together and are one operation on one key each go to the engine together, so
// that it waits for their cache misses together; their replies are written in order. Everything
// else is carried out by itself, in its turn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/commands/command.hpp"
#include "net/node/group_session.hpp"
#include "net/node/node.hpp"
#include "net/resp/resp_parser.hpp"
#include "net/scripts/native_scripts.hpp"

namespace semel::net {

/// Room for the operations of one group, and what the thread counts; the connections of a thread
/// share one, and are made and served on that thread only.
class Batch {
 public:
  static constexpr std::size_t count_max = 64;
  Batch();
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

 private:
  friend class Connection;
  HeldLane lane_;
  std::shared_ptr<ScriptHost> scripts_;
  std::vector<StoreOp> ops_;
  std::vector<StoreOutcome> outcomes_;
  std::vector<const CommandRow*> rows_;
  std::vector<NativePlan> natives_;  // without a shape: it is not a script
  std::vector<const char*> starts_;  // where their requests begin
  std::size_t count_ = 0;
};

class Connection {
 public:
  /// Replies of one receive() or collect(), about: a client that asks for more than it reads is
  /// answered in parts.
  static constexpr std::size_t replies_bytes_max = std::size_t{1} << 20;

  /// `node`, `batch` and `host` must live as long as this; host may be null: no wakeup.
  Connection(Node& node, Batch& batch, ClientHost* host, ClientHandle::Origin origin);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Takes what was received, carries out every request that is whole, and appends the replies to
  /// `out`. Nothing more is read after a protocol error or a QUIT; while waits() is true, what
  /// comes is only kept.
  void receive(std::string_view bytes, std::string& out);
  /// After ClientHost::wake(): appends what others have left, and goes on with what was kept.
  void collect(std::string& out);

  /// The other side is to be closed when the replies are sent.
  [[nodiscard]] bool closes() const noexcept { return client_.closes; }
  /// At once, and what is not sent is lost: it was killed, or holds too much. From any thread.
  [[nodiscard]] bool is_killed() const noexcept { return client_.handle->is_killed(); }
  /// Large values are left to take_large() from now on.
  void share_large() noexcept { large_.enable(); }
  /// What belongs into the bytes that receive() and collect() have appended since, by the places in
  /// their `out`.
  [[nodiscard]] Splices take_large() { return large_.take(); }
  /// The unsent replies: `own` bytes that are counted nowhere else, and `large` bytes by reference,
  /// in `parts`.
  void hold_output(std::size_t own, std::size_t large, std::size_t parts);
  /// False: connections together hold too much memory. Read and run nothing until the largest ones
  /// are closed, which has begun.
  [[nodiscard]] bool accepts_input() const noexcept { return !node_.client_memory->is_over(); }
  [[nodiscard]] bool memory_is_tight() const noexcept { return node_.client_memory->is_tight(); }
  /// A command waits: more bytes should not be read.
  [[nodiscard]] bool waits() const noexcept { return client_.waits || client_.held_back; }
  /// The replies grew so large that the rest was left for collect(), when these have been sent.
  [[nodiscard]] bool more() const noexcept { return more_; }
  /// A script of this connection's is under way between calls of collect(): it should not be ended
  /// before, though end() ends the script.
  [[nodiscard]] bool works() const noexcept { return client_.has_yielded; }
  [[nodiscard]] bool is_subscribed() const noexcept { return client_.subscribes(); }
  /// It must authenticate, and has not.
  [[nodiscard]] bool is_unauthenticated() const noexcept { return client_.user.needs_auth(); }
  /// Requests that have run.
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  /// The client has disconnected: ends waits, watches and subscriptions. The last call.
  void end();
  /// Bytes that are kept because a request is not whole, or waits.
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return input_.size(); }
  /// After receive(): how many more bytes the present request needs at least, about.
  [[nodiscard]] std::size_t wanted_bytes() const noexcept { return wanted_; }
  [[nodiscard]] const ClientState& client() const noexcept { return client_; }

 private:
  /// Runs all complete requests; returns the bytes that they have.
  std::size_t run(std::string_view input, std::string& out);
  void give_back_room();
  void open_user();
  void review();
  void refuse_http(std::string& out);
  /// The node counts what came and what went.
  void note(std::size_t received, std::size_t sent);
  /// Batches or dispatches one request. False: a pause delays it.
  [[nodiscard]] bool accept_request(const char* start, std::string& out);
  [[nodiscard]] bool is_held_back(const CommandRow* row);
  /// True: it was added to the batch.
  [[nodiscard]] bool enqueue_single(const CommandRow& row, RespWriter& reply);
  /// The same of a known script.
  [[nodiscard]] bool enqueue_native(const CommandRow& row, RespWriter& reply);
  /// Whether what is read may wait for the rest of the batch.
  [[nodiscard]] bool may_wait(const CommandRow& row);
  void answer_batch(std::string& out, std::size_t count);
  void count_batch(std::size_t count);
  void count_natives(std::size_t count, std::int64_t ns_each);
  void flush(std::string& out);
  /// The same, of a node in a group.
  [[nodiscard]] bool accept_in_group(const CommandRow* row, const char* start, std::string& out);
  /// Dispatches the parsed request; the batch is empty.
  void dispatch_now(std::string& out);
  void keep(std::string_view bytes);
  void bound_request();
  void skip_too_long(std::string& out);
  /// What is held here is counted.
  void account();

  Node& node_;
  Batch& batch_;
  ClientState client_;
  RespParser parser_;
  std::string input_;  // of a request that is not complete, or has not run yet
  RequestLimits limits_;
  std::size_t wanted_ = 0;
  std::uint64_t requests_ = 0;
  LargeReplies large_;
  std::size_t charged_ = 0;              // of the node's memory of clients
  std::size_t output_ = 0;               // unsent, held by the sender
  const char* rewind_ = nullptr;         // the first request of the batch that did not run
  std::unique_ptr<GroupSession> group_;  // null: the node is by itself
  const char* round_begin_ = nullptr;    // of the input that run() works on
  const char* round_end_ = nullptr;
  bool more_ = false;
};

}  // namespace semel::net
