#include "replication/transport/transport_inside.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <utility>

#include "base/random.hpp"
#include "replication/log/write_behind.hpp"

namespace semel::replication {

namespace asio = boost::asio;
using asio::use_awaitable;

namespace {

/// A peer that does not acknowledge bytes for so long is gone.
constexpr unsigned unanswered_ms = 5'000;
constexpr std::size_t write_bytes = std::size_t{1} << 20;

/// A descriptor that is closed.
class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0640)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] std::uint64_t size() const noexcept {
    struct stat info {};
    return fstat(descriptor_, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
  }

 private:
  const int descriptor_;
};

/// So many bytes a second at most. The time that moving them takes comes on top.
class Pace {
 public:
  explicit Pace(std::uint64_t bytes_per_s) noexcept : bytes_per_s_(bytes_per_s) {}
  /// How long to rest behind so many more: often not at all, and then for some milliseconds.
  [[nodiscard]] Millis after(std::size_t bytes) noexcept {
    if (bytes_per_s_ == 0) return Millis{0};
    debt_us_ += bytes * 1'000'000 / bytes_per_s_;
    if (debt_us_ < 2'000) return Millis{0};
    const auto rest = static_cast<std::int64_t>(debt_us_ / 1'000);
    debt_us_ %= 1'000;
    return Millis{rest};
  }

 private:
  const std::uint64_t bytes_per_s_;
  std::uint64_t debt_us_ = 0;
};

/// Of the entries in it.
std::size_t entry_bytes(const Frame& frame) noexcept {
  const auto* const message = std::get_if<RaftMessage>(&frame);
  const auto* const append =
      message == nullptr ? nullptr : std::get_if<AppendRequest>(&message->what);
  std::size_t bytes = 0;
  if (append == nullptr) return bytes;
  for (const RaftEntry& each : append->entries) bytes += each.data->size();
  return bytes;
}

void notice_loss(asio::ip::tcp::socket& socket) {
  const unsigned time = unanswered_ms;
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &time, sizeof time);
  boost::system::error_code ignored;
  socket.set_option(asio::socket_base::keep_alive{true}, ignored);
}

}  // namespace

/// The end of a coroutine. What it has not caught itself is the want of memory.
std::function<void(std::exception_ptr)> TransportInside::unless_starved() {
  return [self = shared_from_this()](const std::exception_ptr& error) {
    if (error != nullptr && !self->is_stopped) self->handler.on_starved();
  };
}

void TransportInside::begin() {
  asio::co_spawn(context, accept_all(), unless_starved());
}

void TransportInside::stop() {
  if (std::exchange(is_stopped, true)) return;
  boost::system::error_code ignored;
  acceptor.close(ignored);
  for (const auto& [id, peer] : peers) disconnect(*peer);
  for (const Stream& stream : streams) stream->close();
  for (const auto& each : connecting) {
    try {
      each->give_up();
    } catch (const std::bad_alloc&) {  // the replica ends for want of memory: nothing follows
    }
  }
  cancel_fetch();
}

Hello TransportInside::hello(Purpose purpose) const {
  Hello made;
  made.cluster_id = options.cluster_id;
  made.node_id = options.node_id;
  made.purpose = purpose;
  made.feature_level = options.level;
  made.address = options.address.empty() ? options.listen : options.address;
  made.log = options.log;
  return made;
}

void TransportInside::disconnect(Peer& peer) {
  peer.is_gone = true;
  if (peer.out != nullptr) peer.out->close();
  peer.wakeup.cancel();
}

void TransportInside::set_peers(const std::map<NodeId, std::string>& wanted) {
  std::erase_if(peers, [&](const auto& known) {
    const auto found = wanted.find(known.first);
    if (found != wanted.end() && found->second == known.second->address) return false;
    disconnect(*known.second);
    return true;
  });
  for (const auto& [id, address] : wanted) {
    if (id == options.node_id || peers.contains(id)) continue;
    auto peer = std::make_shared<Peer>(context, id, address);
    peers[id] = peer;
    asio::co_spawn(context, connect_again(std::move(peer)), unless_starved());
  }
}

