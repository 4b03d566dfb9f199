// The far end of a socket: bytes in, bytes out, without knowledge of sockets.
//
// All calls of a session come from the thread of its connection. Other threads reach it only
// through its SessionHost.
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
  /// Requests a call of Session::collect, on the session's own thread. From any thread, also from
  /// within the session; calls before that collect begins become one. Progress: a short mutex.
  virtual void wake() noexcept = 0;
};

/// The class of limits for pending output.
enum class OutputClass : std::uint8_t { normal, pubsub, replica };
inline constexpr std::size_t output_classes = 3;

/// The progress of a session with its input.
struct SessionInput {
  std::uint64_t requests = 0;  ///< carried out so far
  std::size_t held = 0;        ///< bytes kept: of an incomplete request, or one that waits
  std::size_t wanted = 0;      ///< a hint: bytes still missing from the request
};

class Session {
 public:
  virtual ~Session() = default;

  /// Carries out every complete request and appends the replies. Not called while waits() or
  /// more().
  virtual void receive(std::string_view bytes, std::string& out) = 0;
  /// Appends pushes, replies that had to wait, and output that more() holds back. May end the
  /// waiting, and then carries out the input received during it. May be called without a reason.
  virtual void collect(std::string& out) = 0;
  /// The large values of the bytes that the calls above have appended, by their places in `out`.
  [[nodiscard]] virtual Splices take_large() { return {}; }
  /// Reports the appended bytes that wait to be sent: `own` bytes, and `large` by reference.
  virtual void hold_output(std::size_t own, std::size_t large, std::size_t parts) {
    static_cast<void>(own), static_cast<void>(large), static_cast<void>(parts);
  }
  /// The connection must be closed now: pending output is discarded.
  [[nodiscard]] virtual bool is_killed() const noexcept { return false; }
  /// False: memory is short, and others are being closed: call receive(), and collect() for the
  /// output of more(), in a later round.
  [[nodiscard]] virtual bool accepts_input() const noexcept { return true; }
  /// Memory is short: read only a little at a time.
  [[nodiscard]] virtual bool memory_is_tight() const noexcept { return false; }
  /// The connection must be closed after the replies are sent.
  [[nodiscard]] virtual bool closes() const noexcept = 0;
  /// A request blocks, or a batch waits for the disk. Nothing is read until a collect() ends the
  /// wait; a client that hangs up in the meantime is noticed.
  [[nodiscard]] virtual bool waits() const noexcept { return false; }
  /// The batch was cut because its replies are large: collect() gives the next part after the
  /// client has these. Bounds the memory of a slow reader.
  [[nodiscard]] virtual bool more() const noexcept { return false; }
  /// While it waits: each collect() does a part of the work, and the session requests the next. A
  /// client that hangs up is noticed when the work has ended, as in redis-server.
  [[nodiscard]] virtual bool works() const noexcept { return false; }
  [[nodiscard]] virtual SessionInput input() const noexcept = 0;
  [[nodiscard]] virtual OutputClass output_class() const noexcept { return OutputClass::normal; }
  /// The client has not logged in and must: its memory and its time are limited.
  [[nodiscard]] virtual bool is_unauthenticated() const noexcept { return false; }
  /// The other side is gone, or has been cut off. The last call.
  virtual void end() noexcept = 0;
};

enum class Transport : std::uint8_t { tcp, unix_socket, tls };

/// The facts about a connection when its session is made; with TLS after the handshake.
struct SessionInfo {
  std::uint64_t id = 0;    ///< from 1, never reused by one server
  std::size_t thread = 0;  ///< the index of its thread
  Transport transport = Transport::tcp;
  std::string remote{};            ///< "127.0.0.1:4711", "[::1]:4711"; "/path:0" of a Unix socket
  std::string local{};             ///< the same of our side
  std::string certificate_name{};  ///< the common name in the client's certificate, if any
};

/// Called on the connection's thread. Null: the connection is closed.
using MakeSession = std::function<std::unique_ptr<Session>(const SessionInfo& info,
                                                           std::shared_ptr<SessionHost> host)>;

}  // namespace semel::net
