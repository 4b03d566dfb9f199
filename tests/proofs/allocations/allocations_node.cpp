// Requests to a node, for the proof of failing allocations: a connection whose request fails for
// want of memory may be closed, and the node serves all others. What LuaJIT allocates by itself
// does not go through operator new and is not made to fail.
#include <atomic>
#include <optional>
#include <string_view>
#include <utility>

#include "net/node/connection.hpp"
#include "net/node/node.hpp"
#include "net/server/server.hpp"
#include "net/server/session.hpp"
#include "semel/engine_host.hpp"
#include "tests/proofs/allocations/allocations.hpp"
#include "tests/proofs/allocations/failing_new.hpp"
#include "tests/support/socket.hpp"

namespace semel::proofs {
namespace {

using Words = std::vector<std::string>;

std::string bytes_of(const std::vector<Words>& requests) {
  std::string bytes;
  for (const Words& words : requests) {
    bytes += "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
  }
  return bytes;
}

/// A client that keeps its replies.
struct Client {
  Client(net::Node& node, net::Batch& batch)
      : connection(node, batch, nullptr,
                   {.id = node.next_client_id(), .address = "an address of a client:1"}) {}
  ~Client() {
    if (!has_ended) connection.end();
  }
  void send(const std::string& bytes) { connection.receive(bytes, replies); }

  net::Connection connection;
  std::string replies;
  bool has_ended = false;
};

class Served final : public Subject {
 public:
  explicit Served(std::vector<Words> before) {
    engine = *Engine::open({.clock = &clock, .memory_bytes = std::size_t{16} << 20});
    node = std::make_unique<net::Node>(*engine);
    batch = std::make_unique<net::Batch>();
    other = std::make_unique<Client>(*node, *batch);
    client = std::make_unique<Client>(*node, *batch);
    other->send(bytes_of({{"SET", "k", long_text}, {"SUBSCRIBE", "news"}}));
    before.insert(before.begin(), {"SEMEL.NAMESPACE", "orders", "AS", "message"});
    client->send(bytes_of(before));
    client->replies.clear();
  }
  ~Served() override {
    client.reset();
    other.reset();
    batch.reset();
    node.reset();
  }
  [[nodiscard]] Contents contents() override { return contents_of(*engine); }
  [[nodiscard]] std::string what_is_wrong() override {
    client->connection.end();
    client->has_ended = true;
    node->tick();
    for (const std::string& rule : engine->host().check_invariants()) return rule;
    Client next{*node, *batch};
    next.send(bytes_of({{"SET", "afterwards", "v"},
                        {"GET", "afterwards"},
                        {"MULTI"},
                        {"INCR", "n"},
                        {"EXEC"},
                        {"EVAL", "return redis.call('GET', KEYS[1])", "1", "afterwards"},
                        {"SEMEL.CLAIM", "orders", "afterwards"}}));
    if (!next.replies.starts_with("+OK\r\n$1\r\nv\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n$1\r\nv\r\n")) {
      return "the next client was answered " + next.replies;
    }
    if (next.replies.find("granted") == std::string::npos) return "a claim was not granted";
    for (const std::string& rule : engine->host().check_invariants()) return rule;
    return {};
  }

  ManualClock clock;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<net::Node> node;
  std::unique_ptr<net::Batch> batch;
  std::unique_ptr<Client> other;
  std::unique_ptr<Client> client;
};

/// Sends one line, and another one each time that it is woken for it.
class Greeting final : public net::Session {
 public:
  Greeting(const std::shared_ptr<net::SessionHost>& host, std::atomic<bool>& says_more)
      : says_more_(says_more) {
    host->wake();
  }
  void receive(std::string_view, std::string&) override {}
  void collect(std::string& out) override {
    out += std::exchange(line_, {});
    // mo: acquire: whoever has set it woke this connection
    if (says_more_.exchange(false, std::memory_order_acquire)) out += "more\n";
  }
  [[nodiscard]] bool closes() const noexcept override { return false; }
  [[nodiscard]] net::SessionInput input() const noexcept override { return {}; }
  void end() noexcept override {}

 private:
  std::string line_ = "ready\n";
  std::atomic<bool>& says_more_;
};

/// A server with a connected client.
class Serving final : public Subject {
 public:
  Serving() {
    net::ServerOptions options;
    options.port = 0;
    options.threads = 2;
    options.clock = &clock;
    options.tick = Millis{0};
    server = *net::Server::start(
        options, {.make_session = [this](const net::SessionInfo&,
                                         const std::shared_ptr<net::SessionHost>& of_session) {
          host = of_session;
          return std::make_unique<Greeting>(of_session, says_more);
        }});
    client.emplace(server->port());
    is_served = client->line() == "ready\n";
  }
  [[nodiscard]] Contents contents() override { return {}; }
  [[nodiscard]] std::string what_is_wrong() override {
    if (!is_served) return "the client was not served";
    if (is_woken) return client->line() == "more\n" ? "" : "the connection was not woken";
    return client->read_to_end().empty() ? "" : "the client was not cut off";
  }

