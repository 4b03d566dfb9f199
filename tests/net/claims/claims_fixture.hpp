// A node on a clock that stands still, and clients that talk to it without a socket.
//
// Words: what a client *says* is a line, its words parted by blanks, '%' standing for the epoch it
// was granted last, "'a b'" for one word; what it is told is one line too: a map is
// `outcome granted, epoch E, ..`, whatever the dialect, an array `[a | b]`, and a wait is
// `(waits)`.
#pragma once

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/semel.hpp"

namespace semel::tests {

/// A reply, read from its bytes.
struct Said {
  char type = '?';
  std::string text{};
  std::vector<Said> items{};
};

/// Type '!': it is not one. No assertion, which only one thread might use.
inline Said read_reply(std::string_view& bytes) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) {
    bytes = {};
    return {'!', {}, {}};
  }
  Said said{bytes[0], std::string{bytes.substr(1, end - 1)}, {}};
  bytes.remove_prefix(end + 2);
  if (said.type == '$' || said.type == '*' || said.type == '%') {
    int count = 0;
    std::from_chars(said.text.data(), said.text.data() + said.text.size(), count);
    if (count < 0) return {'_', {}, {}};
    if (said.type == '$') {
      said.text = bytes.substr(0, static_cast<std::size_t>(count));
      bytes.remove_prefix(std::min(bytes.size(), static_cast<std::size_t>(count) + 2));
    } else {
      for (int i = 0; i < (said.type == '%' ? 2 * count : count); ++i) {
        said.items.push_back(read_reply(bytes));
      }
    }
  }
  return said;
}

inline bool is_map(const Said& said) {
  if (said.type == '%') return true;
  if (said.type != '*' || said.items.size() < 2) return false;
  const std::string& first = said.items[0].text;
  return first == "outcome" || first == "state" || first == "key" || first == "name";
}

/// One line, the same for both dialects. Epochs are E, the last one goes to `epoch`.
inline std::string told(const Said& said, std::string& epoch, std::string_view field = {}) {
  const bool is_flag = field == "takeover" || field == "result_expired" || field == "poison" ||
                       field == "late" || field == "strict" || field == "fail_open" ||
                       field == "issued" || field == "fair";
  if (said.type == '#') return said.text == "t" ? "yes" : "no";
  if ((said.type == ':' || said.type == '$') && is_flag) return said.text == "1" ? "yes" : "no";
  if (said.type == '_') return "nil";
  if (said.type == '-' || said.type == '+' || said.type == '!') return said.type + said.text;
  if (field == "epoch") {
    epoch = said.text;
    return "E";
  }
  if (said.type == ':' || said.type == '$') return said.text;
  std::string line;
  if (is_map(said)) {
    for (std::size_t i = 0; i + 1 < said.items.size(); i += 2) {
      const std::string& name = said.items[i].text;
      line += (i == 0 ? "" : ", ") + name + " " + told(said.items[i + 1], epoch, name);
    }
    return line;
  }
  for (const Said& item : said.items) {
    line += (line.empty() ? "" : " | ") + told(item, epoch);
  }
  return "[" + line + "]";
}

inline std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

inline std::string request_of(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

/// A connection and who serves it. Used by one thread; woken by any.
class Client final : public net::ClientHost {
 public:
  explicit Client(net::Node& node, net::Resp dialect = net::Resp::three)
      : node_(node), dialect_(dialect) {
    connect();
  }

  void connect() {
    disconnect();
    wakes_ = 0;  // of the connection before; nobody wakes us now
    connection_ = std::make_unique<net::Connection>(
        node_, batch_, this, net::ClientHandle::Origin{.id = node_.next_client_id()});
    static_cast<void>(raw({"HELLO", std::to_string(static_cast<int>(dialect_))}));
  }
  void disconnect() { connection_.reset(); }

  [[nodiscard]] std::string raw(const std::vector<std::string>& words) {
    std::string reply;
    connection_->receive(request_of(words), reply);
    return reply;
  }
  /// What is answered to a line; "(waits)" if nothing is, yet.
  std::string say(std::string_view line) {
    std::vector<std::string> words = words_of(line);
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
  /// hear(), as soon as somebody has woken this connection.
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
    std::string line = told(read_reply(rest), epoch);
    while (!rest.empty()) line += " || " + told(read_reply(rest), epoch);
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
