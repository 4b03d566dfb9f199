// Options, statistics and the handler of a transport.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replication/transport/peer_stream.hpp"

namespace semel::replication {

/// An address may have a part for others behind a comma, which is not looked at here.
[[nodiscard]] inline std::string peer_part(const std::string& address) {
  return address.substr(0, address.find(','));
}

struct TransportOptions {
  std::uint64_t cluster_id = 0;
  NodeId node_id = 0;
  FeatureLevel level = feature_level_newest;  ///< that this node knows
  LogIdentity log{};                          ///< that this node has
  std::string listen;            ///< "127.0.0.1:7000", "[::]:7000"; port 0: one that is free
  std::string address{};         ///< by which others reach it; empty: `listen`
  std::optional<PeerTls> tls{};  ///< none: plain bytes
  std::size_t queue_bytes = std::size_t{64} << 20;  ///< to one peer
  std::size_t queue_frames = 10'000;
  /// That are not known yet: beyond, the oldest of them is closed for a new one.
  std::size_t connections_max = 64;
  Millis hello_time{5'000};    ///< for TLS and hello
  Millis connect_time{1'000};  ///< for a name and a TCP connection
  Millis silent_time{10'000};  ///< of a peer that sends a snapshot
  Millis retry_least{20};      ///< between two tries to connect
  Millis retry_most{1'000};
  /// Of snapshots that are sent, and of entries that come while PeerHandler::is_joining(). 0: no
  /// limit.
  std::uint64_t snapshot_bytes_per_s = std::uint64_t{64} << 20;
};

struct PeerStats {
  bool is_connected = false;  ///< our end
  FeatureLevel level = 0;     ///< that it knows; 0: it was not met
  std::uint64_t connects = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t dropped = 0;  ///< the queue was full, or there was no connection
};

/// Of all connections together, since the transport was opened.
struct TransportTotals {
  std::uint64_t refused = 0;  ///< connections of those that may not come in
  std::uint64_t snapshot_bytes_sent = 0;
  std::uint64_t snapshot_bytes_received = 0;
};

/// Handles received messages. Called on the io_context's thread.
class PeerHandler {
 public:
  virtual ~PeerHandler() = default;
  virtual void on_message(RaftMessage message) = 0;
  virtual void on_forward(NodeId from, Forward forward) = 0;
  virtual void on_forward_reply(NodeId from, ForwardReply reply) = 0;
  /// Whether a node may connect. Those that are not known may be new members; they cannot change
  /// anything except through entries of the replicated log.
  [[nodiscard]] virtual bool knows(NodeId id) const = 0;
  /// The level of features that the group uses: a node that does not know it may not connect.
  [[nodiscard]] virtual FeatureLevel level() const { return feature_level_first; }
  /// Whether this node is catching up with the group: then it takes entries at
  /// snapshot_bytes_per_s, to spare the processors and the network of their senders.
  [[nodiscard]] virtual bool is_joining() const { return false; }
  /// A peer has connected, and listens at this address.
  virtual void on_peer(NodeId id, const std::string& address) = 0;
  /// The path of the file of a snapshot; none: it is not there.
  [[nodiscard]] virtual std::optional<std::string> snapshot_path(LogIndex index, Term term) = 0;
  /// For the operator log: the event, with the peer's address.
  enum class Event { refused, unreachable };
  virtual void on_event(Event event, const std::string& what) = 0;
  /// Memory has ended where a connection was to be kept or taken: this transport may know fewer
  /// peers from now on than it was given.
  virtual void on_starved() noexcept {}
};

}  // namespace semel::replication
