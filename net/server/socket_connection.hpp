// One connection: a socket, TLS or none, and a session.
//
//   socket -> shared input -> [TLS] -> Session::receive -> shared output -> SocketOutput -> socket
//
// An idle connection owns no buffer: input and output buffers belong to the thread, and the queue
// is released when it has been sent. The watched events follow from the state: readable while the
// session accepts input and little is pending, writable while anything is pending.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/server/connection_times.hpp"
#include "net/server/counters.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/log_gate.hpp"
#include "net/server/options.hpp"
#include "net/server/socket_output.hpp"
#include "net/server/waker.hpp"

namespace semel::net {

/// Shared by the connections of one thread.
struct ConnectionShared {
  static constexpr std::size_t input_room = std::size_t{1} << 20;    ///< for a large bulk
  static constexpr std::size_t input_usual = std::size_t{64} << 10;  ///< a round, otherwise

  const ServerHooks& hooks;
  ConnectionLimits limits{};
  LogGate log;
  ConnectionCounters counters{};
  std::size_t thread = 0;
  int epoll = -1;
  Timestamp now{};
  /// Pages that were never written cost nothing.
  std::unique_ptr<char[]> input{new char[input_room]};
  std::unique_ptr<char[]> plain{new char[input_usual]};
  std::string output{};
  std::string cipher{};
};

class SocketConnection {
 public:
  SocketConnection(ConnectionShared& shared, Descriptor socket, ConnectionName name,
                   std::uint64_t id, Transport transport, std::shared_ptr<Waker> waker,
                   std::unique_ptr<TlsLayer> tls);
  ~SocketConnection();
  SocketConnection(const SocketConnection&) = delete;
  SocketConnection& operator=(const SocketConnection&) = delete;

  // After each of these calls is_done() may be true.
  void begin();
  void on_events(std::uint32_t events);
  void on_wake();
  void check_deadlines();
  /// Closes once no request is under way.
  void drain();
  void finish(Ended why);

  [[nodiscard]] bool is_done() const noexcept { return state_ == State::done; }

 private:
  enum class State : std::uint8_t { handshake, open, closing, done };

  [[nodiscard]] bool reads() const noexcept;
  [[nodiscard]] bool watches_end() const noexcept;
  void on_readable(std::uint32_t events);
  void pump_tls();
  void fail_tls();
  [[nodiscard]] bool make_session();
  void hang_up();
  void send_and_rearm();
  void after_session();
  void check_output();
  void refuse(std::string_view text, Ended why);
  void begin_close(Ended why);
  void send_replies();
  /// Ends the connection if its socket has failed.
  void note_sent();
  void arm();
  void note(LogLevel level, std::string_view what);

  ConnectionShared& shared_;
  Descriptor socket_;
  std::uint32_t interest_ = 0;
  const ConnectionName name_;
  const std::uint64_t id_;
  std::shared_ptr<Waker> waker_;
  std::unique_ptr<TlsLayer> tls_;
  std::unique_ptr<Session> session_;
  SocketOutput output_;
  ConnectionTimes times_;
  std::size_t wanted_ = 0;  // the session's hint
  std::size_t handshake_taken_ = 0;
  State state_;
  Ended why_ = Ended::after_reply;  // of closing
  const Transport transport_;
  bool paused_ = false;
  bool draining_ = false;
  bool has_unread_ = false;  // epoll has reported input that is not read yet
};

}  // namespace semel::net
