// Runs the requests of one connection: reads them, and runs each by itself, in a batch with others,
// or through the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/commands/command.hpp"
#include "net/node/batch.hpp"
#include "net/node/group_session.hpp"
#include "net/node/node.hpp"
#include "net/resp/resp_parser.hpp"
#include "net/time/faults.hpp"

namespace semel::net {

/// Only on the thread of the connection.
class RequestLoop {
 public:
  /// About the bytes of replies of one run(): a client that reads slowly is answered in parts.
  static constexpr std::size_t replies_bytes_max = std::size_t{1} << 20;

  /// All must outlive this.
  RequestLoop(Node& node, Batch& batch, ClientState& client, LargeReplies& large);

  /// Runs the complete requests of `input`, appends the replies to `out`, and returns how many
  /// bytes of the input have run. Returns early if the client is to be closed, or waits.
  [[nodiscard]] std::size_t run(std::string_view input, std::string& out);
  /// The client has disconnected.
  void end() noexcept;

  /// Requests that have run.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// The replies grew too large: the next run() continues.
  [[nodiscard]] bool has_more() const noexcept { return has_more_; }
  /// After run(): about the least number of bytes that complete the present request.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_; }
  /// Memory of an incomplete request's arguments.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return parser_.held_bytes(); }

 private:
  /// One run().
  struct Round {
    std::string_view input;  // all of it
    std::string& out;
    Call& planned;               // of the request that is added to the batch; it writes no reply
    const char* left = nullptr;  // the first request of a batch that did not run; null: all did
  };

  /// A step of the parser that is no request. False: it is not consumed, and the round ends.
  [[nodiscard]] bool pass(RespParser::Step step, const char* start, Round& round);
  /// Adds one request to the batch, or runs it. False: it waits.
  [[nodiscard]] bool accept(const char* start, Round& round);
  [[nodiscard]] bool accept_in_group(const CommandRow* row, const char* start, Round& round);
  /// accept() while there are faults.
  [[nodiscard]] bool accept_with_faults(const CommandRow* row, Round& round);
  [[nodiscard]] std::optional<FaultTerms> next_fault();
  void delay(Millis time);
  [[nodiscard]] bool is_held_back(const CommandRow* row);
  [[nodiscard]] bool may_batch();
  /// Whether the request may wait for the rest of the batch.
  [[nodiscard]] bool may_wait(const CommandRow& row) {
    // The words of an inline command are gone when the next is read.
    if (!parser_.in_place() || !row.takes(parser_.arguments().size())) return false;
    if (!batches_) batches_ = may_batch();
    return *batches_;
  }
  /// Whether the node's memory and its settings allow one of `row` in a batch.
  [[nodiscard]] bool is_allowed_in_batch(const CommandRow& row) {
    if (node_.memory.guard.is_on() && !node_.memory.guard.has_room()) [[unlikely]]
      return false;
    return row.single != nullptr || node_.scripts.policy() != ScriptPolicy::off;
  }
  /// Runs the batch. False: a part of it did not run.
  bool flush(Round& round);
  void forget_caching(const CommandRow* row);
  /// `row`: of the first word; null: it is not known. `fault`: an error in place of the command's
  /// reply; empty: there is none.
  void dispatch_now(const CommandRow* row, std::string& out, std::string_view fault = {});
  void refuse_too_long(std::string& out);
  void refuse_http();
  void set_limits();

  Node& node_;
  Batch& batch_;
  ClientState& client_;
  LargeReplies& large_;
  RespParser parser_;
  RequestLimits limits_;
  std::unique_ptr<GroupSession> group_;  // null: the node is by itself
  std::uint64_t count_ = 0;
  std::uint64_t delayed_ = 0;  // the request that a fault has delayed already; 0: none
  std::size_t wanted_ = 0;
  bool has_more_ = false;
  /// may_batch() of the present batch. Its requests do not change the answer, and a change by
  /// another thread may be ordered behind the whole batch.
  std::optional<bool> batches_{};
};

}  // namespace semel::net
