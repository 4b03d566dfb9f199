#include "net/commands/key_specs.hpp"

#include <algorithm>

#include "net/commands/claim_words.hpp"
#include "net/resp/text.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/read_write_lock.hpp"
#include "semel/patterns/semaphore.hpp"
#include "semel/patterns/trailing_debounce.hpp"

namespace semel::net {
namespace {

using Words = std::span<const std::string_view>;

void add(UsedKeys& used, const KeySpec& spec, std::string_view name, std::uint16_t flags) {
  if (spec.is_key()) {
    used.keys.push_back({name, flags});
  } else if ((flags & (key_channel | key_pattern)) != 0) {
    used.channels.push_back({name, flags});
  }
}

/// The words from `first` to `last`, every step-th.
void add_range(UsedKeys& used, const KeySpec& spec, Words words, int first, int last) {
  const auto count = static_cast<int>(words.size());
  const std::uint16_t flags = flags_in(spec, words);
  for (int i = first; i <= last && i < count; i += spec.step) {
    add(used, spec, words[static_cast<std::size_t>(i)], flags);
  }
}

void add_counted(UsedKeys& used, const KeySpec& spec, Words words) {
  const auto count = static_cast<int>(words.size());
  if (spec.first >= count) return;
  const auto number = integer_of(words[static_cast<std::size_t>(spec.first)]);
  if (!number || *number < 0 || *number > count) return;
  const int first = spec.first + 1;
  const int last = first + (static_cast<int>(*number) - 1) * spec.step;
  if (last >= count) return;  // the command refuses such words, and redis-server sees no keys
  add_range(used, spec, words, first, last);
}

void add_behind_keyword(UsedKeys& used, const KeySpec& spec, Words words) {
  for (auto i = static_cast<std::size_t>(spec.first); i + 1 < words.size(); ++i) {
    if (is_word(words[i], spec.keyword)) add(used, spec, words[++i], flags_in(spec, words));
  }
}

/// Reads the options in front as XREAD does, so that a group named STREAMS is not taken for the
/// word.
void add_streams(UsedKeys& used, const KeySpec& spec, Words words) {
  std::size_t i = 1;
  while (i < words.size() && !is_word(words[i], "streams")) {
    if (is_word(words[i], "block") || is_word(words[i], "count")) {
      i += 2;
    } else if (is_word(words[i], "group")) {
      i += 3;
    } else if (is_word(words[i], "noack")) {
      i += 1;
    } else {
      return;  // the command refuses such words
    }
  }
  if (i >= words.size() || (words.size() - i) % 2 == 0) return;
  const auto keys = static_cast<int>((words.size() - i) / 2);
  const auto at = static_cast<int>(i);
  add_range(used, spec, words, at + 1, at + keys);
}

/// The words that are keys of claims, and how far apart they are.
struct ClaimKeys {
  Words words{};
  std::size_t step = 1;
};

ClaimKeys claim_keys_in(const KeySpec& spec, Words words) {
  constexpr std::size_t words_per_claim = 3;
  const auto behind = static_cast<std::size_t>(spec.first) + 1;
  if (words.size() <= behind) return {};
  Words rest = words.subspan(behind);
  switch (spec.position) {
    case KeySpec::Position::claim:
      return {rest.first(1)};
    case KeySpec::Position::completes:
      return {rest.subspan(1), words_per_claim};
    case KeySpec::Position::claims: {
      ClaimWords options;
      if (!read_claim_words(rest, true, options) || !read_keys(rest)) return {};
      return {rest};
    }
    default:
      return {};
  }
}

/// The keys of a semaphore: of its number of permits, and of each slot.
void compose_permits(UsedKeys& used, std::string_view prefix, Words words) {
  std::string stem{prefix};
  const std::string first = permit_key(words[0], 0);
  stem.append(first, 0, first.size() - 1);
  std::int64_t slots = limits::permits_max;
  if (words.size() > 1 && !read_number("", words[1], 1, limits::permits_max, slots)) return;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    used.composed.push_back(stem + std::to_string(slot));
  }
  used.composed.push_back(std::move(stem));
}

void compose(UsedKeys& used, const KeySpec& spec, Words words) {
  const auto at = static_cast<std::size_t>(spec.first);
  if (words.size() <= at) return;
  std::string prefix{words[at]};
  prefix += ':';
  if (spec.position == KeySpec::Position::space) {
    used.composed.push_back(prefix + "*");
    used.is_all = true;
  }
  if (spec.position == KeySpec::Position::permit && words.size() > at + 1) {
    compose_permits(used, prefix, words.subspan(at + 1));
  }
  if (spec.position == KeySpec::Position::rwlock && words.size() > at + 1) {
    for (const std::string& key : access_keys(words[at + 1])) used.composed.push_back(prefix + key);
  }
  if (spec.position == KeySpec::Position::debounce && words.size() > at + 1) {
    used.composed.push_back(prefix + trailing_last_key(words[at + 1]));
    used.composed.push_back(prefix + trailing_run_key(words[at + 1]));
  }
  const ClaimKeys keys = claim_keys_in(spec, words);
  for (std::size_t i = 0; i < keys.words.size(); i += keys.step) {
    used.composed.push_back(prefix + std::string{keys.words[i]});
  }
  // Behind the last of them: the strings stay where they are from now on.
  const std::uint16_t flags = flags_in(spec, words);
  for (const std::string& key : used.composed) add(used, spec, key, flags);
}

/// The words behind `word` that belong to this option of SORT.
std::size_t sort_values(std::string_view word) noexcept {
  if (is_word(word, "limit")) return 2;
  return is_word(word, "by") || is_word(word, "get") ? 1 : 0;
}

/// As redis-server finds it: the name of the target may be a word of an option itself.
void add_sort_target(UsedKeys& used, const KeySpec& spec, Words words) {
  std::size_t target = 0;
  for (auto i = static_cast<std::size_t>(spec.first); i < words.size(); ++i) {
    if (is_word(words[i], "store") && i + 1 < words.size()) target = i + 1;
    i += sort_values(words[i]);
  }
  if (target != 0) add(used, spec, words[target], spec.flags);
}

/// The words behind KEYS. A password may be "keys". All keys are found, as redis-server finds them
/// in spite of what the specification says.
void add_migrated(UsedKeys& used, const KeySpec& spec, Words words) {
  const auto flags = static_cast<std::uint16_t>(spec.flags & ~key_incomplete);
  for (auto i = static_cast<std::size_t>(spec.first); i < words.size(); ++i) {
    if (is_word(words[i], "keys")) {
      for (const std::string_view key : words.subspan(i + 1)) add(used, spec, key, flags);
      return;
    }
    if (is_word(words[i], "auth")) i += 1;
    if (is_word(words[i], "auth2")) i += 2;
  }
}

/// MIGRATE's key is empty where others stand behind KEYS.
bool is_left_out(const KeySpecs& specs, const KeySpec& spec, Words words) {
  const auto at = static_cast<std::size_t>(spec.first);
  return specs.all().back().position == KeySpec::Position::migrated && at < words.size() &&
         words[at].empty();
}

/// BY without an asterisk reads nothing; GET always counts, as in redis-server.
void note_sort_patterns(UsedKeys& used, const KeySpec& spec, Words words) {
  for (auto i = static_cast<std::size_t>(spec.first); i + 1 < words.size(); ++i) {
    const bool gets = is_word(words[i], "get");
    const bool sorts = is_word(words[i], "by") && has_asterisk(words[i + 1]);
    if (gets || sorts) {
      used.patterns_word = gets ? "GET" : "BY";
      return;
    }
    i += is_word(words[i], "store") ? 1 : sort_values(words[i]);
  }
}

}  // namespace

