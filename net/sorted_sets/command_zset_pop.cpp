// Sorted sets: members that are taken from an end.
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/objects/key_section.hpp"
#include "net/objects/object_command.hpp"
#include "net/objects/sorted_set_reply.hpp"
#include "net/resp/text.hpp"

namespace semel::net::handlers {

using engine::Direction;
using engine::ObjectEdit;
using engine::ScoredText;

namespace {

std::string_view event_of(Direction from) noexcept {
  return from == Direction::up ? "zpopmin" : "zpopmax";
}

/// Publishes the events as well. None: the error is the reply.
std::optional<std::vector<ScoredText>> pop(Call& call, Bytes key, Direction from,
                                           std::size_t count) {
  std::vector<ScoredText> popped;
  const auto done = change_object(call, key, Kind::sorted_set, [&](ObjectEdit& set) {
    engine::pop_members(set, from, count, popped);
    return ErrorCode::ok;
  });
  if (!done) return std::nullopt;
  if (!popped.empty()) call.notify('z', event_of(from), key);
  notify_removed(call, key, *done);
  return popped;
}

void run_pop(Call& call, Direction from) {
  if (call.args.size() > 3) return call.fail_syntax();
  const bool has_count = call.args.size() == 3;
  std::size_t count = 1;
  if (has_count) {
    const auto wanted = integer_of(call.args[2]);
    if (!wanted || *wanted < 0) return call.fail("ERR value is out of range, must be positive");
    count = static_cast<std::size_t>(*wanted);
  }
  const auto popped = pop(call, call.key(), from, count);
  if (!popped) return;
  const bool is_nested = has_count && call.reply.dialect() == Resp::three;
  call.reply.array(is_nested ? popped->size() : 2 * popped->size());
  for (const ScoredText& each : *popped) {
    if (is_nested) call.reply.array(2);
    call.reply.bulk(each.member);
    write_score(call.reply, each.score);
  }
}

struct MultiPop {
  std::span<const std::string_view> keys;
  Direction from = Direction::up;
  std::size_t count = 1;
};

/// None: an error has been written.
std::optional<MultiPop> read_multi_pop(Call& call) {
  MultiPop wanted;
  const auto syntax = [&] {
    call.fail_syntax();
    return std::nullopt;
  };
  const auto count = integer_of(call.args[1]);
  if (!count || *count < 1) {
    call.fail("ERR numkeys should be greater than 0");
    return std::nullopt;
  }
  const std::span<const std::string_view> words = call.args.subspan(2);
  if (static_cast<std::uint64_t>(*count) >= words.size()) return syntax();
  wanted.keys = words.first(static_cast<std::size_t>(*count));
  std::span<const std::string_view> rest = words.subspan(wanted.keys.size());
  if (is_word(rest[0], "max")) {
    wanted.from = Direction::down;
  } else if (!is_word(rest[0], "min")) {
    return syntax();
  }
  rest = rest.subspan(1);
  if (rest.empty()) return wanted;
  if (rest.size() == 1 || !is_word(rest[0], "count")) return syntax();
  const auto most = integer_of(rest[1]);
  if (!most || *most < 1) {
    call.fail("ERR count should be greater than 0");
    return std::nullopt;
  }
  if (rest.size() > 2) return syntax();
  wanted.count = static_cast<std::size_t>(*most);
  return wanted;
}

}  // namespace

void zpopmin(Call& call) {
  run_pop(call, Direction::up);
}
void zpopmax(Call& call) {
  run_pop(call, Direction::down);
}

void zmpop(Call& call) {
  const auto wanted = read_multi_pop(call);
  if (!wanted) return;
  auto section = hold_keys(call, wanted->keys);
  if (!section) return;
  for (const Bytes key : wanted->keys) {
    const auto popped = pop(call, key, wanted->from, wanted->count);
    if (!popped) return;
    if (popped->empty()) continue;
    if (!commit(call, *section)) return;
    call.reply.array(2);
    call.reply.bulk(key);
    call.reply.array(popped->size());
    for (const ScoredText& each : *popped) {
      call.reply.array(2);
      call.reply.bulk(each.member);
      write_score(call.reply, each.score);
    }
    return;
  }
  call.reply.null_array();
}

}  // namespace semel::net::handlers
