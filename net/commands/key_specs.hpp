// Which keys and channels a command uses, and how: the `keys` column of
// net/commands/command_table.def.
//
// The only place that knows them. COMMAND shows it, users' rights are checked by it, and WATCH is
// notified by it; so no command can need other rights than it admits to.
//
//   column = spec *( ";" spec )                one for keys that are used in different ways
//   spec   = flags position [ "?" index ":" word *( "," word ) "|" flags ]
//   flags  = flag *( "," flag )
//   position = "@" first [ ":" last [ ":" step ] ]  words by their indexes; -1 is the last word
//          | "#" index [ ":" step ]            at `index` stands how many follow
//          | "~" word ":" index                each word behind this one, from `index` on
//          | "@claim" index                    the namespace; the key of the claim stands behind it
//          | "@claims" index                   the namespace; options; KEYS n key..
//          | "@permit" index                   the namespace; the key of a semaphore; the number
//                                              of permits, else as many as there can be
//          | "@rwlock" index                   the namespace; the key of a read/write lock
//          | "@debounce" index                 the namespace; the key whose last payload is kept
//          | "@completes" index                the namespace; n; and n times key, epoch, result
//          | "@space" index                    a namespace with all its claims
//          | "@streams" index                  behind the word STREAMS, which stands at `index` or
//                                              later: half the words are keys, and then their ids
//          | "@by" index                       of SORT, whose options begin there: keys that come
//                                              of the patterns behind BY and GET
//          | "@store" index                    .. and the word behind its last STORE
//          | "@migrated" index                 of MIGRATE: all words behind its option KEYS
//   flag   = those of Redis, or "channel", "pattern": the words are channels
//
// Behind "?": the flags in front hold if one of these words stands at `index` or later; else
// those behind "|" do. A claim's key is "namespace:key", that of a whole namespace "namespace:*".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// In the order in which COMMAND shows them; the last two are ours.
inline constexpr std::array<std::string_view, 13> key_flag_names = {
    "RO",     "RW",     "OW",      "RM",         "access",         "update",
    "insert", "delete", "not_key", "incomplete", "variable_flags", "channel",
    "pattern"};
enum KeyFlag : std::uint16_t {
  key_read_only = 1U << 0U,
  key_read_write = 1U << 1U,
  key_overwrite = 1U << 2U,
  key_remove = 1U << 3U,
  key_access = 1U << 4U,  ///< its value or its end shows in the reply or elsewhere
  key_update = 1U << 5U,
  key_insert = 1U << 6U,
  key_delete = 1U << 7U,
  key_not_key = 1U << 8U,
  key_incomplete = 1U << 9U,
  key_variable_flags = 1U << 10U,
  key_channel = 1U << 11U,
  key_pattern = 1U << 12U,
};
inline constexpr std::size_t shown_key_flags = 11;

struct KeySpec {
  enum class Position : std::uint8_t {
    range,
    counted,
    keyword,
    claim,
    claims,
    completes,
    permit,
    rwlock,
    debounce,
    space,
    streams,
    by,
    store,
    migrated
  };

  std::uint16_t flags = 0;
  Position position = Position::range;
  std::int16_t first = 0;
  std::int16_t last = 0;  ///< an index; negative: from the end
  std::int16_t step = 1;
  std::string_view keyword{};  ///< small letters
  // Of variable flags.
  std::int16_t words_from = 0;
  std::uint16_t other_flags = 0;
  std::string_view words{};  ///< commas between

  [[nodiscard]] constexpr bool is_key() const noexcept {
    return (flags & (key_not_key | key_channel | key_pattern)) == 0;
  }
  /// What COMMAND INFO and its first, last and step are about.
  [[nodiscard]] constexpr bool is_shown() const noexcept {
    return is_key() || (flags & key_not_key) != 0;
  }
};

struct KeySpecs {
  static constexpr std::size_t count_max = 3;
  std::array<KeySpec, count_max> specs{};
  std::uint8_t count = 0;
  bool is_valid = true;

  [[nodiscard]] constexpr std::span<const KeySpec> all() const noexcept {
    return std::span{specs}.first(count);
  }
};

/// Of a column of the table.
[[nodiscard]] constexpr KeySpecs key_specs_of(std::string_view column);

struct UsedKey {
  std::string_view name;
  std::uint16_t flags;  ///< of KeyFlag; of a channel, too
};

/// What one request uses. Names are views of its words, or of `composed`.
struct UsedKeys {
  std::vector<UsedKey> keys{};
  std::vector<UsedKey> channels{};
  std::vector<std::string> composed{};
  bool is_all = false;  ///< perhaps other keys as well: a whole namespace
  /// Reads other keys as well: those that patterns and elements of SORT's key make.
  std::string_view patterns_word{};  ///< BY or GET, the first such option; empty: none
};

