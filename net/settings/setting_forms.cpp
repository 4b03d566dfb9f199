#include "net/settings/setting_forms.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "net/resp/client_memory.hpp"
#include "net/resp/text.hpp"
#include "net/settings/setting_table.hpp"
#include "net/settings/setting_units.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

Error bad_text(const char* text) {
  return {ErrorCode::bad_option, text};
}

struct EventLetter {
  char letter;
  std::uint32_t classes;
};
/// In the order in which redis-server shows them.
constexpr std::array event_letters{
    EventLetter{'A', event_all},      EventLetter{'g', event_generic},
    EventLetter{'$', event_string},   EventLetter{'l', event_list},
    EventLetter{'s', event_set},      EventLetter{'h', event_hash},
    EventLetter{'z', event_zset},     EventLetter{'x', event_expired},
    EventLetter{'e', event_evicted},  EventLetter{'t', event_stream},
    EventLetter{'d', event_module},   EventLetter{'n', event_new},
    EventLetter{'K', event_keyspace}, EventLetter{'E', event_keyevent},
    EventLetter{'m', event_missed}};

Result<std::string> events(std::string_view text, std::string_view) {
  const auto classes = event_classes_of(text);
  if (!classes) return bad_text("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  std::string formed;
  std::uint32_t left = *classes;
  for (const EventLetter& row : event_letters) {
    if ((left & row.classes) != row.classes) continue;
    formed += row.letter;
    left &= ~row.classes;
  }
  return formed;
}

constexpr std::array<std::string_view, 3> client_classes{"normal", "slave", "pubsub"};

std::optional<std::size_t> client_class_of(std::string_view word) {
  if (is_word(word, "replica")) return 1;
  for (std::size_t i = 0; i < client_classes.size(); ++i) {
    if (is_word(word, client_classes[i])) return i;
  }
  return std::nullopt;
}

Result<std::string> output_limits(std::string_view text, std::string_view present) {
  constexpr std::size_t words_each = 4;
  const auto words = words_of(text);
  if (words.size() % words_each != 0) {
    return bad_text("Wrong number of arguments in buffer limit configuration.");
  }
  OutputLimits limits = output_limits_of(present);
  for (std::size_t i = 0; i < words.size(); i += words_each) {
    const auto name = client_class_of(words[i]);
    if (!name) return bad_text("Invalid client class specified in buffer limit configuration.");
    const auto hard = bytes_of(words[i + 1]);
    const auto soft = bytes_of(words[i + 2]);
    const auto seconds = integer_of(words[i + 3]);
    if (!hard || !soft || !seconds || *seconds < 0 ||
        *seconds > std::numeric_limits<std::int32_t>::max()) {
      return bad_text("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    limits[*name] = {*hard, *soft, *seconds};
  }
  std::string formed;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    formed += (i == 0 ? "" : " ") + std::string{client_classes[i]} + ' ' +
              std::to_string(limits[i].hard_bytes) + ' ' + std::to_string(limits[i].soft_bytes) +
              ' ' + std::to_string(limits[i].soft_seconds);
  }
  return formed;
}

Result<std::string> save_points(std::string_view text, std::string_view) {
  const auto words = words_of(text);
  std::string formed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto number = integer_of(words[i]);
    const bool is_seconds = i % 2 == 0;
    if (!number || *number < (is_seconds ? 1 : 0) || words.size() % 2 != 0) {
      return bad_text("Invalid save parameters");
    }
    formed += (i == 0 ? "" : " ") + std::to_string(*number);
  }
  return formed;
}

Result<std::string> percentiles(std::string_view text, std::string_view) {
  constexpr long double percent_max = 100;
  std::string formed;
  for (const std::string_view word : words_of(text)) {
    const auto number = float_of(word);
    if (!number) return bad_text("Invalid latency-tracking-info-percentiles parameters");
    if (*number < 0 || *number > percent_max) {
      return bad_text(
          "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    std::array<char, 32> digits;  // as printf's %g writes it
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                   static_cast<double>(*number), std::chars_format::general, 6);
    formed.append(formed.empty() ? "" : " ").append(digits.data(), end.ptr);
  }
  return formed;
}

Result<std::string> three_integers(std::string_view text, std::string_view) {
  constexpr std::int64_t bound = 2000;
  const auto words = words_of(text);
  if (words.size() != 3) return bad_text("wrong number of arguments");
  std::string formed;
  for (const std::string_view word : words) {
    const auto number = integer_of(word);
    if (!number || *number < -bound || *number > bound) {
      return bad_text("Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
    }
    formed += (formed.empty() ? "" : " ") + std::to_string(*number);
  }
  return formed;
}

Result<std::string> memory_or_percent(std::string_view text, std::string_view) {
  constexpr std::int64_t percent_max = 100;
  const bool is_percent = text.ends_with('%');
  const auto number = is_percent ? integer_of(text.substr(0, text.size() - 1)) : bytes_of(text);
  if (!number || *number < 0) return bad_text("argument must be a memory or percent value");
  if (is_percent && *number > percent_max) {
    return bad_text("percentage argument must be less or equal to 100");
  }
  return std::to_string(*number) + (is_percent ? "%" : "");
}

/// Each number once, in order.
Result<std::string> cache_databases(std::string_view text, std::string_view) {
  if (is_word(text, "all")) return std::string{"all"};
  std::uint32_t databases = 0;
  for (const std::string_view word : words_of(text)) {
    const auto number = integer_of(word);
    if (!number || *number < 0 || *number >= static_cast<std::int64_t>(limits::db_count)) {
      return bad_text("argument must be 'all' or numbers of databases, 0 to 15");
    }
    databases |= 1U << static_cast<unsigned>(*number);
  }
  std::string formed;
  for (unsigned db = 0; db < limits::db_count; ++db) {
    if ((databases >> db & 1) != 0)
      formed.append(formed.empty() ? "" : " ").append(std::to_string(db));
  }
  return formed;
}

/// "no one" is no master, as with the command.
Result<std::string> replica_of(std::string_view text, std::string_view) {
  const auto words = words_of(text);
  if (words.empty()) return std::string{};
  if (words.size() != 2) return bad_text("wrong number of arguments");
  if (is_word(words[0], "no") && is_word(words[1], "one")) return std::string{};
  constexpr std::int64_t port_max = 65'535;
  const auto port = integer_of(words[1]);
  if (!port || *port < 1 || *port > port_max) return bad_text("Invalid master port");
  return std::string{words[0]} + " " + std::to_string(*port);
}

struct Form {
  std::string_view name;
  Result<std::string> (*make)(std::string_view text, std::string_view present);
};
constexpr std::array forms{Form{"events", events},
                           Form{"cache-databases", cache_databases},
                           Form{"output-limits", output_limits},
                           Form{"save-points", save_points},
                           Form{"replica-of", replica_of},
                           Form{"percentiles", percentiles},
                           Form{"three-integers", three_integers},
                           Form{"memory-or-percent", memory_or_percent}};

}  // namespace

std::optional<std::uint32_t> event_classes_of(std::string_view letters) {
  std::uint32_t classes = 0;
  for (const char letter : letters) {
    std::uint32_t named = 0;
    for (const EventLetter& row : event_letters) {
      if (row.letter == letter) named = row.classes;
    }
    if (named == 0) return std::nullopt;
    classes |= named;
  }
  return classes;
}

std::size_t clients_bytes_of(std::string_view text, std::size_t whole) {
  constexpr std::size_t percent = 100;
  constexpr std::size_t usual = 25;
  std::size_t share = usual;
  std::size_t bytes = 0;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    share = static_cast<std::size_t>(integer_of(text).value_or(0));
    if (share == 0) share = usual;
  } else {
    bytes = static_cast<std::size_t>(bytes_of(text).value_or(0));
  }
  if (bytes == 0) bytes = whole / percent * share;
  return std::max(bytes, ClientMemory::limit_min);
}

OutputLimits output_limits_of(std::string_view text) {
  OutputLimits limits;
  const auto words = words_of(text);
  for (std::size_t i = 0; i + 3 < words.size(); i += 4) {
    if (const auto name = client_class_of(words[i])) {
      limits[*name] = {bytes_of(words[i + 1]).value_or(0), bytes_of(words[i + 2]).value_or(0),
                       integer_of(words[i + 3]).value_or(0)};
    }
  }
  return limits;
}

Result<std::string> formed_text(std::string_view form, std::string_view text,
                                std::string_view present) {
  for (const Form& known : forms) {
    if (known.name == form) return known.make(text, present);
  }
  return std::string{text};
}

}  // namespace semel::net
