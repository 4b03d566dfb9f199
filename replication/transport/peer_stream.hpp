// One connection to a peer: a socket, TLS over it if the group has certificates, frames, and the
// hello of both sides.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "replication/state/feature_level.hpp"
#include "replication/transport/wire.hpp"
#include "semel/types.hpp"

namespace semel::replication {

/// Files in PEM. Empty certificate: without TLS, which has to be asked for by options.
struct PeerTls {
  std::string certificate{};  ///< with the URI semel://CLUSTER/NODE in its subjectAltName
  std::string key{};
  std::string authorities{};  ///< the accepted signers of the peers' certificates
};

/// Of new connections; those that are open keep theirs. Errors: bad_option, with the file.
[[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> load_tls(const PeerTls& files);
/// "semel://%016x/NODE": what a certificate says of its node.
[[nodiscard]] std::string node_uri(std::uint64_t cluster_id, NodeId node_id);

/// "host:port" or "[v6]:port". None: it is neither.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> split_address(
    const std::string& address);
/// Of a member: "host:port", and perhaps ",host:port" for clients. Both are shown to clients and
/// written into texts, so a host is a name or a number. Errors: bad_option, which names the part.
[[nodiscard]] Status check_member_address(const std::string& address);

/// Used by coroutines of one thread. What fails is an exception of boost::system::system_error, or
/// of PeerError; close() from elsewhere lets all that waits fail.
class PeerError : public std::exception {
 public:
  explicit PeerError(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

class PeerStream : public std::enable_shared_from_this<PeerStream> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  /// `tls`: null: none.
  PeerStream(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls);
  ~PeerStream();
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  [[nodiscard]] boost::asio::awaitable<void> begin_tls(bool is_server);
  /// Whether the peer's certificate says that it is this node; without TLS it always is.
  [[nodiscard]] bool proves(std::uint64_t cluster_id, NodeId node_id) const;
  [[nodiscard]] boost::asio::awaitable<Frame> read(std::size_t bytes_max = frame_bytes_max);
  [[nodiscard]] boost::asio::awaitable<void> write(const std::string& bytes);
  /// `frame` must have a name: g++ 12 destroys temporaries of an awaited expression twice.
  [[nodiscard]] boost::asio::awaitable<void> say(const Frame& frame);
  void close() noexcept;
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// That the other end knows, of one that this end has opened.
  FeatureLevel level = 0;
  LogIdentity log{};  ///< that the other end has, by its hello

  /// Closes the connection when a time has passed, unless it is moved on or stopped.
  void close_in(Millis time);
  void never_close() {
    ++deadlines_;
    deadline_.cancel();
  }

 private:
  [[nodiscard]] boost::asio::awaitable<void> fill(boost::asio::mutable_buffer to);
  [[nodiscard]] boost::asio::awaitable<void> hold(std::size_t bytes);
  [[nodiscard]] Bytes held() const noexcept { return Bytes{ahead_}.substr(begin_, end_ - begin_); }

  const std::shared_ptr<boost::asio::ssl::context> tls_;
  const std::shared_ptr<boost::asio::ssl::context> none_;  // for a stream without TLS
  boost::asio::ssl::stream<Socket> stream_;
  boost::asio::steady_timer deadline_;
  std::uint64_t deadlines_ = 0;  // a timer that has fired is not called back by cancel()
  const std::string address_;
  // Received bytes that are not taken yet: [begin_, end_). Small frames are read many at once.
  std::string ahead_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace semel::replication
