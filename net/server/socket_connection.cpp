#include "net/server/socket_connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/server/socket_names.hpp"

namespace semel::net {

namespace {

/// The events of a connection that reads, and of one that will soon.
constexpr std::uint32_t input_events = EPOLLIN | EPOLLRDHUP;

}  // namespace

namespace {

const PendingLimit& limit_of(const ConnectionShared& shared, const Session* session) {
  const OutputClass kind = session != nullptr ? session->output_class() : OutputClass::normal;
  return shared.limits.output[static_cast<std::size_t>(kind)];
}

std::size_t size_of(const Splices& large) {
  std::size_t bytes = 0;
  for (const Splice& each : large) bytes += each.bytes->view().size();
  return bytes;
}

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
      output_(socket_, tls_.get(), shared.cipher, shared.counters.bytes_out),
      times_(shared.now),
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

void SocketConnection::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    output_.flush();
    note_sent();
  }
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
    times_.silent.restart(shared_.now);
    shared_.counters.bytes_in.add(static_cast<std::uint64_t>(got));
    const std::string_view bytes{shared_.input.get(), static_cast<std::size_t>(got)};
    if (!tls_) return session_->receive(bytes, shared_.output);
    if (state_ == State::handshake) handshake_taken_ += bytes.size();
    tls_->feed(bytes);
    pump_tls();
  } else if (got == 0) {
    hang_up();
  } else if (errno != EAGAIN && errno != EINTR) {
    finish(Ended::lost);
  }
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
  if (session_->more() && output_.pending() != 0) return;  // woken again when it is sent
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
  if (session_) output_.show(*session_);
  if (state_ == State::closing && output_.pending() == 0) finish(why_);
  if (state_ != State::done) arm();
}

void SocketConnection::after_session() {
  const SessionInput input = session_->input();
  wanted_ = input.wanted;
  const Timestamp now = shared_.now;
  const bool stands = session_->waits() || session_->more();
  times_.watch_request(input, stands, now);
  times_.unauthenticated.set(session_->is_unauthenticated(), now);
  const bool is_idle = output_.pending() == 0 && !stands && input.held == 0;
  if (session_->closes()) {
    begin_close(Ended::after_reply);
  } else if (input.held > shared_.limits.input_bytes) {
    refuse("a request of more than " + std::to_string(shared_.limits.input_bytes) +
               " bytes is not taken",
           Ended::input_limit);
  } else if (draining_ && is_idle) {
    begin_close(Ended::drained);
  } else if (session_->more() && output_.pending() == 0) {
    waker_->wake();  // in the next round, so that other connections have their turn
  }
}

void SocketConnection::check_output() {
  const std::size_t bytes = output_.pending();
  if (bytes > shared_.limits.output_pause_bytes) {
    paused_ = true;
  } else if (paused_ && bytes <= shared_.limits.output_pause_bytes / 2) {
    paused_ = false;
    times_.resume(shared_.now);
  }
  const PendingLimit& limit = limit_of(shared_, session_.get());
  times_.over_soft.set(limit.soft_bytes != 0 && bytes > limit.soft_bytes, shared_.now);
  if (times_.unauthenticated.holds() && bytes > shared_.limits.unauthenticated_output_bytes) {
    note(LogLevel::warning, "has not logged in, and lets " + std::to_string(bytes) +
                                " bytes wait to be sent; the limit is " +
                                std::to_string(shared_.limits.unauthenticated_output_bytes));
    finish(Ended::output_limit);
  } else if (limit.hard_bytes != 0 && bytes > limit.hard_bytes) {
    note(LogLevel::warning, std::to_string(bytes) + " bytes wait to be sent; the limit is " +
                                std::to_string(limit.hard_bytes));
    finish(Ended::output_limit);
  } else if (times_.over_soft.is_over(limit.soft_for, shared_.now)) {
    note(LogLevel::warning, "more than " + std::to_string(limit.soft_bytes) +
                                " bytes have waited to be sent for more than " +
                                std::to_string(limit.soft_for.count()) + " ms");
    finish(Ended::output_limit);
  }
}

void SocketConnection::check_deadlines() {
  const ConnectionLimits& limits = shared_.limits;
  const Timestamp now = shared_.now;
  if (state_ == State::handshake && times_.stage.is_over(limits.handshake, now)) {
    note(LogLevel::notice,
         "TLS handshake not done within " + std::to_string(limits.handshake.count()) + " ms");
    finish(Ended::handshake_late);
  } else if (state_ == State::closing && times_.stage.is_over(limits.linger, now)) {
    finish(why_);
  } else if (state_ == State::open) {
    const bool waits = session_->waits() || session_->more();
    if (!paused_ && times_.partial.is_over(limits.request, now)) {
      refuse("the request was not whole within " + std::to_string(limits.request.count()) + " ms",
             Ended::request_late);
    } else if (times_.unauthenticated.is_over(limits.request, now)) {
      refuse("not authenticated within " + std::to_string(limits.request.count()) + " ms",
             Ended::request_late);
    } else if (!waits && session_->output_class() == OutputClass::normal &&
               times_.silent.is_over(limits.idle, now)) {
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
  times_.stage.restart(shared_.now);
  paused_ = false;
  output_.end();
  if (!tls_) return;
  output_.flush();
  note_sent();
}

void SocketConnection::send_replies() {
  constexpr std::size_t scratch_kept = std::size_t{1} << 20;
  std::string& bytes = shared_.output;
  Splices large = session_ ? session_->take_large() : Splices{};
  // As in redis-server, what one round of requests brings counts before any of it is sent.
  const std::size_t hard = limit_of(shared_, session_.get()).hard_bytes;
  const std::size_t pending = output_.pending() + bytes.size() + size_of(large);
  if (hard != 0 && pending > hard && state_ != State::done) {
    note(LogLevel::warning,
         std::to_string(pending) + " bytes wait to be sent; the limit is " + std::to_string(hard));
    return finish(Ended::output_limit);
  }
  output_.send(bytes, std::move(large));
  note_sent();
  bytes.clear();
  if (bytes.capacity() > scratch_kept) bytes.shrink_to_fit();
}

void SocketConnection::note_sent() {
  if (output_.take_progress()) times_.silent.restart(shared_.now);
  if (output_.has_failed()) finish(Ended::lost);
}

void SocketConnection::finish(Ended why) {
  if (state_ == State::done) return;
  const bool polite = state_ == State::closing;
  state_ = State::done;
  shared_.output.clear();
  shared_.counters.ended[static_cast<std::size_t>(why)].add();
  output_.drop();
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
  std::uint32_t wanted = output_.pending() != 0 ? EPOLLOUT : 0U;
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
