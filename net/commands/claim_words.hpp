// Parses the arguments of the SEMEL commands. The detail of an error is the whole reply; it names
// the argument and its allowed values. word_of() is the way back: the word of a value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "semel/claims.hpp"
#include "semel/result.hpp"

namespace semel::net {

using WordSpan = std::span<const std::string_view>;

/// The options of a claim besides its request.
struct ClaimWords {
  ClaimRequest request{};  ///< without key and session
  bool binds = false;
};

/// Reads options from the front of `rest`: all of it, or up to the word KEYS if `until_keys`.
[[nodiscard]] Status read_claim_words(WordSpan& rest, bool until_keys, ClaimWords& words);

/// The arguments of SEMEL.WAIT. Views into its words.
struct WaitWords {
  Millis timeout{0};  ///< 0: for ever
  std::string_view name{};
  ClaimWords claim{};  ///< with the key

  [[nodiscard]] Timestamp deadline(Timestamp now) const noexcept {
    return timeout == Millis{0} ? no_end : deadline_after(now, timeout);
  }
};
/// `words`: the whole request, of as many words as the command takes.
[[nodiscard]] Status read_wait_words(WordSpan words, WaitWords& wait);

/// The arguments of SEMEL.PERMIT. Views into its words.
struct PermitWords {
  std::uint32_t permits = 0;
  std::optional<Millis> wait{};  ///< none: it does not wait; 0: for ever
  std::string_view name{};
  ClaimWords claim{};  ///< with the key

  [[nodiscard]] Timestamp deadline(Timestamp now) const noexcept {
    return WaitWords{.timeout = wait.value_or(Millis{0})}.deadline(now);
  }
};
/// `words`: the whole request, of as many words as the command takes.
[[nodiscard]] Status read_permit_words(WordSpan words, PermitWords& permit);

/// "n key.." behind KEYS: `rest` is then the keys.
[[nodiscard]] Status read_keys(WordSpan& rest);

/// An epoch as granted: 1..2^63 - 1.
[[nodiscard]] Status read_epoch(std::string_view word, Epoch& epoch);

/// A time of `least`..limits::ttl_max; `name` is the option's.
[[nodiscard]] Status read_ms(std::string_view name, std::string_view word, std::int64_t least,
                             Millis& ms);

/// A number of `least`..`most`.
[[nodiscard]] Status read_number(std::string_view name, std::string_view word, std::int64_t least,
                                 std::int64_t most, std::int64_t& number);

/// The options of SEMEL.NAMESPACE.
[[nodiscard]] Status read_policy(WordSpan rest, Policy& policy);

/// The call of a decision as SEMEL.EXPLAIN shows it; none: a record has ended.
[[nodiscard]] std::string_view word_of(DecisionCall call) noexcept;

/// The state of a record as SEMEL.EXPLAIN shows it; free: it has no owner.
[[nodiscard]] std::string_view word_of(ClaimState state) noexcept;

/// "ERR unknown word 'x', allowed are a, b".
[[nodiscard]] std::string unknown_word(std::string_view word, std::string_view allowed);
/// `word` in quotes; a long one is cut.
[[nodiscard]] std::string quoted_word(std::string_view word);

}  // namespace semel::net
