#include "net/server/socket_connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/resp/release_capacity.hpp"
#include "net/server/socket_names.hpp"

namespace semel::net {

namespace {

/// The events of a connection that reads, and of one that will soon.
constexpr std::uint32_t input_events = EPOLLIN | EPOLLRDHUP;

}  // namespace

SocketConnection::SocketConnection(ConnectionShared& shared, Descriptor socket, ConnectionName name,
                                   std::uint64_t id, Transport transport,
                                   std::shared_ptr<Waker> waker, std::unique_ptr<TlsLayer> tls)
    : shared_(shared),
      socket_(std::move(socket)),
      name_(name),
      id_(id),
      waker_(std::move(waker)),
      tls_(std::move(tls)),
      begun_(shared.now),
      active_(shared.now),
      state_(State::handshake),
      transport_(transport) {}

SocketConnection::~SocketConnection() {
  if (session_) session_->end();
}

void SocketConnection::begin() {
  if (!tls_ && !make_session()) return;
  interest_ = input_events;
  epoll_event event{};
  event.events = interest_;
  event.data.u64 = name_;
  if (epoll_ctl(shared_.epoll, EPOLL_CTL_ADD, socket_.get(), &event) != 0) finish(Ended::lost);
}

bool SocketConnection::make_session() {
  SessionInfo info{.id = id_, .thread = shared_.thread, .transport = transport_};
  info.remote = remote_name(socket_.get());
  info.local = local_name(socket_.get());
  if (tls_) info.certificate_name = tls_->client_name();
  session_ = shared_.hooks.make_session(info, waker_);
  state_ = State::open;
  if (!session_) finish(Ended::no_session);
  return session_ != nullptr;
}

bool SocketConnection::reads() const noexcept {
  if (state_ == State::handshake) return true;
  return state_ == State::open && !paused_ && !session_->waits() && !session_->more();
}

/// Whether the end of the client's input ends its waiting request.
bool SocketConnection::watches_end() const noexcept {
  return state_ == State::open && session_->waits() && !session_->works();
}

bool SocketConnection::is_idle() const {
  return state_ == State::handshake ||
         (state_ == State::open && pending() == 0 && !session_->waits() && !session_->more() &&
          session_->input().held == 0);
}

void SocketConnection::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if (state_ != State::done) on_readable(events);
  send_and_rearm();
}

void SocketConnection::on_readable(std::uint32_t events) {
  constexpr std::uint32_t gone = EPOLLHUP | EPOLLERR;
  if (!reads()) {
    has_unread_ = true;
    // The client has gone and would not see the replies: its remaining requests do not run.
    const bool works = state_ == State::open && session_->works();
    const std::uint32_t end = watches_end() ? gone | EPOLLRDHUP : gone;
    if ((events & end) != 0 && !works) finish(Ended::by_client);
    return;
  }
  if ((events & (gone | input_events)) == 0) return;
  // The largest connection is being closed, so there will be room again in a moment.
  if (session_ && !session_->accepts_input()) return;
  const bool is_large =
      wanted_ > ConnectionShared::input_usual && !(session_ && session_->memory_is_tight());
  const std::size_t room =
      is_large ? std::min(wanted_, ConnectionShared::input_room) : ConnectionShared::input_usual;
  const ssize_t got = recv(socket_.get(), shared_.input.get(), room, 0);
  if (got > 0) {
    active_ = shared_.now;
    shared_.counters.bytes_in.add(static_cast<std::uint64_t>(got));
    feed({shared_.input.get(), static_cast<std::size_t>(got)});
  } else if (got == 0) {
    hang_up();
  } else if (errno != EAGAIN && errno != EINTR) {
    finish(Ended::lost);
  }
}

void SocketConnection::feed(std::string_view bytes) {
  if (!tls_) {
    session_->receive(bytes, shared_.output);
    return;
  }
  if (state_ == State::handshake) handshake_taken_ += bytes.size();
  tls_->feed(bytes);
  pump_tls();
}

