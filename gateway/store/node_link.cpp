#include "gateway/store/node_link.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "base/random.hpp"
#include "gateway/shared/dial.hpp"
#include "gateway/store/node_words.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t reply_read_bytes = std::size_t{16} * 1024;
constexpr std::size_t kept_buffer_bytes = std::size_t{256} * 1024;
constexpr Millis pause_min{20};
constexpr Millis pause_max{1'000};
constexpr unsigned moves_max = 5;
constexpr unsigned logins_max = 2;        // on a connection
constexpr std::size_t group_digits = 16;  // of CLUSTER MYID: the cluster's id is in front

}  // namespace

struct NodeLink::Pending {
  Pending(asio::io_context& io, const NodeCommand& said) : command(said), timer(io) {}
  const NodeCommand command;
  asio::steady_timer timer;  // cancelled when the answer is here
  bool is_sent = false;
  bool is_done = false;
  NodeAnswer answer{};

  /// Without memory the reason is left out.
  void finish(NodeAnswer::How how, const std::string& why) {
    answer.how = how;
    is_done = true;
    timer.cancel();
    try {
      answer.why = why;
    } catch (const std::bad_alloc&) {
      answer.why.clear();
    }
  }
};

struct NodeLink::Connection {
  explicit Connection(Stream opened) : stream(std::move(opened)) {}
  Stream stream;
  std::string in{};
  std::size_t in_bytes = 0;  // of `in` that were received
  std::string out{};
  std::deque<std::shared_ptr<Pending>> sent{};
  bool is_writing = false;
  bool is_leaving = false;  // sends no more, and ends with the last answer
  bool is_dropped = false;
};

NodeLink::NodeLink(asio::io_context& io, const NodeContext& context)
    : io_(io), context_(context), password_(context.settings.password), pause_(io) {
  for (const std::string& text : context.settings.addresses) {
    const Result<Address> address = parse_address(text);
    if (address) places_.push_back({address->host, std::to_string(address->port)});
  }
  // So that not all gateways and threads begin with the first follower of a list.
  if (!places_.empty()) place_ = base::random_number() % places_.size();
}

NodeLink::~NodeLink() = default;

void NodeLink::start() {
  if (is_running_ || is_stopped_) return;
  is_running_ = true;
  const auto self = shared_from_this();
  asio::co_spawn(io_, run(), [self](const std::exception_ptr& /*failed*/) {
    // Without memory the next ask() starts it again.
    self->is_running_ = false;
    if (self->up_ != nullptr) self->drop(*self->up_, "there was no memory");
  });
}

void NodeLink::stop() {
  is_stopped_ = true;
  pause_.cancel();
  if (up_ != nullptr) drop(*up_, "the gateway ends");
}

asio::awaitable<NodeAnswer> NodeLink::ask(const NodeCommand& command, Millis within) {
  const auto self = shared_from_this();
  const std::size_t waiting = queue_.size() + (up_ == nullptr ? 0 : up_->sent.size());
  if (waiting >= context_.settings.queue) {
    NodeAnswer full;
    full.why = std::to_string(waiting) + " commands wait for the store";
    co_return full;
  }
  start();
  const auto pending = std::make_shared<Pending>(io_, command);
  queue_.push_back(pending);
  flush();
  const base::Stopwatch since;
  while (!pending->is_done) {
    // Once the command is sent, the limit is the node's store-timeout.
    const Millis left = pending->is_sent ? context_.settings.timeout - pending->answer.sent.passed()
                                         : within - since.passed();
    if (left <= Millis{0}) break;
    pending->timer.expires_after(left);
    co_await pending->timer.async_wait(no_throw);
  }
  if (!pending->is_done && pending->is_sent) {
    const std::string late =
        "no answer within " + std::to_string(context_.settings.timeout.count()) + " ms";
    // Answers come in order: the ones behind it will not come either.
    if (up_ != nullptr) drop(*up_, late);
    if (!pending->is_done) pending->finish(NodeAnswer::How::unknown, late);
  } else if (!pending->is_done) {
    std::erase(queue_, pending);
    pending->finish(NodeAnswer::How::not_sent, trouble_);
  }
  co_return std::move(pending->answer);
}

void NodeLink::flush() {
  if (up_ == nullptr || up_->is_writing || up_->is_leaving || up_->is_dropped) return;
  Connection& connection = *up_;
  connection.out.clear();
  if (connection.out.capacity() > kept_buffer_bytes) connection.out.shrink_to_fit();
  while (!queue_.empty() && connection.out.size() < limits::link_write_bytes &&
         connection.sent.size() < limits::link_sent_max) {
    const NodeCommand& command = queue_.front()->command;
    connection.out.append(command.text);
    if (!command.last.empty()) connection.out.append(command.last).append("\r\n");
    connection.sent.push_back(queue_.front());
    queue_.front()->is_sent = true;
    queue_.front()->answer.sent.restart();
    queue_.front()->timer.cancel();  // ask() takes the other time
    queue_.pop_front();
  }
  if (connection.out.empty()) return;
  connection.is_writing = true;
  asio::async_write(connection.stream, asio::buffer(connection.out),
                    [self = shared_from_this(), held = up_](error_code error, std::size_t) {
                      held->is_writing = false;
                      if (error) {
                        self->drop(*held, "sending to the store: " + error.message());
                      } else {
                        self->flush();
                      }
                    });
}

