// Pops and moves that wait for an element.
#include <optional>
#include <span>
#include <string_view>

#include "net/commands/handlers.hpp"
#include "net/objects/object_wait.hpp"
#include "net/resp/pop_words.hpp"
#include "net/resp/text.hpp"

namespace semel::net::handlers {
namespace {

using engine::ListEnd;
using Words = std::span<const std::string_view>;

/// The words between the name and the timeout.
Words keys_before_timeout(const Call& call) {
  return call.args.subspan(1, call.args.size() - 2);
}

template <class What>
void pop_or_wait(Call& call, const What& what) {
  Millis timeout{0};
  const auto error = read_timeout(call.args.back(), timeout);
  if (!error.empty()) return call.fail(error);
  take_or_wait(call, keys_before_timeout(call), timeout, what);
}

void move_between(Call& call, ListEnd from_end, ListEnd to_end) {
  Millis timeout{0};
  const auto error = read_timeout(call.args.back(), timeout);
  if (!error.empty()) return call.fail(error);
  move_or_wait(call, timeout,
               {.from = call.args[1], .to = call.args[2], .from_end = from_end, .to_end = to_end});
}

/// MIN or MAX.
std::optional<bool> is_highest(std::string_view word) {
  if (is_word(word, "max")) return true;
  if (is_word(word, "min")) return false;
  return std::nullopt;
}

struct PopOrWait {
  PopWords pop{};
  Millis timeout{0};
};

/// In redis-server's order of checks. False: an error has been written.
template <class TakeEnd>
bool read(Call& call, PopOrWait& words, const TakeEnd& take_end) {
  WordsError error = read_pop_keys(call.args, 2, words.pop);
  if (error.empty() && !take_end(words.pop.end)) error = "ERR syntax error";
  if (error.empty()) error = read_pop_count(words.pop);
  if (error.empty()) error = read_timeout(call.args[1], words.timeout);
  if (!error.empty()) call.fail(error);
  return error.empty();
}

}  // namespace

void blpop(Call& call) {
  pop_or_wait(call, ListTaking{.end = ListEnd::head});
}
void brpop(Call& call) {
  pop_or_wait(call, ListTaking{.end = ListEnd::tail});
}
void bzpopmin(Call& call) {
  pop_or_wait(call, SortedTaking{.is_highest = false});
}
void bzpopmax(Call& call) {
  pop_or_wait(call, SortedTaking{.is_highest = true});
}

void blmove(Call& call) {
  const auto from_end = list_end_of(call.args[3]);
  const auto to_end = list_end_of(call.args[4]);
  if (!from_end || !to_end) return call.fail_syntax();
  move_between(call, *from_end, *to_end);
}

void brpoplpush(Call& call) {
  move_between(call, ListEnd::tail, ListEnd::head);
}

void blmpop(Call& call) {
  PopOrWait words;
  std::optional<ListEnd> end;
  if (!read(call, words,
            [&](std::string_view word) { return (end = list_end_of(word)).has_value(); })) {
    return;
  }
  take_or_wait(call, words.pop.keys, words.timeout,
               ListTaking{.end = *end, .count = words.pop.count, .is_list = true});
}

void bzmpop(Call& call) {
  PopOrWait words;
  std::optional<bool> highest;
  if (!read(call, words,
            [&](std::string_view word) { return (highest = is_highest(word)).has_value(); })) {
    return;
  }
  take_or_wait(call, words.pop.keys, words.timeout,
               SortedTaking{.is_highest = *highest, .count = words.pop.count, .is_list = true});
}

}  // namespace semel::net::handlers
