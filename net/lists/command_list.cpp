// Lists at their ends and by place. Between several lists: command_list_move.cpp. Whether a reply
// or an event comes first is redis-server's order, as a subscriber on the same connection sees it.
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "net/commands/handlers.hpp"
#include "net/objects/list_changes.hpp"
#include "net/resp/text.hpp"

namespace semel::net::handlers {
namespace {

using engine::ListEnd;
using engine::ObjectEdit;
using engine::ObjectReader;

std::int64_t count_of(std::size_t count) noexcept {
  return static_cast<std::int64_t>(count);
}

enum class Missing : bool { is_made, stays };

void push(Call& call, ListEnd end, Missing missing) {
  std::int64_t length = 0;
  const auto done = change_object(call, call.key(), Kind::list, [&](ObjectEdit& list) {
    length = 0;
    if (missing == Missing::stays && list.empty()) return ErrorCode::ok;
    for (const Bytes element : call.args.subspan(2)) push_to_list(list, end, element);
    length = count_of(list.size());
    return ErrorCode::ok;
  });
  if (!done) return;
  call.reply.integer(length);
  if (length != 0) call.notify('l', end == ListEnd::head ? "lpush" : "rpush", call.key());
}

void pop(Call& call, ListEnd end) {
  constexpr std::size_t words_max = 3;
  if (call.args.size() > words_max) return call.fail_arity();
  const bool has_count = call.args.size() == words_max;
  const auto count = has_count ? integer_of(call.args[2]) : std::optional<std::int64_t>{1};
  if (!count || *count < 0) return call.fail("ERR value is out of range, must be positive");
  const auto popped = pop_elements(call.engine, {call.client.db, call.key()}, end,
                                   static_cast<std::uint64_t>(*count));
  if (!popped.ok()) return call.fail(popped.error());
  if (!popped->change.was_there) return has_count ? call.reply.null_array() : call.reply.null();
  if (has_count) call.reply.array(popped->elements.size());
  for (const std::string& element : popped->elements) call.reply.bulk(element);
  if (popped->elements.empty()) return;
  notify_popped(ChangeSite::of(call), call.key(), end, popped->change);
}

/// None: an error has been written.
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(Call& call) {
  const auto first = integer_of(call.args[2]);
  const auto last = integer_of(call.args[3]);
  if (first && last) return std::pair{*first, *last};
  call.fail_number();
  return std::nullopt;
}

struct Positions {
  engine::ListSearch search{};
  bool has_count = false;
};

/// None: an error has been written.
std::optional<Positions> positions_of(Call& call) {
  Positions wanted;
  wanted.search.element = call.args[2];
  wanted.search.matches_max = 1;
  const auto at_least_zero = [&](std::string_view word,
                                 std::string_view name) -> std::optional<std::uint64_t> {
    const auto number = integer_of(word);
    if (number && *number >= 0) return static_cast<std::uint64_t>(*number);
    call.fail("ERR " + std::string{name} + " can't be negative");
    return std::nullopt;
  };
  for (std::size_t i = 3; i < call.args.size(); i += 2) {
    const std::string_view option = call.args[i];
    if (i + 1 == call.args.size()) return call.fail_syntax(), std::nullopt;
    const std::string_view value = call.args[i + 1];
    if (is_word(option, "rank")) {
      const auto rank = integer_of(value);
      if (!rank) return call.fail_number(), std::nullopt;
      if (*rank == 0) {
        call.fail(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
            "use negative to start from the end of the list");
        return std::nullopt;
      }
      wanted.search.first_match = *rank;
    } else if (is_word(option, "count")) {
      const auto count = at_least_zero(value, "COUNT");
      if (!count) return std::nullopt;
      wanted.search.matches_max = *count;
      wanted.has_count = true;
    } else if (is_word(option, "maxlen")) {
      const auto most = at_least_zero(value, "MAXLEN");
      if (!most) return std::nullopt;
      wanted.search.compared_max = *most;
    } else {
      return call.fail_syntax(), std::nullopt;
    }
  }
  // The number has no counterpart: redis-server goes from the tail, and counts no match.
  const bool is_least = wanted.search.first_match == std::numeric_limits<std::int64_t>::min();
  if (is_least && wanted.has_count) wanted.search.matches_max = 0;
  return wanted;
}

}  // namespace

void lpush(Call& call) {
  push(call, ListEnd::head, Missing::is_made);
}
void rpush(Call& call) {
  push(call, ListEnd::tail, Missing::is_made);
}
void lpushx(Call& call) {
  push(call, ListEnd::head, Missing::stays);
}
void rpushx(Call& call) {
  push(call, ListEnd::tail, Missing::stays);
}
void lpop(Call& call) {
  pop(call, ListEnd::head);
}
void rpop(Call& call) {
  pop(call, ListEnd::tail);
}

void llen(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::list,
              [&](const ObjectReader& list) { call.reply.integer(count_of(list.size())); });
}

