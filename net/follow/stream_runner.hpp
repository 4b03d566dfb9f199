// Runs the commands of a master's stream, as a client of the node without a socket, and drops the
// replies.
//
// Where the stream has been applied to is known at every moment. A transaction counts when its EXEC
// has run: a link that is cut off within one asks for the whole of it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/follow/absolute_ends.hpp"
#include "net/node/node.hpp"
#include "net/resp/resp_parser.hpp"
#include "net/session/client_state.hpp"

namespace semel::net {

class StreamRunner {
 public:
  enum class Step : std::uint8_t {
    ran,           ///< a request, or a part of one that is skipped
    incomplete,    ///< call again with more input
    asks_for_ack,  ///< REPLCONF GETACK
    waits,         ///< a script of a client holds the node: call again a little later
    full,          ///< the node could not run it now, and it has changed nothing: error()
    lost,          ///< a part of it was run: what the node has is no longer the master's
    bad,           ///< it is no request: error()
  };
  /// What bounds the bytes of a request that has not arrived as a whole.
  static constexpr std::size_t request_bytes_max = std::size_t{1} << 30;

  /// `refused`: called with the words and the error of each command that the node refused and the
  /// master did not.
  StreamRunner(Node& node,
               std::function<void(std::string_view name, std::string_view error)> refused);
  ~StreamRunner();
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  /// A stream begins, behind a full sync: in database 0.
  void begin(std::int64_t offset);
  /// The same stream goes on from applied(), on another connection.
  void go_on();

  /// Runs one request from the front of `input`. Throws nothing but std::bad_alloc.
  [[nodiscard]] Step run(std::string_view input);
  /// How many bytes of the input the last step took.
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }
  /// The requests that were at hand have run: others see what they brought.
  void rest();

  /// Up to where the stream was applied.
  [[nodiscard]] std::int64_t applied() const noexcept { return applied_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

  /// Runs one command that is not of the stream. The error line of its reply; empty: none.
  [[nodiscard]] std::string run_words(std::span<const std::string_view> words);

 private:
  [[nodiscard]] Step run_request(std::span<const std::string_view> words);
  /// The reply of `words`.
  void call(std::span<const std::string_view> words);
  [[nodiscard]] Step judge(std::string_view name, bool in_transaction);
  void begin_client();

  Node& node_;
  const std::function<void(std::string_view, std::string_view)> refused_;
  ClientState client_;
  HeldLane lane_;
  RespParser parser_;
  AbsoluteEnds ends_;
  std::string reply_;
  std::string error_;
  std::size_t consumed_ = 0;
  std::int64_t applied_ = 0;
  std::int64_t in_transaction_ = 0;  // bytes of the transaction that is open
};

}  // namespace semel::net
