// Question: how fast does a node answer, and how late, at work that redis-benchmark has no form
// for?
// Method:   one thread, C connections over TCP, P requests in flight on each. A closed loop counts
//           operations; with --rate requests start by a schedule and are late by it, not by the
//           last reply (no coordinated omission).
// Report:   one line of JSON: operations, seconds, latencies; wrong replies are counted and fail.
//
// Work: fill  SET key:<i> v PX ttl, i from 0 upwards, each key once
//       get   GET of keys that fill has made
//       claim SEMEL.CLAIM, and SEMEL.COMPLETE with the epoch it gave; an operation is the pair
//       script the same pair as people build it on Redis: a script that runs SET NX GET PX, and SET
//       call  --request "WORD {key} WORD": any command; {key} goes through `keys` keys in turn. The
//             reply must be --reply, and behind the first `keys` operations --reply-again,
//             or has --reply-part in it
//       etcd  the same claim as `call` with SET {key} v NX GET, of etcd; one in flight a connection
//
// --batch-end "WORD WORD": a command sent behind each batch of `pipeline` requests, in the same
//   write. Its reply is a number from 1 on, and the batch has ended when it has come.
// --greeting "WORD": what each connection sends first; the reply is +OK.
// --first N: the keys' numbers begin there. --seconds S: nothing is sent any more after them.
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
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/etcd_session.hpp"
#include "bench/harness/histogram.hpp"
#include "bench/resp_wire.hpp"

namespace {

using namespace semel::bench;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::string work = "fill";
  int port = 6379;
  std::size_t connections = 50;
  std::size_t pipeline = 16;
  std::uint64_t operations = 1'000'000;
  std::uint64_t keys = 10'000'000;
  std::uint64_t ttl_ms = 3'600'000;
  std::uint64_t first = 0;
  std::size_t value_bytes = 1;  // of `fill`
  double rate = 0;              // operations a second; 0: as fast as it goes
  double seconds = 0;           // 0: until all operations are done
  std::string claim_sha{};
  std::string complete_sha{};
  std::vector<std::string> request{};  // of `call`
  std::string reply{};
  std::string reply_again{};  // empty: as `reply`
  std::string reply_part{};   // not empty: it is enough that a reply has this
  std::vector<std::string> batch_end{};
  std::vector<std::string> greeting{};
};

class Load {
 public:
  explicit Load(const Settings& settings) : settings_(settings), poll_(epoll_create1(0)) {
    for (std::size_t i = 0; i < settings.connections; ++i) connect_one(i);
  }