void TransportInside::expect_logs(std::map<NodeId, LogIdentity> wanted) {
  if (wanted == logs) return;
  logs = std::move(wanted);
  for (const auto& [id, stream] : incoming) {
    if (!objection_to_log(id, stream->log).empty()) stream->close();
  }
  for (const auto& [id, peer] : peers) {
    if (peer->out != nullptr && !objection_to_log(id, peer->out->log).empty()) peer->out->close();
  }
}

std::string TransportInside::objection_to_log(NodeId id, const LogIdentity& log) const {
  const auto expected = logs.find(id);
  if (expected == logs.end() || expected->second == log) return {};
  // Before the upgrade any member may go back to a release that does not say which log it has.
  if (!log.is_known() && handler.level() < feature_level_identities) return {};
  return "the log of node " + std::to_string(id) +
         " is not the one that the group knows: it has lost what it had acknowledged; remove it, "
         "empty its directory and add it under another number (docs/replication.md, A node is "
         "replaced)";
}

bool TransportInside::queue(NodeId to, const Frame& frame) {
  const auto found = peers.find(to);
  if (found == peers.end()) return false;
  Peer& peer = *found->second;
  if (peer.out == nullptr || peer.queued > options.queue_bytes ||
      peer.queue.size() >= options.queue_frames) {
    ++peer.stats.dropped;
    return false;
  }
  std::string bytes;
  encode(frame, bytes, peer.stats.level);
  const std::size_t size = bytes.size();
  peer.queue.push_back(std::move(bytes));
  peer.queued += size;
  if (peer.queue.size() == 1) peer.wakeup.cancel();
  return true;
}

// --- what peers open --------------------------------------------------------------------------

TransportInside::Nothing TransportInside::accept_all() {
  const auto self = shared_from_this();
  while (!is_stopped) {
    boost::system::error_code error;
    Tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(use_awaitable, error));
    if (is_stopped) co_return;
    if (error) {  // no descriptors, perhaps
      co_await pause(Millis{50});
      continue;
    }
    try {
      // A member says its hello at once; peers that only hold connections do not block it.
      if (unknown.size() >= options.connections_max) {
        ++totals.refused;
        unknown.front()->close();
        unknown.pop_front();
      }
      notice_loss(socket);
      auto stream = std::make_shared<PeerStream>(std::move(socket), tls);
      streams.insert(stream);
      unknown.push_back(stream);
      asio::co_spawn(context, serve(std::move(stream)), unless_starved());
    } catch (const std::exception&) {  // no memory: the next one may find some
      ++totals.refused;
    }
  }
}

std::string TransportInside::objection(const Hello& hello, const PeerStream& stream) const {
  if (hello.cluster_id != options.cluster_id) return "it is of another cluster";
  if (hello.version < wire_version_least || wire_version < hello.version_least) {
    return "it speaks version " + std::to_string(hello.version_least) + " to " +
           std::to_string(hello.version) + ", here is " + std::to_string(wire_version);
  }
  if (hello.feature_level < handler.level()) {
    return "it knows feature level " + std::to_string(hello.feature_level) + ", the group uses " +
           std::to_string(handler.level()) + ": a later release is needed";
  }
  if (hello.node_id == options.node_id) return "it has the id of this node";
  if (!stream.proves(options.cluster_id, hello.node_id)) {
    return "its certificate is not that of node " + std::to_string(hello.node_id);
  }
  if (!handler.knows(hello.node_id)) {
    return "node " + std::to_string(hello.node_id) + " is not a member";
  }
  return objection_to_log(hello.node_id, hello.log);
}

