// Question: how fast does a server do work on lists, sets, sorted sets, hashes and streams, where a
// request may need what an earlier one was answered?
// Method:   one thread, C connections over TCP, a closed loop. A connection has P operations in
//           flight; all of them do their first step, then their second ..
// Report:   one line of JSON: requests (as `operations`), seconds; replies that are not as
//           expected are counted, and fail.
//
// --steps "REQUEST => REPLY | REQUEST => REPLY ; REQUEST => REPLY": steps are apart by `;` and
//   their requests, which are sent together, by `|`.
// REQUEST: words, in which {key} is one of `objects` keys, {n} one of `elements` numbers, {i} the
//   number of the operation and {got} what an earlier reply has had. The operations go through all
//   keys for each element in turn, in an order that is no order of keys.
// REPLY: int (any), text (any bulk string), some (an array that is not empty), status (+..), or
//   the very number. `text@0` and `some@1` keep a bulk string of the reply, counted from 0.
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
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/resp_wire.hpp"

namespace {

using namespace semel::bench;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t stride = 2'654'435'761U;  // a prime: it meets each key once

struct Request {
  std::vector<std::string> words{};
  std::string reply{};
  int keeps = -1;  // which bulk string of the reply
};

using Step = std::vector<Request>;

struct Settings {
  int port = 6379;
  std::size_t connections = 50;
  std::size_t pipeline = 16;
  std::uint64_t operations = 1'000'000;
  std::uint64_t objects = 1;
  std::uint64_t elements = 1;
  std::vector<Step> steps{};
};

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::exit(1);
}

Request request_of(const std::vector<std::string>& words) {
  const auto arrow = std::find(words.begin(), words.end(), "=>");
  if (arrow == words.begin() || words.end() - arrow != 2) give_up("a request has no => REPLY");
  Request request;
  request.words.assign(words.begin(), arrow);
  const std::size_t at = arrow[1].find('@');
  request.reply = arrow[1].substr(0, at);
  if (at != std::string::npos) request.keeps = std::atoi(arrow[1].c_str() + at + 1);
  return request;
}

std::vector<Step> steps_of(std::string_view text) {
  std::vector<Step> steps(1);
  std::vector<std::string> words;
  for (const std::string& word : words_of(text)) {
    if (word != "|" && word != ";") {
      words.push_back(word);
      continue;
    }
    steps.back().push_back(request_of(words));
    words.clear();
    if (word == ";") steps.emplace_back();
  }
  steps.back().push_back(request_of(words));
  return steps;
}

/// The bulk string number `index` of a reply, "": it has none.
std::string_view bulk_of(std::string_view reply, int index) {
  while (!reply.empty()) {
    const std::size_t end = reply.find("\r\n");
    const char type = reply[0];
    const long bytes = std::strtol(reply.data() + 1, nullptr, 10);
    reply.remove_prefix(end + 2);
    if (type != '$' || bytes < 0) continue;
    const auto size = static_cast<std::size_t>(bytes);
    if (index-- == 0) return reply.substr(0, size);
    reply.remove_prefix(size + 2);
  }
  return {};
}

bool is_expected(std::string_view reply, std::string_view kind) {
  const bool has_more = reply.size() > 1 && reply[1] != '-' && reply[1] != '0';
  if (kind == "int") return reply[0] == ':';
  if (kind == "status") return reply[0] == '+';
  if (kind == "text") return reply[0] == '$' && reply[1] != '-';
  if (kind == "some") return reply[0] == '*' && has_more;
  return reply[0] == ':' && reply.substr(1, reply.size() - 3) == kind;
}

class Load {
 public:
  explicit Load(const Settings& settings) : settings_(settings), poll_(epoll_create1(0)) {
    for (std::size_t i = 0; i < settings.connections; ++i) connect_one(i);
  }

