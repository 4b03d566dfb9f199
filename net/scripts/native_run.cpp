#include "net/scripts/native_run.hpp"

#include <charconv>
#include <limits>

namespace semel::net {
namespace {

constexpr std::size_t end_bytes = 2;  // CR LF

std::int64_t number_at(std::string_view bytes) noexcept {
  std::int64_t number = 0;
  std::from_chars(bytes.data(), bytes.data() + bytes.size(), number);
  return number;
}

/// Takes the line behind a mark off the front, the mark too.
std::string_view take_line(std::string_view& rest) noexcept {
  const std::size_t end = std::min(rest.find('\r'), rest.size());
  const std::string_view line = rest.substr(1, end - 1);
  rest.remove_prefix(std::min(end + end_bytes, rest.size()));
  return line;
}

NativeValue value_of(std::string_view bytes) noexcept {
  using Kind = NativeValue::Kind;
  if (bytes.empty()) return {};
  const char mark = bytes.front();
  const std::string_view line = take_line(bytes);
  if (mark == ':') return {.kind = Kind::integer, .number = number_at(line)};
  if (mark != '$') return {.kind = Kind::other};
  if (line.starts_with('-')) return {};
  return {.kind = Kind::text, .text = bytes.substr(0, bytes.size() - end_bytes)};
}

}  // namespace

std::int64_t through_lua(double number) noexcept {
  // The result of our processors for a number that does not fit.
  constexpr double too_large = 9223372036854775808.0;
  if (!(number >= -too_large && number < too_large)) {
    return std::numeric_limits<std::int64_t>::min();
  }
  return static_cast<std::int64_t>(number);
}

std::int64_t through_lua(std::int64_t number) noexcept {
  return through_lua(static_cast<double>(number));
}

void write_script_error(RespWriter& reply, std::string_view text, std::string_view sha,
                        std::uint32_t line) {
  std::string error{text};
  error.append(" script: ").append(sha).append(", on @user_script:");
  error.append(std::to_string(line)).append(".");
  reply.error(error);
}

NativeValue NativeRun::send_words(std::size_t site, std::span<const std::string_view> words) {
  answered_.clear();
  call_.host.call(words, Resp::two, answered_);
  if (!answered_.starts_with('-')) return value_of(answered_);
  std::string_view rest = answered_;
  const std::vector<std::uint32_t>& lines = call_.shape.lines;
  write_script_error(reply_, take_line(rest), call_.sha, site < lines.size() ? lines[site] : 1);
  is_over_ = true;
  return {};
}

NativeValue NativeRun::send(std::size_t site, std::initializer_list<std::string_view> words) {
  return send_words(site, {words.begin(), words.size()});
}

NativeValue NativeRun::send(std::size_t site, const lua::ScriptCommand& command) {
  using From = lua::ScriptWord::From;
  words_.clear();
  for (const lua::ScriptWord& word : command) {
    const bool is_text = word.from == From::text;
    words_.push_back(is_text                  ? std::string_view{word.text}
                     : word.from == From::key ? key(word.index)
                                              : argument(word.index));
  }
  return send_words(site, words_);
}

void NativeRun::try_send(std::initializer_list<std::string_view> words) {
  answered_.clear();
  call_.host.call({words.begin(), words.size()}, Resp::two, answered_);
}

void NativeRun::answer(const lua::ScriptAnswer& answer) {
  using Kind = lua::ScriptAnswer::Kind;
  switch (answer.kind) {
    case Kind::last:
      return answer_last();
    case Kind::number:
      return reply_.integer(answer.number);
    case Kind::nothing:
      return reply_.null();
    case Kind::status:
      return reply_.simple(answer.text);
    case Kind::error:
      return reply_.error(answer.text);
    case Kind::bulk:
      return reply_.bulk(answer.text);
  }
}

void NativeRun::answer_pair(std::int64_t first, std::int64_t second) {
  reply_.array(2);
  answer(first);
  answer(second);
}

void NativeRun::answer_last() {
  std::string_view rest = answered_;
  write_converted(rest);
}

void NativeRun::write_converted(std::string_view& rest) {
  if (rest.empty()) return;
  const char mark = rest.front();
  const std::string_view whole = rest;
  const std::string_view line = take_line(rest);
  const bool is_nothing = (mark == '$' || mark == '*') && line.starts_with('-');
  if (is_nothing) return reply_.null();
  if (mark == ':') return answer(number_at(line));
  if (mark == '*') {
    const auto count = static_cast<std::size_t>(number_at(line));
    reply_.array(count);
    // A command's arrays are as deep as its table says, not as a client likes.
    for (std::size_t i = 0; i < count; ++i) write_converted(rest);
    return;
  }
  if (mark == '$') {
    const auto size = static_cast<std::size_t>(number_at(line));
    rest.remove_prefix(std::min(size + end_bytes, rest.size()));
  }
  reply_.prepared(whole.substr(0, whole.size() - rest.size()));
}

}  // namespace semel::net