  ManualClock clock;
  std::atomic<bool> says_more{false};
  std::shared_ptr<net::SessionHost> host;  // set before the first line is sent
  bool is_served = false;
  bool is_woken = false;
  std::unique_ptr<net::Server> server;
  std::optional<tests::Socket> client;
};

/// A server whose threads cannot be asked to end ends them all the same.
void add_server(Calls& calls) {
  calls.push_back({.name = "server stop",
                   .make = [](bool) { return std::make_unique<Serving>(); },
                   .run =
                       [](Subject& s) {
                         static_cast<Serving&>(s).server.reset();
                         return Answer::passed;
                       },
                   .every_way = false});
  // A node that ends must close its listeners and answer what is under way, also without memory.
  calls.push_back({.name = "server drain",
                   .make = [](bool) { return std::make_unique<Serving>(); },
                   .run =
                       [](Subject& s) noexcept {
                         static_cast<Serving&>(s).server->drain(Millis{0});
                         return Answer::passed;
                       },
                   .every_way = false});
  // Whoever publishes or ends a claim wakes other connections, and must not end for want of memory.
  calls.push_back({.name = "server wake",
                   .make = [](bool) { return std::make_unique<Serving>(); },
                   .run =
                       [](Subject& s) noexcept {
                         auto& serving = static_cast<Serving&>(s);
                         serving.is_woken = true;
                         // mo: release: the waking publishes it
                         serving.says_more.store(true, std::memory_order_release);
                         serving.host->wake();
                         return Answer::passed;
                       },
                   .every_way = false});
}

}  // namespace

void add_node(Calls& calls) {
  add_server(calls);
  const auto add = [&](const char* name, std::vector<Words> requests,
                       std::vector<Words> before = {}) {
    calls.push_back({.name = std::string{"node "} + name,
                     .make = [before](bool) { return std::make_unique<Served>(before); },
                     .run =
                         [bytes = bytes_of(requests)](Subject& s) {
                           auto& served = static_cast<Served&>(s);
                           try {
                             served.client->send(bytes);
                           } catch (const std::bad_alloc&) {
                             return Answer::untold;  // it is closed now
                           }
                           return Answer::passed;  // or an error; the next client shows it
                         },
                     .every_way = false});
  };
  add("connect", {{"HELLO", "3", "SETNAME", "a-name-longer-than-most"}});
  add("SET and GET", {{"SET", "s", long_text, "PX", "60000"}, {"GET", "s"}, {"DEL", "s"}});
  add("many at once", {{"MSET", "a", long_text, "b", "2"}, {"MGET", "a", "b", "k"}});
  add("hash", {{"HSET", "h", "f", long_text}, {"HGETALL", "h"}});
  add("a large stream",
      {{"XADD", "st", "500-1", "f", long_text},
       {"XDEL", "st", "5-0", "70-0"},
       {"XREADGROUP", "GROUP", "g", "c", "COUNT", "3", "STREAMS", "st", ">"},
       {"XACK", "st", "g", "1-0"},
       {"XTRIM", "st", "MAXLEN", "300"},
       {"XRANGE", "st", "-", "+", "COUNT", "70"}},
      {{"EVAL", "for i = 1, 400 do redis.call('XADD', KEYS[1], i .. '-0', 'f', i) end", "1", "st"},
       {"XGROUP", "CREATE", "st", "g", "0"}});
  add("half a request", {{"SET", "s", std::string(20'000, 'x')}});
  add("WATCH", {{"WATCH", "k", "l"}, {"UNWATCH"}});
  add("MULTI", {{"MULTI"}, {"SET", "s", long_text}, {"INCR", "i"}, {"DISCARD"}});
  add("EXEC", {{"EXEC"}}, {{"WATCH", "k"}, {"MULTI"}, {"SET", "s", long_text}, {"INCR", "i"}});
  add("EVAL that is known", {{"EVAL",
                              "if redis.call('get', KEYS[1]) == ARGV[1] then return "
                              "redis.call('del', KEYS[1]) else return 0 end",
                              "1", "k", long_text}});
  add("EVAL by Lua",
      {{"EVAL", "local v = redis.call('GET', KEYS[1]) return v .. ARGV[1]", "1", "k", long_text}});
  add("PUBLISH", {{"PUBLISH", "news", long_text}});
  add("SUBSCRIBE", {{"SUBSCRIBE", "news", "more"}, {"PSUBSCRIBE", "n*"}, {"UNSUBSCRIBE"}});
  add("SCAN and KEYS", {{"SCAN", "0"}, {"KEYS", "*"}});
  add("CONFIG and INFO", {{"CONFIG", "GET", "maxmemory"}, {"INFO"}, {"COMMAND", "COUNT"}});
  add("CLIENT LIST", {{"CLIENT", "LIST"}});
  add("ACL", {{"ACL", "SETUSER", "u", "on", ">secret", "~a*", "+get"}, {"ACL", "LIST"}});
  add("SEMEL.NAMESPACE", {{"SEMEL.NAMESPACE", "more", "AS", "lock", "LEASE", "5000"}});
  add("SEMEL.CLAIM", {{"SEMEL.CLAIM", "orders", "o1", "OWNER", "somebody with a long name"}});
  add("SEMEL.CLAIMS", {{"SEMEL.CLAIMS", "orders", "3", "o1", "o2", "o1"}});
  add("SEMEL.WAIT", {{"SEMEL.WAIT", "1000", "orders", "o1"}});
  add("SEMEL.WAIT for another", {{"SEMEL.WAIT", "1000", "orders", "o1"}},
      {{"SEMEL.CLAIM", "orders", "o1"}});
  add("SEMEL.GET", {{"SEMEL.GET", "k"}, {"SEMEL.CAS", "k", "1", long_text}});
}

}  // namespace semel::proofs