/// Also if it is not open any more.
void NodeLink::drop(Connection& connection, const std::string& why) {
  if (std::exchange(connection.is_dropped, true)) return;
  connection.stream.close();
  while (!connection.sent.empty()) {
    const std::shared_ptr<Pending> lost = std::move(connection.sent.front());
    connection.sent.pop_front();
    lost->finish(NodeAnswer::How::unknown, why);
  }
  if (up_.get() == &connection) {
    up_.reset();
    context_.counters.store_connections.subtract();
  }
  trouble_ = why;
}

NodeLink::Place NodeLink::next_place() {
  if (moved_) return *std::exchange(moved_, std::nullopt);
  return places_[place_ % places_.size()];
}

Millis NodeLink::next_pause() noexcept {
  if (moved_ && ++moves_ <= moves_max) return Millis{0};
  constexpr unsigned doublings_max = 6;
  const Millis longest =
      std::min(pause_max, pause_min * (1U << std::min(failures_, doublings_max)));
  const auto spread = base::random_number() % static_cast<std::uint64_t>(longest.count() / 2 + 1);
  return longest - Millis{static_cast<std::int64_t>(spread)};
}

asio::awaitable<void> NodeLink::run() {
  const auto self = shared_from_this();
  while (!is_stopped_) {
    const std::shared_ptr<Connection> opened = co_await open();
    if (opened != nullptr && !is_stopped_) {
      up_ = opened;
      is_refused_ = false;
      context_.counters.store_connections.add();
      flush();
      co_await read_all(opened);
      const std::string why = trouble_;
      drop(*opened, why);
    } else {
      context_.counters.store_connects_failed.add();
    }
    if (is_stopped_) break;
    context_.trouble.set(trouble_);
    ++failures_;
    if (!moved_) ++place_;
    pause_.expires_after(next_pause());
    co_await pause_.async_wait(no_throw);
  }
}

asio::awaitable<std::shared_ptr<NodeLink::Connection>> NodeLink::open() {
  const Place place = next_place();
  const auto tls = context_.tls.get();
  const DialTarget target{
      .host = place.host, .port = place.port, .tls = tls.get(), .within = context_.connect_timeout};
  Dialed dialed = co_await dial(io_, target);
  if (!dialed.stream) {
    trouble_ = "store-node: " + dialed.trouble;
    is_refused_ = dialed.is_refused;
    co_return nullptr;
  }
  auto made = std::make_shared<Connection>(*std::move(dialed.stream));
  made->stream.expires_after(context_.settings.timeout);
  const bool is_ready = co_await greet(*made);
  if (!is_ready) {
    trouble_ = "store-node " + place.host + ":" + place.port + ": " + trouble_;
    co_return nullptr;
  }
  made->stream.tcp_layer().expires_never();  // asking has times of its own
  co_return made;
}

void NodeLink::refuse(std::string why) {
  trouble_ = std::move(why);
  is_refused_ = true;
}

bool NodeLink::is_redirected(const NodeReply& reply) {
  if (advice_of(reply) != Advice::elsewhere) return false;
  trouble_ = reply.text;
  const Result<Address> address = parse_address(moved_to(reply.text));
  if (address && !address->host.empty() && address->port != 0) {
    moved_ = Place{address->host, std::to_string(address->port)};
  }
  return true;
}

bool NodeLink::accept_group(const NodeReply& reply) {
  group_ = reply.is_error() ? std::string{} : reply.text.substr(0, group_digits);
  // A single node answers with an error; so does a node that does not allow the command.
  if (reply.is_error() && reply.text.starts_with("NOPERM")) {
    refuse(reply.text);
  } else if (group_.empty() && places_.size() > 1) {
    refuse("a node by itself, but several nodes have to be of one group: " + reply.text);
  } else if (context_.group && *context_.group != group_) {
    refuse("it belongs to another group than the nodes before");
  } else {
    return true;
  }
  return false;
}

/// Reads a new password, so that one changed at the node and in the file needs no restart. Reads
/// the file on the thread of requests: it is small, and only read when a node has refused the known
/// one.
bool NodeLink::take_new_password() {
  // Reading a pipe, as a shell's <(..), would block.
  std::error_code error;
  if (!std::filesystem::is_regular_file(context_.settings.password_file, error)) return false;
  Result<std::string> read = read_password(context_.settings.password_file);
  if (!read || *read == password_) return false;
  password_ = *std::move(read);
  return true;
}

