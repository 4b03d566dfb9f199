// The link to a master: a thread that reads its connection and runs the requests on it.
//
//   connect -> connecting -> handshake -> sync -> connected
//     from each of them, when the connection ends: a pause, and connecting again
//
// MasterDialog has the handshake, FullSync the sync, StreamRunner the commands.
//
// Bounds: it reads one piece at a time, and runs it before the next. It keeps a request or an item
// that is not whole, up to StreamRunner::request_bytes_max. It leaves a master that is silent for
// repl-timeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/follow/follow_state.hpp"
#include "net/follow/full_sync.hpp"
#include "net/follow/master_dialog.hpp"
#include "net/follow/master_socket.hpp"
#include "net/follow/stream_runner.hpp"
#include "net/node/node.hpp"

namespace semel::net {

class MasterLink {
 public:
  using Turn = FollowState::Turn;

  /// Both must outlive this.
  MasterLink(Node& node, FollowState& state);
  /// Ends the thread. Progress: waits for the command under way.
  ~MasterLink();
  MasterLink(const MasterLink&) = delete;
  MasterLink& operator=(const MasterLink&) = delete;

  /// Starts the thread. Errors: no_thread.
  [[nodiscard]] Status start();
  /// From any thread: `turn` has begun. No master: the link is idle, and forgets its place in the
  /// stream.
  void go(Turn turn, std::optional<MasterAddress> master);

 private:
  using Link = FollowView::Link;
  using Step = StreamRunner::Step;
  /// Why a connection is left.
  enum class Cause : std::uint8_t {
    master,  ///< the next attempt may be soon
    node,    ///< the next full sync would fail as well
  };
  struct Times {
    Timestamp heard{};
    Timestamp acknowledged{};
    Timestamp lost{};
    bool was_linked = false;
  };

  // On the thread of the link.
  void begin(Turn turn, std::optional<MasterAddress> master);
  void connect();
  void begin_handshake();
  void receive(std::string_view bytes);
  /// Runs the input so far. Reads on, unless the link was left or stalls.
  void work();
  [[nodiscard]] bool run_dialog();
  [[nodiscard]] bool begin_sync();
  [[nodiscard]] bool run_sync();
  [[nodiscard]] bool begin_stream();
  [[nodiscard]] bool run_stream();
  /// Runs a bounded number of requests. None: more may be there.
  [[nodiscard]] std::optional<Step> run_some();
  /// Tries the same request again after `pause`.
  void stall(Millis pause, const std::string& reason);
  void acknowledge();
  void tick();
  /// Closes the connection; the next attempt comes after a pause.
  void leave(const std::string& reason, Cause cause);
  void close();
  void publish();
  void report(LogLevel level, std::string_view name, const std::string& text) const;

  Node& node_;
  FollowState& state_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_guard_;
  boost::asio::steady_timer ticks_{io_};
  boost::asio::steady_timer later_{io_};
  MasterSocket socket_;
  Turn turn_ = 0;
  std::optional<MasterDialog> dialog_;
  std::optional<FullSync> sync_;
  StreamRunner runner_;
  std::string input_;
  std::size_t input_at_ = 0;  // of input_: the first byte of the next request
  bool is_stalled_ = false;
  Millis pause_{0};
  Times times_;
  FollowView view_;  // with the address of the master; replid empty: no stream can go on
  std::thread thread_;
};

}  // namespace semel::net
