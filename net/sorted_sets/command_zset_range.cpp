// Sorted sets: ranges that are read, counted, stored or removed.
#include <string>
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/objects/key_section.hpp"
#include "net/objects/object_command.hpp"
#include "net/objects/sorted_set_reply.hpp"
#include "net/sorted_sets/sorted_set_range.hpp"

namespace semel::net::handlers {

using engine::Direction;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::RankRange;

namespace {

void run_range(Call& call, const RangeForm& form) {
  const auto query = read_range(call, form);
  if (!query) return;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    const RankRange ranks = query->ranks(set);
    write_scored_head(call.reply, ranks.size(), query->with_scores);
    engine::each_scored(set, ranks, query->direction, [&](const engine::Scored& each) {
      write_scored(call.reply, each, query->with_scores);
      return !call.reply.is_cut();
    });
  });
}

void run_count(Call& call, RangeBy by) {
  RangeQuery query{.by = by};
  if (!read_bounds(call, call.args[2], call.args[3], query)) return;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    call.reply.integer(static_cast<std::int64_t>(query.ranks(set).size()));
  });
}

void run_remove(Call& call, RangeBy by, std::string_view event) {
  RangeQuery query{.by = by};
  if (!read_bounds(call, call.args[2], call.args[3], query)) return;
  std::size_t removed = 0;
  const auto done = change_object(call, call.key(), Kind::sorted_set, [&](ObjectEdit& set) {
    const RankRange ranks = query.ranks(set);
    removed = ranks.size();
    set.erase_range(ranks.from, ranks.to);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (removed != 0) call.notify('z', event, call.key());
  notify_removed(call, call.key(), *done);
  call.reply.integer(static_cast<std::int64_t>(removed));
}

}  // namespace

void zrange(Call& call) {
  run_range(call, {});
}
void zrevrange(Call& call) {
  run_range(call, {.by = RangeBy::rank, .direction = Direction::down});
}
void zrangebyscore(Call& call) {
  run_range(call, {.by = RangeBy::score, .direction = Direction::up});
}
void zrevrangebyscore(Call& call) {
  run_range(call, {.by = RangeBy::score, .direction = Direction::down});
}
void zrangebylex(Call& call) {
  run_range(call, {.by = RangeBy::member, .direction = Direction::up});
}
void zrevrangebylex(Call& call) {
  run_range(call, {.by = RangeBy::member, .direction = Direction::down});
}

void zcount(Call& call) {
  run_count(call, RangeBy::score);
}
void zlexcount(Call& call) {
  run_count(call, RangeBy::member);
}

void zremrangebyrank(Call& call) {
  run_remove(call, RangeBy::rank, "zremrangebyrank");
}
void zremrangebyscore(Call& call) {
  run_remove(call, RangeBy::score, "zremrangebyscore");
}
void zremrangebylex(Call& call) {
  run_remove(call, RangeBy::member, "zremrangebylex");
}

void zrangestore(Call& call) {
  const auto query = read_range(call, {.stores = true, .at = 3});
  if (!query) return;
  const Bytes target = call.args[1];
  const Bytes source = call.args[2];
  const Bytes keys[] = {target, source};
  auto section = hold_keys(call, keys);
  if (!section) return;
  notify_miss(call, source);
  std::vector<std::string> elements;
  const Status read = engine::read_object(
      call.engine, {call.client.db, source}, Kind::sorted_set, [&](const ObjectReader& set) {
        const RankRange ranks = query->ranks(set);
        elements.reserve(ranks.size());
        set.each(ranks.from, ranks.to, [&](const engine::Element& element) {
          elements.emplace_back(element.key);
          return true;
        });
      });
  if (!read) return call.fail(read.error());
  const auto stored = engine::replace_object(call.engine, {call.client.db, target},
                                             Kind::sorted_set, [&](ObjectEdit& set) {
                                               for (const auto& element : elements)
                                                 set.put(element);
                                               return ErrorCode::ok;
                                             });
  if (!stored.ok()) return call.fail(stored.error());
  if (!commit(call, *section)) return;
  reply_stored(call, target, *stored, elements.size(), "zrangestore");
}

}  // namespace semel::net::handlers
