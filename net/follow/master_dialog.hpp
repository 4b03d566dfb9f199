// What a replica says to its master until commands flow: a dialogue of lines, without a socket.
//
//   PING -> AUTH -> REPLCONF listening-port -> REPLCONF capa -> PSYNC
//     -> +CONTINUE: the stream goes on where it was cut off
//     -> +FULLRESYNC: `$length` or `$EOF:mark`, an RDB file, then the stream
//
// Non-goals: SYNC, which masters before redis-server 2.8 want.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace semel::net {

/// A place in the history of a master.
struct StreamPosition {
  std::string replid{};  ///< empty: none is known
  std::int64_t offset = -1;
};

class MasterDialog {
 public:
  struct Terms {
    std::string user{};      ///< empty: the user default
    std::string password{};  ///< empty: no AUTH
    std::uint16_t port = 0;  ///< of this node, for the master's list of replicas
    StreamPosition from{};   ///< up to where the stream was applied
  };
  enum class State : std::uint8_t {
    pong,
    auth,
    port,
    capabilities,
    psync,     ///< the reply to it may take as long as the master wants
    preamble,  ///< of the RDB file
    transfer,  ///< ended: the RDB file follows
    stream,    ///< ended: commands follow
    failed,    ///< ended: error() says why
  };
  static constexpr std::size_t line_bytes_max = 4096;
  static constexpr std::size_t mark_bytes = 40;

  explicit MasterDialog(Terms terms) : terms_(std::move(terms)) {}

  /// The first request.
  void begin(std::string& out);
  /// Reads lines of `in` and appends requests to `out`. Returns how many bytes were read: none
  /// behind the end of the dialogue, and none of a line that is not whole.
  [[nodiscard]] std::size_t receive(std::string_view in, std::string& out);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool has_ended() const noexcept { return state_ >= State::transfer; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

  // Of one that has ended with transfer or stream.
  /// Where the stream begins.
  [[nodiscard]] const StreamPosition& position() const noexcept { return position_; }
  /// Of the RDB file; 0: it ends with the mark.
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
  [[nodiscard]] const std::string& mark() const noexcept { return mark_; }

 private:
  void take(std::string_view line, std::string& out);
  void ask_for_port(std::string& out);
  void ask_for_stream(std::string& out);
  void take_psync(std::string_view line);
  void take_preamble(std::string_view line);
  void fail(std::string_view what, std::string_view line);

  const Terms terms_;
  State state_ = State::pong;
  std::string error_;
  StreamPosition position_;
  std::uint64_t length_ = 0;
  std::string mark_;
};

/// Appends a request to `out`.
void append_request(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace semel::net
