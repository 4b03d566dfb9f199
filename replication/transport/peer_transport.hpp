// Connections of one node to the others of its group.
//
// Each node opens one connection to each peer and sends its messages there; it reads those of the
// peer from the connection that the peer has opened. So both have one end that connects again. The
// newest connection of a peer takes the place of the one before. Files of snapshots go over
// connections of their own, at a bounded rate, and never before a message.
//
// All of it, but for stop(), on the thread of its io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "replication/transport/peer_stream.hpp"

namespace semel::replication {

struct TransportOptions {
  std::uint64_t cluster_id = 0;
  NodeId node_id = 0;
  std::string listen;            ///< "127.0.0.1:7000", "[::]:7000"; port 0: one that is free
  std::optional<PeerTls> tls{};  ///< none: plain bytes
  std::size_t queue_bytes = std::size_t{64} << 20;  ///< to one peer
  std::size_t queue_frames = 10'000;
  std::size_t connections_max = 64;  ///< that peers have opened, or are opening
  Millis hello_time{5'000};          ///< for TLS and hello
  Millis retry_least{20};            ///< between two tries to connect
  Millis retry_most{1'000};
  std::uint64_t snapshot_bytes_per_s = std::uint64_t{256} << 20;  ///< 0: no limit
};

struct PeerStats {
  bool is_connected = false;  ///< our end
  std::uint64_t connects = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t dropped = 0;  ///< the queue was full, or there was no connection
};

/// What the node does with what comes. Called on the io_context's thread.
class PeerHandler {
 public:
  virtual ~PeerHandler() = default;
  virtual void on_message(RaftMessage message) = 0;
  virtual void on_forward(NodeId from, Forward forward) = 0;
  virtual void on_forward_reply(NodeId from, ForwardReply reply) = 0;
  /// Whether a node may connect. Those that are not known may be new members; they cannot change
  /// anything but by what the log says.
  [[nodiscard]] virtual bool knows(NodeId id) const = 0;
  /// The path of the file of a snapshot; none: it is not there.
  [[nodiscard]] virtual std::optional<std::string> snapshot_path(LogIndex index, Term term) = 0;
  /// For the log: what happened, with the peer's address.
  virtual void on_event(const std::string& what) = 0;
};

class PeerTransport {
 public:
  /// Errors: bad_option (the address, a file of TLS), storage_in_use (the address is).
  [[nodiscard]] static Result<std::unique_ptr<PeerTransport>> open(boost::asio::io_context& context,
                                                                   const TransportOptions& options,
                                                                   PeerHandler& handler);
  ~PeerTransport();
  PeerTransport(const PeerTransport&) = delete;
  PeerTransport& operator=(const PeerTransport&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Whom to connect to; others are cut off. Ourselves among them: left out.
  void set_peers(const std::map<NodeId, std::string>& peers);
  /// What cannot be sent is dropped and counted: Raft sends it again.
  void send(const RaftMessage& message);
  /// False: there is no connection.
  bool send(NodeId to, const Frame& frame);
  /// Fetches a snapshot's file from a peer into `path`, behind what is there already. `done`:
  /// empty, or why it failed; then a later call goes on. One at a time; another call ends the one
  /// before without `done`.
  void fetch(NodeId from, LogIndex index, Term term, const std::string& path,
             std::function<void(const std::string& error)> done);
  void cancel_fetch();
  /// Certificates of new connections. Errors: bad_option.
  [[nodiscard]] Status reload_tls(const PeerTls& files);
  [[nodiscard]] std::map<NodeId, PeerStats> stats() const;
  [[nodiscard]] std::uint64_t refused() const noexcept;
  /// Closes everything. What waits on the io_context afterwards does nothing.
  void stop();

 private:
  struct Inside;
  explicit PeerTransport(std::shared_ptr<Inside> inside);
  std::shared_ptr<Inside> inside_;
};

/// "host:port" or "[v6]:port". None: it is neither.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> split_address(
    const std::string& address);

}  // namespace semel::replication
