// A conversation without a socket: bytes of requests in, bytes of replies out.
//
// RequestLoop runs the requests, and KeptInput has the bytes that have not run. Connection has the
// client: its user, its waits, its subscriptions, the memory that it is charged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/node/batch.hpp"
#include "net/node/kept_input.hpp"
#include "net/node/node.hpp"
#include "net/node/request_loop.hpp"

namespace semel::net {

class Connection {
 public:
  /// `node`, `batch` and `host` must live as long as this; host may be null: no wakeup.
  Connection(Node& node, Batch& batch, ClientHost* host, ClientHandle::Origin origin);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs each complete request in the kept input and `bytes`, and appends the replies to `out`.
  /// Reads nothing more after a protocol error or a QUIT; while waits() is true, it only keeps
  /// `bytes`.
  void receive(std::string_view bytes, std::string& out);
  /// After ClientHost::wake(): appends the replies and messages of other threads, and goes on with
  /// the kept input.
  void collect(std::string& out);

  /// The socket is to be closed after the replies are sent.
  [[nodiscard]] bool closes() const noexcept { return client_.closes; }
  /// The socket is to be closed at once, without the unsent replies: the client was killed, or
  /// holds too much memory. From any thread.
  [[nodiscard]] bool is_killed() const noexcept { return client_.handle->is_killed(); }
  /// From now on, replies leave large values to take_large().
  void share_large() noexcept { large_.enable(); }
  /// The large values since the last call, with their places in the bytes that receive() and
  /// collect() have appended to `out`.
  [[nodiscard]] Splices take_large() { return large_.take(); }
  /// Charges the unsent replies: `own` bytes that are counted nowhere else, and `large` bytes by
  /// reference, in `parts`.
  void hold_output(std::size_t own, std::size_t large, std::size_t parts);
  /// A command waits: read no more bytes from the socket.
  [[nodiscard]] bool waits() const noexcept { return client_.waits || client_.held_back; }
  /// The replies grew too large: call collect() for the rest after these are sent.
  [[nodiscard]] bool more() const noexcept { return requests_.has_more(); }
  /// A script of this connection runs on between calls of collect(): do not end the connection yet,
  /// since end() would end the script.
  [[nodiscard]] bool works() const noexcept { return client_.has_yielded; }
  /// Requests that have run.
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_.count(); }
  /// The client has disconnected: ends waits, watches and subscriptions. The last call.
  void end();
  /// Bytes of requests that are incomplete or wait.
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return input_.size(); }
  /// After receive(): about the least number of bytes that complete the present request.
  [[nodiscard]] std::size_t wanted_bytes() const noexcept { return requests_.wanted(); }
  [[nodiscard]] const ClientState& client() const noexcept { return client_; }

 private:
  void open_user();
  void review();
  /// Adds to the node's counts of received and sent bytes.
  void note(std::size_t received, std::size_t sent);
  /// Charges the memory of this connection to the node's memory of clients.
  void account();

  Node& node_;
  ClientState client_;
  LargeReplies large_;
  RequestLoop requests_;
  KeptInput input_;
  std::size_t charged_ = 0;  // of the node's memory of clients
  std::size_t output_ = 0;   // unsent, held by the sender
};

}  // namespace semel::net
