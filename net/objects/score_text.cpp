#include "net/objects/score_text.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace semel::net {

namespace {

bool is_blank(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
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
