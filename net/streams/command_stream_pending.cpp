// Pending entries of a group: XACK, XPENDING.
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/types/stream_groups.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "net/streams/stream_reply.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

using engine::Element;
using engine::GroupName;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::Ranks;
using engine::StreamId;

/// What stands behind XPENDING key group.
struct XpendingWords {
  bool is_summary = true;
  std::int64_t idle_min = 0;
  StreamId from{};
  StreamId to{};
  std::int64_t count = 0;
  std::optional<std::string_view> consumer{};
};

/// False: an error has been written.
bool read_xpending(Call& call, XpendingWords& words) {
  constexpr std::size_t interval_at = 3;
  constexpr std::size_t interval_words = 3;
  constexpr std::size_t words_max = 9;
  const std::size_t count = call.args.size();
  if (count == interval_at) return true;
  if (count < interval_at + interval_words || count > words_max) return call.fail_syntax(), false;
  words.is_summary = false;
  std::size_t at = interval_at;
  if (is_word(call.args[at], "idle")) {
    if (!read_number(call, call.args[at + 1], words.idle_min)) return false;
    at += 2;
    if (count < at + interval_words) return call.fail_syntax(), false;
  }
  if (!read_number(call, call.args[at + 2], words.count)) return false;
  words.count = std::max<std::int64_t>(words.count, 0);
  const auto from = read_interval_begin(call, call.args[at]);
  if (!from) return false;
  const auto to = read_interval_end(call, call.args[at + 1]);
  if (!to) return false;
  words.from = *from;
  words.to = *to;
  if (at + interval_words < count) words.consumer = call.args[at + interval_words];
  return true;
}

void write_summary(RespWriter& reply, const ObjectReader& stream, Bytes group) {
  constexpr std::size_t parts = 4;
  const Ranks pending = engine::pending_of(stream, {group});
  reply.array(parts);
  reply.integer(static_cast<std::int64_t>(pending.count()));
  if (pending.empty()) {
    reply.null();
    reply.null();
    return reply.null_array();
  }
  write_id(reply, engine::id_of(stream.at(pending.from).key));
  write_id(reply, engine::id_of(stream.at(pending.to - 1).key));
  CountedReply consumers{reply};
  const Ranks all = engine::consumers_of(stream, {group});
  stream.each(all.from, all.to, [&](const Element& element) {
    const Bytes consumer = engine::consumer_of(element, group);
    const std::size_t owned = engine::owned_by(stream, {group, consumer}).count();
    if (owned == 0) return true;
    RespWriter& next = consumers.next();
    next.array(2);
    next.bulk(consumer);
    next.bulk_of(static_cast<std::int64_t>(owned));
    return !consumers.is_cut();
  });
  consumers.write();
}

void write_pending(RespWriter& reply, const ObjectReader& stream, Bytes group,
                   const XpendingWords& words, std::int64_t now) {
  if (words.consumer && !engine::find_consumer(stream, {group, *words.consumer})) {
    return reply.array(0);
  }
  const Ranks ranks = words.consumer
                          ? engine::owned_by(stream, {group, *words.consumer}, words.from, words.to)
                          : engine::pending_of(stream, {group}, words.from, words.to);
  std::int64_t left = words.count;
  CountedReply shown{reply};
  stream.each(ranks.from, left == 0 ? ranks.from : ranks.to, [&](const Element& element) {
    const StreamId id = engine::id_of(element.key);
    const auto state = words.consumer ? engine::find_pending(stream, {group}, id)
                                      : engine::read_pending(element.value);
    if (!state) return true;
    const std::int64_t idle = ms_apart(now, state->delivered_ms);
    if (words.idle_min != 0 && idle < words.idle_min) return true;
    constexpr std::size_t parts = 4;
    RespWriter& next = shown.next();
    next.array(parts);
    write_id(next, id);
    next.bulk(state->consumer);
    next.integer(std::max<std::int64_t>(idle, 0));
    next.integer(static_cast<std::int64_t>(state->deliveries));
    return --left != 0 && !shown.is_cut();
  });
  shown.write();
}

}  // namespace

namespace handlers {

void xack(Call& call) {
  const GroupName group{call.args[2]};
  std::vector<StreamId> ids;
  ids.reserve(call.args.size() - 3);
  bool are_ids = true;
  for (const std::string_view word : call.args.subspan(3)) {
    const auto id = stream_id_of(word);
    are_ids = are_ids && id.has_value();
    ids.push_back(id.value_or(StreamId{}));
  }
  std::int64_t count = 0;
  bool is_bad = false;
  notify_miss(call, call.key());
  const auto done = change_object(call, call.key(), Kind::stream, [&](ObjectEdit& stream) {
    count = 0;
    // Without the group nothing is pending, and no id is looked at.
    is_bad = !are_ids && engine::find_group(stream, group);
    if (!are_ids) return ErrorCode::ok;
    for (const StreamId id : ids) count += engine::acknowledge(stream, group, id) ? 1 : 0;
    return ErrorCode::ok;
  });
  if (!done) return;
  if (is_bad) return call.fail(bad_id_text);
  call.reply.integer(count);
}

void xpending(Call& call) {
  const std::string_view group = call.args[2];
  XpendingWords words;
  if (!read_xpending(call, words)) return;
  notify_miss(call, call.key());
  const std::int64_t now = engine::unix_ms_of_call(call.engine);
  read_object(call, call.key(), Kind::stream, [&](const ObjectReader& stream) {
    if (!engine::find_group(stream, {group})) return fail_no_group(call, call.key(), group);
    words.is_summary ? write_summary(call.reply, stream, group)
                     : write_pending(call.reply, stream, group, words, now);
  });
}

}  // namespace handlers
}  // namespace semel::net