bool has_asterisk(std::string_view pattern) noexcept {
  return pattern.substr(0, pattern.find('\0')).find('*') != std::string_view::npos;
}

std::uint16_t flags_in(const KeySpec& spec, Words words) {
  if ((spec.flags & key_variable_flags) == 0) return spec.flags;
  const auto whole = static_cast<std::uint16_t>(spec.flags & ~key_variable_flags);
  const auto is_one_of_them = [&](std::string_view word) {
    std::string_view rest = spec.words;
    while (!rest.empty()) {
      if (is_word(word, key_column::take_up_to(rest, ","))) return true;
      rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));
    }
    return false;
  };
  const auto from = std::min(static_cast<std::size_t>(spec.words_from), words.size());
  return std::ranges::any_of(words.subspan(from), is_one_of_them) ? whole : spec.other_flags;
}

UsedKeys used_keys(const KeySpecs& specs, Words words) {
  UsedKeys used;
  for (const KeySpec& spec : specs.all()) {
    switch (spec.position) {
      case KeySpec::Position::range: {
        if (is_left_out(specs, spec, words)) break;
        const auto count = static_cast<int>(words.size());
        add_range(used, spec, words, spec.first, spec.last < 0 ? count + spec.last : spec.last);
        break;
      }
      case KeySpec::Position::counted:
        add_counted(used, spec, words);
        break;
      case KeySpec::Position::keyword:
        add_behind_keyword(used, spec, words);
        break;
      case KeySpec::Position::streams:
        add_streams(used, spec, words);
        break;
      case KeySpec::Position::by:
        note_sort_patterns(used, spec, words);
        break;
      case KeySpec::Position::migrated:
        add_migrated(used, spec, words);
        break;
      case KeySpec::Position::store:
        add_sort_target(used, spec, words);
        break;
      default:
        compose(used, spec, words);
    }
  }
  return used;
}

}  // namespace semel::net
