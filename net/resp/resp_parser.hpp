// Requests out of bytes, without input or output of its own: RESP arrays of bulk strings, and
// inline commands, as redis-server 7.0 reads them, with its texts for what is wrong.
//
// A declared length costs nothing: an argument is a view into the input, and the list of them grows
// by one for each that is there. Bytes that were looked at are not looked at again when more come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// What a connection may send. Bulks and lines as redis-server has them; it takes up to 2^31 - 1
/// arguments, for each of which we keep 32 bytes until the request is whole.
struct RequestLimits {
  std::size_t arguments_max = std::size_t{1} << 20;
  std::size_t bulk_bytes_max = std::size_t{512} << 20;
  std::size_t line_bytes_max = std::size_t{64} << 10;  ///< an inline command, or a length
  /// A request with a longer argument is passed over without being kept.
  std::size_t kept_bytes_max = ~std::size_t{0};
  std::size_t request_bytes_max = ~std::size_t{0};  ///< of an array, with all that it declares
  bool before_auth = false;                         ///< so that errors say what would help
};

/// Before a client has said who it is. Redis takes ten bulks of 16 KiB and a line of 64 KiB; here
/// all of a request is hardly more than one such bulk, so that strangers cost little.
inline constexpr RequestLimits limits_before_auth{.arguments_max = 10,
                                                  .bulk_bytes_max = std::size_t{16} << 10,
                                                  .line_bytes_max = std::size_t{16} << 10,
                                                  .request_bytes_max = std::size_t{20} << 10,
                                                  .before_auth = true};

class RespParser {
 public:
  enum class Step : std::uint8_t {
    command,     ///< arguments() has one; none: an empty request, to be passed over
    incomplete,  ///< call again when more has come
    passing,     ///< consumed() bytes need not be kept; go on behind them
    too_long,    ///< a request has been passed over; error() says why, and the next one can be read
    bad,         ///< error() says why; nothing more can be read from this client
  };

  /// Reads one request. `input` begins where the last one ended; after `incomplete` it begins with
  /// the same bytes again, perhaps at another address, and more. Progress: never blocks.
  [[nodiscard]] Step parse(std::string_view input, const RequestLimits& limits);

  /// Of the last command; valid as long as its input is, and until the next call.
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept { return arguments_; }
  /// Whether they lie in the input; else in this parser, until the next call.
  [[nodiscard]] bool in_place() const noexcept { return !is_inline_; }
  /// Bytes of the input that the last command took.
  [[nodiscard]] std::size_t consumed() const noexcept { return at_; }
  /// After `incomplete`: how many bytes the input must have at least to get on. A hint for one
  /// large read; what is there to be read may never come.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_; }
  /// "Protocol error: ..", or what was too long.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// The next call begins with a new request.
  void reset() noexcept { ended_ = true; }
  /// The last command's arguments are not needed any more, nor their room.
  void rest() noexcept {
    if (ended_) begin();
  }
  /// What lists of arguments take up while a request is not whole.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return ranges_.size() * sizeof(Range) + unquoted_.size();
  }

 private:
  enum class State : std::uint8_t { begin, count, length, bytes };

  /// A part of the input by its place in it, which stays when the input moves.
  struct Range {
    std::size_t at;
    std::size_t bytes;
  };

  void begin() noexcept;
  [[nodiscard]] Step run(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step pass_over(std::string_view input, const RequestLimits& limits);
  void begin_passing() noexcept;
  [[nodiscard]] Step read_inline(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step read_count(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] Step read_length(std::string_view input, const RequestLimits& limits);
  /// The line at at_, without its mark and its end. False: it has no end yet.
  [[nodiscard]] bool take_line(std::string_view input, std::string_view& line);
  /// A request that is there as a whole, with short arguments, as most are: read in one walk.
  /// False: as if not called.
  [[nodiscard]] bool take_whole(std::string_view input, const RequestLimits& limits);
  [[nodiscard]] bool split(std::string_view line);
  void forget_many() noexcept;
  [[nodiscard]] Step bad(std::string what);
  [[nodiscard]] Step incomplete(std::size_t wanted) noexcept {
    wanted_ = wanted;
    return Step::incomplete;
  }

  State state_ = State::begin;
  bool ended_ = false;  // the last call ended a request, or failed
  bool is_inline_ = false;
  bool passes_ = false;          // the request has an argument that is too long
  std::size_t passes_left_ = 0;  // bytes of the present argument
  std::size_t at_ = 0;           // behind what was read
  std::size_t searched_ = 0;     // no end of the present line before this
  std::size_t wanted_ = 0;
  std::size_t left_ = 0;    // arguments that are to come
  std::size_t length_ = 0;  // of the present one
  std::vector<Range> ranges_;
  std::string unquoted_;  // the words of an inline command, without anything between them
  std::vector<std::string_view> arguments_;
  std::string error_;
};

}  // namespace semel::net
