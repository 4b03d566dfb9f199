// Runs commands for one session of the console, as a connection of its own that CLIENT LIST shows
// and CLIENT KILL ends: rights, durability, groups and audit are those of every client.
//
// One thread at a time. Nothing blocks: what a command waits for (a disk, a group) comes by
// collect(), which the host of the session asks for.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/server/session.hpp"
#include "semel/local_redis.hpp"
#include "semel/types.hpp"

namespace semel::net {

class CommandClient {
 public:
  using Command = std::vector<std::string>;
  using Commands = std::vector<Command>;
  /// Called with a reply for each command, or with none: the connection has ended, or the replies
  /// did not come in time, so that what became of the commands is not known. What it returns runs
  /// next, before the work of others; nothing: the work is done.
  using Step = std::function<Commands(std::vector<Reply> replies)>;

  /// `session` has been made and nothing was sent to it.
  explicit CommandClient(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  ~CommandClient();
  CommandClient(const CommandClient&) = delete;
  CommandClient& operator=(const CommandClient&) = delete;

  /// False: calls_waiting_max others wait, or the node is short of memory for clients; `step` is
  /// not called. It may be called before this returns.
  [[nodiscard]] bool run(Commands commands, Timestamp deadline, Step step);
  /// To be called when the host was woken, and about once a second.
  void collect(Timestamp now);
  /// It was closed by the node, or a deadline has passed: each later run() ends at once.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

 private:
  struct Work {
    Commands commands;
    Timestamp deadline;
    Step step;
  };

  void pump();
  void send(const Commands& commands);
  /// Puts values that were left out of `out` where they belong.
  void receive(std::string out);
  void take_replies();
  void finish();
  void end();

  const std::unique_ptr<Session> session_;
  std::deque<Work> waiting_;  // the first is under way, if running_
  std::string bytes_;         // of replies that are not complete
  std::vector<Reply> replies_;
  bool running_ = false;
  bool is_pumping_ = false;
  bool ended_ = false;
};

}  // namespace semel::net
