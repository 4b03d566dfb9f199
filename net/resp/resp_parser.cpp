#include "net/resp/resp_parser.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/hex.hpp"
#include "net/resp/release_capacity.hpp"
#include "net/resp/text.hpp"
#include "net/resp/word_code.hpp"

namespace semel::net {
namespace {

constexpr std::size_t line_end_bytes = 2;      // CR LF, of which only the first byte is compared
constexpr std::size_t bulk_bytes_least = 6;    // "$0", and two ends of lines
constexpr std::size_t short_number_max = 999;  // of take_short_number()
constexpr std::size_t words_kept = 128;        // room for so many stays with the connection

bool is_space(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

char escaped(char c) noexcept {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

/// Reads any marker, one to three digits, CR and one more byte, which is the form of most lengths.
/// Negative: the input has another form, and `at` is unchanged.
std::int64_t take_short_number(const char*& at, const char* end) noexcept {
  constexpr std::ptrdiff_t most = 6;
  constexpr int digits_max = 3;
  static_assert(short_number_max == 999);
  if (end - at < most) return -1;
  const char* const digits = at + 1;
  int count = 0;
  std::int64_t number = 0;
  for (; count < digits_max; ++count) {
    const unsigned digit = static_cast<unsigned char>(digits[count]) - unsigned{'0'};
    if (digit > 9) break;
    number = number * 10 + digit;
  }
  const bool leads_zero = count > 1 && digits[0] == '0';
  if (count == 0 || leads_zero || digits[count] != '\r') return -1;
  at = digits + count + line_end_bytes;
  return number;
}

/// The same with this marker, at `at`, behind which there are bulk_bytes_least at least. Most
/// numbers have one digit or two.
template <char marker>
[[gnu::always_inline]] inline std::int64_t take_head(std::string_view input,
                                                     std::size_t& at) noexcept {
  const char* const head_at = input.data() + at;
  const auto head = static_cast<std::uint32_t>(packed_bytes({head_at, sizeof(std::uint32_t)}));
  constexpr std::uint32_t one_digit = marker | '\r' << 16;
  constexpr std::uint32_t two_digits = marker | '\r' << 24;
  const std::uint32_t first = (head >> 8 & 0xff) - '0';
  if ((head & 0x00ff'00ff) == one_digit && first <= 9) [[likely]] {
    at += 2 + line_end_bytes;
    return first;
  }
  const std::uint32_t second = (head >> 16 & 0xff) - '0';
  if ((head & 0xff00'00ff) == two_digits && first - 1 < 9 && second <= 9) {
    at += 3 + line_end_bytes;
    return first * 10 + second;
  }
  if (*head_at != marker) return -1;
  const char* behind = head_at;
  const std::int64_t number = take_short_number(behind, input.data() + input.size());
  at = static_cast<std::size_t>(behind - input.data());
  return number;
}

/// Takes one word of a line and removes its quotes. False: the quotes do not match.
bool take_word(std::string_view& line, std::string& word) {
  const auto take = [&] {
    const char c = line.front();
    line.remove_prefix(1);
    return c;
  };
  char quote = 0;
  while (!line.empty()) {
    const char c = take();
    if (quote == 0) {
      if (is_space(c)) return true;
      if (c == '"' || c == '\'') {
        quote = c;
      } else {
        word += c;
      }
    } else if (c == quote) {
      return line.empty() || is_space(line.front());  // a closing quote ends the word
    } else if (c == '\\' && quote == '\'' && line.starts_with('\'')) {
      word += take();
    } else if (c == '\\' && quote == '"' && !line.empty()) {
      const bool is_hex = line.size() >= 3 && line[0] == 'x' && base::hex_value(line[1]) >= 0 &&
                          base::hex_value(line[2]) >= 0;
      if (is_hex) {
        word += static_cast<char>(base::hex_value(line[1]) * 16 + base::hex_value(line[2]));
        line.remove_prefix(3);
      } else {
        word += escaped(take());
      }
    } else {
      word += c;
    }
  }
  return quote == 0;
}

}  // namespace

RespParser::Step RespParser::parse(std::string_view input, const RequestLimits& limits) {
  if (ended_) begin_again();
  if (state_ == State::begin && take_whole(input, limits)) [[likely]]
    return Step::command;
  return parse_on(input, limits);
}

RespParser::Step RespParser::parse_on(std::string_view input, const RequestLimits& limits) {
  // The caller's part: the bytes of an incomplete request are in front of `input` again.
  SEMEL_ASSERT(passes_ || (at_ <= input.size() && searched_ <= input.size()));
  if (passes_) {
    at_ = searched_ = 0;
    const Step step = pass_over(input, limits);
    ended_ = step == Step::too_long || step == Step::bad;
    return step;
  }
  const Step step = run(input, limits);
  ended_ = step != Step::incomplete && step != Step::passing;
  SEMEL_ASSERT(at_ <= input.size());
  if (step != Step::command) return step;
  if (!is_inline_) {
    arguments_.clear();
    arguments_.reserve(ranges_.size());
    for (const Range& range : ranges_) arguments_.push_back(input.substr(range.at, range.bytes));
  }
  argument_count_ = arguments_.size();
  return step;
}

/// After a request that has ended. Behind one that take_whole() read there is little to do.
void RespParser::begin_again() noexcept {
  if (!is_whole_ || arguments_.size() > words_kept) return begin();
  is_whole_ = ended_ = false;
  at_ = argument_count_ = 0;
}

void RespParser::begin() noexcept {
  state_ = State::begin;
  ended_ = is_whole_ = is_inline_ = passes_ = false;
  at_ = searched_ = wanted_ = left_ = length_ = passes_left_ = argument_count_ = 0;
  ranges_.clear();
  unquoted_.clear();
  arguments_.clear();
  forget_many();
}

/// Frees the memory of one large request, which the connection would keep until its end.
void RespParser::forget_many() noexcept {
  constexpr std::size_t bytes_kept = 512;
  if (ranges_.capacity() > words_kept) give_back(ranges_);
  if (arguments_.capacity() > words_kept) give_back(arguments_);
  if (unquoted_.capacity() > bytes_kept) give_back(unquoted_);
}

RespParser::Step RespParser::run(std::string_view input, const RequestLimits& limits) {
  if (state_ == State::begin) {
    if (input.empty()) return incomplete(1);
    if (input.front() != '*') return read_inline(input, limits);
    state_ = State::count;
  }
  if (state_ == State::count) {
    const Step step = read_count(input, limits);
    if (step != Step::command || left_ == 0) return step;
    state_ = State::length;
  }
  while (left_ != 0) {
    if (state_ == State::length) {
      if (const Step step = read_length(input, limits); step != Step::command) return step;
      if (length_ > limits.kept_bytes_max) {
        error_ = "value exceeds the limit: " + std::to_string(length_) + " bytes, at most " +
                 std::to_string(limits.kept_bytes_max);
        begin_passing();
        return pass_over(input, limits);
      }
      state_ = State::bytes;
    }
    if (input.size() - at_ < length_ + line_end_bytes) {
      return incomplete(at_ + length_ + line_end_bytes);
    }
    ranges_.push_back({at_, length_});
    at_ += length_ + line_end_bytes;
    state_ = State::length;
    --left_;
  }
  return Step::command;
}

void RespParser::begin_passing() noexcept {
  passes_ = true;
  passes_left_ = length_ + line_end_bytes;
  SEMEL_ASSERT(left_ != 0);  // the argument that is skipped is one of them
  --left_;
  give_back(ranges_);
}

/// Skips the rest of a request. None of it is needed, so all bytes that were read can be dropped.
RespParser::Step RespParser::pass_over(std::string_view input, const RequestLimits& limits) {
  RequestLimits as_it_comes = limits;
  as_it_comes.request_bytes_max = ~std::size_t{0};
  for (;;) {
    SEMEL_ASSERT(at_ <= input.size());
    const std::size_t passed = std::min(passes_left_, input.size() - at_);
    at_ += passed;
    passes_left_ -= passed;
    if (passes_left_ != 0) break;
    if (left_ == 0) return Step::too_long;
    const std::size_t before = at_;
    const Step step = read_length(input, as_it_comes);
    if (step == Step::bad) return step;
    if (step == Step::incomplete) {
      at_ = before;
      break;
    }
    passes_left_ = length_ + line_end_bytes;
    --left_;
  }
  if (at_ != 0) return Step::passing;
  return incomplete(std::max<std::size_t>(passes_left_, input.size() + 1));
}

bool RespParser::take_whole(std::string_view input, const RequestLimits& limits) {
  if (input.size() < bulk_bytes_least || limits.bulk_bytes_max < short_number_max) return false;
  std::size_t at = 0;
  const std::int64_t head = take_head<'*'>(input, at);
  if (head < 1) return false;
  const auto count = static_cast<std::size_t>(head);
  if (count > limits.arguments_max || count * bulk_bytes_least > input.size() - at) return false;
  if (arguments_.size() < count) arguments_.resize(count);
  std::string_view* argument = arguments_.data();
  const std::string_view* const last = argument + count - 1;
  // Before each argument there is room for a head. So one comparison behind it is enough: the sum
  // of a position and a short number does not wrap.
  const std::size_t at_max = input.size() - bulk_bytes_least;
  for (;; ++argument) {
    const std::int64_t bytes = take_head<'$'>(input, at);
    if (bytes < 0) return false;
    *argument = {input.data() + at, static_cast<std::size_t>(bytes)};
    at += static_cast<std::size_t>(bytes) + line_end_bytes;
    if (argument == last) break;
    if (at > at_max) return false;
  }
  if (at > input.size()) return false;
  at_ = at;
  argument_count_ = count;
  SEMEL_ASSERT(argument_count_ <= arguments_.size());
  ended_ = is_whole_ = true;
  return true;
}

bool RespParser::take_line(std::string_view input, std::string_view& line) {
  const std::size_t end = input.find('\r', std::max(at_, searched_));
  // The byte behind CR must be there, too; its value does not matter.
  if (end == std::string_view::npos || end + line_end_bytes > input.size()) {
    searched_ = end == std::string_view::npos ? input.size() : end;
    wanted_ = input.size() + 1;
    line = input.substr(at_);
    return false;
  }
  line = input.substr(at_ + 1, end - at_ - 1);
  at_ = end + line_end_bytes;
  return true;
}

RespParser::Step RespParser::read_count(std::string_view input, const RequestLimits& limits) {
  std::string_view line;
  if (!take_line(input, line)) {
    return line.size() > limits.line_bytes_max ? bad("too big mbulk count string")
                                               : Step::incomplete;
  }
  const std::optional<std::int64_t> count = integer_of(line);
  const bool in_range = count && *count <= std::numeric_limits<std::int32_t>::max();
  if (!in_range) return bad("invalid multibulk length");
  const auto most = static_cast<std::int64_t>(limits.arguments_max);
  if (*count > most) {
    return bad(limits.before_auth ? "unauthenticated multibulk length"
                                  : "invalid multibulk length");
  }
  left_ = static_cast<std::size_t>(std::max<std::int64_t>(*count, 0));
  return Step::command;
}

RespParser::Step RespParser::read_length(std::string_view input, const RequestLimits& limits) {
  std::string_view line;
  const std::size_t from = at_;
  if (!take_line(input, line)) {
    return line.size() > limits.line_bytes_max ? bad("too big bulk count string")
                                               : Step::incomplete;
  }
  if (input[from] != '$') {
    return bad(std::string{"expected '$', got '"} + input[from] + "'");
  }
  const std::optional<std::int64_t> length = integer_of(line);
  if (!length || *length < 0) return bad("invalid bulk length");
  if (static_cast<std::uint64_t>(*length) > limits.bulk_bytes_max) {
    return bad(limits.before_auth ? "unauthenticated bulk length" : "invalid bulk length");
  }
  length_ = static_cast<std::size_t>(*length);
  if (at_ > limits.request_bytes_max || length_ > limits.request_bytes_max - at_) {
    const std::string_view whose = limits.before_auth ? "unauthenticated request" : "request";
    return bad(std::string{whose} + " of more than " + std::to_string(limits.request_bytes_max) +
               " bytes");
  }
  return Step::command;
}

RespParser::Step RespParser::read_inline(std::string_view input, const RequestLimits& limits) {
  const std::size_t end = input.find('\n', searched_);
  if (end == std::string_view::npos) {
    if (input.size() > limits.line_bytes_max) return bad("too big inline request");
    searched_ = input.size();
    return incomplete(input.size() + 1);
  }
  // redis-server accepts a longer line if one read returns all of it; that depends on chance.
  if (end > limits.line_bytes_max) return bad("too big inline request");
  std::string_view line = input.substr(0, end);
  at_ = end + 1;
  is_inline_ = true;
  if (line.ends_with('\r')) line.remove_suffix(1);
  arguments_.clear();
  if (!split(line)) return bad("unbalanced quotes in request");
  return Step::command;
}

bool RespParser::split(std::string_view line) {
  // Unquoting only shortens a word. With this capacity the string never moves, which would leave
  // arguments_ dangling.
  unquoted_.reserve(line.size());
  [[maybe_unused]] const std::size_t capacity = unquoted_.capacity();
  for (;;) {
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.empty()) return true;
    const std::size_t from = unquoted_.size();
    if (!take_word(line, unquoted_)) return false;
    SEMEL_ASSERT(unquoted_.capacity() == capacity);
    arguments_.push_back(std::string_view{unquoted_}.substr(from));
  }
}

RespParser::Step RespParser::bad(std::string what) {
  error_ = "Protocol error: " + std::move(what);
  return Step::bad;
}

}  // namespace semel::net
