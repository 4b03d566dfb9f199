// Connections between nodes: messages come in order, whoever is not of the group is refused, and a
// snapshot's file goes on where it was cut off.
#include "replication/transport/peer_transport.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/mutex.hpp"
#include "base/stopwatch.hpp"
#include "tests/net/server/certificates.hpp"
#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr std::uint64_t cluster = 0xabcdef;

struct Folder {
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "semel_peers_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

/// A node that keeps what comes.
class End final : public PeerHandler {
 public:
  explicit End(NodeId id, std::optional<PeerTls> tls = {}, std::uint64_t of = cluster,
               std::uint64_t rate = 0, Millis hello_time = Millis{2'000})
      : id_(id), guard_(context_.get_executor()), thread_([this] { context_.run(); }) {
    TransportOptions options;
    options.cluster_id = of;
    options.node_id = id;
    options.listen = "127.0.0.1:0";
    options.tls = std::move(tls);
    options.hello_time = hello_time;
    options.connections_max = 16;
    options.snapshot_bytes_per_s = rate;
    auto made = PeerTransport::open(context_, options, *this);
    REQUIRE(made.ok());
    transport_ = std::move(*made);
  }
  ~End() override {
    call([&] { transport_.reset(); });
    guard_.reset();
    thread_.join();
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  /// On the thread of the transport.
  template <class Function>
  auto call(Function&& function) -> decltype(function()) {
    std::packaged_task<decltype(function())()> task{std::forward<Function>(function)};
    auto result = task.get_future();
    asio::post(context_, [&] { task(); });
    return result.get();
  }
  [[nodiscard]] std::string address() { return "127.0.0.1:" + std::to_string(transport_->port()); }
  void know(NodeId id, const std::string& address) {
    call([&] {
      peers_[id] = address;
      transport_->set_peers(peers_);
    });
  }
  void send(RaftMessage message) {
    message.from = id_;
    call([&] { transport_->send(message); });
  }
  template <class Is>
  void wait_until(Is&& is) {
    base::MutexLock lock{mutex_};
    while (!is()) {
      if (changed_.wait_for(lock, patience) == std::cv_status::timeout) FAIL("nothing comes");
    }
  }
  void wait_connected(NodeId to) {
    while (!call([&] { return transport_->stats()[to].is_connected; })) std::this_thread::yield();
  }
  [[nodiscard]] std::uint64_t refused() {
    return call([&] { return transport_->totals().refused; });
  }

  void on_message(RaftMessage message) override {
    const base::MutexLock lock{mutex_};
    messages.push_back(std::move(message));
    changed_.notify_all();
  }
  void on_forward(NodeId from, Forward forward) override {
    static_cast<void>(transport_->send(from, ForwardReply{forward.id, forward.bytes + "!"}));
  }
  void on_forward_reply(NodeId, ForwardReply reply) override {
    const base::MutexLock lock{mutex_};
    replies.push_back(std::move(reply));
    changed_.notify_all();
  }
  bool knows(NodeId id) const override { return id < 10; }
  void on_peer(NodeId, const std::string&) override {}
  bool is_joining() const override {
    return joins.load(std::memory_order_relaxed);  // mo: relaxed: as seen by whoever asks next
  }
  std::optional<std::string> snapshot_path(LogIndex index, Term) override {
    if (index != 7) return std::nullopt;
    return snapshot;
  }
  void on_event(Event, const std::string& what) override {
    const base::MutexLock lock{mutex_};
    events.push_back(what);
    changed_.notify_all();
  }
  [[nodiscard]] bool has_event(const std::string& text) const {
    for (const std::string& each : events) {
      if (each.find(text) != std::string::npos) return true;
    }
    return false;
  }
  [[nodiscard]] PeerTransport& transport() noexcept { return *transport_; }

  std::vector<RaftMessage> messages;  // under the lock of wait_until()
  std::vector<ForwardReply> replies;
  std::vector<std::string> events;
  std::string snapshot;
  std::atomic<bool> joins{false};

 private:
  const NodeId id_;
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::unique_ptr<PeerTransport> transport_;
  std::map<NodeId, std::string> peers_;
  base::Mutex mutex_;
  base::Condition changed_;
  std::thread thread_;
};

RaftMessage append_of(NodeId to, std::uint64_t number, std::size_t bytes) {
  RaftMessage made{.from = 0, .to = to, .term = 3, .what = {}};
  made.what = AppendRequest{
      number,
      1,
      0,
      0,
      {{3, EntryType::command, std::make_shared<const std::string>(std::string(bytes, 'x'))}}};
  return made;
}

void exchange(End& one, End& two) {
  one.know(2, two.address());
  two.know(1, one.address());
  one.wait_connected(2);
  two.wait_connected(1);
  constexpr std::uint64_t count = 3'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    one.send(append_of(2, i, i % 50 == 0 ? 100'000 : 64));
    two.send(append_of(1, i, 10));
  }
  one.wait_until([&] { return one.messages.size() == count; });
  two.wait_until([&] { return two.messages.size() == count; });
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE(std::get<AppendRequest>(two.messages[i].what).previous_index == i);
    REQUIRE(std::get<AppendRequest>(one.messages[i].what).previous_index == i);
  }
  CHECK(one.call([&] { return one.transport().send(2, Forward{5, "hello"}); }));
  one.wait_until([&] { return one.replies.size() == 1; });
  CHECK(one.replies[0].bytes == "hello!");
}

