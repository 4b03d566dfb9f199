#include "semel/local_redis.hpp"
#include "base/mutex.hpp"

#include <algorithm>
#include <utility>

#include "net/node/connection.hpp"
#include "net/resp/reply_reader.hpp"
#include "net/time/test_clock.hpp"

namespace semel {
namespace {

/// Wakes the thread that blocks in Client::call().
class CallingThread final : public net::ClientHost {
 public:
  void wake() noexcept override {
    {
      const base::MutexLock lock{mutex_};
      woken_ = true;
    }
    changed_.notify_one();
  }
  /// Returns when woken, and after `most` at the latest.
  void wait(Millis most) {
    base::MutexLock lock{mutex_};
    // To return before `most` does no harm: the caller checks, and waits again.
    if (!woken_) changed_.wait_for(lock, most);
    woken_ = false;
  }

 private:
  base::Mutex mutex_;
  base::Condition changed_;
  bool woken_ SEMEL_GUARDED_BY(mutex_) = false;
};

struct OwnClock {
  SystemClock system;
  net::TestClock moved{system};
};

void append_request(std::string& bytes, std::span<const std::string_view> words) {
  bytes += '*';
  bytes += std::to_string(words.size());
  bytes += "\r\n";
  for (const std::string_view word : words) {
    bytes += '$';
    bytes += std::to_string(word.size());
    bytes.append("\r\n").append(word).append("\r\n");
  }
}

}  // namespace

class LocalRedis::Client::Impl {
 public:
  Impl(net::Node& node, std::uint64_t id, unsigned protocol)
      : node_(node),
        connection_(node, batch_, &thread_, {.id = id, .address = "local:" + std::to_string(id)}) {
    if (protocol == 3) static_cast<void>(talk("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"));
  }

  std::string talk(std::string_view bytes) {
    std::string out;
    connection_.receive(bytes, out);
    while (connection_.waits() || connection_.more()) {
      if (connection_.waits()) {
        // A wait may end by a deadline, and no other thread checks it.
        constexpr Millis poll_interval{1};
        thread_.wait(poll_interval);
        node_.tick();
      }
      connection_.collect(out);
    }
    return out;
  }

  /// The replies to `bytes`; pushes among them go to pushed_.
  std::vector<Reply> replies(std::string_view bytes) {
    collect();
    const std::string out = talk(bytes);
    std::string_view rest = out;
    std::vector<Reply> found;
    while (auto reply = net::take_reply(rest)) {
      (reply->type == Reply::Type::push ? pushed_ : found).push_back(std::move(*reply));
    }
    return found;
  }

  void collect() {
    std::string out;
    connection_.collect(out);
    std::string_view rest = out;
    while (auto push = net::take_reply(rest)) pushed_.push_back(std::move(*push));
  }
  std::vector<Reply> take_pushed() {
    collect();
    return std::exchange(pushed_, {});
  }
  void also_pushed(std::vector<Reply>&& more) {
    for (Reply& reply : more) pushed_.push_back(std::move(reply));
  }

 private:
  net::Node& node_;
  net::Batch batch_;
  CallingThread thread_;
  net::Connection connection_;
  std::vector<Reply> pushed_;
};

LocalRedis::Client::Client(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LocalRedis::Client::Client(Client&& other) noexcept = default;
LocalRedis::Client::~Client() = default;

Reply LocalRedis::Client::call(std::span<const std::string_view> words) {
  std::string request;
  append_request(request, words);
  std::vector<Reply> replies = impl_->replies(request);
  if (replies.empty()) return {};  // CLIENT REPLY OFF, or nothing but pushes
  Reply first = std::move(replies.front());
  replies.erase(replies.begin());
  impl_->also_pushed(std::move(replies));  // SUBSCRIBE answers once for each channel
  return first;
}

std::vector<Reply> LocalRedis::Client::pipeline(
    std::span<const std::vector<std::string>> commands) {
  std::string request;
  std::vector<std::string_view> words;
  for (const std::vector<std::string>& command : commands) {
    words.assign(command.begin(), command.end());
    append_request(request, words);
  }
  return impl_->replies(request);
}

std::vector<Reply> LocalRedis::Client::pushed() {
  return impl_->take_pushed();
}
std::string LocalRedis::Client::talk(std::string_view bytes) {
  return impl_->talk(bytes);
}

class LocalRedis::Impl {
 public:
  Impl(std::unique_ptr<OwnClock> clock, std::unique_ptr<Engine> own, Engine& engine,
       unsigned protocol)
      : clock_(std::move(clock)),
        own_(std::move(own)),
        protocol_(protocol),
        node_(engine, clock_ == nullptr ? nullptr : &clock_->moved),
        first_(connect()) {}

  Client connect() {
    return Client{std::make_unique<Client::Impl>(node_, node_.next_client_id(), protocol_)};
  }
  Client& first() noexcept { return first_; }
  net::Node& node() noexcept { return node_; }
  void advance(Millis by) {
    if (clock_ == nullptr) return;
    static_cast<void>(clock_->moved.advance(by));
    while (!node_.tick()) {
    }
  }

 private:
  std::unique_ptr<OwnClock> clock_;
  std::unique_ptr<Engine> own_;
  const unsigned protocol_;
  net::Node node_;
  Client first_;
};

Result<std::unique_ptr<LocalRedis>> LocalRedis::open(const Options& options) {
  if (options.protocol != 2 && options.protocol != 3) {
    return Error{ErrorCode::bad_option,
                 "protocol = " + std::to_string(options.protocol) + ", 2 or 3"};
  }
  constexpr std::size_t decision_log_bytes = std::size_t{256} << 10;
  std::unique_ptr<OwnClock> clock;
  std::unique_ptr<Engine> own;
  if (options.engine == nullptr) {
    clock = std::make_unique<OwnClock>();
    if (options.frozen) clock->moved.freeze();
    SEMEL_TRY(opened, Engine::open({.clock = &clock->moved,
                                    .memory_bytes = options.memory_bytes,
                                    .decision_log_bytes =
                                        std::min(decision_log_bytes, options.memory_bytes / 16),
                                    .background = std::nullopt}));
    own = std::move(opened);
  }
  Engine& engine = own != nullptr ? *own : *options.engine;
  return std::unique_ptr<LocalRedis>{new LocalRedis{
      std::make_unique<Impl>(std::move(clock), std::move(own), engine, options.protocol)}};
}

LocalRedis::LocalRedis(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LocalRedis::~LocalRedis() = default;

LocalRedis::Client LocalRedis::connect() {
  return impl_->connect();
}
LocalRedis::Client& LocalRedis::first() noexcept {
  return impl_->first();
}
void LocalRedis::advance(Millis by) {
  impl_->advance(by);
}
Engine& LocalRedis::engine() noexcept {
  return impl_->node().engine();
}

}  // namespace semel
