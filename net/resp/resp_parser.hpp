// Parses requests: RESP arrays of bulk strings, and inline commands, as redis-server 7.0 reads
// them, with its error texts. It does no input or output itself.
//
// A declared length allocates nothing: an argument is a view into the input, and the list of
// arguments grows by one for each that has arrived. No byte is scanned twice when more input comes.
//
// Invariant: at_ <= input.size(), and searched_ <= input.size().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// What a connection may send. The limits of bulks and lines are those of redis-server. It accepts
/// up to 2^31 - 1 arguments; we accept fewer, as each costs 32 bytes until the request is complete.
struct RequestLimits {
  std::size_t arguments_max = std::size_t{1} << 20;
  std::size_t bulk_bytes_max = std::size_t{512} << 20;
  std::size_t line_bytes_max = std::size_t{64} << 10;  ///< an inline command, or a length
  /// A request with a longer argument is skipped and never held in memory.
  std::size_t kept_bytes_max = ~std::size_t{0};
  std::size_t request_bytes_max = ~std::size_t{0};  ///< of an array, with its declared lengths
  bool before_auth = false;                         ///< errors then ask for authentication
};

/// Limits before a client has authenticated. Redis accepts ten bulks of 16 KiB and a line of
/// 64 KiB. Here a whole request is hardly larger than one bulk, so that unauthenticated clients
/// cost little.
inline constexpr RequestLimits limits_before_auth{.arguments_max = 10,
                                                  .bulk_bytes_max = std::size_t{16} << 10,
                                                  .line_bytes_max = std::size_t{16} << 10,
                                                  .request_bytes_max = std::size_t{20} << 10,
                                                  .before_auth = true};

class RespParser {
 public:
  enum class Step : std::uint8_t {
    command,     ///< arguments() has a request; without arguments it is empty: ignore it
    incomplete,  ///< call again with more input
    passing,     ///< drop consumed() bytes, and call again with the input behind them
    too_long,    ///< a request was skipped; error() says why, and the next one can be read
    bad,         ///< error() says why; the input cannot be read any further
  };

  /// Reads one request. `input` begins where the last request ended. After `incomplete` it begins
  /// with the same bytes again, perhaps at another address, followed by more. Progress: never
  /// blocks.
  [[nodiscard]] Step parse(std::string_view input, const RequestLimits& limits);

  /// Those of the last command. Valid until the next call, and no longer than its input.
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept {
    return {arguments_.data(), argument_count_};
  }
  /// Whether they are views into the input. Otherwise this parser holds them until the next call.
  [[nodiscard]] bool in_place() const noexcept { return !is_inline_; }
  /// How many bytes of the input the last command had.
  [[nodiscard]] std::size_t consumed() const noexcept { return at_; }
  /// After `incomplete`: the least size of input with which parse() makes progress. A hint for one
  /// large read; the client may never send as much.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_; }
  /// "Protocol error: ..", or which value was too long.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// Forgets an incomplete request; the next call begins with a new one.
  void reset() noexcept { ended_ = true; }
  /// Forgets the arguments of the last command and frees their memory.
  void rest() noexcept {
    if (ended_) begin();
  }
  /// Memory of the argument lists while a request is incomplete.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return ranges_.size() * sizeof(Range) + unquoted_.size();
  }

 private:
  enum class State : std::uint8_t { begin, count, length, bytes };

  /// A part of the input by its offset, which stays valid when the input moves.
  struct Range {
    std::size_t at;
    std::size_t bytes;
  };

  void begin() noexcept;
  void begin_again() noexcept;
  /// A request that is not whole, or has another form than take_whole() reads.
  [[nodiscard]] Step parse_on(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step run(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step pass_over(std::string_view input, const RequestLimits& limits);
  void begin_passing() noexcept;
  [[nodiscard]] Step read_inline(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step read_count(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step read_length(std::string_view input, const RequestLimits& limits);
  /// The line at at_, without its marker and its end. False: its end has not arrived.
  [[nodiscard]] bool take_line(std::string_view input, std::string_view& line);
  /// Reads a complete request with short arguments, which most are, in one pass. False: it has
  /// another form, and nothing changed that matters.
  [[nodiscard]] bool take_whole(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] bool split(std::string_view line);
  void forget_many() noexcept;
  [[nodiscard]] Step bad(std::string what);
  [[nodiscard]] Step incomplete(std::size_t wanted) noexcept {
    wanted_ = wanted;
    return Step::incomplete;
  }

  State state_ = State::begin;
  bool ended_ = false;     // the last call completed a request, or failed
  bool is_whole_ = false;  // take_whole() did: only at_ and the arguments differ from begin()
  bool is_inline_ = false;
  bool passes_ = false;          // skipping a request with an argument that is too long
  std::size_t passes_left_ = 0;  // bytes of the current argument that are still to skip
  std::size_t at_ = 0;           // offset of the next byte to read
  std::size_t searched_ = 0;     // the current line does not end before this offset
  std::size_t wanted_ = 0;
  std::size_t left_ = 0;    // arguments that have not arrived
  std::size_t length_ = 0;  // of the current argument
  std::vector<Range> ranges_;
  std::string unquoted_;                     // the words of an inline command, one behind the other
  std::vector<std::string_view> arguments_;  // and perhaps room for those of a longer request
  std::size_t argument_count_ = 0;
  std::string error_;
};

}  // namespace semel::net
