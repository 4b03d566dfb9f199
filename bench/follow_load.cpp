// Question: for how long do clients of a group get no answer when its leader changes, and how late
//           are answers while nodes join?
// Method:   one thread, N clients, a connection of each to each node. A client claims one key after
//           the other (SET key value NX GET with a value of its own) and insists: it follows MOVED;
//           on TRYAGAIN, CLUSTERDOWN, silence for 1 s, or a connection that ended, it asks the
//           next node with the same words, 2 ms later. Nobody looks for the leader besides.
//           A claim begins --pause-us after the last one ended, or with --rate by a schedule, and
//           then it is late by the schedule (no coordinated omission). Ends at SIGTERM, or after
//           --seconds.
// Report:   while it runs, a line "gap CLIENT BEGIN MS" for each time that a client was without an
//           answer for --gap-ms: BEGIN is its last answer before, on CLOCK_MONOTONIC. At the end a
//           line of JSON. A key that another client has, or that was taken at the first time of
//           asking, is counted as wrong and fails.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/histogram.hpp"
#include "bench/resp_wire.hpp"

namespace {

using namespace semel::bench;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

volatile std::sig_atomic_t is_asked_to_end = 0;

struct Settings {
  std::vector<int> ports{};
  std::size_t clients = 8;
  std::string prefix = "follow";
  std::int64_t pause_us = 2000;
  std::int64_t gap_ms = 20;
  double rate = 0;     // claims a second of all clients; 0: by pauses
  double seconds = 0;  // 0: until SIGTERM
};

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

class Load {
 public:
  explicit Load(const Settings& settings)
      : settings_(settings), poll_(epoll_create1(0)), begun_(Clock::now()) {
    const std::chrono::duration<double> period{
        settings.rate > 0 ? static_cast<double>(settings.clients) / settings.rate : 0};
    period_ = std::chrono::duration_cast<Clock::duration>(period);
    clients_.resize(settings.clients);
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].sockets.assign(settings.ports.size(), -1);
      // Spread over the period, so that not all come at once.
      clients_[i].due = begun_ + period_ * static_cast<int>(i) / static_cast<int>(clients_.size());
      begin_claim(clients_[i], i);
    }
  }

  int run() {
    std::vector<epoll_event> events(256);
    while (is_asked_to_end == 0 && !is_over()) {
      const Clock::time_point next = act();
      const auto wait = std::max(next - Clock::now(), Clock::duration::zero());
      const timespec timeout{.tv_sec = wait / std::chrono::seconds{1},
                             .tv_nsec = wait % std::chrono::seconds{1} / Clock::duration{1}};
      const int count =
          epoll_pwait2(poll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
      for (int i = 0; i < count; ++i) {
        const std::uint64_t which = events[static_cast<std::size_t>(i)].data.u64;
        hear(which >> 8, which & 0xFF);
      }
    }
    return report();
  }

 private:
  struct Client {
    std::vector<int> sockets{};  // one a node, -1: not connected
    std::size_t node = 0;        // that is asked
    std::string request{};
    std::string value{};
    std::string in{};
    std::uint64_t claims = 0;
    bool is_waiting = false;       // for a reply
    bool was_moved = false;        // since the claim was last sent elsewhere
    bool may_be_taken = false;     // asked before, without an answer
    Clock::time_point due{};       // of the claim, by the schedule
    Clock::time_point at{};        // when it is to be sent; when it was
    Clock::time_point answered{};  // the last one
  };

  [[nodiscard]] bool is_over() const {
    return settings_.seconds > 0 &&
           Clock::now() - begun_ > std::chrono::duration<double>(settings_.seconds);
  }

  void begin_claim(Client& client, std::size_t index) {
    client.value = std::to_string(index) + ":" + std::to_string(client.claims);
    client.request.clear();
    append_request(client.request, "SET", settings_.prefix + ":" + client.value, client.value, "NX",
                   "GET", "PX", "3600000");
    client.may_be_taken = false;
    client.at = client.due;
  }

  /// Sends what is due, ends waits that are too long. Returns when to look again.
  Clock::time_point act() {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = now + milliseconds{100};
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      if (client.is_waiting && now - client.at > std::chrono::seconds{1}) lose(client);
      if (!client.is_waiting && client.at <= now) ask(client, i);
      if (!client.is_waiting) next = std::min(next, client.at);
    }
    return next;
  }

  void ask(Client& client, std::size_t index) {
    int& socket = client.sockets[client.node];
    if (socket < 0) socket = connected(client.node, index);
    const auto bytes = static_cast<ssize_t>(client.request.size());
    if (socket < 0 ||
        send(socket, client.request.data(), client.request.size(), MSG_NOSIGNAL) != bytes) {
      return lose(client);
    }
    client.is_waiting = true;
    client.at = Clock::now();
  }

  int connected(std::size_t node, std::size_t index) const {
    const int plug = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(settings_.ports[node]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(plug, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      close(plug);
      return -1;
    }
    const int yes = 1;
    setsockopt(plug, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = std::uint64_t{index} << 8 | node;
    epoll_ctl(poll_, EPOLL_CTL_ADD, plug, &event);
    return plug;
  }

  /// The connection is of no use, and what became of the claim is not known.
  void lose(Client& client) {
    int& socket = client.sockets[client.node];
    if (socket >= 0) close(socket);
    socket = -1;
    unknown_ += client.is_waiting ? 1 : 0;
    client.may_be_taken |= client.is_waiting;
    ask_next(client);
  }

  void ask_next(Client& client) {
    ask_later(client, (client.node + 1) % settings_.ports.size(), milliseconds{2});
    client.was_moved = false;
  }

  void ask_later(Client& client, std::size_t node, milliseconds pause) {
    client.is_waiting = false;
    client.in.clear();
    client.node = node;
    client.at = Clock::now() + pause;
  }

  void hear(std::size_t index, std::size_t node) {
    Client& client = clients_[index];
    int& socket = client.sockets[node];
    if (socket < 0) return;
    char room[4096];
    const ssize_t got = recv(socket, room, sizeof room, MSG_DONTWAIT);
    // The event may have been that of an earlier connection to this node.
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      if (node == client.node && client.is_waiting) return lose(client);
      close(socket);
      socket = -1;
      return;
    }
    client.in.append(room, static_cast<std::size_t>(got));
    if (reply_bytes(client.in) == client.in.size()) take(client, index);
  }

  void take(Client& client, std::size_t index) {
    const std::string_view reply = client.in;
    if (reply.starts_with("-MOVED ")) return follow(client, reply);
    if (reply.starts_with("-CLUSTERDOWN") || reply.starts_with("-TRYAGAIN")) {
      unknown_ += reply.starts_with("-TRYAGAIN") ? 1 : 0;
      client.may_be_taken |= reply.starts_with("-TRYAGAIN");
      return ask_next(client);
    }
    std::string mine;
    append_word(mine, client.value);
    const bool is_right = reply == "$-1\r\n" || (client.may_be_taken && reply == mine);
    if (!is_right && wrong_++ == 0) {
      std::fprintf(stderr, "a wrong reply: %s\n", client.in.c_str());
    }
    end_claim(client, index);
  }

  void end_claim(Client& client, std::size_t index) {
    const Clock::time_point now = Clock::now();
    latencies_.add(static_cast<std::uint64_t>(ms_between(client.due, now) * 1e6));
    if (client.claims != 0 &&
        ms_between(client.answered, now) >= static_cast<double>(settings_.gap_ms)) {
      std::printf("gap %zu %.6f %.3f\n", index,
                  std::chrono::duration<double>(client.answered.time_since_epoch()).count(),
                  ms_between(client.answered, now));
      std::fflush(stdout);
    }
    client.answered = now;
    client.is_waiting = client.was_moved = false;
    client.in.clear();
    ++client.claims;
    client.due = settings_.rate > 0 ? client.due + period_
                                    : now + std::chrono::microseconds{settings_.pause_us};
    begin_claim(client, index);
  }

  /// To the node that is named; 2 ms later if this was the second time, or if it is unknown.
  void follow(Client& client, std::string_view reply) {
    const int port = std::atoi(reply.data() + reply.rfind(':') + 1);
    const auto found = std::find(settings_.ports.begin(), settings_.ports.end(), port);
    ++moved_;
    if (found == settings_.ports.end()) return ask_next(client);
    ask_later(client, static_cast<std::size_t>(found - settings_.ports.begin()),
              milliseconds{client.was_moved ? 2 : 0});
    client.was_moved = true;
  }

  int report() {
    std::uint64_t claims = 0;
    for (const Client& client : clients_) claims += client.claims;
    const auto at = [&](double share) {
      return static_cast<double>(latencies_.quantile(share)) / 1e3;
    };
    std::printf(
        "{\"operations\": %llu, \"unknown\": %llu, \"moved\": %llu, \"wrong\": %llu, "
        "\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n",
        static_cast<unsigned long long>(claims), static_cast<unsigned long long>(unknown_),
        static_cast<unsigned long long>(moved_), static_cast<unsigned long long>(wrong_), at(0.5),
        at(0.99), at(1));
    return wrong_ == 0 ? 0 : 1;
  }

  const Settings settings_;
  const int poll_;
  const Clock::time_point begun_;
  Clock::duration period_{};
  std::vector<Client> clients_;
  std::uint64_t unknown_ = 0;
  std::uint64_t moved_ = 0;
  std::uint64_t wrong_ = 0;
  Histogram latencies_;
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  Settings settings;
  for (const std::string& port : words_of(flags["--ports"])) {
    settings.ports.push_back(std::atoi(port.c_str()));
  }
  if (settings.ports.empty() || settings.ports.size() > 256) return 2;
  const auto number = [&](const char* name, auto& to) {
    if (flags.contains(name)) to = static_cast<std::decay_t<decltype(to)>>(std::stod(flags[name]));
  };
  number("--clients", settings.clients), number("--pause-us", settings.pause_us);
  number("--gap-ms", settings.gap_ms), number("--rate", settings.rate);
  number("--seconds", settings.seconds);
  if (flags.contains("--prefix")) settings.prefix = flags["--prefix"];
  // Without SA_RESTART, so that a wait ends.
  struct sigaction action {};
  action.sa_handler = [](int) { is_asked_to_end = 1; };
  sigaction(SIGTERM, &action, nullptr);
  return Load{settings}.run();
}