  int run() {
    const auto begun = Clock::now();
    for (Client& client : clients_) begin(client);
    std::vector<epoll_event> events(256);
    while (busy_ != 0) {
      const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), 20'000);
      if (count == 0) give_up("no reply for 20 s");
      for (int i = 0; i < count; ++i) {
        take_replies(clients_[events[static_cast<std::size_t>(i)].data.u64]);
      }
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    std::printf("{\"operations\": %llu, \"seconds\": %.6f, \"wrong\": %llu}\n",
                static_cast<unsigned long long>(done_), seconds,
                static_cast<unsigned long long>(wrong_));
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  struct Client {
    int socket = -1;
    std::string out{};
    std::string in{};
    std::uint64_t first = 0;  // of its operations in flight
    std::size_t step = 0;
    std::size_t answered = 0;        // of this step
    std::vector<std::string> got{};  // an entry an operation in flight
  };

  void connect_one(std::size_t index) {
    Client client;
    client.socket = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(settings_.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(client.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      give_up("cannot connect");
    }
    const int yes = 1;
    setsockopt(client.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    epoll_ctl(poll_, EPOLL_CTL_ADD, client.socket, &event);
    clients_.push_back(std::move(client));
  }

  /// The next operations, if there are any.
  void begin(Client& client) {
    const std::uint64_t left = settings_.operations - started_;
    const std::uint64_t count = std::min<std::uint64_t>(left, settings_.pipeline);
    if (count == 0) return;
    ++busy_;
    client.first = started_;
    started_ += count;
    client.got.assign(count, {});
    client.step = 0;
    send_step(client);
  }

  void send_step(Client& client) {
    client.out.clear();
    client.answered = 0;
    for (std::size_t i = 0; i < client.got.size(); ++i) {
      for (const Request& request : settings_.steps[client.step]) {
        append_head(client.out, '*', request.words.size());
        for (const std::string& word : request.words) {
          append_filled(client.out, word, client.first + i, client.got[i]);
        }
      }
    }
    std::string_view rest = client.out;
    while (!rest.empty()) {
      const ssize_t sent = send(client.socket, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) give_up("the server has closed");
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void append_filled(std::string& out, const std::string& word, std::uint64_t operation,
                     const std::string& got) {
    const std::size_t at = word.find('{');
    const std::size_t end = at == word.npos ? at : word.find('}', at);
    if (end == word.npos) return append_word(out, word);
    const std::string_view name = std::string_view{word}.substr(at + 1, end - at - 1);
    const std::uint64_t turn =
        settings_.objects == 1 ? operation * stride : operation / settings_.objects;
    const std::string filled = name == "key"   ? key_of(operation * stride % settings_.objects)
                               : name == "n"   ? std::to_string(turn % settings_.elements)
                               : name == "i"   ? std::to_string(operation)
                               : name == "got" ? got
                                               : word.substr(at, end - at + 1);
    append_word(out, word.substr(0, at) + filled + word.substr(end + 1));
  }

  void take_replies(Client& client) {
    char room[65536];
    const ssize_t count = recv(client.socket, room, sizeof room, 0);
    if (count <= 0) give_up("the server has closed");
    client.in.append(room, static_cast<std::size_t>(count));
    std::string_view rest = client.in;
    const Step& step = settings_.steps[client.step];
    const std::size_t all = client.got.size() * step.size();
    while (client.answered < all && !rest.empty()) {
      const std::size_t bytes = reply_bytes(rest);
      if (bytes == 0) break;
      take_one(client, step, rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
    client.in.erase(0, client.in.size() - rest.size());
    if (client.answered == all) end_step(client);
  }

  void take_one(Client& client, const Step& step, std::string_view reply) {
    const std::size_t operation = client.answered / step.size();
    const Request& request = step[client.answered++ % step.size()];
    ++done_;
    if (!is_expected(reply, request.reply) && wrong_++ == 0) {
      std::fprintf(stderr, "%s, not %s: %.*s\n", request.words[0].c_str(), request.reply.c_str(),
                   static_cast<int>(std::min<std::size_t>(reply.size(), 200)), reply.data());
    }
    if (request.keeps >= 0) client.got[operation] = bulk_of(reply, request.keeps);
  }

  void end_step(Client& client) {
    if (++client.step != settings_.steps.size()) return send_step(client);
    --busy_;
    begin(client);
  }

  const Settings settings_;
  const int poll_;
  std::vector<Client> clients_{};
  std::size_t busy_ = 0;  // connections with operations in flight
  std::uint64_t started_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  Settings settings;
  const auto number = [&](const char* name, auto& to) {
    if (!flags.contains(name)) return;
    to = static_cast<std::decay_t<decltype(to)>>(std::strtoull(flags[name].c_str(), nullptr, 10));
  };
  number("--port", settings.port), number("--connections", settings.connections);
  number("--pipeline", settings.pipeline), number("--operations", settings.operations);
  number("--objects", settings.objects), number("--elements", settings.elements);
  settings.steps = steps_of(flags["--steps"]);
  if (settings.pipeline == 0 || settings.objects == 0 || settings.elements == 0) {
    give_up("--pipeline, --objects and --elements are not 0");
  }
  return Load{settings}.run();
}