/// Gives the session the decrypted bytes, as long as the session accepts them.
void SocketConnection::pump_tls() {
  while (state_ == State::handshake || (state_ == State::open && !session_->waits() &&
                                        !session_->more() && !session_->closes())) {
    const std::size_t got = tls_->read(shared_.plain.get(), ConnectionShared::input_usual);
    if (state_ == State::handshake && tls_->state() == TlsLayer::State::open && !make_session()) {
      return;
    }
    if (got == 0) break;
    session_->receive({shared_.plain.get(), got}, shared_.output);
  }
  if (tls_->state() == TlsLayer::State::failed) {
    fail_tls();
  } else if (tls_->state() == TlsLayer::State::closed) {
    hang_up();
  } else if (state_ == State::handshake && handshake_taken_ > shared_.limits.handshake_bytes) {
    note(LogLevel::warning,
         "TLS handshake is over " + std::to_string(shared_.limits.handshake_bytes) + " bytes");
    finish(Ended::handshake_failed);
  }
}

void SocketConnection::fail_tls() {
  const bool early = state_ == State::handshake;
  note(LogLevel::warning, (early ? "TLS handshake failed: " : "TLS failed: ") + tls_->error());
  shared_.output.clear();
  if (session_) static_cast<void>(session_->take_large());
  begin_close(early ? Ended::handshake_failed : Ended::tls_failed);  // with the alert
}

/// The client sends no more. The replies to its requests are still sent.
void SocketConnection::hang_up() {
  if (state_ != State::open) {
    if (state_ == State::handshake) finish(Ended::by_client);
    return;
  }
  send_replies();
  if (state_ == State::open) begin_close(Ended::by_client);
}

void SocketConnection::on_wake() {
  waker_->clear();
  if (session_ && session_->is_killed() && !session_->works()) return finish(Ended::killed);
  if (state_ != State::open) return;
  if (session_->more() && pending() != 0) return;  // woken again when it is sent
  if (session_->more() && !session_->accepts_input()) return waker_->wake();
  session_->collect(shared_.output);
  if (tls_) pump_tls();
  send_and_rearm();
}

/// Sends output, checks limits and updates the events that epoll waits for. Called after each step
/// that may have changed one of them.
void SocketConnection::send_and_rearm() {
  if (state_ != State::done) send_replies();
  if (state_ == State::open) after_session();
  if (state_ != State::done) check_output();
  if (state_ != State::done) show_output();
  if (state_ == State::closing && pending() == 0) finish(why_);
  if (state_ != State::done) arm();
}

void SocketConnection::after_session() {
  const SessionInput input = session_->input();
  wanted_ = input.wanted;
  watch_request(input);
  if (!session_->is_unauthenticated()) {
    unauthenticated_since_ = no_end;
  } else if (unauthenticated_since_ == no_end) {
    unauthenticated_since_ = shared_.now;
  }
  if (session_->closes()) {
    begin_close(Ended::after_reply);
  } else if (input.held > shared_.limits.input_bytes) {
    refuse("a request of more than " + std::to_string(shared_.limits.input_bytes) +
               " bytes is not taken",
           Ended::input_limit);
  } else if (draining_ && is_idle()) {
    begin_close(Ended::drained);
  } else if (session_->more() && pending() == 0) {
    waker_->wake();  // in the next round, so that other connections have their turn
  }
}

/// The deadline of a request runs from its first byte, and stops while the session waits.
void SocketConnection::watch_request(const SessionInput& input) {
  if (input.held == 0 || session_->waits() || session_->more()) {
    partial_since_ = no_end;
  } else if (partial_since_ == no_end || input.requests != requests_) {
    partial_since_ = shared_.now;
  }
  requests_ = input.requests;
}

const PendingLimit& SocketConnection::output_limit() const noexcept {
  const OutputClass kind = session_ ? session_->output_class() : OutputClass::normal;
  return shared_.limits.output[static_cast<std::size_t>(kind)];
}

