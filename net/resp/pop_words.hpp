// The words of pops from the first of several keys, and of waits: numkeys key .. end [COUNT count],
// and a timeout in seconds.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/resp/text.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// The error line of a request; empty: none.
using WordsError = std::string_view;

struct PopWords {
  std::span<const std::string_view> keys{};
  std::string_view end{};  ///< LEFT, RIGHT, MIN or MAX, if it is right
  std::span<const std::string_view> options{};
  std::uint64_t count = 1;
};

/// `at`: where numkeys stands.
[[nodiscard]] inline WordsError read_pop_keys(std::span<const std::string_view> all, std::size_t at,
                                              PopWords& words) {
  if (at + 1 >= all.size()) return "ERR syntax error";
  const auto keys = integer_of(all[at]);
  if (!keys || *keys < 1) return "ERR numkeys should be greater than 0";
  const std::size_t behind = all.size() - at - 1;
  if (static_cast<std::uint64_t>(*keys) >= behind) return "ERR syntax error";
  const auto count = static_cast<std::size_t>(*keys);
  words.keys = all.subspan(at + 1, count);
  words.end = all[at + 1 + count];
  words.options = all.subspan(at + 2 + count);
  return {};
}

/// The words behind the end.
[[nodiscard]] inline WordsError read_pop_count(PopWords& words) {
  const auto& options = words.options;
  if (options.empty()) return {};
  if (options.size() < 2 || !is_word(options[0], "count")) return "ERR syntax error";
  const auto count = integer_of(options[1]);
  if (!count || *count < 1) return "ERR count should be greater than 0";
  if (options.size() != 2) return "ERR syntax error";
  words.count = static_cast<std::uint64_t>(*count);
  return {};
}

/// Seconds, up to the next millisecond; 0: for ever.
[[nodiscard]] inline WordsError read_timeout(std::string_view word, Millis& timeout) {
  const auto seconds = float_of(word);
  if (!seconds) return "ERR timeout is not a float or out of range";
  const long double ms = std::ceil(*seconds * 1000);
  constexpr long double beyond = 9223372036854775808.0L;  // is negative for redis-server, too
  if (ms < 0 || ms >= beyond) return "ERR timeout is negative";
  timeout = Millis{static_cast<std::int64_t>(ms)};
  return {};
}
[[nodiscard]] inline Timestamp end_of_wait(Timestamp now, Millis timeout) noexcept {
  return timeout == Millis{0} ? no_end : deadline_after(now, timeout);
}

}  // namespace semel::net
