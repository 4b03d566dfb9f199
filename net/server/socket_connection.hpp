// One connection: a socket, TLS or none, and a session.
//
//   socket -> shared input -> [TLS] -> Session::receive -> shared output -> [TLS] -> socket
//                                              bytes that the socket does not take: queue_
//
// With TLS the queue holds plain bytes, which are encrypted as the socket takes them.
//
// An idle connection owns no buffer: input and output buffers belong to the thread, and the queue
// is released when it has been sent. The watched events follow from the state: readable while the
// session accepts input and little is pending, writable while anything is pending.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/server/counters.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/log_gate.hpp"
#include "net/server/options.hpp"
#include "net/server/output_queue.hpp"
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

  [[nodiscard]] std::size_t pending() const noexcept {
    return queue_.held() + cipher_.size() - cipher_sent_;
  }
  [[nodiscard]] bool reads() const noexcept;
  [[nodiscard]] bool watches_end() const noexcept;
  [[nodiscard]] bool is_idle() const;
  void on_readable(std::uint32_t events);
  void feed(std::string_view bytes);
  void pump_tls();
  void fail_tls();
  [[nodiscard]] bool make_session();
  void hang_up();
  void send_and_rearm();
  void after_session();
  void watch_request(const SessionInput& input);
  void check_output();
  void refuse(std::string_view text, Ended why);
  void begin_close(Ended why);
  void send_replies();
  void send_plain(Splices&& large);
  void flush();
  void flush_tls();
  void send_cipher();
  /// The bytes that the system took; negative: it failed, and the connection may have ended.
  [[nodiscard]] ssize_t judge(ssize_t sent);
  void show_output();
  void arm();
  void note(LogLevel level, std::string_view what);
  [[nodiscard]] const PendingLimit& output_limit() const noexcept;
  [[nodiscard]] bool is_over(Timestamp since, Millis limit) const noexcept {
    return limit > Millis{0} && shared_.now - since > limit;
  }

  ConnectionShared& shared_;
  Descriptor socket_;
  std::uint32_t interest_ = 0;
  const ConnectionName name_;
  const std::uint64_t id_;
  std::shared_ptr<Waker> waker_;
  std::unique_ptr<TlsLayer> tls_;
  std::unique_ptr<Session> session_;
  OutputQueue queue_;
  std::string cipher_;           // sent before it, encrypted
  std::size_t cipher_sent_ = 0;  // of cipher_
  std::size_t shown_ = 0;        // of pending(): reported to the session
  std::size_t wanted_ = 0;       // the session's hint
  std::size_t handshake_taken_ = 0;
  std::uint64_t requests_ = 0;  // when partial_since_ was set
  Timestamp begun_{};           // the connection; closing: when that began
  Timestamp active_{};          // the last byte, either way
  Timestamp partial_since_ = no_end;
  Timestamp soft_since_ = no_end;
  Timestamp unauthenticated_since_ = no_end;
  State state_;
  Ended why_ = Ended::after_reply;  // of closing
  const Transport transport_;
  bool paused_ = false;
  bool draining_ = false;
  bool has_unread_ = false;    // epoll has reported input that is not read yet
  bool has_sent_end_ = false;  // by TLS
};

}  // namespace semel::net