/// The flags of `spec` in a request of these words.
[[nodiscard]] std::uint16_t flags_in(const KeySpec& spec, std::span<const std::string_view> words);
/// Whether a pattern of SORT has a place for an element: an asterisk in front of its first NUL.
[[nodiscard]] bool has_asterisk(std::string_view pattern) noexcept;
/// `words` must outlive the result. Words that the handler will refuse may give none.
[[nodiscard]] UsedKeys used_keys(const KeySpecs& specs, std::span<const std::string_view> words);

// --- reading the column --------------------------------------------------------------------------

namespace key_column {

constexpr std::string_view take_up_to(std::string_view& rest, std::string_view ends) {
  const std::size_t end = std::min(rest.find_first_of(ends), rest.size());
  const std::string_view found = rest.substr(0, end);
  rest.remove_prefix(end);
  return found;
}

constexpr bool read_number(std::string_view& rest, std::int16_t& number) {
  const bool is_negative = rest.starts_with('-');
  if (is_negative) rest.remove_prefix(1);
  if (rest.empty() || rest.front() < '0' || rest.front() > '9') return false;
  int value = 0;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    value = value * 10 + (rest.front() - '0');
    rest.remove_prefix(1);
  }
  number = static_cast<std::int16_t>(is_negative ? -value : value);
  return value < 1000;
}

constexpr bool read_flags(std::string_view text, std::uint16_t& flags) {
  while (!text.empty()) {
    const std::string_view name = take_up_to(text, ",");
    if (!text.empty()) text.remove_prefix(1);
    std::size_t i = 0;
    while (i < key_flag_names.size() && key_flag_names[i] != name) ++i;
    if (i == key_flag_names.size()) return false;
    flags = static_cast<std::uint16_t>(flags | 1U << i);
  }
  return flags != 0;
}

constexpr bool read_position(std::string_view text, KeySpec& spec) {
  using Position = KeySpec::Position;
  constexpr auto names =
      std::to_array<std::string_view>({"claims", "claim", "completes", "permit", "rwlock",
                                       "debounce", "space", "streams", "by", "store", "migrated"});
  constexpr auto positions = std::to_array<Position>(
      {Position::claims, Position::claim, Position::completes, Position::permit, Position::rwlock,
       Position::debounce, Position::space, Position::streams, Position::by, Position::store,
       Position::migrated});
  if (text.empty()) return false;
  if (text.front() == '~') {
    text.remove_prefix(1);
    spec.position = Position::keyword;
    spec.keyword = take_up_to(text, ":");
    if (spec.keyword.empty() || text.empty()) return false;
    text.remove_prefix(1);
    return read_number(text, spec.first) && text.empty();
  }
  spec.position = text.front() == '#' ? Position::counted : Position::range;
  text.remove_prefix(1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!text.starts_with(names[i])) continue;
    spec.position = positions[i];
    text.remove_prefix(names[i].size());
    break;
  }
  if (!read_number(text, spec.first)) return false;
  spec.last = spec.first;
  if (spec.position == Position::range && text.starts_with(':')) {
    text.remove_prefix(1);
    if (!read_number(text, spec.last)) return false;
  }
  if (text.starts_with(':')) {
    text.remove_prefix(1);
    if (!read_number(text, spec.step)) return false;
  }
  return text.empty();
}

constexpr bool read_words(std::string_view text, KeySpec& spec) {
  if (text.empty()) return (spec.flags & key_variable_flags) == 0;
  text.remove_prefix(1);
  if (!read_number(text, spec.words_from) || !text.starts_with(':')) return false;
  text.remove_prefix(1);
  spec.words = take_up_to(text, "|");
  if (spec.words.empty() || text.empty()) return false;
  return read_flags(text.substr(1), spec.other_flags) && (spec.flags & key_variable_flags) != 0;
}

}  // namespace key_column

constexpr KeySpecs key_specs_of(std::string_view column) {
  KeySpecs found;
  while (!column.empty()) {
    std::string_view text = key_column::take_up_to(column, ";");
    if (!column.empty()) column.remove_prefix(1);
    KeySpec spec;
    const std::string_view flags = key_column::take_up_to(text, "@#~");
    const std::string_view position = key_column::take_up_to(text, "?");
    found.is_valid = found.is_valid && found.count < KeySpecs::count_max &&
                     key_column::read_flags(flags, spec.flags) &&
                     key_column::read_position(position, spec) &&
                     key_column::read_words(text, spec);
    if (!found.is_valid) return found;
    found.specs[found.count++] = spec;
  }
  return found;
}

}  // namespace semel::net
