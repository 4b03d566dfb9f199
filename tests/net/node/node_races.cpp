// A node in process with real sockets, and clients that send everything at once, for sanitizers.
//
// Question: does any command, in any company, touch what another thread is at?
// Method:   4 io threads and a ticker; 16 connections, half of them RESP3, send pipelines of random
//           commands, in pieces that end anywhere; each row of the table with words that fit and
//           words that do not; meanwhile a thread asks for totals and changes limits.
// Report:   commands, connections, rows that were carried out; fails if a row never was.
//
// --seconds N (default 40), --seed N, --long: ten minutes.
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/server/descriptor.hpp"
#include "net/server/node_session.hpp"
#include "net/server/server.hpp"
#include "semel/semel.hpp"

namespace semel {
namespace {

using Words = std::vector<std::string>;
using Random = std::mt19937_64;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t connection_count = 16;
constexpr std::size_t io_thread_count = 4;

struct Arguments {
  unsigned seconds = 40;
  std::uint64_t seed = 0;
};

/// What all threads of the run share.
struct RaceRun {
  std::string path;
  SteadyClock::time_point end;
  std::atomic<std::uint64_t> commands{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> bytes{0};
};

template <class T>
const T& any_of(const std::vector<T>& choices, Random& random) {
  return choices[random() % choices.size()];
}

std::string small(Random& random, std::uint64_t below = 8) {
  return std::to_string(random() % below);
}
std::string key(Random& random) {
  return "k" + small(random);
}

void append(std::string& bytes, const Words& words) {
  bytes += "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
}

// --- what is sent ---------------------------------------------------------------------------

/// A line of words; `K` is a key, `N` a small number, `C` a channel, `U` a user, `S` a namespace,
/// `T` a thing to claim, `B` some bytes.
const std::vector<std::string> lines{"SET K B",
                                     "SET K N PX 5",
                                     "SET K B NX GET",
                                     "SET K B XX KEEPTTL",
                                     "GET K",
                                     "GETDEL K",
                                     "GETEX K PX 9",
                                     "DEL K K",
                                     "UNLINK K",
                                     "EXISTS K K K",
                                     "INCR K",
                                     "INCRBY K N",
                                     "APPEND K B",
                                     "SETRANGE K N B",
                                     "GETRANGE K 0 -1",
                                     "STRLEN K",
                                     "MGET K K K K",
                                     "MSET K B K B",
                                     "MSETNX K B K B",
                                     "EXPIRE K 1",
                                     "PEXPIRE K 3",
                                     "PERSIST K",
                                     "PTTL K",
                                     "RENAME K K",
                                     "COPY K K REPLACE",
                                     "MOVE K N",
                                     "TYPE K",
                                     "TOUCH K",
                                     "HSET h K B",
                                     "HSET h N B",
                                     "HGETALL h",
                                     "HDEL h N",
                                     "HINCRBY h n 1",
                                     "HSCAN h 0",
                                     "SCAN 0 COUNT 5",
                                     "KEYS *",
                                     "RANDOMKEY",
                                     "DBSIZE",
                                     "SELECT N",
                                     "SWAPDB 0 1",
                                     "FLUSHDB",
                                     "FLUSHALL",
                                     "OBJECT ENCODING K",
                                     "WATCH K K K K",
                                     "WATCH K",
                                     "UNWATCH",
                                     "MULTI",
                                     "MULTI",
                                     "EXEC",
                                     "EXEC",
                                     "DISCARD",
                                     "SUBSCRIBE C C",
                                     "PSUBSCRIBE c*",
                                     "SSUBSCRIBE C",
                                     "UNSUBSCRIBE",
                                     "PUNSUBSCRIBE",
                                     "SUNSUBSCRIBE",
                                     "PUBLISH C B",
                                     "SPUBLISH C B",
                                     "PUBSUB CHANNELS",
                                     "PUBSUB NUMSUB C",
                                     "MONITOR",
                                     "RESET",
                                     "QUIT",
                                     "HELLO 2",
                                     "HELLO 3",
                                     "HELLO 3 SETNAME K",
                                     "CLIENT LIST",
                                     "CLIENT INFO",
                                     "CLIENT SETNAME K",
                                     "CLIENT KILL ID N",
                                     "CLIENT KILL SKIPME yes",
                                     "CLIENT PAUSE N WRITE",
                                     "CLIENT PAUSE N ALL",
                                     "CLIENT UNPAUSE",
                                     "CLIENT UNBLOCK N",
                                     "CLIENT NO-EVICT on",
                                     "CLIENT REPLY OFF",
                                     "CLIENT REPLY SKIP",
                                     "CLIENT REPLY ON",
                                     "INFO",
                                     "INFO everything",
                                     "CONFIG GET *",
                                     "CONFIG SET notify-keyspace-events KEA",
                                     "CONFIG SET notify-keyspace-events N",
                                     "CONFIG SET slowlog-log-slower-than N",
                                     "CONFIG SET slowlog-max-len N",
                                     "CONFIG SET latency-monitor-threshold 1",
                                     "CONFIG SET timeout 7",
                                     "CONFIG SET monitor yes",
                                     "CONFIG SET busy-reply-threshold 1",
                                     "CONFIG RESETSTAT",
                                     "SLOWLOG GET",
                                     "SLOWLOG RESET",
                                     "LATENCY LATEST",
                                     "LATENCY HISTOGRAM",
                                     "COMMAND GETKEYS SET K B",
                                     "ACL SETUSER U on >pw ~k* &c* +@all",
                                     "ACL SETUSER U -set resetkeys ~K",
                                     "ACL DELUSER U",
                                     "ACL LIST",
                                     "ACL LOG",
                                     "ACL WHOAMI",
                                     "ACL DRYRUN U SET K B",
                                     "AUTH U pw",
                                     "AUTH U pw",
                                     "HELLO 3 AUTH U pw",
                                     "SEMEL.CLAIM S T",
                                     "SEMEL.CLAIM S T LEASE 3",
                                     "SEMEL.CLAIM S T BIND",
                                     "SEMEL.COMPLETE S T N B",
                                     "SEMEL.FAIL S T N",
                                     "SEMEL.RELEASE S T N",
                                     "SEMEL.RENEW S T N",
                                     "SEMEL.WAIT S T 3",
                                     "SEMEL.WAIT S T 3",
                                     "SEMEL.CLAIMS S 2 T T",
                                     "SEMEL.GETCLAIM S T",
                                     "SEMEL.INFLIGHT S",
                                     "SEMEL.ISSUE S T",
                                     "SEMEL.NAMESPACES",
                                     "SEMEL.NAMESPACE S AS call",
                                     "SEMEL.FORGET S T",
                                     "SEMEL.RESOLVE S T DONE",
                                     "SCRIPT FLUSH",
                                     "SCRIPT KILL",
                                     "FUNCTION KILL",
                                     "FUNCTION FLUSH",
                                     "FUNCTION LIST",
                                     "FCALL f 1 K",
                                     "PING",
                                     "ECHO B",
                                     "TIME",
                                     "POST",
                                     "LOLWUT"};

const std::vector<std::string> scripts{
    "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 9)",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 "
    "end",
    "redis.call('PUBLISH', 'c1', ARGV[1]) return redis.call('INCR', KEYS[1])",
    "for i = 1, 20000 do local x = i * i end return redis.call('GET', KEYS[1])",
    "return redis.error_reply('MADEUP text')",
    "return redis.call('MGET', KEYS[1], 'k1', 'k2')"};

std::string filled(char mark, Random& random) {
  switch (mark) {
    case 'K':
      return key(random);
    case 'N':
      return small(random, 24);
    case 'C':
      return "c" + small(random, 3);
    case 'U':
      return "u" + small(random, 3);
    case 'S':
      return "s" + small(random, 3);
    case 'T':
      return "t" + small(random, 3);
    default:
      return std::string(random() % 200, 'b');
  }
}

Words from_line(std::string_view line, Random& random) {
  Words words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    const bool is_mark = word.size() == 1 && std::strchr("KNCUSTB", word[0]) != nullptr;
    words.push_back(is_mark ? filled(word[0], random) : std::string{word});
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// What would end the run, or hold it up for as long as its number says.
bool is_left_out(const net::CommandRow& row) {
  constexpr std::array<std::string_view, 2> names = {"shutdown", "debug"};
  return std::find(names.begin(), names.end(), row.name) != names.end();
}

/// A row with any words, as many as it takes, one fewer or one more.
Words from_row(const net::CommandRow& row, Random& random) {
  static const std::vector<std::string> others{"NX",    "XX",    "GET", "PX", "EX",
                                               "*",     "-1",    "0",   "1",  "WITHVALUES",
                                               "COUNT", "MATCH", "",    "pw", "AS"};
  Words words;
  const std::string_view name = row.name;
  const std::size_t bar = name.find('|');
  words.emplace_back(name.substr(0, bar));
  if (bar != std::string_view::npos) words.emplace_back(name.substr(bar + 1));
  std::size_t count = static_cast<std::size_t>(std::abs(row.arity)) + random() % 3;
  if (random() % 4 != 0 && row.arity > 0) count = static_cast<std::size_t>(row.arity);
  while (words.size() < count) {
    words.push_back(random() % 2 == 0 ? any_of(others, random)
                                      : filled("KNCUSTB"[random() % 7], random));
  }
  return words;
}

Words any_command(Random& random) {
  const auto rows = net::all_commands();
  switch (random() % 8) {
    case 0:
    case 1:
    case 2: {
      const net::CommandRow& row = rows[random() % rows.size()];
      return is_left_out(row) ? Words{"PING"} : from_row(row, random);
    }
    case 3:
      return {"EVAL", any_of(scripts, random), "1", key(random), small(random)};
    case 4:
      if (random() % 8 != 0) return {"WATCH", key(random), key(random), key(random), key(random)};
      return {"FUNCTION", "LOAD", "REPLACE",
              "#!lua name=lib\nredis.register_function('f', function(keys, args) return "
              "redis.call('INCR', keys[1]) end)"};
    default:
      return from_line(any_of(lines, random), random);
  }
}

// --- the senders ----------------------------------------------------------------------------

class UnixClient {
 public:
  explicit UnixClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    is_open_ =
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// Sends all of it, and reads what comes meanwhile, so that neither side waits for the other.
  void send(std::string_view bytes, RaceRun& run) {
    constexpr int waits_max = 20;  // a client that waits for good is not worth more
    int waits = 0;
    while (is_open_ && !bytes.empty()) {
      const ssize_t sent =
          ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno != EAGAIN || ++waits > waits_max || SteadyClock::now() > run.end) {
        is_open_ = false;
      }
      read(run, sent > 0 ? 0 : 5);
    }
  }
  /// What comes until nothing has come for so long.
  void read(RaceRun& run, int wait_ms) {
    constexpr int reads_max = 64;
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    for (int i = 0; i < reads_max && is_open_ && ::poll(&ready, 1, wait_ms) > 0; ++i) {
      const ssize_t got = ::recv(socket_.get(), room_.data(), room_.size(), MSG_DONTWAIT);
      if (got <= 0) {
        is_open_ = false;
      } else {
        run.bytes.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
      }
    }
  }

 private:
  net::Descriptor socket_;
  bool is_open_ = false;
  std::array<char, 16'384> room_{};
};

void converse(RaceRun& run, std::uint64_t seed, bool speaks_three) {
  Random random{seed};
  while (SteadyClock::now() < run.end) {
    UnixClient client{run.path};
    run.connections.fetch_add(1, std::memory_order_relaxed);
    if (speaks_three) client.send("HELLO 3\r\n", run);
    while (client.is_open() && SteadyClock::now() < run.end) {
      std::string bytes;
      const std::size_t count = 1 + random() % 24;
      for (std::size_t i = 0; i < count; ++i) append(bytes, any_command(random));
      run.commands.fetch_add(count, std::memory_order_relaxed);
      std::string_view rest{bytes};
      while (!rest.empty()) {
        const std::size_t piece = random() % 3 == 0 ? 1 + random() % 40 : rest.size();
        client.send(rest.substr(0, piece), run);
        rest.remove_prefix(std::min(piece, rest.size()));
      }
      client.read(run, 2);
      if (random() % 64 == 0) break;  // without a word, whatever is under way
    }
  }
}

/// As an operator's tools do it, from a thread of their own.
void look(RaceRun& run, net::Node& node, net::Server& server, net::Settings& settings,
          std::vector<bool>& called) {
  std::uint64_t seen = 0;
  for (std::uint64_t round = 0; SteadyClock::now() < run.end; ++round) {
    const net::NodeTotals totals = node.stats.totals();
    for (std::size_t i = 0; i < totals.commands.size(); ++i) {
      const net::CommandTotals& row = totals.commands[i];
      if (row.calls + row.rejected != 0) called[i] = true;  // CONFIG RESETSTAT begins again
    }
    seen += totals.calls + server.stats().accepted + node.engine().stats().records;
    for (const auto& handle : node.clients.all()) {
      seen += net::line_of(*handle, node.engine().now()).size();
      if (round % 64 == 0 && seen % 4 == 0) handle->review();
    }
    server.set_limits({});
    const std::string number = std::to_string(100 + round % 8);
    const net::Settings::NamedView pair{"slowlog-max-len", number};
    static_cast<void>(settings.set(std::span{&pair, 1}));
    std::this_thread::yield();
  }
  if (seen == 0) std::printf("nothing was seen\n");
}

// --- the run --------------------------------------------------------------------------------

std::size_t rows_missing(const std::vector<bool>& called) {
  std::size_t missing = 0;
  const auto rows = net::all_commands();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (called[i] || is_left_out(rows[i])) continue;
    std::printf("never carried out: %.*s\n", static_cast<int>(rows[i].name.size()),
                rows[i].name.data());
    ++missing;
  }
  return missing;
}

int run(const Arguments& arguments) {
  char folder[] = "/tmp/semel_races_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  RaceRun run{.path = std::string{folder} + "/s",
              .end = SteadyClock::now() + std::chrono::seconds{arguments.seconds}};
  const auto engine = std::move(Engine::open({.memory_bytes = std::size_t{64} << 20}).value());
  net::Settings settings;
  for (const auto& [name, value] :
       {std::pair{net::Setting::monitor, "yes"}, std::pair{net::Setting::scripts, "any"}}) {
    static_cast<void>(settings.assign(name, value, {}));
  }
  std::atomic<std::uint64_t> event_bytes{0};
  std::vector<bool> called(net::all_commands().size());
  std::vector<std::unique_ptr<net::Batch>> batches(net::io_threads_max);
  net::Node node{*engine, settings};
  node.hooks.event = [&](const net::NodeEvent& event) {
    event_bytes.fetch_add(event.text.size(), std::memory_order_relaxed);
  };
  net::ServerOptions options;
  options.unix_path = run.path;
  options.threads = io_thread_count;
  options.maxclients = 256;
  net::ServerHooks hooks;
  hooks.make_session = [&](const net::SessionInfo& info, std::shared_ptr<net::SessionHost> host) {
    auto& batch = batches[info.thread];
    if (batch == nullptr) batch = std::make_unique<net::Batch>();
    return net::make_node_session(node, *batch, Durability::memory, info, std::move(host));
  };
  auto started = net::Server::start(options, std::move(hooks));
  if (!started) {
    std::printf("races: %s\n", started.error().detail.c_str());
    return 1;
  }
  std::unique_ptr<net::Server> server = *std::move(started);
  std::atomic<bool> stops{false};
  std::thread ticker{[&] {
    while (!stops.load(std::memory_order_relaxed)) {
      static_cast<void>(node.tick(2'000));
      std::this_thread::yield();
    }
  }};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < connection_count; ++i) {
    threads.emplace_back(converse, std::ref(run), arguments.seed * 100 + i, i % 2 == 1);
  }
  threads.emplace_back(look, std::ref(run), std::ref(node), std::ref(*server), std::ref(settings),
                       std::ref(called));
  for (std::thread& each : threads) each.join();
  node.clients.unpause();
  node.busy_scripts.end_all();
  server.reset();
  stops.store(true, std::memory_order_relaxed);
  ticker.join();
  const std::size_t rows = net::all_commands().size();
  const std::size_t missing = rows_missing(called);
  std::error_code unknown;
  std::filesystem::remove_all(folder, unknown);
  std::printf(
      "races: seed %llu, %llu commands from %zu connections (%llu opened) over %zu io "
      "threads, %zu of %zu rows\n",
      static_cast<unsigned long long>(arguments.seed),
      static_cast<unsigned long long>(run.commands.load(std::memory_order_relaxed)),
      connection_count,
      static_cast<unsigned long long>(run.connections.load(std::memory_order_relaxed)),
      io_thread_count, rows - missing, rows);
  return missing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace semel

int main(int count, char** words) {
  semel::Arguments arguments;
  arguments.seed = std::random_device{}() % 1'000'000;
  for (int i = 1; i < count; ++i) {
    const std::string_view word{words[i]};
    const bool has_value = i + 1 < count;
    if (word == "--long") {
      arguments.seconds = 600;
    } else if (word == "--seconds" && has_value) {
      arguments.seconds = static_cast<unsigned>(std::strtoul(words[++i], nullptr, 10));
    } else if (word == "--seed" && has_value) {
      arguments.seed = std::strtoull(words[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: proof_node_races [--seconds N] [--seed N] [--long]\n");
      return 2;
    }
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(arguments.seed));
  return semel::run(arguments);
}
