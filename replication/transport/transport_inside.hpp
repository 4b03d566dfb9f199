// The connections of a transport and the coroutines that serve them. They share it, so that one
// which ends late finds it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "replication/transport/transport_options.hpp"

namespace semel::replication {

class TransportInside : public std::enable_shared_from_this<TransportInside> {
 public:
  using Tcp = boost::asio::ip::tcp;
  using Nothing = boost::asio::awaitable<void>;
  using Stream = std::shared_ptr<PeerStream>;

  struct Peer {
    Peer(boost::asio::io_context& context, NodeId peer, std::string at)
        : id(peer), address(std::move(at)), wakeup(context) {}
    const NodeId id;
    const std::string address;
    std::deque<std::string> queue{};
    std::size_t queued = 0;  // bytes
    Stream out{};            // null: not connected
    boost::asio::steady_timer wakeup;
    bool is_gone = false;  // no member any more, or at another address
    PeerStats stats{};
  };

  TransportInside(boost::asio::io_context& io, const TransportOptions& wanted, PeerHandler& to,
                  std::shared_ptr<boost::asio::ssl::context> with)
      : context(io), options(wanted), handler(to), tls(std::move(with)), acceptor(io) {}

  void begin();
  [[nodiscard]] std::function<void(std::exception_ptr)> unless_starved();
  void stop();
  void expect_logs(std::map<NodeId, LogIdentity> wanted);
  void set_peers(const std::map<NodeId, std::string>& wanted);
  bool queue(NodeId to, const Frame& frame);
  void fetch(NodeId from, SnapshotRequest request, const std::string& path,
             std::function<void(const std::string&)> done);
  void cancel_fetch();

  // --- coroutines ---------------------------------------------------------------------------
  Nothing accept_all();
  Nothing serve(Stream stream);
  Nothing serve_messages(Stream stream, NodeId from);
  Nothing serve_snapshot(Stream stream);
  Nothing connect_again(std::shared_ptr<Peer> peer);
  Nothing write_queue(std::shared_ptr<Peer> peer, Stream stream);
  Nothing watch(Stream stream);
  boost::asio::awaitable<Stream> connect(const std::string& address, NodeId id, Purpose purpose);
  Nothing receive_file(Stream stream, SnapshotRequest request, std::string path);
  Nothing pause(Millis time);
  /// A connection that is being made, so that it can be given up.
  struct Connecting {
    explicit Connecting(boost::asio::io_context& io) : socket(io), resolver(io), deadline(io) {}
    /// std::bad_alloc, of the resolver alone: the rest is closed.
    void give_up() {
      boost::system::error_code ignored;
      socket.close(ignored);
      deadline.cancel();
      resolver.cancel();
    }
    Tcp::socket socket;
    Tcp::resolver resolver;
    boost::asio::steady_timer deadline;
  };
  boost::asio::awaitable<Tcp::socket> open_socket(const std::string& address);

  /// Empty: its log is that which is expected of it.
  [[nodiscard]] std::string objection_to_log(NodeId id, const LogIdentity& log) const;
  /// Empty: it may come in.
  [[nodiscard]] std::string objection(const Hello& hello, const PeerStream& stream) const;
  void take(NodeId from, Frame frame);
  void disconnect(Peer& peer);
  [[nodiscard]] Hello hello(Purpose purpose) const;

  boost::asio::io_context& context;
  const TransportOptions options;
  PeerHandler& handler;
  std::shared_ptr<boost::asio::ssl::context> tls;
  Tcp::acceptor acceptor;
  std::map<NodeId, std::shared_ptr<Peer>> peers;
  std::map<NodeId, LogIdentity> logs;  // that are expected
  std::map<NodeId, Stream> incoming;   // the newest of each peer, for messages
  std::set<Stream> streams;            // all that peers have opened
  std::deque<Stream> unknown;          // of them, those without a hello, the oldest first
  std::set<std::shared_ptr<Connecting>> connecting;
  Stream fetching;
  std::uint64_t fetches = 0;
  TransportTotals totals;
  bool is_stopped = false;
};

}  // namespace semel::replication
