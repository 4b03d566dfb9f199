#include "net/sets/sort_words.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "net/commands/access.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

/// Reads one option and takes its words from `rest`. False: an error has been written.
bool read_option(Call& call, bool stores, std::span<const std::string_view>& rest,
                 SortWords& words) {
  const std::string_view name = rest[0];
  const std::size_t values = rest.size() - 1;
  std::size_t taken = 1;
  if (is_word(name, "asc")) {
    words.is_descending = false;
  } else if (is_word(name, "desc")) {
    words.is_descending = true;
  } else if (is_word(name, "alpha")) {
    words.is_alpha = true;
  } else if (is_word(name, "limit") && values >= 2) {
    const auto offset = integer_of(rest[1]);
    const auto count = integer_of(rest[2]);
    if (!offset || !count) return call.fail_number(), false;
    words.offset = *offset;
    words.count = *count;
    taken = 3;
  } else if (stores && is_word(name, "store") && values >= 1) {
    words.target = rest[1];
    taken = 2;
  } else if (is_word(name, "by") && values >= 1) {
    words.by = rest[1];
    if (!has_asterisk(rest[1])) {
      words.keeps_order = true;
    } else if (!may_read_all_keys(call)) {
      return call.fail(patterns_text("BY")), false;
    }
    taken = 2;
  } else if (is_word(name, "get") && values >= 1) {
    if (!may_read_all_keys(call)) return call.fail(patterns_text("GET")), false;
    words.gets.push_back(rest[1]);
    taken = 2;
  } else {
    return call.fail_syntax(), false;
  }
  rest = rest.subspan(taken);
  return true;
}

}  // namespace

std::optional<SortWords> sort_words_of(Call& call, bool stores) {
  SortWords words;
  for (auto rest = call.args.subspan(2); !rest.empty();) {
    if (!read_option(call, stores, rest, words)) return std::nullopt;
  }
  return words;
}

std::optional<SortPlace> sort_place(std::string_view pattern, std::string_view element) {
  const std::string_view shown = pattern.substr(0, pattern.find('\0'));
  const std::size_t star = shown.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  SortPlace place;
  std::size_t end = pattern.size();
  constexpr std::string_view arrow = "->";
  const std::size_t at = shown.find(arrow, star + 1);
  if (at != std::string_view::npos && at + arrow.size() < shown.size()) {
    place.field = pattern.substr(at + arrow.size());
    end = at;
  }
  place.key.append(pattern.substr(0, star)).append(element);
  place.key.append(pattern.substr(star + 1, end - star - 1));
  return place;
}

std::optional<double> sort_number(std::string_view text) {
  const std::string copy{text};
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || errno == ERANGE || std::isnan(number)) return std::nullopt;
  return number;
}

}  // namespace semel::net
