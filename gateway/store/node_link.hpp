// The connection of one thread to a node: reopened when it ends, and pipelined.
//
//   ask -> queue -> written, many at a time -> sent, in order -> the answer, or none
//
// A connection serves once it has logged in, the node is known to belong to the group, and the
// namespaces exist. It is closed when an answer is late, when bytes violate the protocol, and when
// the node redirects to another one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stopwatch.hpp"
#include "gateway/shared/counters.hpp"
#include "gateway/shared/last_trouble.hpp"
#include "gateway/shared/stream.hpp"
#include "gateway/store/node_reply.hpp"

namespace semel::gateway {

namespace limits {
inline constexpr std::size_t link_sent_max = 512;  ///< commands without an answer
inline constexpr std::size_t link_write_bytes = std::size_t{64} * 1024;  ///< gathered in a write
}  // namespace limits

/// Views: the bytes must live until the answer.
struct NodeCommand {
  std::string_view text{};
  std::string_view last{};  ///< the last argument, if `text` ends with its length; see
                            ///< command_before()
};

/// The result of a command.
struct NodeAnswer {
  enum class How : std::uint8_t {
    replied,
    not_sent,  ///< nothing was done
    unknown,   ///< it was sent
  };
  How how = How::not_sent;
  NodeReply reply{};
  std::string why{};       ///< unless replied
  base::Stopwatch sent{};  ///< since the earliest time it may have been carried out
};

/// Shared by all links of a gateway. Outlives them.
struct NodeContext {
  const NodeSettings& settings;
  const CurrentTls& tls;
  Millis connect_timeout{3'000};
  Counters& counters;
  LastTrouble& trouble;  ///< of the links of requests and others
  /// The group that the nodes belong to; empty: one node by itself; none: not known yet.
  std::optional<std::string> group{};
};

/// Used by one thread. Shared by the coroutines that run in it.
class NodeLink : public std::enable_shared_from_this<NodeLink> {
 public:
  NodeLink(asio::io_context& io, const NodeContext& context);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  /// Sends `command` and waits for the answer: for `within` until it is sent, and then for
  /// store-timeout.
  [[nodiscard]] asio::awaitable<NodeAnswer> ask(const NodeCommand& command, Millis within);
  /// The commands that new connections begin with: they declare the namespaces.
  void declare(std::vector<std::string> declarations) { declarations_ = std::move(declarations); }
  /// Connects, if it is not connected. ask() does it as well.
  void start();
  /// Ends the link permanently; pending commands are answered.
  void stop();

  [[nodiscard]] bool is_up() const noexcept { return up_ != nullptr; }
  /// The reason why there is no connection.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
  /// The last node refused the login or a certificate, or is not of this group: a retry is useless.
  [[nodiscard]] bool is_refused() const noexcept { return is_refused_; }
  /// The answer to CLUSTER MYID; empty: a single node.
  [[nodiscard]] const std::string& group() const noexcept { return group_; }

 private:
  struct Pending;
  struct Connection;
  struct Place {
    std::string host;
    std::string port;
  };

  [[nodiscard]] asio::awaitable<void> run();
  [[nodiscard]] asio::awaitable<std::shared_ptr<Connection>> open();
  [[nodiscard]] asio::awaitable<bool> greet(Connection& connection);
  [[nodiscard]] asio::awaitable<bool> log_in(Connection& connection);
  [[nodiscard]] bool take_new_password();
  [[nodiscard]] asio::awaitable<std::optional<NodeReply>> exchange(Connection& connection,
                                                                   const std::string& command);
  [[nodiscard]] asio::awaitable<void> read_all(std::shared_ptr<Connection> connection);
  [[nodiscard]] bool take_replies(Connection& connection);
  [[nodiscard]] bool accept_group(const NodeReply& reply);
  [[nodiscard]] bool is_redirected(const NodeReply& reply);
  void flush();
  void drop(Connection& connection, const std::string& why);
  void refuse(std::string why);
  [[nodiscard]] Place next_place();
  [[nodiscard]] Millis next_pause() noexcept;

  asio::io_context& io_;
  const NodeContext& context_;
  std::vector<Place> places_;
  std::size_t place_ = 0;
  std::optional<Place> moved_;
  unsigned failures_ = 0;  // since a command was answered
  unsigned moves_ = 0;     // likewise
  bool is_running_ = false;
  bool is_stopped_ = false;
  bool is_refused_ = false;
  std::string trouble_ = "there is no connection to a node yet";
  std::string group_;
  std::vector<std::string> declarations_;
  std::string password_;                        // the last one that was read
  std::deque<std::shared_ptr<Pending>> queue_;  // not sent
  std::shared_ptr<Connection> up_;              // that serves
  asio::steady_timer pause_;
};

}  // namespace semel::gateway