TransportInside::Nothing TransportInside::serve(Stream stream) {
  const auto self = shared_from_this();
  std::string what;
  bool is_known = false;
  try {
    stream->close_in(options.hello_time);
    co_await stream->begin_tls(true);
    const Frame first = co_await stream->read(hello_bytes_max);
    const Hello* const theirs = std::get_if<Hello>(&first);
    if (is_stopped) co_return stream->close();
    what = theirs == nullptr ? "it does not begin with a hello" : objection(*theirs, *stream);
    if (!what.empty()) {
      const Frame refusal = Refusal{what};
      co_await stream->say(refusal);
    } else {
      is_known = true;
      std::erase(unknown, stream);
      stream->log = theirs->log;
      const Frame ours = hello(theirs->purpose);
      co_await stream->say(ours);
      stream->never_close();
      if (is_stopped) co_return stream->close();
      if (theirs->purpose == Purpose::snapshot) {
        co_await serve_snapshot(stream);
      } else {
        handler.on_peer(theirs->node_id, theirs->address);
        co_await serve_messages(stream, theirs->node_id);
      }
    }
  } catch (const PeerError& error) {
    what = error.what();
  } catch (const std::exception& error) {  // of the network or of TLS, or no memory
    if (!is_known) what = error.what();
  }
  if (!what.empty()) ++totals.refused;
  if (!what.empty() && !is_stopped) {
    handler.on_event(PeerHandler::Event::refused,
                     "peer " + stream->address() + " is refused: " + what);
  }
  stream->close();
  streams.erase(stream);
  std::erase(unknown, stream);
  std::erase_if(incoming, [&](const auto& each) { return each.second == stream; });
}

TransportInside::Nothing TransportInside::serve_messages(Stream stream, NodeId from) {
  // Of two connections the peer has opened the second because it has given up the first.
  if (const auto older = incoming.find(from); older != incoming.end()) older->second->close();
  incoming[from] = stream;
  Pace pace{options.snapshot_bytes_per_s};
  while (!is_stopped) {
    Frame frame = co_await stream->read();
    // It was learned since the hello.
    if (const std::string what = objection_to_log(from, stream->log); !what.empty()) {
      throw PeerError{what};
    }
    const std::size_t bytes = entry_bytes(frame);
    take(from, std::move(frame));
    if (bytes == 0 || is_stopped || !handler.is_joining()) continue;
    // What the leader may have under way has an end: it waits for this node's answers.
    if (const Millis rest = pace.after(bytes); rest != Millis{0}) co_await pause(rest);
  }
}

void TransportInside::take(NodeId from, Frame frame) {
  if (is_stopped) return;
  if (const auto known = peers.find(from); known != peers.end()) {
    ++known->second->stats.frames_received;
  }
  if (auto* message = std::get_if<RaftMessage>(&frame)) {
    if (message->from != from || message->to != options.node_id) {
      throw PeerError{"a message from node " + std::to_string(message->from) + " to node " +
                      std::to_string(message->to) + " comes from node " + std::to_string(from)};
    }
    handler.on_message(std::move(*message));
  } else if (auto* forward = std::get_if<Forward>(&frame)) {
    handler.on_forward(from, std::move(*forward));
  } else if (auto* reply = std::get_if<ForwardReply>(&frame)) {
    handler.on_forward_reply(from, std::move(*reply));
  } else {
    throw PeerError{"a frame of kind " + std::to_string(frame.index()) + " among messages"};
  }
}

TransportInside::Nothing TransportInside::serve_snapshot(Stream stream) {
  stream->close_in(options.hello_time);
  const Frame first = co_await stream->read(hello_bytes_max);
  stream->never_close();
  const auto* const request = std::get_if<SnapshotRequest>(&first);
  if (request == nullptr) throw PeerError{"it does not ask for a snapshot"};
  const auto path = handler.snapshot_path(request->index, request->term);
  if (!path) {
    const Frame none = SnapshotEnd{};
    co_await stream->say(none);
    co_return;
  }
  const File file{*path, O_RDONLY};
  const std::uint64_t size = file.size();
  std::string bytes(chunk_bytes, '\0');
  Pace pace{options.snapshot_bytes_per_s};
  for (std::uint64_t at = request->offset; at < size;) {
    const ssize_t count =
        pread(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count <= 0) throw PeerError{"a snapshot cannot be read"};
    at += static_cast<std::uint64_t>(count);
    const Frame chunk = SnapshotChunk{bytes.substr(0, static_cast<std::size_t>(count))};
    co_await stream->say(chunk);
    totals.snapshot_bytes_sent += static_cast<std::uint64_t>(count);
    const Millis rest = pace.after(static_cast<std::size_t>(count));
    if (rest != Millis{0}) co_await pause(rest);
  }
  const Frame end = SnapshotEnd{.is_there = true, .bytes = size};
  co_await stream->say(end);
}

// --- what we open -----------------------------------------------------------------------------

