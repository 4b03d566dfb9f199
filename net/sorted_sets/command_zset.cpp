// Sorted sets: members, scores and ranks.
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/objects/sorted_set_reply.hpp"
#include "net/resp/text.hpp"
#include "net/sorted_sets/sorted_set_add.hpp"

namespace semel::net::handlers {

using engine::AddRule;
using engine::ObjectEdit;
using engine::ObjectReader;

namespace {

/// Reads the options from words[2] on, and returns where they end.
std::size_t read_options(Call& call, AddCommand& command) {
  std::size_t at = 2;
  for (; at < call.args.size(); ++at) {
    const std::string_view word = call.args[at];
    if (read_add_flag(word, command)) continue;
    if (is_word(word, "gt")) {
      command.rule.only_greater = true;
    } else if (is_word(word, "lt")) {
      command.rule.only_less = true;
    } else if (is_word(word, "incr")) {
      command.rule.adds = true;
    } else {
      break;
    }
  }
  return at;
}

/// The rank from the lowest score, or from the highest.
void write_rank(Call& call, engine::Direction direction) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    const auto rank = engine::rank_in(set, call.args[2]);
    if (!rank) return call.reply.null();
    const bool is_up = direction == engine::Direction::up;
    call.reply.integer(static_cast<std::int64_t>(is_up ? *rank : set.size() - 1 - *rank));
  });
}

}  // namespace

void zadd(Call& call) {
  AddCommand command;
  const std::size_t from = read_options(call, command);
  const std::span<const std::string_view> pairs = call.args.subspan(from);
  if (pairs.empty() || pairs.size() % 2 != 0) return call.fail_syntax();
  const AddRule& rule = command.rule;
  if (rule.only_new && rule.only_present) {
    return call.fail("ERR XX and NX options at the same time are not compatible");
  }
  if (rule.only_new + rule.only_greater + rule.only_less > 1) {
    return call.fail("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  if (rule.adds && pairs.size() > 2) {
    return call.fail("ERR INCR option supports a single increment-element pair");
  }
  command.additions.reserve(pairs.size() / 2);
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const auto score = score_of(pairs[i]);
    if (!score) return call.fail("ERR value is not a valid float");
    command.additions.push_back({*score, pairs[i + 1]});
  }
  add_members(call, command);
}

void zincrby(Call& call) {
  const auto by = score_of(call.args[2]);
  if (!by) return call.fail("ERR value is not a valid float");
  add_members(call, {.rule = {.adds = true}, .additions = {{*by, call.args[3]}}});
}

void zrem(Call& call) {
  std::int64_t removed = 0;
  const auto done = change_object(call, call.key(), Kind::sorted_set, [&](ObjectEdit& set) {
    removed = 0;
    for (const Bytes member : call.args.subspan(2)) removed += engine::remove_member(set, member);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (removed != 0) call.notify('z', "zrem", call.key());
  notify_removed(call, call.key(), *done);
  call.reply.integer(removed);
}

void zcard(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    call.reply.integer(static_cast<std::int64_t>(set.size()));
  });
}

void zscore(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    const auto score = engine::score_in(set, call.args[2]);
    score ? write_score(call.reply, *score) : call.reply.null();
  });
}

void zmscore(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    call.reply.array(call.args.size() - 2);
    for (const Bytes member : call.args.subspan(2)) {
      const auto score = engine::score_in(set, member);
      score ? write_score(call.reply, *score) : call.reply.null();
    }
  });
}

void zrank(Call& call) {
  write_rank(call, engine::Direction::up);
}
void zrevrank(Call& call) {
  write_rank(call, engine::Direction::down);
}

}  // namespace semel::net::handlers
