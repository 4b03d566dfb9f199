// Question: how fast does a node answer, and how late, at work that redis-benchmark has no form
// for? Method:   one thread, C connections over TCP, P requests in flight on each. A closed loop
// counts
//           operations; with --rate requests start by a schedule and are late by it, not by the
//           last reply (no coordinated omission).
// Report:   one line of JSON: operations, seconds, latencies; wrong replies are counted and fail.
//
// Work: fill  SET key:<i> v PX ttl, i from 0 upwards, each key once
//       get   GET of keys that fill has made
//       claim SEMEL.CLAIM, and SEMEL.COMPLETE with the epoch it gave; an operation is the pair
//       script the same pair as people build it on Redis: a script that runs SET NX GET PX, and SET
//       call  --request "WORD {key} WORD": any command; {key} goes through `keys` keys in turn. The
//             reply must be --reply, and behind the first `keys` operations --reply-again
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/histogram.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string work = "fill";
  int port = 6379;
  std::size_t connections = 50;
  std::size_t pipeline = 16;
  std::uint64_t operations = 1'000'000;
  std::uint64_t keys = 10'000'000;
  std::uint64_t ttl_ms = 3'600'000;
  double rate = 0;  // operations a second; 0: as fast as it goes
  std::string claim_sha{};
  std::string complete_sha{};
  std::vector<std::string> request{};  // of `call`
  std::string reply{};
  std::string reply_again{};  // empty: as `reply`
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void append_word(std::string& out, std::string_view word) {
  char head[32];
  const int bytes = std::snprintf(head, sizeof head, "$%zu\r\n", word.size());
  out.append(head, static_cast<std::size_t>(bytes)).append(word).append("\r\n");
}

template <class... Words>
void append_request(std::string& out, const Words&... words) {
  char head[32];
  const int bytes = std::snprintf(head, sizeof head, "*%zu\r\n", sizeof...(words));
  out.append(head, static_cast<std::size_t>(bytes));
  (append_word(out, words), ...);
}

std::string key_of(std::uint64_t number) {
  char key[32];
  std::snprintf(key, sizeof key, "key:%012llu", static_cast<unsigned long long>(number));
  return key;
}

/// The bytes of the reply at the front, 0: not whole. Arrays count their items.
std::size_t reply_bytes(std::string_view input) {
  const std::size_t end = input.find("\r\n");
  if (end == std::string_view::npos) return 0;
  const char type = input[0];
  std::size_t at = end + 2;
  if (type == '+' || type == '-' || type == ':' || type == '_') return at;
  const long number = std::strtol(input.data() + 1, nullptr, 10);
  if (type == '$') {
    if (number < 0) return at;
    at += static_cast<std::size_t>(number) + 2;
    return at <= input.size() ? at : 0;
  }
  for (long i = type == '%' ? number * 2 : number; i > 0; --i) {
    if (at >= input.size()) return 0;
    const std::size_t item = reply_bytes(input.substr(at));
    if (item == 0) return 0;
    at += item;
  }
  return at;
}

class Load {
 public:
  explicit Load(const Settings& settings) : settings_(settings), poll_(epoll_create1(0)) {
    for (std::size_t i = 0; i < settings.connections; ++i) connect_one(i);
  }

