#include "net/console/command_client.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "net/console/console_limits.hpp"
#include "net/resp/reply_reader.hpp"

namespace semel::net {

CommandClient::~CommandClient() {
  session_->end();
}

bool CommandClient::run(Commands commands, Timestamp deadline, Step step) {
  if (waiting_.size() >= console_limits::calls_waiting_max) return false;
  if (!ended_ && !session_->accepts_input()) return false;
  waiting_.push_back({std::move(commands), deadline, std::move(step)});
  pump();
  return true;
}

void CommandClient::collect(Timestamp now) {
  if (running_ && !waiting_.empty() && waiting_.front().deadline <= now) return end();
  if (ended_) return;
  std::string out;
  session_->collect(out);
  receive(std::move(out));
  pump();
}

void CommandClient::send(const Commands& commands) {
  std::string request;
  for (const Command& words : commands) {
    request.append("*").append(std::to_string(words.size())).append("\r\n");
    for (const std::string& word : words) {
      request.append("$").append(std::to_string(word.size())).append("\r\n");
      request.append(word).append("\r\n");
    }
  }
  running_ = true;
  replies_.clear();
  std::string out;
  session_->receive(request, out);
  receive(std::move(out));
}

void CommandClient::receive(std::string out) {
  for (;;) {
    std::size_t from = 0;
    for (const Splice& splice : session_->take_large()) {
      bytes_.append(out, from, splice.at - from);
      bytes_.append(splice.bytes->view());
      from = splice.at;
    }
    bytes_.append(out, from);
    session_->hold_output(0, 0, 0);
    take_replies();
    // It goes on by itself as long as it has more and does not wait.
    if (session_->waits() || !session_->more()) break;
    out.clear();
    session_->collect(out);
  }
  if (session_->closes() || session_->is_killed()) ended_ = true;
}

void CommandClient::take_replies() {
  std::string_view rest = bytes_;
  while (auto reply = take_reply(rest)) {
    if (reply->type != Reply::Type::push) replies_.push_back(*std::move(reply));
  }
  bytes_.erase(0, bytes_.size() - rest.size());
}

void CommandClient::pump() {
  if (is_pumping_) return;  // a step has called run()
  is_pumping_ = true;
  while (!waiting_.empty()) {
    if (!running_ && !ended_) send(waiting_.front().commands);
    if (running_ && replies_.size() >= waiting_.front().commands.size()) {
      finish();
    } else if (ended_) {
      end();
    } else {
      break;  // collect() goes on
    }
  }
  is_pumping_ = false;
}

void CommandClient::finish() {
  running_ = false;
  Commands next = waiting_.front().step(std::exchange(replies_, {}));
  if (next.empty()) {
    waiting_.pop_front();
  } else {
    waiting_.front().commands = std::move(next);
  }
}

void CommandClient::end() {
  ended_ = true;
  running_ = false;
  for (auto& work : std::exchange(waiting_, {})) static_cast<void>(work.step({}));
}

}  // namespace semel::net
