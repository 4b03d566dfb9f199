// Redis' glob. A star is never recursed into: on a mismatch the match goes on one byte further
// behind the last star, which is enough because an earlier star could only have left less text.
// So the cost is at most pattern times text, whatever pattern a client sends.
//
// A pattern with more stars than redis-server follows (7.0: 1000 one inside another) matches
// nothing, as there.
#include <cstddef>

#include "semel/store.hpp"

namespace semel {

namespace {

constexpr unsigned char byte_at(Bytes text, std::size_t index) noexcept {
  return static_cast<unsigned char>(text[index]);
}

/// Matches `c` against the class that starts behind '[' at `at`, and moves `at` behind it. A class
/// that is never closed reaches to the end of the pattern, as in Redis. Ranges compare bytes as
/// 0..255 (Redis follows the signedness of the platform's char).
bool match_class(Bytes pattern, std::size_t& at, unsigned char c) noexcept {
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool matched = false;
  while (at < pattern.size() && pattern[at] != ']') {
    const std::size_t left = pattern.size() - at;
    if (pattern[at] == '\\' && left >= 2) {
      matched |= byte_at(pattern, at + 1) == c;
      at += 2;
    } else if (left >= 3 && pattern[at + 1] == '-') {
      const unsigned char one = byte_at(pattern, at);
      const unsigned char other = byte_at(pattern, at + 2);
      matched |= one <= other ? (c >= one && c <= other) : (c >= other && c <= one);
      at += 3;
    } else {
      matched |= byte_at(pattern, at) == c;
      ++at;
    }
  }
  if (at < pattern.size()) ++at;  // the closing bracket
  return matched != negated;
}

/// Matches `c` against the one-byte element at `at` (anything but a star), and moves behind it.
bool match_one(Bytes pattern, std::size_t& at, unsigned char c) noexcept {
  const char element = pattern[at++];
  if (element == '?') return true;
  if (element == '[') return match_class(pattern, at, c);
  if (element == '\\' && at < pattern.size()) return byte_at(pattern, at++) == c;
  return static_cast<unsigned char>(element) == c;
}

/// Whether more stars than redis-server follows have something behind them. Stars side by side
/// count as one.
bool has_too_many_stars(Bytes pattern) noexcept {
  constexpr std::size_t stars_max = 1'000;
  if (pattern.size() <= 2 * stars_max) return false;
  std::size_t stars = 0;
  std::size_t at = 0;
  while (at < pattern.size()) {
    if (pattern[at] != '*') {
      static_cast<void>(match_one(pattern, at, 0));  // moves behind the element
      continue;
    }
    while (at < pattern.size() && pattern[at] == '*') ++at;
    if (at < pattern.size()) ++stars;
  }
  return stars > stars_max;
}

}  // namespace

bool glob_match(Bytes pattern, Bytes text) noexcept {
  constexpr std::size_t none = Bytes::npos;
  std::size_t at = 0;              // in pattern
  std::size_t next = 0;            // in text
  std::size_t behind_star = none;  // in pattern, behind the last star met
  std::size_t star_text = 0;       // where in the text that star's match ends, so far

  if (has_too_many_stars(pattern)) return false;
  while (next < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      behind_star = ++at;
      star_text = next;
      if (at == pattern.size()) return true;
    } else if (at < pattern.size() && match_one(pattern, at, byte_at(text, next))) {
      ++next;
    } else {
      if (behind_star == none) return false;
      at = behind_star;
      next = ++star_text;
    }
  }
  // An empty text matches the empty pattern only: Redis looks at stars after the last byte, and
  // there is none.
  if (text.empty()) return pattern.empty();
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace semel
