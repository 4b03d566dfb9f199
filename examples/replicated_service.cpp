// A service that runs three times, without a server between them. Each of the three is given all
// orders; whichever takes one first does its work, and the other two get the answer. One may end or
// be killed: the others go on, and when it is started again it knows what was done meanwhile.
//
//   example_replicated_service --id 1 --dir DIR --peers HOST:PORT,HOST:PORT,HOST:PORT [--found]
//
// --found prepares the directory and ends; it is called once in the life of each of the three. They
// are the first, second and third of --peers. Orders come from stdin, one a line; printed is
// "ORDER ran RESULT" or "ORDER known RESULT". After the last one the service stays a member of its
// group until SIGTERM. tests/replication/failover/orders.py kills each of them once.
#include <poll.h>
#include <unistd.h>
#include <semel/patterns/once.hpp>
#include <semel/replication.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace {

constexpr int look_ms = 200;  // for a line, then whether to end
volatile std::sig_atomic_t ends = 0;

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "replicated_service: %s\n", why.c_str());
  std::exit(1);
}

class Service {
 public:
  explicit Service(semel::ReplicationOptions options) : options_(std::move(options)) { open(); }

  /// Done once in the group; false: asked to end before it was answered.
  bool handle(const std::string& order) {
    // The owner that was killed is silent; when its lease ends, another takes the order.
    semel::Policy policy = semel::policies::message;
    policy.lease = semel::Millis{2'000};
    const std::string me = std::to_string(options_.node_id);
    while (ends == 0) {
      look_after();
      const auto done = once(group_->engine(), {"orders", policy},
                             {.key = order, .owner = me, .wait = semel::Millis{5'000}},
                             [&](semel::Work& work) { return ship(work); });
      if (done.has_value()) {
        const bool ran = done.answer == semel::OnceAnswer::ran;
        std::printf("%s %s %s\n", order.c_str(), ran ? "ran" : "known", done.value->c_str());
        return true;
      }
      // No majority, a leader that ended, or an owner that still works: asking again is safe.
      std::fprintf(stderr, "%s: order %s waits: %s\n", me.c_str(), order.c_str(),
                   done.error.message().c_str());
    }
    return false;
  }

  /// To be called now and then.
  void look_after() {
    const semel::ReplicationStatus status = group_->status();
    if (!status.failed.empty()) die(status.failed);
    if (status.needs_reopen) open();  // it was away for long, and has fetched a snapshot
  }

 private:
  /// The work itself. Its epoch is the fencing token for what it writes to.
  [[nodiscard]] std::string ship(const semel::Work& work) const {
    return "by " + std::to_string(options_.node_id) + " at attempt " +
           std::to_string(work.attempt());
  }

  void open() {
    group_.reset();
    auto opened = semel::Replication::open(options_);
    if (!opened) die(opened.error().message());
    group_ = *std::move(opened);
  }

  semel::ReplicationOptions options_;
  std::unique_ptr<semel::Replication> group_;
};

/// The lines of stdin, without waiting for longer than `look_ms`.
class Lines {
 public:
  [[nodiscard]] bool ended() const { return ended_; }
  std::optional<std::string> next() {
    std::size_t end = text_.find('\n');
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (end == std::string::npos && !ended_ && poll(&input, 1, look_ms) > 0) {
      char bytes[4'096];
      const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
      if (count > 0) text_.append(bytes, static_cast<std::size_t>(count));
      ended_ = count == 0;
      end = text_.find('\n');
    }
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

 private:
  std::string text_;
  bool ended_ = false;
};

semel::ReplicationOptions options_of(int count, char** arguments, bool& founds) {
  semel::ReplicationOptions options;
  options.cluster_id = 0xC0FFEE;
  options.election = semel::Millis{300};
  options.heartbeat = semel::Millis{50};
  options.report = [](const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); };
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--found") {
      founds = true;
      continue;
    }
    if (++i == count) die(name + " needs a value");
    std::string value = arguments[i];
    if (name == "--id") {
      options.node_id = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--dir") {
      options.directory = value;
    } else if (name == "--peers") {
      for (std::uint64_t id = 1; !value.empty(); ++id) {
        const std::size_t comma = value.find(',');
        options.peers[id] = value.substr(0, comma);
        value.erase(0, comma == std::string::npos ? comma : comma + 1);
      }
    } else {
      die(name + " is not known");
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  std::signal(SIGTERM, [](int) { ends = 1; });
  bool founds = false;
  const semel::ReplicationOptions options = options_of(count, arguments, founds);
  if (founds) {
    const semel::Status founded = semel::Replication::found(options);
    if (!founded) die(founded.error().message());
    return 0;
  }
  Service service{options};
  Lines lines;
  while (ends == 0) {
    if (const auto order = lines.next()) {
      if (!order->empty()) service.handle(*order);
      continue;
    }
    service.look_after();
    if (lines.ended()) poll(nullptr, 0, look_ms);
  }
  return 0;  // it hands leadership over, if it has it, and leaves
}
