#include "tools/semel/node/node_peers.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/resp/reply_reader.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

namespace {

/// Replies to RESTORE are short; errors have a sentence.
constexpr std::size_t reply_bytes_max = std::size_t{1} << 20;

/// So often it is asked whether the node ends.
constexpr std::chrono::milliseconds slice{50};

addrinfo stream_hints(int flags) noexcept {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  return hints;
}

/// A socket that does not block, and is closed.
class Socket {
 public:
  Socket(int file, Millis idle_max, const std::atomic<bool>& ends)
      : file_(file), idle_max_(idle_max), ends_(ends) {}
  ~Socket() {
    if (file_ >= 0) close(file_);
  }
  Socket(Socket&& other) noexcept
      : file_(std::exchange(other.file_, -1)), idle_max_(other.idle_max_), ends_(other.ends_) {}
  Socket& operator=(Socket&&) = delete;

  [[nodiscard]] bool connect_to(const addrinfo& to) {
    if (file_ < 0) return false;
    if (connect(file_, to.ai_addr, to.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS || !wait(POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(file_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  [[nodiscard]] bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if ((errno != EAGAIN && errno != EINTR) || !wait(POLLOUT)) {
        return false;
      }
    }
    return true;
  }
  /// 0: the end, an error, or too late.
  [[nodiscard]] std::size_t read(char* to, std::size_t bytes) {
    for (;;) {
      const ssize_t count = recv(file_, to, bytes, 0);
      if (count >= 0) return static_cast<std::size_t>(count);
      if ((errno != EAGAIN && errno != EINTR) || !wait(POLLIN)) return 0;
    }
  }

 private:
  /// False: too late, or the node ends.
  [[nodiscard]] bool wait(short what) const {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + idle_max_;
    // mo: relaxed: it is looked at again soon
    while (!ends_.load(std::memory_order_relaxed)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return false;
      pollfd file{file_, what, 0};
      const auto ms = std::min(left, slice).count();
      const int ready = poll(&file, 1, static_cast<int>(std::max<std::int64_t>(ms, 1)));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  int file_;
  const Millis idle_max_;
  const std::atomic<bool>& ends_;
};

using Addresses = NodePeers::Addresses;

/// A name that is looked up. Resolvers cannot be interrupted, so a thread of its own waits for the
/// answer, and outlives those who asked.
class Lookup final : public std::enable_shared_from_this<Lookup> {
 public:
  /// False: too many run, or there is no thread.
  [[nodiscard]] bool begin(NodePeers::LookUp look_up, const net::PeerAddress& address) {
    // mo: relaxed: counts only
    if (running_.fetch_add(1, std::memory_order_relaxed) >= NodePeers::lookups_max) {
      running_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as above
      return false;
    }
    try {
      std::thread{[self = shared_from_this(), look_up, host = address.host, port = address.port] {
        const addrinfo hints = stream_hints(0);
        addrinfo* found = nullptr;
        const int error = look_up(host.c_str(), port.c_str(), &hints, &found);
        self->end(error == 0 ? found : nullptr);
        running_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as above
      }}.detach();
    } catch (const std::system_error&) {
      running_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as above
      return false;
    }
    return true;
  }
  /// Null: there is no address, it takes too long, or the node ends.
  [[nodiscard]] Addresses wait(Millis wait_max, const std::atomic<bool>& ends) {
    const auto until = std::chrono::steady_clock::now() + wait_max;
    base::MutexLock lock{mutex_};
    // mo: relaxed: it is looked at again soon
    while (!is_done_ && !ends.load(std::memory_order_relaxed)) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= until) break;
      done_.wait_for(lock, std::min<std::chrono::steady_clock::duration>(until - now, slice));
    }
    return std::move(found_);
  }

 private:
  void end(addrinfo* found) {
    const base::MutexLock lock{mutex_};
    found_.reset(found);
    is_done_ = true;
    done_.notify_one();
  }

  static inline std::atomic<std::size_t> running_{0};  // of the process
  base::Mutex mutex_;
  base::Condition done_;
  bool is_done_ SEMEL_GUARDED_BY(mutex_) = false;
  Addresses found_ SEMEL_GUARDED_BY(mutex_);
};

class SocketLink final : public net::PeerLink {
 public:
  explicit SocketLink(Socket socket) : socket_(std::move(socket)) {}

  [[nodiscard]] Result<std::vector<Reply>> ask(
      std::span<const std::vector<std::string>> requests) override {
    std::string bytes;
    for (const auto& words : requests) {
      bytes += "*" + std::to_string(words.size()) + "\r\n";
      for (const std::string& word : words) {
        bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
      }
    }
    if (!socket_.write(bytes)) return Error{ErrorCode::outcome_unknown, "writing"};
    std::vector<Reply> replies;
    std::string got;
    char room[4096];
    while (replies.size() < requests.size()) {
      const std::size_t count = socket_.read(room, sizeof room);
      if (count == 0 || got.size() > reply_bytes_max) break;
      got.append(room, count);
      std::string_view rest = got;
      while (auto reply = net::take_reply(rest)) replies.push_back(*std::move(reply));
      got.erase(0, got.size() - rest.size());
    }
    if (replies.size() != requests.size()) return Error{ErrorCode::outcome_unknown, "reading"};
    return replies;
  }

 private:
  Socket socket_;
};

}  // namespace

bool NodePeers::run(std::function<void()> work) {
  const base::MutexLock lock{mutex_};
  // mo: acquire [peers.done]: the work of the thread has ended
  std::erase_if(runners_, [](Runner& each) {
    if (!each.is_done.load(std::memory_order_acquire)) return false;
    each.thread.join();
    return true;
  });
  // mo: relaxed: end() takes the mutex after it
  if (ends_.load(std::memory_order_relaxed) || runners_.size() >= threads_max) return false;
  Runner& runner = runners_.emplace_back();
  try {
    runner.thread = std::thread{[&runner, work = std::move(work)] {
      work();
      runner.is_done.store(true, std::memory_order_release);  // mo: release [peers.done]
    }};
  } catch (const std::system_error&) {
    runners_.pop_back();
    return false;
  }
  return true;
}

/// Null: there is none, it takes too long, or the node ends.
NodePeers::Addresses NodePeers::find(const net::PeerAddress& address) const {
  const addrinfo numbers = stream_hints(AI_NUMERICHOST);
  addrinfo* found = nullptr;
  if (look_up_(address.host.c_str(), address.port.c_str(), &numbers, &found) == 0) {
    return Addresses{found};
  }
  const auto lookup = std::make_shared<Lookup>();
  if (!lookup->begin(look_up_, address)) return nullptr;
  return lookup->wait(address.idle_max, ends_);
}

Result<std::unique_ptr<net::PeerLink>> NodePeers::connect(const net::PeerAddress& address) {
  const Addresses found = find(address);
  if (found == nullptr) return file_error(address.host + ": no address");
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    Socket made{socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                address.idle_max, ends_};
    if (!made.connect_to(*each)) continue;
    return std::unique_ptr<net::PeerLink>{std::make_unique<SocketLink>(std::move(made))};
  }
  return file_error(address.host + ":" + address.port + ": no connection");
}

void NodePeers::end() {
  ends_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in run()
  std::list<Runner> runners;
  {
    const base::MutexLock lock{mutex_};
    runners.swap(runners_);
  }
  for (Runner& each : runners) each.thread.join();
}

}  // namespace semel::tool