/// Certificates of nodes of one authority.
struct Authority {
  Authority() : authority("semel test") { authority.save(folder.path + "/ca"); }
  [[nodiscard]] PeerTls of(NodeId id, std::uint64_t of = cluster) {
    const std::string path = folder.path + "/node" + std::to_string(id) + "-" + std::to_string(of);
    Identity{"node", &authority, node_uri(of, id)}.save(path);
    return {path + ".crt", path + ".key", folder.path + "/ca.crt"};
  }
  Folder folder;
  Identity authority;
};

std::string frame_bytes(const Frame& frame) {
  std::string bytes;
  encode(frame, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("peers: messages come in order, small and large", "[peers]") {
  End one{1};
  End two{2};
  exchange(one, two);
}

TEST_CASE("peers: frames arrive whole, wherever the bytes are split", "[peers]") {
  End one{1};
  constexpr std::size_t ahead = std::size_t{16} << 10;  // a longer frame is read alone
  proofs::Random random{7};
  std::uint64_t count = 0;
  std::string bytes = frame_bytes(Hello{.cluster_id = cluster, .node_id = 3});
  const auto add = [&](std::size_t size) {
    RaftMessage message = append_of(1, count++, size);
    message.from = 3;
    bytes += frame_bytes(message);
  };
  // The data of a message that just fits, and its neighbours.
  const std::size_t besides = [&] {
    RaftMessage message = append_of(1, 0, ahead / 2);
    message.from = 3;
    return frame_bytes(message).size() - frame_head_bytes - ahead / 2;
  }();
  for (std::size_t size = ahead - besides - 2; size <= ahead - besides + 2; ++size) {
    add(size);
    add(0);
  }
  for (int i = 0; i < 300; ++i) add(random.below(i % 10 == 0 ? 3 * ahead : 200));
  Socket socket{one.transport().port()};
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t part = random.below(2) == 0 ? 1 + random.below(20) : random.below(2 * ahead);
    socket.send(bytes.substr(at, part));
    at += part;
  }
  one.wait_until([&] { return one.messages.size() == count; });
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE(std::get<AppendRequest>(one.messages[i].what).previous_index == i);
  }
}

