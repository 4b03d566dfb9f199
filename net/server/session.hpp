// What a socket is connected to: bytes in, bytes out, and no knowledge of sockets.
//
// All calls of a session come from the thread its connection lives on. Other threads reach it
// through its SessionHost alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/resp/large_bytes.hpp"

namespace semel::net {

/// Wakes one connection. It outlives connection and server, so it may be called after their end.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  /// Has Session::collect called soon, on the session's own thread. From any thread, also from
  /// within the session; calls before that collect begins become one. Progress: a short mutex.
  virtual void wake() noexcept = 0;
};

/// Which of the limits for pending output holds.
enum class OutputClass : std::uint8_t { normal, pubsub, replica };
inline constexpr std::size_t output_classes = 3;

/// How far a session is with what it has been given.
struct SessionInput {
  std::uint64_t requests = 0;  ///< carried out so far
  std::size_t held = 0;        ///< bytes kept: of a request that is not whole, or that waits
  std::size_t wanted = 0;      ///< a hint: so many bytes more would make the request whole
};

class Session {
 public:
  virtual ~Session() = default;

  /// Carries out every whole request and appends the replies. Not called while waits() or more().
  virtual void receive(std::string_view bytes, std::string& out) = 0;
  /// Appends what came up since: pushes, replies that had to wait, what more() holds back. May end
  /// the waiting, and carries out what was received meanwhile. May be called for no reason.
  virtual void collect(std::string& out) = 0;
  /// What belongs into the bytes that the calls above have appended, by the places in their `out`.
  [[nodiscard]] virtual Splices take_large() { return {}; }
  /// Of what was appended so much waits to be sent: `own` bytes, and `large` by reference.
  virtual void hold_output(std::size_t own, std::size_t large, std::size_t parts) {
    static_cast<void>(own), static_cast<void>(large), static_cast<void>(parts);
  }
  /// The connection is to be closed now: what waits to be sent is lost.
  [[nodiscard]] virtual bool is_killed() const noexcept { return false; }
  /// False: memory is short, and others are being closed: receive() and collect() of what more()
  /// holds back are to come in a later round.
  [[nodiscard]] virtual bool accepts_input() const noexcept { return true; }
  /// Memory is so short that only little should be read at a time.
  [[nodiscard]] virtual bool memory_is_tight() const noexcept { return false; }
  /// The connection is to be closed when the replies are sent.
  [[nodiscard]] virtual bool closes() const noexcept = 0;
  /// A request blocks, or a batch waits for the disk. Nothing is read until a collect() ends it; a
  /// client that hangs up meanwhile is noticed.
  [[nodiscard]] virtual bool waits() const noexcept { return false; }
  /// The batch was cut because its replies grew large: collect() is called for the next part when
  /// these are with the client. For sessions that want to bound what a slow reader costs.
  [[nodiscard]] virtual bool more() const noexcept { return false; }
  /// While it waits: work goes on in each collect(), which the session has called again and again.
  /// A client that hangs up meanwhile is noticed when it has ended, as redis-server does it.
  [[nodiscard]] virtual bool works() const noexcept { return false; }
  [[nodiscard]] virtual SessionInput input() const noexcept = 0;
  [[nodiscard]] virtual OutputClass output_class() const noexcept { return OutputClass::normal; }
  /// It must log in and has not: it may cost little, and has little time.
  [[nodiscard]] virtual bool is_unauthenticated() const noexcept { return false; }
  /// The other side is gone, or has been cut off. The last call.
  virtual void end() noexcept = 0;
};

enum class Transport : std::uint8_t { tcp, unix_socket, tls };

/// What is known of a connection when its session is made; with TLS that is after the handshake.
struct SessionInfo {
  std::uint64_t id = 0;    ///< from 1, never given twice by one server
  std::size_t thread = 0;  ///< the index of its thread
  Transport transport = Transport::tcp;
  std::string remote{};  ///< "127.0.0.1:4711", "[::1]:4711"; "/path:0" of a Unix socket
  std::string local{};   ///< the same of our side
  std::string
      certificate_name{};  ///< the common name in the client's certificate, if it showed one
};

/// Called on the connection's thread. Null: the connection is closed.
using MakeSession = std::function<std::unique_ptr<Session>(const SessionInfo& info,
                                                           std::shared_ptr<SessionHost> host)>;

}  // namespace semel::net
