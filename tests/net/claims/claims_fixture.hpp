// A node on a clock that stands still, and clients that talk to it without a socket.
//
// Words: what a client *says* is a line, its words parted by blanks, '%' standing for the epoch it
// was granted last, "'a b'" for one word; a reply is one line too: a map is
// `outcome granted, epoch E, ..`, whatever the dialect, an array `[a | b]`, and a wait is
// `(waits)`.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/semel.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {

/// Removes a reply from the front of `bytes`; an incomplete one is of type broken. No assertion,
/// which only one thread might use.
inline RespValue read_reply(std::string_view& bytes) {
  if (std::optional<RespValue> value = take_value(bytes)) return *std::move(value);
  bytes = {};
  return {};
}

inline bool is_map(const RespValue& value) {
  if (value.type == RespValue::Type::map) return true;
  if (value.type != RespValue::Type::array || value.items.size() < 2) return false;
  const std::string& first = value.items[0].text;
  return first == "outcome" || first == "state" || first == "key" || first == "name";
}

/// One line, the same for both dialects. Epochs are E, the last one goes to `epoch`.
inline std::string reply_line(const RespValue& value, std::string& epoch,
                              std::string_view field = {}) {
  const bool is_flag = field == "takeover" || field == "result_expired" || field == "poison" ||
                       field == "late" || field == "strict" || field == "fail_open" ||
                       field == "issued" || field == "fair";
  if (value.type == RespValue::Type::boolean) return value.text == "t" ? "yes" : "no";
  if ((value.type == RespValue::Type::integer || value.type == RespValue::Type::bulk) && is_flag)
    return value.text == "1" ? "yes" : "no";
  if (value.type == RespValue::Type::null) return "nil";
  if (value.type == RespValue::Type::error || value.type == RespValue::Type::status ||
      value.type == RespValue::Type::broken)
    return static_cast<char>(value.type) + value.text;
  if (field == "epoch") {
    epoch = value.text;
    return "E";
  }
  if (value.type == RespValue::Type::integer || value.type == RespValue::Type::bulk)
    return value.text;
  std::string line;
  if (is_map(value)) {
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
      const std::string& name = value.items[i].text;
      line += (i == 0 ? "" : ", ") + name + " " + reply_line(value.items[i + 1], epoch, name);
    }
    return line;
  }
  for (const RespValue& item : value.items) {
    line += (line.empty() ? "" : " | ") + reply_line(item, epoch);
  }
  return "[" + line + "]";
}

/// A connection and its host. Used by one thread; woken by any.
class Client final : public net::ClientHost {
 public:
  explicit Client(net::Node& node, net::Resp dialect = net::Resp::three)
      : node_(node), dialect_(dialect) {
    connect();
  }

  void connect() {
    disconnect();
    wakes_ = 0;  // of the connection before; no thread wakes us now
    connection_ = std::make_unique<net::Connection>(
        node_, batch_, this, net::ClientHandle::Origin{.id = node_.next_client_id()});
    static_cast<void>(raw({"HELLO", std::to_string(static_cast<int>(dialect_))}));
  }
  void disconnect() { connection_.reset(); }

  [[nodiscard]] std::string raw(const Words& words) {
    std::string reply;
    connection_->receive(request_bytes(words), reply);
    return reply;
  }
  /// What is answered to a line; "(waits)" if nothing is, yet.
  std::string say(std::string_view line) {
    Words words = words_in(line);
    for (std::string& word : words) {
      if (word == "%") word = epoch;
    }
    return line_of(raw(words));
  }
  /// What others have left since.
  std::string hear() {
    std::string reply;
    connection_->collect(reply);
    return line_of(reply);
  }
  /// hear(), as soon as this connection was woken.
  std::string hear_when_woken() {
    std::unique_lock lock{mutex_};
    woken_.wait(lock, [&] { return wakes_ > 0; });
    wakes_ = 0;
    lock.unlock();
    return hear();
  }
  void collect(std::string& reply) { connection_->collect(reply); }
  [[nodiscard]] bool waits() const { return connection_->waits(); }
  [[nodiscard]] net::ClientHandle& handle() { return *connection_->client().handle; }

  void wake() noexcept override {
    const std::lock_guard lock{mutex_};
    ++wakes_;
    woken_.notify_one();
  }

  std::string epoch{};  ///< the last that was seen

 private:
  std::string line_of(const std::string& reply) {
    if (reply.empty()) return connection_->waits() ? "(waits)" : "(nothing)";
    std::string_view rest{reply};
    std::string line = reply_line(read_reply(rest), epoch);
    while (!rest.empty()) line += " || " + reply_line(read_reply(rest), epoch);
    return line;
  }

  net::Node& node_;
  net::Resp dialect_;
  net::Batch batch_;
  std::mutex mutex_;
  std::condition_variable woken_;
  int wakes_ = 0;  // under mutex_
  std::unique_ptr<net::Connection> connection_;
};

struct NodeFixture {
  explicit NodeFixture(Options options = {}) {
    options.clock = &clock;
    options.decision_log_bytes = std::min<std::size_t>(262'144, options.memory_bytes / 16);
    auto opened = Engine::open(options);
    REQUIRE(opened.has_value());
    engine = *std::move(opened);
    node = std::make_unique<net::Node>(*engine);
  }
  void pass(Millis time) {
    clock.advance(time);
    while (engine->advance() == 0) {
    }
  }

  ManualClock clock;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<net::Node> node;
};

}  // namespace semel::tests
