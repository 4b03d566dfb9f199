#include "net/server/socket_output.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "base/assert.hpp"
#include "net/resp/release_capacity.hpp"

namespace semel::net {

void SocketOutput::send(std::string& bytes, Splices&& large) {
  constexpr std::size_t at_once = std::size_t{64} << 10;
  const bool is_direct = large.empty() && queue_.empty();
  if (tls_ != nullptr) {
    if (is_direct && bytes.size() <= at_once) {
      tls_->write(bytes);
    } else {
      queue_.add(bytes, std::move(large));
    }
    return flush();
  }
  if (!is_direct) {
    const bool was_empty = queue_.empty();
    queue_.add(bytes, std::move(large));
    if (was_empty) flush();
    return;
  }
  if (bytes.empty()) return;
  const ssize_t sent = judge(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  const std::size_t taken = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (!has_failed_ && taken < bytes.size()) queue_.add(bytes, {}, taken);
}

ssize_t SocketOutput::judge(ssize_t sent) {
  if (sent > 0) {
    has_moved_ = true;
    bytes_out_.add(static_cast<std::uint64_t>(sent));
  } else if (errno != EAGAIN && errno != EINTR) {
    has_failed_ = true;
  }
  return sent;
}

void SocketOutput::flush() {
  if (tls_ != nullptr) return flush_tls();
  constexpr std::size_t places_max = 64;
  constexpr int rounds_max = 16;
  for (int i = 0; i < rounds_max && !queue_.empty(); ++i) {
    iovec places[places_max];
    msghdr message{};
    message.msg_iov = places;
    message.msg_iovlen = queue_.pieces(places);
    const ssize_t sent = judge(sendmsg(socket_.get(), &message, MSG_NOSIGNAL));
    if (sent <= 0) return;
    queue_.sent(static_cast<std::size_t>(sent));
  }
}

/// Encrypts as many bytes as the socket takes, and one more piece.
void SocketOutput::flush_tls() {
  constexpr std::size_t piece_bytes = std::size_t{64} << 10;
  send_cipher();
  while (!has_failed_ && cipher_.empty() && !queue_.empty()) {
    const std::string_view piece = queue_.front().substr(0, piece_bytes);
    tls_->write(piece);
    queue_.sent(piece.size());
    send_cipher();
  }
  if (has_failed_ || !ends_ || !queue_.empty() || std::exchange(has_sent_end_, true)) return;
  tls_->close();
  send_cipher();
}

void SocketOutput::send_cipher() {
  std::string& bytes = cipher_.empty() ? scratch_ : cipher_;
  tls_->drain_output(bytes);
  if (bytes.size() == cipher_sent_) return;
  const ssize_t sent = judge(::send(socket_.get(), bytes.data() + cipher_sent_,
                                    bytes.size() - cipher_sent_, MSG_NOSIGNAL));
  if (has_failed_) return;
  if (sent > 0) cipher_sent_ += static_cast<std::size_t>(sent);
  SEMEL_ASSERT(cipher_sent_ <= bytes.size());
  if (cipher_sent_ == bytes.size()) {
    bytes.clear();
    give_back(cipher_);
    cipher_sent_ = 0;
  } else if (cipher_.empty()) {
    cipher_ = std::exchange(scratch_, std::string{});
  }
}

void SocketOutput::show(Session& session) {
  if (pending() == 0 && shown_ == 0) return;
  shown_ = pending();
  const std::size_t encrypted = cipher_.empty() ? 0 : cipher_.capacity();
  session.hold_output(queue_.own_bytes() + encrypted, queue_.large_bytes(), queue_.parts());
}

void SocketOutput::drop() noexcept {
  queue_ = {};
  give_back(cipher_);
  scratch_.clear();
  cipher_sent_ = 0;
}

}  // namespace semel::net