void SocketConnection::check_output() {
  const std::size_t bytes = pending();
  if (bytes > shared_.limits.output_pause_bytes) {
    paused_ = true;
  } else if (paused_ && bytes <= shared_.limits.output_pause_bytes / 2) {
    paused_ = false;
    if (partial_since_ != no_end) partial_since_ = shared_.now;  // the server was not reading
  }
  const PendingLimit& limit = output_limit();
  if (limit.soft_bytes == 0 || bytes <= limit.soft_bytes) {
    soft_since_ = no_end;
  } else if (soft_since_ == no_end) {
    soft_since_ = shared_.now;
  }
  if (unauthenticated_since_ != no_end && bytes > shared_.limits.unauthenticated_output_bytes) {
    note(LogLevel::warning, "has not logged in, and lets " + std::to_string(bytes) +
                                " bytes wait to be sent; the limit is " +
                                std::to_string(shared_.limits.unauthenticated_output_bytes));
    finish(Ended::output_limit);
  } else if (limit.hard_bytes != 0 && bytes > limit.hard_bytes) {
    note(LogLevel::warning, std::to_string(bytes) + " bytes wait to be sent; the limit is " +
                                std::to_string(limit.hard_bytes));
    finish(Ended::output_limit);
  } else if (soft_since_ != no_end && is_over(soft_since_, limit.soft_for)) {
    note(LogLevel::warning, "more than " + std::to_string(limit.soft_bytes) +
                                " bytes have waited to be sent for more than " +
                                std::to_string(limit.soft_for.count()) + " ms");
    finish(Ended::output_limit);
  }
}

void SocketConnection::check_deadlines() {
  const ConnectionLimits& limits = shared_.limits;
  if (state_ == State::handshake && is_over(begun_, limits.handshake)) {
    note(LogLevel::notice,
         "TLS handshake not done within " + std::to_string(limits.handshake.count()) + " ms");
    finish(Ended::handshake_late);
  } else if (state_ == State::closing && is_over(begun_, limits.linger)) {
    finish(why_);
  } else if (state_ == State::open) {
    const bool waits = session_->waits() || session_->more();
    if (partial_since_ != no_end && !paused_ && is_over(partial_since_, limits.request)) {
      refuse("the request was not whole within " + std::to_string(limits.request.count()) + " ms",
             Ended::request_late);
    } else if (is_over(unauthenticated_since_, limits.request)) {
      refuse("not authenticated within " + std::to_string(limits.request.count()) + " ms",
             Ended::request_late);
    } else if (!waits && session_->output_class() == OutputClass::normal &&
               is_over(active_, limits.idle)) {
      finish(Ended::idle);
    }
    send_and_rearm();
  }
}

void SocketConnection::drain() {
  draining_ = true;
  if (state_ == State::handshake) {
    finish(Ended::drained);
  } else if (state_ == State::open) {
    on_readable(EPOLLIN);  // a request that has arrived is under way
    send_and_rearm();
  }
}

void SocketConnection::refuse(std::string_view text, Ended why) {
  shared_.output.append("-ERR ").append(text).append("\r\n");
  send_replies();
  if (state_ == State::open) begin_close(why);
}

/// Stops reading; pending output is sent for as long as `linger` allows.
void SocketConnection::begin_close(Ended why) {
  state_ = State::closing;
  why_ = why;
  begun_ = shared_.now;
  paused_ = false;
  if (tls_) flush();
}

void SocketConnection::send_replies() {
  constexpr std::size_t scratch_kept = std::size_t{1} << 20;
  constexpr std::size_t at_once = std::size_t{64} << 10;
  Splices large = session_ ? session_->take_large() : Splices{};
  std::string& bytes = shared_.output;
  if (!tls_) {
    send_plain(std::move(large));
  } else {
    if (large.empty() && queue_.empty() && bytes.size() <= at_once) {
      tls_->write(bytes);
    } else {
      queue_.add(bytes, std::move(large));
    }
    flush();
  }
  bytes.clear();
  if (bytes.capacity() > scratch_kept) bytes.shrink_to_fit();
}

