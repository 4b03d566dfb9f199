// A session that speaks lines instead of Redis' protocol, and the list of all sessions, for tests.
//
//   echo TEXT   TEXT            wait       nothing until something is pushed
//   big N       N times 'x'     subscribe  "subscribed"; counts as pub/sub from then on
//   quit        "bye", closes   leave      "who"; must log in from then on
//   enter       "in", has       full       std::bad_alloc
//   anything else: its length; with a # in front it wants 1 MiB
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/server/options.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

/// What tests see of one session.
struct SessionState {
  net::SessionInfo info{};
  std::shared_ptr<net::SessionHost> host{};
  std::string mailbox{};  // what was pushed and not collected
  std::size_t received = 0;
  std::size_t largest = 0;  // bytes of one receive()
  std::uint64_t requests = 0;
  bool waits = false;
  bool ended = false;
};

class LineSessions {
 public:
  [[nodiscard]] net::ServerHooks hooks();

  /// True: `condition` of that session holds, now or within patience.
  template <class Condition>
  [[nodiscard]] bool wait_for(std::uint64_t id, Condition&& condition) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] {
      const auto at = all_.find(id);
      return at != all_.end() && condition(at->second);
    });
  }
  [[nodiscard]] bool wait_received(std::uint64_t id, std::size_t bytes) {
    return wait_for(id, [&](const SessionState& seen) { return seen.received >= bytes; });
  }
  [[nodiscard]] bool wait_ended(std::uint64_t id) {
    return wait_for(id, [](const SessionState& seen) { return seen.ended; });
  }
  [[nodiscard]] SessionState look(std::uint64_t id) {
    const std::lock_guard lock{mutex_};
    return all_[id];
  }
  [[nodiscard]] std::vector<std::string> log() {
    const std::lock_guard lock{mutex_};
    return log_;
  }
  /// What the session is to send; ends its waiting. From any thread.
  void push(std::uint64_t id, std::string_view text) {
    std::shared_ptr<net::SessionHost> host;
    {
      const std::lock_guard lock{mutex_};
      all_[id].mailbox += text;
      host = all_[id].host;
    }
    if (host) host->wake();
  }
  /// Called by sessions.
  template <class Change>
  void change(std::uint64_t id, Change&& change) {
    const std::lock_guard lock{mutex_};
    change(all_[id]);
    changed_.notify_all();
  }

  std::size_t batch_bytes = SIZE_MAX;  ///< replies after which a session has more()

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, SessionState> all_;
  std::vector<std::string> log_;
};

class LineSession final : public net::Session {
 public:
  LineSession(LineSessions& sessions, std::uint64_t id) : sessions_(sessions), id_(id) {}

  void receive(std::string_view bytes, std::string& out) override {
    input_ += bytes;
    received_ += bytes.size();
    largest_ = std::max(largest_, bytes.size());
    misused_ = misused_ || waits_ || more_;
    run(out);
  }
  void collect(std::string& out) override {
    std::string letters;
    sessions_.change(id_, [&](SessionState& seen) { letters = std::exchange(seen.mailbox, {}); });
    if (!letters.empty()) waits_ = false;
    out += letters;
    run(out);
  }
  [[nodiscard]] bool closes() const noexcept override { return closes_; }
  [[nodiscard]] bool waits() const noexcept override { return waits_; }
  [[nodiscard]] bool more() const noexcept override { return more_; }
  [[nodiscard]] net::SessionInput input() const noexcept override {
    return {.requests = requests_,
            .held = input_.size(),
            .wanted = input_.starts_with('#') ? std::size_t{1} << 20 : 0};
  }
  [[nodiscard]] net::OutputClass output_class() const noexcept override { return class_; }
  [[nodiscard]] bool is_unauthenticated() const noexcept override { return unauthenticated_; }
  void end() noexcept override {
    sessions_.change(id_, [](SessionState& seen) { seen.ended = true; });
  }

 private:
  void run(std::string& out) {
    more_ = false;
    std::size_t at = 0;
    while (!waits_ && !closes_) {
      const std::size_t end = input_.find('\n', at);
      if (end == std::string::npos) break;
      if (out.size() > sessions_.batch_bytes) {
        more_ = true;
        break;
      }
      answer(std::string_view{input_}.substr(at, end - at), out);
      at = end + 1;
      ++requests_;
    }
    input_.erase(0, at);
    sessions_.change(id_, [&](SessionState& seen) {
      seen.received = misused_ ? 0 : received_;
      seen.requests = requests_;
      seen.largest = largest_;
      seen.waits = waits_;
    });
  }
  void answer(std::string_view line, std::string& out) {
    if (line.starts_with("echo ")) {
      out.append(line.substr(5)).append("\n");
    } else if (line.starts_with("big ")) {
      out.append(std::stoul(std::string{line.substr(4)}), 'x').append("\n");
    } else if (line == "wait") {
      waits_ = true;
    } else if (line == "subscribe") {
      class_ = net::OutputClass::pubsub;
      out.append("subscribed\n");
    } else if (line == "leave" || line == "enter") {
      unauthenticated_ = line == "leave";
      out.append(unauthenticated_ ? "who\n" : "in\n");
    } else if (line == "full") {
      throw std::bad_alloc{};
    } else if (line == "quit") {
      closes_ = true;
      out.append("bye\n");
    } else {
      out.append(std::to_string(line.size())).append("\n");
    }
  }

  LineSessions& sessions_;
  const std::uint64_t id_;
  std::string input_;
  std::size_t received_ = 0;
  std::size_t largest_ = 0;
  std::uint64_t requests_ = 0;
  net::OutputClass class_ = net::OutputClass::normal;
  bool closes_ = false;
  bool unauthenticated_ = false;
  bool waits_ = false;
  bool more_ = false;
  bool misused_ = false;  // receive() while waits() or more()
};

inline net::ServerHooks LineSessions::hooks() {
  net::ServerHooks hooks;
  hooks.make_session = [this](const net::SessionInfo& info,
                              std::shared_ptr<net::SessionHost> host) {
    change(info.id, [&](SessionState& seen) {
      seen.info = info;
      seen.host = std::move(host);
    });
    return std::make_unique<LineSession>(*this, info.id);
  };
  hooks.log = [this](net::LogLevel, std::string_view line) {
    const std::lock_guard lock{mutex_};
    log_.emplace_back(line);
    changed_.notify_all();
  };
  return hooks;
}

}  // namespace semel::tests
