#include "semel/local_redis.hpp"
#include "base/mutex.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "net/node/connection.hpp"
#include "net/node/local_redis_host.hpp"
#include "net/resp/reply_reader.hpp"
#include "net/time/test_clock.hpp"
#include "semel/process.hpp"

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

std::string forked_text() {
  return "ERR " + std::string{sentence_of(ErrorCode::forked)};
}
Reply forked_reply() {
  return {.type = Reply::Type::error, .text = forked_text()};
}

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
  ~Impl() {
    const engine::OwnState inside = node_.own_state();
    connection_.end();
  }

  /// False: this is a copy, in a child of its process.
  [[nodiscard]] bool is_here() const noexcept { return mark_.is_here(); }

  std::string talk(std::string_view bytes) {
    const engine::OwnState inside = node_.own_state();
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
    const engine::OwnState inside = node_.own_state();
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
  const ProcessMark mark_;
  net::Node& node_;
  net::Batch batch_;
  CallingThread thread_;
  net::Connection connection_;
  std::vector<Reply> pushed_;
};

LocalRedis::Client::Client(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LocalRedis::Client::Client(Client&& other) noexcept = default;
LocalRedis::Client::~Client() {
  // The node's threads, and whatever they held, are not in a child process.
  if (impl_ != nullptr && !impl_->is_here()) static_cast<void>(impl_.release());
}

/// None: it was moved from, or made in a child process.
bool LocalRedis::Client::is_here() const noexcept {
  return impl_ != nullptr && impl_->is_here();
}

Reply LocalRedis::Client::call(std::span<const std::string_view> words) {
  if (!is_here()) return forked_reply();
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
  if (!is_here()) return std::vector<Reply>(commands.size(), forked_reply());
  std::string request;
  std::vector<std::string_view> words;
  for (const std::vector<std::string>& command : commands) {
    words.assign(command.begin(), command.end());
    append_request(request, words);
  }
  return impl_->replies(request);
}

std::vector<Reply> LocalRedis::Client::pushed() {
  return is_here() ? impl_->take_pushed() : std::vector<Reply>{};
}
std::string LocalRedis::Client::talk(std::string_view bytes) {
  return is_here() ? impl_->talk(bytes) : "-" + forked_text() + "\r\n";
}

class LocalRedis::Impl {
 public:
  Impl(std::unique_ptr<OwnClock> clock, std::unique_ptr<Engine> own, Engine& engine,
       unsigned protocol, net::Group* group)
      : clock_(std::move(clock)),
        own_(std::move(own)),
        protocol_(protocol),
        node_(engine, clock_ == nullptr ? nullptr : &clock_->moved),
        first_(connect_first(group)) {}

  [[nodiscard]] bool is_here() const noexcept { return mark_.is_here(); }
  Client connect() {
    if (!is_here()) return Client{nullptr};
    return Client{std::make_unique<Client::Impl>(node_, node_.next_client_id(), protocol_)};
  }
  Client& first() noexcept { return first_; }
  net::Node& node() noexcept { return node_; }
  void advance(Millis by) {
    if (clock_ == nullptr || !is_here()) return;
    static_cast<void>(clock_->moved.advance(by));
    while (!node_.tick()) {
    }
  }

 private:
  Client connect_first(net::Group* group) {
    if (group != nullptr) node_.set_group(*group);
    return connect();
  }

  const ProcessMark mark_;
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
      std::make_unique<Impl>(std::move(clock), std::move(own), engine, options.protocol, nullptr)}};
}

std::unique_ptr<LocalRedis> net::LocalRedisHost::make(Engine& engine, Group& group) {
  constexpr unsigned protocol = 2;
  return std::unique_ptr<LocalRedis>{new LocalRedis{
      std::make_unique<LocalRedis::Impl>(nullptr, nullptr, engine, protocol, &group)}};
}
net::Node& net::LocalRedisHost::node(LocalRedis& redis) noexcept {
  return redis.impl_->node();
}

LocalRedis::LocalRedis(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LocalRedis::~LocalRedis() {
  if (!impl_->is_here()) static_cast<void>(impl_.release());
}

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