TransportInside::Nothing TransportInside::pause(Millis time) {
  asio::steady_timer timer{context, time};
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(use_awaitable, ignored));
}

asio::awaitable<TransportInside::Tcp::socket> TransportInside::open_socket(
    const std::string& address) {
  const auto parts = split_address(address);
  if (!parts) throw PeerError{"'" + address + "' is not host:port"};
  const auto made = std::make_shared<Connecting>(context);
  connecting.insert(made);
  // Without it the kernel tries for two minutes, more and more seldom.
  made->deadline.expires_after(options.connect_time);
  made->deadline.async_wait([weak = std::weak_ptr{made}](const boost::system::error_code& error) {
    const auto late = weak.lock();
    if (!error && late != nullptr) late->give_up();
  });
  boost::system::error_code error;
  const auto found = co_await made->resolver.async_resolve(
      parts->first, parts->second, asio::redirect_error(use_awaitable, error));
  if (!error) {
    co_await asio::async_connect(made->socket, found, asio::redirect_error(use_awaitable, error));
  }
  made->deadline.cancel();
  connecting.erase(made);
  if (!error && !made->socket.is_open()) error = asio::error::timed_out;
  if (error) throw boost::system::system_error{error};
  co_return std::move(made->socket);
}

asio::awaitable<TransportInside::Stream> TransportInside::connect(const std::string& address,
                                                                  NodeId id, Purpose purpose) {
  Tcp::socket socket = co_await open_socket(address);
  notice_loss(socket);
  auto stream = std::make_shared<PeerStream>(std::move(socket), tls);
  stream->close_in(options.hello_time);
  co_await stream->begin_tls(false);
  if (!stream->proves(options.cluster_id, id)) {
    throw PeerError{"its certificate is not that of node " + std::to_string(id)};
  }
  const Frame ours = hello(purpose);
  co_await stream->say(ours);
  const Frame answer = co_await stream->read(hello_bytes_max);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    throw PeerError{"it refuses: " + refusal->reason};
  }
  const auto* const theirs = std::get_if<Hello>(&answer);
  if (theirs == nullptr || theirs->cluster_id != options.cluster_id || theirs->node_id != id) {
    throw PeerError{"it is not node " + std::to_string(id) + " of this cluster"};
  }
  if (const std::string what = objection_to_log(id, theirs->log); !what.empty()) {
    throw PeerError{what};
  }
  stream->level = theirs->feature_level;
  stream->log = theirs->log;
  stream->never_close();
  co_return stream;
}

TransportInside::Nothing TransportInside::connect_again(std::shared_ptr<Peer> peer) {
  const auto self = shared_from_this();
  Millis wait = options.retry_least;
  std::string told;
  while (!is_stopped && !peer->is_gone) {
    std::string what;
    try {
      Stream stream = co_await connect(peer->address, peer->id, Purpose::messages);
      if (is_stopped || peer->is_gone) co_return stream->close();
      wait = options.retry_least;
      told.clear();
      peer->out = stream;
      ++peer->stats.connects;
      peer->stats.level = stream->level;
      asio::co_spawn(context, watch(stream), unless_starved());
      co_await write_queue(peer, stream);
    } catch (const PeerError& error) {
      what = error.what();
    } catch (const std::exception& error) {  // of the network or of TLS
      what = error.what();
    }
    if (peer->out != nullptr) peer->out->close();
    peer->out = nullptr;
    // Raft sends lost messages again.
    peer->stats.dropped += peer->queue.size();
    peer->queue.clear();
    peer->queued = 0;
    if (is_stopped || peer->is_gone) co_return;
    if (!what.empty() && what != told) {
      told = what;
      handler.on_event(PeerHandler::Event::unreachable,
                       "node " + std::to_string(peer->id) + " at " + peer->address + ": " + what);
    }
    const auto part = static_cast<std::int64_t>(base::random_number() % 100);
    co_await pause(wait / 2 + wait * part / 200);
    wait = std::min(2 * wait, options.retry_most);
  }
}

