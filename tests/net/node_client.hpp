// Several connections at once, of one node of ours and of a redis-server, for tests of what one
// hears of another.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/node/connection.hpp"
#include "semel/semel.hpp"
#include "tests/support/resp.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

/// The values one behind the other; `opened`: of the first, an array, the elements are apart.
inline std::vector<std::string> values_of(std::string_view bytes, bool opened = false) {
  if (!opened || !bytes.starts_with('*')) return split_values(bytes);
  const std::size_t head = bytes.find("\r\n") + 2;
  std::vector<std::string> values = split_values(bytes.substr(head));
  values.emplace(values.begin(), bytes.substr(0, head));
  return values;
}

/// One of our connections and what it has been sent.
class NodeClient : net::ClientHost {
 public:
  NodeClient(net::Node& node, net::Batch& batch, std::uint64_t id = 1)
      : connection_(node, batch, this, {.id = id, .address = "127.0.0.1:" + std::to_string(id)}) {}

  /// What it is sent until the request has been carried out.
  std::string say(const Words& words) { return send(request_bytes(words)); }
  std::string say(std::string_view line) { return say(words_in(line)); }
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
class RedisClient {
 public:
  explicit RedisClient(const std::string& path) : socket_(path) {}

  /// `in_transaction`: whether it is in one behind the request.
  std::string say(const Words& words, bool in_transaction) {
    return send(request_bytes(words), in_transaction);
  }
  /// What it is sent up to the answer to a request that follows and changes nothing.
  std::string send(const std::string& bytes, bool in_transaction) {
    const std::string marker = "end" + std::to_string(++calls_);
    const std::string pong = "$" + std::to_string(marker.size()) + "\r\n" + marker + "\r\n";
    const std::string end = in_transaction ? "-ERR MULTI calls can not be nested\r\n" : pong;
    socket_.send(bytes + request_bytes(in_transaction ? Words{"MULTI"} : Words{"PING", marker}));
    std::string reply = socket_.read_until(end).value();
    reply.resize(reply.size() - end.size());
    const std::string_view listening = "*2\r\n$4\r\npong\r\n";
    if (!in_transaction && reply.ends_with(listening))
      reply.resize(reply.size() - listening.size());
    return reply;
  }
  std::string heard(bool in_transaction) { return send({}, in_transaction); }

 private:
  Socket socket_;
  std::uint64_t calls_ = 0;
};

}  // namespace semel::tests
