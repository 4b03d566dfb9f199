// A Redis in this process: the commands of the node without a socket, for tests and for programs
// that speak Redis' commands and need no server. Starts in less than a millisecond.
//
//   auto redis = semel::LocalRedis::open().value();
//   redis->call({"SET", "k", "v", "NX", "PX", "60000"});   // +OK
//   redis->advance(semel::Millis{60'000});                 // without sleeping
//   redis->call({"GET", "k"}).is_null();                   // true
//
// Source: docs/local-redis.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/limits.hpp"
#include "semel/result.hpp"

namespace semel {

namespace net {
struct LocalRedisHost;  // the way in of GroupNode, whose node belongs to a group
}

/// What a command answered, as a client library would show it.
struct Reply {
  enum class Type : std::uint8_t {
    simple,   ///< text: "OK"
    error,    ///< text: "ERR .."
    integer,  ///< integer
    bulk,     ///< text: bytes
    null,
    array,    ///< items
    map,      ///< items: key, value, key, value, ..
    set,      ///< items
    push,     ///< items
    number,   ///< number
    boolean,  ///< integer: 0 or 1
  };
  Type type = Type::null;
  std::string text{};
  std::int64_t integer = 0;
  double number = 0;
  std::vector<Reply> items{};

  [[nodiscard]] bool is_ok() const noexcept { return type == Type::simple && text == "OK"; }
  [[nodiscard]] bool is_error() const noexcept { return type == Type::error; }
  [[nodiscard]] bool is_null() const noexcept { return type == Type::null; }
  friend bool operator==(const Reply&, const Reply&) = default;
};

/// As redis-cli prints it, on one line.
[[nodiscard]] std::string to_text(const Reply& reply);

/// In a child of its process every command is answered with an error, nothing else has an effect,
/// and its destructor and those of its clients free nothing.
class LocalRedis {
 public:
  struct Options {
    Engine* engine = nullptr;  ///< none: an own one. Must outlive this.
    std::size_t memory_bytes = limits::memory_bytes_default;  ///< of an own engine
    /// Of an own engine: time moves only by advance(). False: the system's time, and advance() adds
    /// to it.
    bool frozen = true;
    unsigned protocol = 2;  ///< of each client until it says HELLO: 2 or 3
  };

  /// Errors: those of Engine::open; bad_option (protocol).
  [[nodiscard]] static Result<std::unique_ptr<LocalRedis>> open(const Options& options);
  [[nodiscard]] static Result<std::unique_ptr<LocalRedis>> open() { return open(Options{}); }
  ~LocalRedis();
  LocalRedis(const LocalRedis&) = delete;
  LocalRedis& operator=(const LocalRedis&) = delete;

  /// One more client: its database, transaction, subscriptions and name are its own. Not to be used
  /// by two threads at once, as any client; two clients may be. Must not outlive the LocalRedis.
  class Client {
   public:
    ~Client();
    Client(Client&& other) noexcept;
    Client& operator=(Client&&) = delete;

    /// Runs a command and returns its reply. A command that waits (SEMEL.WAIT) blocks this thread
    /// until another client's answer or its deadline ends the wait.
    Reply call(std::span<const std::string_view> words);
    Reply call(std::initializer_list<std::string_view> words) {
      return call(std::span{words.begin(), words.size()});
    }
    /// Sends all commands at once, as a pipeline does, and returns their replies.
    std::vector<Reply> pipeline(std::span<const std::vector<std::string>> commands);
    /// The messages (of channels) pushed to this client since the last call.
    std::vector<Reply> pushed();
    /// The bytes that a socket would carry: requests in, replies out.
    std::string talk(std::string_view bytes);

   private:
    friend class LocalRedis;
    [[nodiscard]] bool is_here() const noexcept;
    class Impl;
    explicit Client(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
  };
  [[nodiscard]] Client connect();

  /// As Client::call(), of a client that is always there.
  Reply call(std::span<const std::string_view> words) { return first().call(words); }
  Reply call(std::initializer_list<std::string_view> words) { return first().call(words); }
  [[nodiscard]] Client& first() noexcept;

  /// Advances the clock of an own engine; ended records are gone when this returns. Without effect
  /// on an engine that was handed in.
  void advance(Millis by);
  [[nodiscard]] Engine& engine() noexcept;

 private:
  friend struct net::LocalRedisHost;
  class Impl;
  explicit LocalRedis(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
