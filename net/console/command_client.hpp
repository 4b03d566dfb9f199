// Runs the commands of one session of the console on a connection of its own, which CLIENT LIST
// shows and CLIENT KILL ends: rights, durability, groups and audit apply as to every client.
//
// One thread at a time. Nothing blocks: the reply of a command that waits (for a disk, a group)
// comes by collect(), which the host of the session calls.
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
  /// Called with a reply for each command. Called without replies if the connection has ended or
  /// the replies are late: the outcome of the commands is unknown then. The commands that it
  /// returns run next, before other work; none: the work is done.
  using Step = std::function<Commands(std::vector<Reply> replies)>;

  /// `session` is new: no command was sent on it.
  explicit CommandClient(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  ~CommandClient();
  CommandClient(const CommandClient&) = delete;
  CommandClient& operator=(const CommandClient&) = delete;

  /// `step` may be called before this returns. False: calls_waiting_max calls wait already, or the
  /// node is short of memory for clients; `step` is not called.
  [[nodiscard]] bool run(Commands commands, Timestamp deadline, Step step);
  /// Call when the host was woken, and about once a second.
  void collect(Timestamp now);
  /// The node has closed the connection, or a deadline has passed: later run() calls end at once.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

 private:
  struct Work {
    Commands commands;
    Timestamp deadline;
    Step step;
  };

  void pump();
  void send(const Commands& commands);
  /// Inserts the large values at their places in `out`.
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
