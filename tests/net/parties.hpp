// Several connections at once, of one node of ours and of a redis-server, for tests of what one
// hears of another.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/semel.hpp"
#include "tests/support/raw_client.hpp"

namespace semel::tests {

using Words = std::vector<std::string>;

/// "SET a 1" as words.
inline Words words_of(std::string_view line) {
  Words words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// Where the value that begins at `at` ends, in either dialect.
inline std::size_t value_end(std::string_view bytes, std::size_t at) {
  const std::size_t line = bytes.find("\r\n", at) + 2;
  const std::string_view kinds = "*%~>";
  const long long number = std::strtoll(std::string{bytes.substr(at + 1, 20)}.c_str(), nullptr, 10);
  if (bytes[at] == '$' || bytes[at] == '=') {
    return number < 0 ? line : line + static_cast<std::size_t>(number) + 2;
  }
  if (kinds.find(bytes[at]) == std::string_view::npos) return line;
  std::size_t end = line;
  const long long count = bytes[at] == '%' ? 2 * number : number;
  for (long long i = 0; i < count; ++i) end = value_end(bytes, end);
  return end;
}

/// The values one behind the other; `opened`: of the first, an array, the elements are apart.
inline std::vector<std::string> values_of(std::string_view bytes, bool opened = false) {
  std::vector<std::string> values;
  std::size_t at = 0;
  if (opened && bytes.starts_with('*')) {
    at = bytes.find("\r\n") + 2;
    values.emplace_back(bytes.substr(0, at));
  }
  while (at < bytes.size()) {
    const std::size_t end = value_end(bytes, at);
    values.emplace_back(bytes.substr(at, end - at));
    at = end;
  }
  return values;
}

/// One of our connections and what it has been sent.
class Party : net::ClientHost {
 public:
  Party(net::Node& node, net::Batch& batch, std::uint64_t id = 1)
      : connection_(node, batch, this, {.id = id, .address = "127.0.0.1:" + std::to_string(id)}) {}

  /// What it is sent until the request has been carried out.
  std::string say(const Words& words) { return send(request_bytes(words)); }
  std::string say(std::string_view line) { return say(words_of(line)); }
  std::string send(std::string_view bytes) {
    std::string out;
    connection_.receive(bytes, out);
    return out + heard();
  }
  /// What others have left for it.
  std::string heard() {
    std::string out;
    // mo: relaxed: collect() takes the lock under which it was set
    if (woken_.exchange(false, std::memory_order_relaxed)) connection_.collect(out);
    return out;
  }
  [[nodiscard]] bool in_transaction() const { return connection_.client().transaction != nullptr; }
  [[nodiscard]] const net::Connection& connection() const { return connection_; }

 private:
  void wake() noexcept override {
    woken_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in heard()
  }
  std::atomic<bool> woken_{false};
  net::Connection connection_;
};

/// The same with a redis-server.
class RedisParty {
 public:
  explicit RedisParty(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~RedisParty() { close(socket_); }
  RedisParty(const RedisParty&) = delete;
  RedisParty& operator=(const RedisParty&) = delete;

  /// `in_transaction`: whether it is in one behind the request.
  std::string say(const Words& words, bool in_transaction) {
    return send(request_bytes(words), in_transaction);
  }
  /// What it is sent up to the answer to a request that follows and changes nothing.
  std::string send(const std::string& bytes, bool in_transaction) {
    const std::string marker = "end" + std::to_string(++calls_);
    const std::string pong = "$" + std::to_string(marker.size()) + "\r\n" + marker + "\r\n";
    const std::string end = in_transaction ? "-ERR MULTI calls can not be nested\r\n" : pong;
    const std::string all =
        bytes + request_bytes(in_transaction ? Words{"MULTI"} : Words{"PING", marker});
    REQUIRE(::send(socket_, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()));
    std::string reply;
    while (!reply.ends_with(end)) {
      char room[4096];
      const ssize_t got = recv(socket_, room, sizeof room, 0);
      REQUIRE(got > 0);
      reply.append(room, static_cast<std::size_t>(got));
    }
    reply.resize(reply.size() - end.size());
    const std::string_view listening = "*2\r\n$4\r\npong\r\n";
    if (!in_transaction && reply.ends_with(listening))
      reply.resize(reply.size() - listening.size());
    return reply;
  }
  std::string heard(bool in_transaction) { return send({}, in_transaction); }

 private:
  const int socket_;
  std::uint64_t calls_ = 0;
};

}  // namespace semel::tests
