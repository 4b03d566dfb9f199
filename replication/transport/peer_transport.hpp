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
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "replication/transport/transport_options.hpp"

namespace semel::replication {

class TransportInside;

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
  /// The peers to connect to; others are cut off. Ourselves among them: left out.
  void set_peers(const std::map<NodeId, std::string>& peers);
  /// Of these members no other logs are let in, nor left connected. Of others any is.
  void expect_logs(const std::map<NodeId, LogIdentity>& logs);
  /// Of a peer that has connected; not known: none has, or it does not say.
  [[nodiscard]] LogIdentity log_of(NodeId id) const;
  /// A message that cannot be sent is dropped and counted: Raft sends it again.
  void send(const RaftMessage& message);
  /// False: there is no connection.
  bool send(NodeId to, const Frame& frame);
  /// Fetches a snapshot's file from a peer and appends it to the part already in `path`. `done`:
  /// empty, or the error; then a later call goes on. One at a time; another call ends the one
  /// before without `done`.
  void fetch(NodeId from, LogIndex index, Term term, const std::string& path,
             std::function<void(const std::string& error)> done);
  void cancel_fetch();
  /// Certificates of new connections. Errors: bad_option.
  [[nodiscard]] Status reload_tls(const PeerTls& files);
  [[nodiscard]] std::map<NodeId, PeerStats> stats() const;
  [[nodiscard]] TransportTotals totals() const noexcept;
  /// Connections from peers that have not sent their hello.
  [[nodiscard]] std::size_t half_open() const noexcept;
  /// Closes everything. Handlers that still wait on the io_context do nothing.
  void stop();

 private:
  explicit PeerTransport(std::shared_ptr<TransportInside> inside);
  const std::shared_ptr<TransportInside> inside_;
};

}  // namespace semel::replication