void lrange(Call& call) {
  const auto range = range_of(call);
  if (!range) return;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::list, [&](const ObjectReader& list) {
    const engine::ListRange part = engine::list_range(list.size(), range->first, range->second);
    call.reply.array(part.size());
    list.each(part.from, part.to, [&](const engine::Element& element) {
      call.reply.bulk(element.value);
      return !call.reply.is_cut();
    });
  });
}

void lindex(Call& call) {
  const auto index = integer_of(call.args[2]);
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::list, [&](const ObjectReader& list) {
    if (list.empty()) return call.reply.null();
    if (!index) return call.fail_number();
    const auto rank = engine::list_rank(list.size(), *index);
    rank ? call.reply.bulk(list.at(*rank).value) : call.reply.null();
  });
}

void lset(Call& call) {
  const auto index = integer_of(call.args[2]);
  std::optional<std::size_t> rank;
  const auto done = change_object(call, call.key(), Kind::list, [&](ObjectEdit& list) {
    rank = index ? engine::list_rank(list.size(), *index) : std::nullopt;
    if (rank) list.set_at(*rank, call.args[3]);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (!done->was_there) return call.fail("ERR no such key");
  if (!index) return call.fail_number();
  if (!rank) return call.fail("ERR index out of range");
  call.reply.ok();
  call.notify('l', "lset", call.key());
}

void linsert(Call& call) {
  const bool is_behind = is_word(call.args[2], "after");
  if (!is_behind && !is_word(call.args[2], "before")) return call.fail_syntax();
  bool is_done = false;
  std::int64_t length = 0;
  const auto done = change_object(call, call.key(), Kind::list, [&](ObjectEdit& list) {
    is_done = insert_into_list(list, call.args[3], is_behind, call.args[4]);
    length = count_of(list.size());
    return ErrorCode::ok;
  });
  if (!done) return;
  if (is_done) call.notify('l', "linsert", call.key());
  call.reply.integer(is_done || !done->was_there ? length : -1);
}

void lrem(Call& call) {
  const auto count = integer_of(call.args[2]);
  if (!count) return call.fail_number();
  std::size_t removed = 0;
  const auto done = change_object(call, call.key(), Kind::list, [&](ObjectEdit& list) {
    removed = remove_from_list(list, call.args[3], *count);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (removed != 0) call.notify('l', "lrem", call.key());
  notify_removed(call, call.key(), *done);
  call.reply.integer(count_of(removed));
}

void ltrim(Call& call) {
  const auto range = range_of(call);
  if (!range) return;
  const auto done = change_object(call, call.key(), Kind::list, [&](ObjectEdit& list) {
    trim_list(list, engine::list_range(list.size(), range->first, range->second));
    return ErrorCode::ok;
  });
  if (!done) return;
  if (done->was_there) call.notify('l', "ltrim", call.key());  // also if it kept everything
  notify_removed(call, call.key(), *done);
  call.reply.ok();
}

void lpos(Call& call) {
  const auto wanted = positions_of(call);
  if (!wanted) return;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::list, [&](const ObjectReader& list) {
    const auto found = find_in_list(list, wanted->search);
    if (!wanted->has_count) {
      return found.empty() ? call.reply.null() : call.reply.integer(count_of(found.front()));
    }
    call.reply.array(found.size());
    for (const std::size_t rank : found) call.reply.integer(count_of(rank));
  });
}

}  // namespace semel::net::handlers