asio::awaitable<bool> NodeLink::log_in(Connection& connection) {
  const std::string& user = context_.settings.user;
  for (unsigned i = 1;; ++i) {
    const std::string login =
        user.empty() ? command_of({"AUTH", password_}) : command_of({"AUTH", user, password_});
    const std::optional<NodeReply> reply = co_await exchange(connection, login);
    if (!reply) co_return false;
    if (!reply->is_error()) co_return true;
    if (i == logins_max || !take_new_password()) {
      refuse(reply->text);
      co_return false;
    }
  }
}

asio::awaitable<bool> NodeLink::greet(Connection& connection) {
  if (!password_.empty()) {
    const bool is_known = co_await log_in(connection);
    if (!is_known) co_return false;
  }
  const std::string question = command_of({"CLUSTER", "MYID"});
  const std::optional<NodeReply> identity = co_await exchange(connection, question);
  if (!identity) co_return false;
  if (identity->is_error() && identity->text.starts_with("NOAUTH")) {
    refuse(identity->text);
    co_return false;
  }
  if (is_redirected(*identity) || !accept_group(*identity)) co_return false;
  const std::vector<std::string> declarations = declarations_;  // they may change in the loop
  for (const std::string& declaration : declarations) {
    const std::optional<NodeReply> reply = co_await exchange(connection, declaration);
    if (!reply || is_redirected(*reply)) co_return false;
    // Another gateway with other settings was started later: its terms apply.
    if (reply->is_error() && !has_other_terms(*reply)) {
      trouble_ = reply->text;
      co_return false;
    }
  }
  co_return true;
}

/// Before the connection serves: one command at a time, under the deadline of the stream.
asio::awaitable<std::optional<NodeReply>> NodeLink::exchange(Connection& connection,
                                                             const std::string& command) {
  auto [error, sent] =
      co_await asio::async_write(connection.stream, asio::buffer(command), no_throw);
  static_cast<void>(sent);
  while (!error) {
    ParsedReply parsed = parse_reply({connection.in.data(), connection.in_bytes});
    if (parsed.state == ParsedReply::State::complete) {
      connection.in.erase(0, parsed.bytes);
      connection.in_bytes -= parsed.bytes;
      co_return std::move(parsed.reply);
    }
    if (parsed.state == ParsedReply::State::invalid) {
      trouble_ = "it does not speak Redis' protocol";
      co_return std::nullopt;
    }
    connection.in.resize(connection.in_bytes + reply_read_bytes);
    auto [failed, bytes] = co_await connection.stream.async_read_some(
        asio::buffer(connection.in.data() + connection.in_bytes, reply_read_bytes), no_throw);
    error = failed;
    connection.in_bytes += bytes;
  }
  trouble_ = error.message();
  is_refused_ = is_refused_by_tls(error);
  co_return std::nullopt;
}

/// False: the connection must end.
bool NodeLink::take_replies(Connection& connection) {
  std::size_t at = 0;
  bool is_sound = true;
  for (;;) {
    const std::string_view rest{connection.in.data() + at, connection.in_bytes - at};
    ParsedReply parsed = parse_reply(rest);
    if (parsed.state == ParsedReply::State::incomplete) {
      connection.in.erase(0, at);
      connection.in_bytes -= at;
      // Reads all of the announced bytes at once: a reply of a megabyte is not parsed 64 times.
      const std::size_t wanted = std::max(parsed.bytes, connection.in_bytes + reply_read_bytes);
      connection.in.resize(wanted);
      if (connection.in.capacity() > kept_buffer_bytes && wanted < reply_read_bytes * 2) {
        connection.in.shrink_to_fit();
      }
      break;
    }
    // An unsolicited reply, or invalid bytes.
    is_sound = parsed.state == ParsedReply::State::complete && !connection.sent.empty();
    if (!is_sound) break;
    at += parsed.bytes;
    if (is_redirected(parsed.reply)) {
      connection.is_leaving = true;
    } else {
      failures_ = 0;
      moves_ = 0;
    }
    const std::shared_ptr<Pending> answered = std::move(connection.sent.front());
    connection.sent.pop_front();
    answered->answer.reply = std::move(parsed.reply);
    answered->finish(NodeAnswer::How::replied, {});
  }
  if (!is_sound) drop(connection, "store-node: what it sends is not Redis' protocol");
  return is_sound && !(connection.is_leaving && connection.sent.empty());
}

asio::awaitable<void> NodeLink::read_all(std::shared_ptr<Connection> connection) {
  while (take_replies(*connection)) {
    flush();
    auto [error, bytes] = co_await connection->stream.async_read_some(
        asio::buffer(connection->in.data() + connection->in_bytes,
                     connection->in.size() - connection->in_bytes),
        no_throw);
    if (connection->is_dropped) co_return;
    if (error) {
      drop(*connection, "the connection to the store ended: " + error.message());
      co_return;
    }
    connection->in_bytes += bytes;
  }
}

}  // namespace semel::gateway