TransportInside::Nothing TransportInside::write_queue(std::shared_ptr<Peer> peer, Stream stream) {
  std::string bytes;
  while (!is_stopped && !peer->is_gone && peer->out == stream) {
    if (peer->queue.empty()) {
      boost::system::error_code ignored;
      peer->wakeup.expires_at(std::chrono::steady_clock::time_point::max());
      co_await peer->wakeup.async_wait(asio::redirect_error(use_awaitable, ignored));
      continue;
    }
    bytes.clear();
    std::uint64_t frames = 0;
    while (!peer->queue.empty() && bytes.size() < write_bytes) {
      bytes += peer->queue.front();
      peer->queued -= peer->queue.front().size();
      peer->queue.pop_front();
      ++frames;
    }
    co_await stream->write(bytes);
    peer->stats.frames_sent += frames;
    peer->stats.bytes_sent += bytes.size();
  }
}

/// Nothing comes on a connection of ours but its end.
TransportInside::Nothing TransportInside::watch(Stream stream) {
  const auto self = shared_from_this();
  try {
    static_cast<void>(co_await stream->read(hello_bytes_max));
  } catch (const std::exception&) {
  }
  stream->close();
  for (const auto& [id, peer] : peers) {
    if (peer->out == stream) {
      peer->out = nullptr;
      peer->wakeup.cancel();
    }
  }
}

// --- fetching a snapshot ------------------------------------------------------------------------

void TransportInside::cancel_fetch() {
  ++fetches;
  if (fetching != nullptr) fetching->close();
  fetching = nullptr;
}

void TransportInside::fetch(NodeId from, SnapshotRequest request, const std::string& path,
                            std::function<void(const std::string&)> done) {
  cancel_fetch();
  const auto found = peers.find(from);
  if (found == peers.end()) return done("node " + std::to_string(from) + " is not known");
  const auto run = [](std::shared_ptr<TransportInside> self, std::string address, NodeId id,
                      SnapshotRequest what, std::string to, std::uint64_t number,
                      std::function<void(const std::string&)> then) -> Nothing {
    std::string error;
    try {
      Stream stream = co_await self->connect(address, id, Purpose::snapshot);
      if (self->fetches != number) co_return stream->close();
      self->fetching = stream;
      co_await self->receive_file(stream, what, to);
    } catch (const std::exception& failed) {
      error = failed.what();
      if (error.empty()) error = "the connection has ended";
    }
    if (self->fetches != number) co_return;
    self->fetching = nullptr;
    if (!self->is_stopped) then(error);
  };
  asio::co_spawn(context,
                 run(shared_from_this(), found->second->address, from, request, path, fetches,
                     std::move(done)),
                 unless_starved());
}

TransportInside::Nothing TransportInside::receive_file(Stream stream, SnapshotRequest request,
                                                       std::string path) {
  const File file{path, O_WRONLY | O_CREAT | O_APPEND};
  if (file.descriptor() < 0) throw PeerError{path + ": it cannot be written"};
  request.offset = file.size();
  WriteBehind behind;
  std::uint64_t size = request.offset;
  const Frame asked = request;
  co_await stream->say(asked);
  for (;;) {
    stream->close_in(options.silent_time);
    const Frame frame = co_await stream->read(2 * chunk_bytes);
    if (const auto* end = std::get_if<SnapshotEnd>(&frame)) {
      if (!end->is_there) throw PeerError{"the snapshot is not there any more"};
      if (end->bytes == file.size()) co_return stream->close();
      // It is of another file of that name, perhaps: from the begin, then.
      static_cast<void>(ftruncate(file.descriptor(), 0));
      throw PeerError{path + " has " + std::to_string(file.size()) + " bytes, not " +
                      std::to_string(end->bytes)};
    }
    const auto* const chunk = std::get_if<SnapshotChunk>(&frame);
    if (chunk == nullptr) throw PeerError{"a frame that is no part of a snapshot"};
    if (write(file.descriptor(), chunk->bytes.data(), chunk->bytes.size()) !=
        static_cast<ssize_t>(chunk->bytes.size())) {
      throw PeerError{path + ": it cannot be written"};
    }
    totals.snapshot_bytes_received += chunk->bytes.size();
    size += chunk->bytes.size();
    static_cast<void>(behind.grew(file.descriptor(), path, size));  // it does not wait
  }
}

}  // namespace semel::replication