/// The bytes that the socket does not take at once go into the queue.
void SocketConnection::send_plain(Splices&& large) {
  std::string& bytes = shared_.output;
  if (!large.empty() || !queue_.empty()) {
    const bool was_empty = queue_.empty();
    queue_.add(bytes, std::move(large));
    if (was_empty) flush();
    return;
  }
  if (bytes.empty()) return;
  const ssize_t sent = judge(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  const std::size_t taken = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (state_ != State::done && taken < bytes.size()) queue_.add(bytes, {}, taken);
}

ssize_t SocketConnection::judge(ssize_t sent) {
  if (sent > 0) {
    active_ = shared_.now;
    shared_.counters.bytes_out.add(static_cast<std::uint64_t>(sent));
  } else if (errno != EAGAIN && errno != EINTR) {
    finish(Ended::lost);
  }
  return sent;
}

void SocketConnection::flush() {
  if (tls_) return flush_tls();
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
void SocketConnection::flush_tls() {
  constexpr std::size_t piece_bytes = std::size_t{64} << 10;
  send_cipher();
  while (state_ != State::done && cipher_.empty() && !queue_.empty()) {
    const std::string_view piece = queue_.front().substr(0, piece_bytes);
    tls_->write(piece);
    queue_.sent(piece.size());
    send_cipher();
  }
  if (state_ != State::closing || !queue_.empty() || std::exchange(has_sent_end_, true)) return;
  tls_->close();
  send_cipher();
}

void SocketConnection::send_cipher() {
  std::string& bytes = cipher_.empty() ? shared_.cipher : cipher_;
  tls_->drain_output(bytes);
  if (bytes.size() == cipher_sent_) return;
  const ssize_t sent = judge(
      send(socket_.get(), bytes.data() + cipher_sent_, bytes.size() - cipher_sent_, MSG_NOSIGNAL));
  if (state_ == State::done) return;
  if (sent > 0) cipher_sent_ += static_cast<std::size_t>(sent);
  if (cipher_sent_ == bytes.size()) {
    bytes.clear();
    give_back(cipher_);
    cipher_sent_ = 0;
  } else if (cipher_.empty()) {
    cipher_ = std::exchange(shared_.cipher, std::string{});
  }
}

/// The session counts the bytes pending here as its own.
void SocketConnection::show_output() {
  if (!session_ || (pending() == 0 && shown_ == 0)) return;
  shown_ = pending();
  const std::size_t encrypted = cipher_.empty() ? 0 : cipher_.capacity();
  session_->hold_output(queue_.own_bytes() + encrypted, queue_.large_bytes(), queue_.parts());
}

void SocketConnection::finish(Ended why) {
  if (state_ == State::done) return;
  const bool polite = state_ == State::closing;
  state_ = State::done;
  shared_.output.clear();
  shared_.cipher.clear();
  shared_.counters.ended[static_cast<std::size_t>(why)].add();
  queue_ = {};
  give_back(cipher_);
  cipher_sent_ = 0;
  if (session_) session_->end();
  session_.reset();
  // Closing over unread bytes resets the connection, and the client might lose the last reply.
  if (polite && shutdown(socket_.get(), SHUT_WR) == 0) {
    constexpr int rounds_max = 16;
    for (int i = 0; i < rounds_max; ++i) {
      if (recv(socket_.get(), shared_.input.get(), ConnectionShared::input_usual, 0) <= 0) break;
    }
  }
  socket_.reset();
}

void SocketConnection::arm() {
  std::uint32_t wanted = pending() != 0 ? EPOLLOUT : 0U;
  if (reads()) {
    wanted |= input_events;
  } else if (watches_end()) {
    wanted |= EPOLLRDHUP;
  }
  // Most clients send nothing more until they have their reply. Keeping input watched until some
  // arrives unread saves two system calls for each request.
  constexpr std::uint32_t more = EPOLLIN | EPOLLOUT;
  const bool is_between =
      state_ == State::open && (wanted & more) == 0 && interest_ == input_events;
  if (wanted == interest_ || (is_between && !has_unread_)) return;
  has_unread_ = false;
  interest_ = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = name_;
  if (epoll_ctl(shared_.epoll, EPOLL_CTL_MOD, socket_.get(), &event) != 0) finish(Ended::lost);
}

void SocketConnection::note(LogLevel level, std::string_view what) {
  shared_.log.line(level, "client " + remote_name(socket_.get()) + ": " + std::string{what},
                   shared_.now);
}

}  // namespace semel::net