  int run() {
    begun_ = Clock::now();
    for (Client& client : clients_) send_more(client);
    std::vector<epoll_event> events(256);
    while (done_ < settings_.operations && !(is_over() && done_ == started_)) {
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
  enum class Step { only, second_of_pair, batch_end };
  struct Flight {
    std::uint64_t number;
    Clock::time_point due;
    Step step;
  };
  struct Client {
    int socket = -1;
    std::string out{};
    std::string in{};
    std::vector<Flight> flights{};  // in order, from first on
    std::size_t first = 0;
    std::vector<std::pair<std::uint64_t, std::string>> granted{};  // number, epoch: to be completed
    std::vector<Clock::time_point> granted_due{};
    std::vector<Clock::time_point> batch{};  // answered; it ends with the reply to batch_end
    std::unique_ptr<EtcdSession> etcd{};
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
    if (settings_.work == "etcd") client.etcd = std::make_unique<EtcdSession>();
    if (!settings_.greeting.empty()) greet(client.socket);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    epoll_ctl(poll_, EPOLL_CTL_ADD, client.socket, &event);
    clients_.push_back(std::move(client));
  }

  void greet(int socket) {
    std::string words;
    append_words(words, settings_.greeting);
    char reply[5];
    if (send(socket, words.data(), words.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(words.size()) ||
        recv(socket, reply, sizeof reply, MSG_WAITALL) != sizeof reply ||
        std::memcmp(reply, "+OK\r\n", sizeof reply) != 0) {
      std::fprintf(stderr, "the greeting was not answered with OK\n");
      std::exit(1);
    }
  }

  [[nodiscard]] bool is_over() const {
    return settings_.seconds > 0 &&
           Clock::now() - begun_ > std::chrono::duration<double>(settings_.seconds);
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
             started_ < settings_.operations && !is_over()) {
        const auto due = due_of(started_);
        if (settings_.rate > 0 && due > Clock::now()) break;
        append_first(client, started_);
        client.flights.push_back({started_++, due, Step::only});
      }
      if (!settings_.batch_end.empty() && !client.out.empty()) {
        append_words(client.out, settings_.batch_end);
        client.flights.push_back({0, {}, Step::batch_end});
      }
    }
    send_all(client);
  }

  void send_all(Client& client) {
    if (client.etcd) client.etcd->take_output(client.out);
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

  void append_first(Client& client, std::uint64_t operation) {
    const std::uint64_t number = settings_.first + operation;
    const std::string ttl = std::to_string(settings_.ttl_ms);
    if (settings_.work == "fill") {
      append_request(client.out, "SET", key_of(number), value_, "PX", ttl);
    } else if (settings_.work == "get") {
      append_request(client.out, "GET", key_of(operation * 2'654'435'761U % settings_.keys));
    } else if (settings_.work == "claim") {
      append_request(client.out, "SEMEL.CLAIM", "bench", key_of(number), "LEASE", "60000");
    } else if (settings_.work == "call") {
      append_call(client.out, key_of(settings_.first + operation % settings_.keys));
    } else if (settings_.work == "etcd") {
      client.etcd->claim(key_of(number), "v");
    } else {
      append_request(client.out, "EVALSHA", settings_.claim_sha, "1", key_of(number), "CONSUMING",
                     "60000");
    }
  }

  void append_call(std::string& out, const std::string& key) {
    append_head(out, '*', settings_.request.size());
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
        append_request(client.out, "SEMEL.COMPLETE", "bench", key_of(settings_.first + number),
                       epoch, "done");
      } else {
        append_request(client.out, "EVALSHA", settings_.complete_sha, "1",
                       key_of(settings_.first + number), "CONSUMED", "3600000");
      }
      client.flights.push_back({number, client.granted_due[i], Step::second_of_pair});
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
    if (!client.etcd) {
      client.in.append(room, static_cast<std::size_t>(got));
    } else if (!client.etcd->receive({room, static_cast<std::size_t>(got)}, client.in)) {
      return fail("not what etcd should send") == 0;
    }
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
    } else if (client.etcd) {
      client.out.clear();
      send_all(client);  // what HTTP/2 itself has to say
    }
    return true;
  }

  void take_one(Client& client, std::string_view reply) {
    const Flight flight = client.flights[client.first++];
    if (flight.step == Step::batch_end) return end_batch(client, reply);
    if (is_pairs() && flight.step == Step::only) {
      std::string epoch = granted_epoch(reply);
      if (epoch.empty()) ++wrong_;
      client.granted.emplace_back(flight.number, std::move(epoch));
      client.granted_due.push_back(flight.due);
      return;
    }
    const bool again = flight.number >= settings_.keys && !settings_.reply_again.empty();
    const bool right = settings_.work == "get" ? reply == "$1\r\nv\r\n"
                       : !settings_.reply_part.empty()
                           ? reply.find(settings_.reply_part) != reply.npos
                       : settings_.work == "call" || settings_.work == "etcd"
                           ? reply == (again ? settings_.reply_again : settings_.reply)
                       : settings_.work == "claim" ? reply.find("$2\r\nok\r\n") != reply.npos
                                                   : reply == "+OK\r\n";
    if (!right) note_wrong(reply);
    if (!settings_.batch_end.empty()) return client.batch.push_back(flight.due);
    finish(flight.due);
  }

  void end_batch(Client& client, std::string_view reply) {
    if (reply.size() < 2 || reply[0] != ':' || reply[1] < '1' || reply[1] > '9') note_wrong(reply);
    for (const Clock::time_point due : client.batch) finish(due);
    client.batch.clear();
  }

  void note_wrong(std::string_view reply) {
    if (wrong_++ != 0) return;
    std::fprintf(stderr, "a wrong reply: %.*s\n", static_cast<int>(reply.size()), reply.data());
  }

  void finish(Clock::time_point due) {
    ++done_;
    latencies_.add(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - due).count()));
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
  const std::string value_{std::string(settings_.value_bytes, 'v')};
  const int poll_;
  std::vector<Client> clients_;
  std::uint64_t started_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t wrong_ = 0;
  Clock::time_point begun_{};
  Histogram latencies_;
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
  text("--reply-part", settings.reply_part);
  settings.request = words_of(flags["--request"]);
  settings.batch_end = words_of(flags["--batch-end"]);
  settings.greeting = words_of(flags["--greeting"]);
  number("--port", settings.port), number("--connections", settings.connections);
  number("--pipeline", settings.pipeline), number("--operations", settings.operations);
  number("--keys", settings.keys), number("--ttl-ms", settings.ttl_ms);
  number("--rate", settings.rate), number("--seconds", settings.seconds);
  number("--first", settings.first), number("--value-bytes", settings.value_bytes);
  if (settings.work == "etcd" && (!etcd_is_available() || settings.pipeline != 1)) {
    std::fprintf(stderr, "etcd: needs nghttp2, and --pipeline 1\n");
    return 1;
  }
  return Load{settings}.run();
}
