#include "net/objects/score_text.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace semel::net {

namespace {

bool is_blank(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Digits, perhaps with a point between them, which most scores are. Up to 15 digits are a double,
/// as is the power of ten: so the quotient is rounded once, and strtod reads the same.
std::optional<double> plain_score_of(std::string_view text) noexcept {
  constexpr std::array<double, 16> powers{1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  constexpr std::size_t digits_max = powers.size() - 1;
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.size() > digits_max + 1) return std::nullopt;
  std::uint64_t number = 0;
  std::size_t digits = 0;
  std::size_t whole_digits = 0;  // in front of the point; 0: there is none
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit <= 9) {
      number = number * 10 + digit;
      ++digits;
    } else if (c == '.' && whole_digits == 0 && digits != 0) {
      whole_digits = digits;
    } else {
      return std::nullopt;
    }
  }
  if (digits == whole_digits || digits > digits_max) return std::nullopt;
  const std::size_t fraction_digits = whole_digits == 0 ? 0 : digits - whole_digits;
  const double score = static_cast<double>(number) / powers[fraction_digits];
  return is_negative ? -score : score;
}

bool read_bound(std::string_view text, double& bound, bool& excludes) {
  excludes = text.starts_with('(');
  const std::string copy{text.substr(excludes ? 1 : 0)};
  char* end = nullptr;
  bound = std::strtod(copy.c_str(), &end);
  return *end == '\0' && !std::isnan(bound);
}

bool read_bound(std::string_view text, engine::LexBound& bound) {
  using Place = engine::LexBound::Place;
  if (text == "-" || text == "+") {
    bound.place = text == "-" ? Place::lowest : Place::highest;
    return true;
  }
  if (!text.starts_with('[') && !text.starts_with('(')) return false;
  bound = {.place = Place::member, .excludes = text.front() == '(', .member = text.substr(1)};
  return true;
}

}  // namespace

std::optional<double> score_of(std::string_view text) {
  if (const auto plain = plain_score_of(text)) return plain;
  if (text.empty() || is_blank(text.front())) return std::nullopt;
  const std::string copy{text};
  char* end = nullptr;
  errno = 0;
  const double score = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(score)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(score) || score == 0)) return std::nullopt;
  return score;
}

std::optional<engine::ScoreRange> score_range_of(std::string_view min, std::string_view max) {
  engine::ScoreRange range;
  if (!read_bound(min, range.min, range.excludes_min)) return std::nullopt;
  if (!read_bound(max, range.max, range.excludes_max)) return std::nullopt;
  return range;
}

std::optional<engine::LexRange> lex_range_of(std::string_view min, std::string_view max) {
  engine::LexRange range;
  if (!read_bound(min, range.min) || !read_bound(max, range.max)) return std::nullopt;
  return range;
}

std::string text_of_score(double score) {
  constexpr int digits = 17;
  std::array<char, 32> room;
  const auto end = std::to_chars(room.data(), room.data() + room.size(), score,
                                 std::chars_format::general, digits)
                       .ptr;
  return {room.data(), end};
}

std::string packed_text_of_score(double score) {
  constexpr double integers_max = 4611686018427387904.0;
  const bool is_whole = std::fabs(score) <= integers_max && std::trunc(score) == score;
  return is_whole ? std::to_string(static_cast<std::int64_t>(score)) : text_of_score(score);
}

void write_score(RespWriter& reply, double score) {
  const std::string text = text_of_score(score);
  if (reply.dialect() == Resp::two) return reply.bulk(text);
  reply.prepared("," + text + "\r\n");
}

}  // namespace semel::net
