// The sending side of a connection: bytes that its socket has not taken, and their encryption.
//
// Without TLS the queue goes to the socket as it is. With TLS the queue holds plain bytes, which
// are encrypted as the socket takes them.
//
//   send() -> queue -> [TLS -> cipher] -> socket
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include "net/resp/large_bytes.hpp"
#include "net/server/counters.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/output_queue.hpp"
#include "net/server/session.hpp"
#include "net/server/tls.hpp"

namespace semel::net {

/// On the thread of the connection. Invariant: cipher_sent <= bytes of cipher.
class SocketOutput {
 public:
  /// All must outlive this. `tls`: null: none. `scratch`: room for encrypted bytes that the
  /// connections of a thread share; it is empty between calls.
  SocketOutput(const Descriptor& socket, TlsLayer* tls, std::string& scratch, Figure& bytes_out)
      : socket_(socket), tls_(tls), scratch_(scratch), bytes_out_(bytes_out) {}

  [[nodiscard]] std::size_t pending() const noexcept {
    return queue_.held() + cipher_.size() - cipher_sent_;
  }
  /// Sends `bytes` with `large` between them, and keeps the rest that the socket does not take. The
  /// caller clears `bytes`.
  void send(std::string& bytes, Splices&& large);
  /// Sends the pending bytes, as far as the socket takes them.
  void flush();
  /// No more follows: with TLS, closes it for the other side when all is sent.
  void end() noexcept { ends_ = true; }
  /// Drops everything.
  void drop() noexcept;

  /// A send failed, and every later one would.
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// Whether the socket has taken bytes since the last call.
  [[nodiscard]] bool take_progress() noexcept { return std::exchange(has_moved_, false); }
  /// Reports the memory that it holds, if that is anything or was at the last call.
  void show(Session& session);

 private:
  void flush_tls();
  void send_cipher();
  /// The bytes that the system took; not more than 0: none, or it failed.
  [[nodiscard]] ssize_t judge(ssize_t sent);

  const Descriptor& socket_;
  TlsLayer* const tls_;
  std::string& scratch_;
  Figure& bytes_out_;
  OutputQueue queue_;
  std::string cipher_;           // goes out before the queue
  std::size_t cipher_sent_ = 0;  // of it
  std::size_t shown_ = 0;        // of pending()
  bool ends_ = false;
  bool has_sent_end_ = false;
  bool has_moved_ = false;
  bool has_failed_ = false;
};

}  // namespace semel::net