  int run() {
    begun_ = Clock::now();
    for (Client& client : clients_) send_more(client);
    std::vector<epoll_event> events(256);
    while (done_ < settings_.operations) {
      const int timeout = settings_.rate > 0 ? 1 : 10'000;
      const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), timeout);
      if (count == 0 && settings_.rate <= 0) return fail("no reply for 10 s");
      for (int i = 0; i < count; ++i) {
        if (!take_replies(clients_[events[static_cast<std::size_t>(i)].data.u64])) return 1;
      }
      if (settings_.rate > 0) {
        for (Client& client : clients_) send_more(client);
      }
    }
    return report();
  }

 private:
  struct Flight {
    std::uint64_t number;
    Clock::time_point due;
    bool second;  // of a pair
  };
  struct Client {
    int socket = -1;
    std::string out{};
    std::string in{};
    std::vector<Flight> flights{};  // in order, from first on
    std::size_t first = 0;
    std::vector<std::pair<std::uint64_t, std::string>> granted{};  // number, epoch: to be completed
    std::vector<Clock::time_point> granted_due{};
  };

  void connect_one(std::size_t index) {
    Client client;
    client.socket = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(settings_.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(client.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      std::perror("connect");
      std::exit(1);
    }
    const int yes = 1;
    setsockopt(client.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    epoll_ctl(poll_, EPOLL_CTL_ADD, client.socket, &event);
    clients_.push_back(std::move(client));
  }

  [[nodiscard]] bool is_pairs() const {
    return settings_.work == "claim" || settings_.work == "script";
  }

  /// When operation `number` is to start, by the schedule.
  [[nodiscard]] Clock::time_point due_of(std::uint64_t number) const {
    if (settings_.rate <= 0) return Clock::now();
    return begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                        static_cast<double>(number) / settings_.rate));
  }

  void send_more(Client& client) {
    client.out.clear();
    if (is_pairs() && !client.granted.empty()) {
      append_seconds(client);
    } else {
      while (client.flights.size() - client.first < settings_.pipeline &&
             started_ < settings_.operations) {
        const auto due = due_of(started_);
        if (settings_.rate > 0 && due > Clock::now()) break;
        append_first(client, started_);
        client.flights.push_back({started_++, due, false});
      }
    }
    std::string_view rest = client.out;
    while (!rest.empty()) {
      const ssize_t sent = send(client.socket, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        std::perror("send");
        std::exit(1);
      }
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void append_first(Client& client, std::uint64_t number) {
    const std::string ttl = std::to_string(settings_.ttl_ms);
    if (settings_.work == "fill") {
      append_request(client.out, "SET", key_of(number), "v", "PX", ttl);
    } else if (settings_.work == "get") {
      append_request(client.out, "GET", key_of(number * 2'654'435'761U % settings_.keys));
    } else if (settings_.work == "claim") {
      append_request(client.out, "SEMEL.CLAIM", "bench", key_of(number), "LEASE", "60000");
    } else if (settings_.work == "call") {
      append_call(client.out, key_of(number % settings_.keys));
    } else {
      append_request(client.out, "EVALSHA", settings_.claim_sha, "1", key_of(number), "CONSUMING",
                     "60000");
    }
  }

  void append_call(std::string& out, const std::string& key) {
    char head[32];
    const int bytes = std::snprintf(head, sizeof head, "*%zu\r\n", settings_.request.size());
    out.append(head, static_cast<std::size_t>(bytes));
    constexpr std::string_view mark = "{key}";
    for (const std::string& word : settings_.request) {
      const std::size_t at = word.find(mark);
      if (at == word.npos) {
        append_word(out, word);
      } else {
        append_word(out, word.substr(0, at) + key + word.substr(at + mark.size()));
      }
    }
  }

  void append_seconds(Client& client) {
    for (std::size_t i = 0; i < client.granted.size(); ++i) {
      const auto& [number, epoch] = client.granted[i];
      if (settings_.work == "claim") {
        append_request(client.out, "SEMEL.COMPLETE", "bench", key_of(number), epoch, "done");
      } else {
        append_request(client.out, "EVALSHA", settings_.complete_sha, "1", key_of(number),
                       "CONSUMED", "3600000");
      }
      client.flights.push_back({number, client.granted_due[i], true});
    }
    client.granted.clear();
    client.granted_due.clear();
  }

  bool take_replies(Client& client) {
    char room[65536];
    const ssize_t got = recv(client.socket, room, sizeof room, 0);
    if (got <= 0) {
      std::fprintf(stderr, "the server has closed\n");
      return false;
    }
    client.in.append(room, static_cast<std::size_t>(got));
    std::string_view rest = client.in;
    while (client.first < client.flights.size()) {
      const std::size_t bytes = rest.empty() ? 0 : reply_bytes(rest);
      if (bytes == 0) break;
      take_one(client, rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
    client.in.erase(0, client.in.size() - rest.size());
    if (client.first == client.flights.size()) {
      client.flights.clear();
      client.first = 0;
      send_more(client);
    }
    return true;
  }

  void take_one(Client& client, std::string_view reply) {
    const Flight flight = client.flights[client.first++];
    if (is_pairs() && !flight.second) {
      std::string epoch = granted_epoch(reply);
      if (epoch.empty()) ++wrong_;
      client.granted.emplace_back(flight.number, std::move(epoch));
      client.granted_due.push_back(flight.due);
      return;
    }
    const bool again = flight.number >= settings_.keys && !settings_.reply_again.empty();
    const bool right = settings_.work == "get" ? reply == "$1\r\nv\r\n"
                       : settings_.work == "call"
                           ? reply == (again ? settings_.reply_again : settings_.reply)
                       : settings_.work == "claim" ? reply.find("$2\r\nok\r\n") != reply.npos
                                                   : reply == "+OK\r\n";
    if (!right && wrong_++ == 0) {
      std::fprintf(stderr, "a wrong reply: %.*s\n", static_cast<int>(reply.size()), reply.data());
    }
    ++done_;
    latencies_.add(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - flight.due).count()));
  }

  /// Of a pair's first reply: a script's is null when it was granted, and has no epoch.
  [[nodiscard]] std::string granted_epoch(std::string_view reply) const {
    if (settings_.work == "script") return reply == "$-1\r\n" ? "-" : "";
    constexpr std::string_view name = "$5\r\nepoch\r\n";
    const std::size_t at = reply.find(name);
    if (at == reply.npos || reply.find("granted") == reply.npos) return "";
    // A bulk string: its length, then its digits.
    const std::size_t begin = reply.find("\r\n", at + name.size()) + 2;
    return std::string{reply.substr(begin, reply.find("\r\n", begin) - begin)};
  }

  int fail(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    return 1;
  }

  int report() {
    const auto at = [this](double share) {
      return static_cast<double>(latencies_.quantile(share));
    };
    const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    std::printf(
        "{\"operations\": %llu, \"seconds\": %.6f, \"wrong\": %llu, \"p50_us\": %.1f, "
        "\"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n",
        static_cast<unsigned long long>(done_), seconds, static_cast<unsigned long long>(wrong_),
        at(0.5) / 1e3, at(0.99) / 1e3, at(0.999) / 1e3, at(1) / 1e3);
    return wrong_ == 0 ? 0 : 1;
  }

  const Settings settings_;
  const int poll_;
  std::vector<Client> clients_;
  std::uint64_t started_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t wrong_ = 0;
  Clock::time_point begun_{};
  semel::bench::Histogram latencies_;
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  Settings settings;
  const auto text = [&](const char* name, std::string& to) {
    if (flags.contains(name)) to = flags[name];
  };
  const auto number = [&](const char* name, auto& to) {
    if (flags.contains(name)) to = static_cast<std::decay_t<decltype(to)>>(std::stod(flags[name]));
  };
  text("--work", settings.work), text("--claim-sha", settings.claim_sha);
  text("--complete-sha", settings.complete_sha);
  text("--reply", settings.reply), text("--reply-again", settings.reply_again);
  settings.request = words_of(flags["--request"]);
  number("--port", settings.port), number("--connections", settings.connections);
  number("--pipeline", settings.pipeline), number("--operations", settings.operations);
  number("--keys", settings.keys), number("--ttl-ms", settings.ttl_ms);
  number("--rate", settings.rate);
  return Load{settings}.run();
}
