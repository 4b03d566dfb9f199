// Members and scores of sorted sets in replies.
#pragma once

#include "engine/object_api/object_calls.hpp"
#include "net/commands/command.hpp"
#include "net/objects/score_text.hpp"
#include "net/settings/settings.hpp"

namespace semel::net {

/// The head of a list of so many elements, each with its score or alone.
inline void write_scored_head(RespWriter& reply, std::size_t count, bool with_scores) {
  reply.array(with_scores && reply.dialect() == Resp::two ? 2 * count : count);
}
/// One of them. RESP3 has a list of two, where RESP2 has both in a row.
inline void write_scored(RespWriter& reply, const engine::Scored& each, bool with_scores) {
  const bool is_pair = with_scores && reply.dialect() == Resp::three;
  if (is_pair) reply.array(2);
  reply.bulk(each.member);
  if (with_scores) write_score(reply, each.score);
}

/// Of a command that has put `count` elements in place of what `target` held, or, if there are
/// none, has removed it.
inline void reply_stored(Call& call, Bytes target, const engine::ObjectChange& change,
                         std::size_t count, std::string_view event) {
  if (change.is_new()) call.notify('n', "new", target);
  call.reply.integer(static_cast<std::int64_t>(count));
  if (count != 0) call.notify('z', event, target);
  if (change.is_gone()) call.notify('g', "del", target);
}

/// Whether redis-server would hold it as a listpack, had it been made as it is.
[[nodiscard]] inline bool is_listpack(const engine::ObjectReader& set, const Settings& settings) {
  return engine::is_small(
      set, static_cast<std::size_t>(settings.integer(Setting::zset_max_listpack_entries)),
      static_cast<std::size_t>(settings.integer(Setting::zset_max_listpack_value)));
}

}  // namespace semel::net