TEST_CASE("peers: a node that joins takes entries at its rate, and others at once", "[peers]") {
  constexpr std::uint64_t rate = std::uint64_t{1} << 20;
  constexpr std::size_t bytes = rate / 8;
  End one{1};
  End two{2, {}, cluster, rate};
  one.know(2, two.address());
  two.know(1, one.address());
  one.wait_connected(2);
  two.joins.store(true, std::memory_order_relaxed);  // mo: relaxed: before anything is sent
  const base::Stopwatch since;
  for (std::uint64_t i = 0; i < 8; ++i) one.send(append_of(2, i, bytes));
  two.wait_until([&] { return two.messages.size() == 8; });
  // A bound from below: seven rests lie between eight messages.
  CHECK(since.passed() >= Millis{7 * 125 - 10});
  two.joins.store(false, std::memory_order_relaxed);  // mo: relaxed: as above
  for (std::uint64_t i = 8; i < 200; ++i) one.send(append_of(2, i, bytes));
  two.wait_until([&] { return two.messages.size() == 200; });  // 25 s at the rate
  for (std::uint64_t i = 0; i < 200; ++i) {
    REQUIRE(std::get<AppendRequest>(two.messages[i].what).previous_index == i);
  }
  CHECK(since.passed() < Millis{20'000});
}

TEST_CASE("peers: the same over TLS", "[peers][tls]") {
  Authority authority;
  End one{1, authority.of(1)};
  End two{2, authority.of(2)};
  exchange(one, two);
}

TEST_CASE("peers: a peer that comes back is connected again", "[peers]") {
  End one{1};
  for (int i = 0; i < 3; ++i) {
    End two{2};
    one.know(2, two.address());
    two.know(1, one.address());
    one.wait_connected(2);
    one.send(append_of(2, static_cast<std::uint64_t>(i), 8));
    two.wait_until([&] { return two.messages.size() == 1; });
  }
}

TEST_CASE("peers: whoever is not of the group is refused, and told why", "[peers]") {
  End one{1};
  const auto refusal = [&](const Hello& hello) {
    Socket socket{one.transport().port()};
    socket.send(frame_bytes(hello));
    const std::string bytes = socket.read_to_end();
    if (bytes.size() < frame_head_bytes) return std::string{"nothing"};
    const auto frame = decode_frame(Bytes{bytes}.substr(frame_head_bytes));
    REQUIRE(frame.ok());
    const auto* const found = std::get_if<Refusal>(&*frame);
    return found == nullptr ? std::string{"no refusal"} : found->reason;
  };
  const Hello right{.cluster_id = cluster, .node_id = 2};
  Hello wrong = right;
  wrong.cluster_id = 1;
  CHECK(refusal(wrong) == "it is of another cluster");
  wrong = right;
  wrong.version = wrong.version_least = 9;
  CHECK(refusal(wrong) == "it speaks version 9 to 9, here is 1");
  wrong = right;
  wrong.node_id = 1;
  CHECK(refusal(wrong) == "it has the id of this node");
  wrong = right;
  wrong.node_id = 77;
  CHECK(refusal(wrong) == "node 77 is not a member");
  wrong = right;
  wrong.feature_level = 0;
  CHECK(refusal(wrong) == "it knows feature level 0, the group uses 1: a later release is needed");
  CHECK(one.refused() == 5);
  one.wait_until([&] { return one.has_event("of another cluster"); });
}

TEST_CASE("peers: bytes that mean harm end their connection alone", "[peers]") {
  End one{1};
  End two{2};
  one.know(2, two.address());
  two.know(1, one.address());
  two.wait_connected(1);
  const std::string hello = frame_bytes(Hello{.cluster_id = cluster, .node_id = 3});
  const std::string message = frame_bytes(RaftMessage{3, 1, 5, ReadProbe{1}});
  proofs::Random random{4};
  const auto require_end = [&](const std::string& bytes) {
    Socket socket{one.transport().port()};
    static_cast<void>(socket.try_send(bytes));
    CHECK(socket.read_to_end().find("(open)") == std::string::npos);
  };
  require_end("GET / HTTP/1.1\r\n\r\n");
  require_end(std::string(4, '\xff'));
  std::string flipped = hello;
  flipped[7] ^= 1;
  require_end(flipped);
  std::string changed = message;
  changed[changed.size() - 12] ^= 1;
  require_end(hello + changed);
  require_end(hello + std::string{"\xff\xff\xff\x7f", 4});
  // A hello twice; a message of another; a message to another.
  require_end(hello + hello);
  require_end(hello + frame_bytes(RaftMessage{4, 1, 5, ReadProbe{1}}));
  require_end(hello + frame_bytes(RaftMessage{3, 2, 5, ReadProbe{1}}));
  for (int i = 0; i < 100; ++i) {
    std::string noise(random.below(300), '\0');
    for (char& each : noise) each = static_cast<char>(random.below(256));
    noise[0] = static_cast<char>(random.below(100));  // a length that is accepted
    Socket socket{one.transport().port()};
    static_cast<void>(socket.try_send(noise));
  }
  two.send(append_of(1, 42, 5));
  one.wait_until([&] {
    return !one.messages.empty() && std::holds_alternative<AppendRequest>(one.messages.back().what);
  });
}

TEST_CASE("peers: those that say nothing are bounded, and are closed", "[peers]") {
  End one{1};
  std::vector<Socket> silent;
  for (int i = 0; i < 60; ++i) silent.emplace_back(one.transport().port());
  // 16 are kept until their time is over, all others are closed at once.
  std::size_t closed = 0;
  for (Socket& each : silent) {
    if (each.read_to_end().find("(open)") == std::string::npos) ++closed;
  }
  CHECK(closed == silent.size());
  End two{2};
  two.know(1, one.address());
  two.wait_connected(1);
}

TEST_CASE("peers: a member connects beside those that only hold connections", "[peers]") {
  End one{1};
  std::vector<Socket> silent;
  for (int i = 0; i < 40; ++i) silent.emplace_back(one.transport().port());
  End two{2};
  two.know(1, one.address());
  two.wait_connected(1);
  // And it stays, whoever comes after it.
  for (int i = 0; i < 40; ++i) silent.emplace_back(one.transport().port());
  one.know(2, two.address());
  two.send(append_of(1, 7, 5));
  one.wait_until([&] { return one.messages.size() == 1; });
}

TEST_CASE("peers: a client that leaves as its time is over", "[peers]") {
  End one{1, {}, cluster, 0, Millis{30}};
  for (int i = 0; i < 5; ++i) {
    Socket socket{one.transport().port()};
    while (one.call([&] { return one.transport().half_open(); }) == 0) std::this_thread::yield();
    // The loop is busy until both have happened.
    one.call([&] {
      socket.close();
      poll(nullptr, 0, 60);
    });
    while (one.call([&] { return one.transport().half_open(); }) != 0) std::this_thread::yield();
  }
}

TEST_CASE("peers: the hello of a later release may say more", "[peers]") {
  End one{1};
  Hello hello{.cluster_id = cluster, .node_id = 2};
  hello.version = 2;
  std::string bytes = frame_bytes(hello);
  const std::size_t body = bytes.size() - frame_head_bytes - frame_tail_bytes;
  bytes.insert(frame_head_bytes + body, "more");
  const auto size = static_cast<std::uint32_t>(body + 4);
  std::memcpy(bytes.data(), &size, sizeof size);
  const std::uint64_t sum = checksum({bytes.data() + frame_head_bytes, body + 4});
  std::memcpy(bytes.data() + frame_head_bytes + body + 4, &sum, sizeof sum);
  Socket socket{one.transport().port()};
  socket.send(bytes);
  const auto head = socket.read(frame_head_bytes);
  REQUIRE(head.size() == frame_head_bytes);
  const auto rest = frame_rest(head.data(), hello_bytes_max);
  REQUIRE(rest.ok());
  const auto answer = decode_frame(socket.read(*rest));
  REQUIRE(answer.ok());
  CHECK(std::holds_alternative<Hello>(*answer));
}

TEST_CASE("peers: the newest connection of a peer takes the place of the one before", "[peers]") {
  End one{1};
  const std::string hello = frame_bytes(Hello{.cluster_id = cluster, .node_id = 3});
  const std::size_t answer =
      frame_bytes(Hello{.cluster_id = cluster, .node_id = 1, .address = "127.0.0.1:0"}).size();
  Socket older{one.transport().port()};
  older.send(hello);
  CHECK(older.read(answer).size() == answer);
  Socket newer{one.transport().port()};
  newer.send(hello);
  CHECK(newer.read(answer).size() == answer);
  CHECK(older.read_to_end().empty());
  newer.send(frame_bytes(RaftMessage{3, 1, 5, ReadProbe{9}}));
  one.wait_until([&] { return one.messages.size() == 1; });
}

TEST_CASE("peers: a certificate is that of its node, its cluster and its authority",
          "[peers][tls]") {
  Authority authority;
  Authority other;
  End one{1, authority.of(1)};
  const auto tries = [&](const PeerTls& tls) {
    End two{2, tls};
    two.know(1, one.address());
    for (int i = 0; i < 300; ++i) {
      if (two.call([&] { return two.transport().stats()[1].is_connected; })) return true;
      poll(nullptr, 0, 1);
    }
    return false;
  };
  CHECK_FALSE(tries(authority.of(3)));
  CHECK_FALSE(tries(authority.of(2, 1)));
  CHECK_FALSE(tries(other.of(2)));
  CHECK(one.refused() >= 3);
  CHECK(tries(authority.of(2)));
  // Without TLS.
  Socket plain{one.transport().port()};
  static_cast<void>(plain.try_send(frame_bytes(Hello{.cluster_id = cluster, .node_id = 2})));
  CHECK(plain.read_to_end().find("(open)") == std::string::npos);
  CHECK_FALSE(load_tls({authority.folder.path + "/none.crt", "", ""}).ok());
}

TEST_CASE("peers: a snapshot's file goes on where it was cut off", "[peers][snapshot]") {
  Folder folder;
  End one{1, {}, cluster, std::uint64_t{20} << 20};
  End two{2};
  two.know(1, one.address());
  two.wait_connected(1);
  one.snapshot = folder.path + "/whole";
  std::string bytes(5'000'000, '\0');
  proofs::Random random{5};
  for (char& each : bytes) each = static_cast<char>(random.below(256));
  std::ofstream{one.snapshot, std::ios::binary} << bytes;
  const std::string part = folder.path + "/part";
  const auto fetch = [&](LogIndex index) {
    auto result = std::make_shared<std::promise<std::string>>();
    two.call([&] {
      two.transport().fetch(1, index, 3, part,
                            [result](const std::string& error) { result->set_value(error); });
    });
    return result->get_future();
  };
  CHECK(fetch(8).get() == "the snapshot is not there any more");
  // Cut off three times.
  for (int i = 0; i < 3; ++i) {
    const std::uintmax_t before = fs::exists(part) ? fs::file_size(part) : 0;
    auto result = fetch(7);
    while (!fs::exists(part) || fs::file_size(part) == before) std::this_thread::yield();
    two.call([&] { two.transport().cancel_fetch(); });
  }
  CHECK(fs::file_size(part) > 0);
  CHECK(fetch(7).get().empty());
  std::ifstream file{part, std::ios::binary};
  const std::string got{std::istreambuf_iterator<char>{file}, {}};
  CHECK(got == bytes);
}

TEST_CASE("peers: what cannot be sent is dropped, and bounded", "[peers]") {
  End one{1};
  one.know(2, "127.0.0.1:1");  // nobody is there
  for (std::uint64_t i = 0; i < 100; ++i) one.send(append_of(2, i, 100));
  CHECK(one.call([&] { return one.transport().stats()[2].dropped; }) == 100);
  CHECK_FALSE(one.call([&] { return one.transport().send(2, Forward{1, "x"}); }));
  CHECK_FALSE(one.call([&] { return one.transport().send(9, Forward{1, "x"}); }));
}

TEST_CASE("peers: both parts of a member's address can be reached", "[peers]") {
  for (const char* good :
       {"a.example:7000", "[::1]:7", "n_1:1,10.0.0.1:65535", "h:1,[fe80::1%e]:2"})
    CHECK(check_member_address(good));
  for (const char* bad :
       {"", "a", "a:", ":1", "a:0", "a:65536", "a:7x", "a:-1", "a b:1", "a\n:1", "a:1,", "a:1,b",
        "a:1,b:", "a:1,:2", "a:1,b:0", "a:1,b:2,c:3", "a:1,\xc3\xa4:2", "a:99999999999999999999"}) {
    INFO(bad);
    CHECK_FALSE(check_member_address(bad));
  }
  const std::string most = std::string(address_bytes_max - 2, 'a') + ":1";
  CHECK(check_member_address(most));
  CHECK_FALSE(check_member_address("a" + most));
  CHECK(check_member_address("a:1,b").error().detail ==
        "'b' is not host:port, the address for clients");
}

TEST_CASE("peers: an address is host:port", "[peers]") {
  CHECK(split_address("a.example:7000") ==
        std::pair<std::string, std::string>{"a.example", "7000"});
  CHECK(split_address("[::1]:7")->first == "::1");
  for (const char* bad : {"", ":", "a:", ":7", "a", "::1:7", "[]:7"}) {
    CHECK_FALSE(split_address(bad));
  }
}

}  // namespace semel::tests
