// Pending entries that another consumer takes over: XCLAIM, XAUTOCLAIM.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/types/stream_groups.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "net/streams/stream_reply.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

using engine::EntryKey;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::StreamId;

/// An integer with an error text of its own. False: it has been written.
bool read_number_or(Call& call, std::string_view word, std::int64_t& number,
                    std::string_view error) {
  const auto read = integer_of(word);
  if (!read) return call.fail(error), false;
  number = *read;
  return true;
}

/// The terms on which a consumer takes pending entries over.
struct TakeTerms {
  std::int64_t idle_min = 0;
  std::int64_t now = 0;
  std::int64_t delivered_ms = 0;
  std::optional<std::uint64_t> deliveries{};  ///< none: one more, or the same if only_ids
  bool creates = false;                       ///< ids that are not pending become so
  bool only_ids = false;                      ///< in the reply
};

enum class Taken : std::uint8_t { no, yes, deleted };

/// Gives `id` to the consumer, if the terms let it.
Taken take_over(ObjectEdit& stream, engine::ConsumerName to, StreamId id, const TakeTerms& terms) {
  const auto pending = engine::find_pending(stream, {to.group}, id);
  if (!stream.find(EntryKey{id})) {
    if (!pending) return Taken::no;
    engine::acknowledge(stream, {to.group}, id);
    return Taken::deleted;
  }
  if (!pending && !terms.creates) return Taken::no;
  if (pending && terms.idle_min != 0 &&
      ms_apart(terms.now, pending->delivered_ms) < terms.idle_min) {
    return Taken::no;
  }
  const std::uint64_t before = pending ? pending->deliveries : 1;
  const std::uint64_t counted = terms.only_ids ? before : before + 1;
  engine::give(stream, to, id, terms.delivered_ms, terms.deliveries.value_or(counted));
  return Taken::yes;
}

/// A consumer that takes nothing is neither created nor seen. True: it is new.
bool note_taker(ObjectEdit& stream, engine::ConsumerName to, std::size_t taken, std::int64_t now) {
  if (taken == 0) return false;
  return engine::note_active(stream, to, now);
}

void write_claimed(RespWriter& reply, const ObjectReader& stream, StreamId id, bool only_id) {
  if (only_id) return write_id(reply, id);
  const std::size_t rank = stream.rank(EntryKey{id});
  write_entry(reply, stream.at(rank));
}

/// What stands behind XCLAIM key group consumer.
struct XclaimWords {
  std::int64_t idle_min = 0;
  std::vector<StreamId> ids{};
  std::optional<std::int64_t> delivered_ms{};
  std::int64_t deliveries = -1;
  StreamId last{};
  bool creates = false;
  bool only_ids = false;
};

/// False: an error has been written.
bool read_xclaim(Call& call, std::int64_t now, XclaimWords& words) {
  if (!read_number_or(call, call.args[4], words.idle_min,
                      "ERR Invalid min-idle-time argument for XCLAIM")) {
    return false;
  }
  constexpr std::size_t ids_at = 5;
  std::size_t i = ids_at;
  for (; i < call.args.size(); ++i) {
    const auto id = stream_id_of(call.args[i]);
    if (!id) break;
    words.ids.push_back(*id);
  }
  for (; i < call.args.size(); ++i) {
    const std::string_view option = call.args[i];
    const std::string_view value = i + 1 < call.args.size() ? call.args[i + 1] : "";
    const bool has_value = i + 1 < call.args.size();
    std::int64_t number = 0;
    if (is_word(option, "force")) {
      words.creates = true;
    } else if (is_word(option, "justid")) {
      words.only_ids = true;
    } else if (has_value && is_word(option, "idle")) {
      constexpr std::string_view error = "ERR Invalid IDLE option argument for XCLAIM";
      if (!read_number_or(call, value, number, error)) return false;
      words.delivered_ms = ms_apart(now, number);
      ++i;
    } else if (has_value && is_word(option, "time")) {
      constexpr std::string_view error = "ERR Invalid TIME option argument for XCLAIM";
      if (!read_number_or(call, value, number, error)) return false;
      words.delivered_ms = number;
      ++i;
    } else if (has_value && is_word(option, "retrycount")) {
      constexpr std::string_view error = "ERR Invalid RETRYCOUNT option argument for XCLAIM";
      if (!read_number_or(call, value, words.deliveries, error)) return false;
      ++i;
    } else if (has_value && is_word(option, "lastid")) {
      const auto id = read_stream_id(call, value);
      if (!id) return false;
      words.last = *id;
      ++i;
    } else {
      call.fail("ERR Unrecognized XCLAIM option '" +
                std::string{option.substr(0, option.find('\0'))} + "'");
      return false;
    }
  }
  return true;
}

TakeTerms terms_of(const XclaimWords& words, std::int64_t now) {
  // A time that makes no sense is that of now.
  std::int64_t delivered = words.delivered_ms.value_or(now);
  if (delivered < 0 || delivered > now) delivered = now;
  TakeTerms terms{.idle_min = std::max<std::int64_t>(words.idle_min, 0),
                  .now = now,
                  .delivered_ms = delivered,
                  .creates = words.creates,
                  .only_ids = words.only_ids};
  if (words.deliveries >= 0) terms.deliveries = static_cast<std::uint64_t>(words.deliveries);
  return terms;
}

/// Claims, and writes the reply. True: the consumer is new.
bool take_all_over(RespWriter& reply, ObjectEdit& stream, engine::ConsumerName to,
                   const XclaimWords& words, std::int64_t now) {
  auto group = engine::find_group(stream, {to.group});
  if (group && words.last > group->last) {
    group->last = words.last;
    engine::set_group(stream, {to.group}, *group);
  }
  const TakeTerms terms = terms_of(words, now);
  CountedReply claimed{reply};
  for (const StreamId id : words.ids) {
    if (take_over(stream, to, id, terms) != Taken::yes) continue;
    write_claimed(claimed.next(), stream, id, words.only_ids);
  }
  claimed.write();
  return note_taker(stream, to, claimed.count(), now);
}

/// What stands behind XAUTOCLAIM key group consumer.
struct XautoclaimWords {
  std::int64_t idle_min = 0;
  StreamId from{};
  std::int64_t count = 100;
  bool only_ids = false;
};
constexpr std::int64_t attempts_for_each = 10;

/// False: an error has been written.
bool read_xautoclaim(Call& call, XautoclaimWords& words) {
  constexpr std::size_t options_at = 6;
  constexpr std::int64_t count_max = std::numeric_limits<std::int64_t>::max() / 16;
  if (!read_number_or(call, call.args[4], words.idle_min,
                      "ERR Invalid min-idle-time argument for XAUTOCLAIM")) {
    return false;
  }
  const auto from = read_interval_begin(call, call.args[options_at - 1]);
  if (!from) return false;
  words.from = *from;
  for (std::size_t i = options_at; i < call.args.size(); ++i) {
    if (is_word(call.args[i], "count") && i + 1 < call.args.size()) {
      constexpr std::string_view error = "ERR COUNT must be > 0";
      if (!read_number_or(call, call.args[++i], words.count, error)) return false;
      if (words.count < 1 || words.count > count_max) return call.fail(error), false;
    } else if (is_word(call.args[i], "justid")) {
      words.only_ids = true;
    } else {
      return call.fail_syntax(), false;
    }
  }
  return true;
}

/// Claims, and writes the reply. True: the consumer is new.
bool scan_and_take(RespWriter& reply, ObjectEdit& stream, engine::ConsumerName to,
                   const XautoclaimWords& words, std::int64_t now) {
  const TakeTerms terms{.idle_min = std::max<std::int64_t>(words.idle_min, 0),
                        .now = now,
                        .delivered_ms = now,
                        .only_ids = words.only_ids};
  CountedReply claimed{reply};
  std::vector<StreamId> deleted;
  std::int64_t left = words.count;
  std::int64_t attempts = words.count * attempts_for_each;
  std::size_t rank = stream.rank(engine::pending_key(to.group, words.from));
  const auto is_at_end = [&] { return rank >= engine::pending_of(stream, {to.group}).to; };
  while (attempts-- > 0 && left > 0 && !is_at_end() && !claimed.is_cut()) {
    const StreamId id = engine::id_of(stream.at(rank).key);
    const Taken done = take_over(stream, to, id, terms);
    if (done == Taken::deleted) {
      deleted.push_back(id);
    } else {
      ++rank;
    }
    if (done == Taken::yes) write_claimed(claimed.next(), stream, id, words.only_ids);
    left -= done == Taken::no ? 0 : 1;
  }
  reply.array(3);
  write_id(reply, is_at_end() ? StreamId{} : engine::id_of(stream.at(rank).key));
  claimed.write();
  reply.array(deleted.size());
  for (const StreamId id : deleted) write_id(reply, id);
  return note_taker(stream, to, claimed.count(), now);
}

}  // namespace

namespace handlers {

void xclaim(Call& whole) {
  const engine::ConsumerName to{whole.args[2], whole.args[3]};
  const std::int64_t now = engine::unix_ms_of_call(whole.engine);
  bool is_new = false;
  notify_miss(whole, whole.key());
  HeldCall held{whole, whole.reply.room()};
  const auto done = change_object(whole, whole.key(), Kind::stream, [&](ObjectEdit& stream) {
    is_new = false;
    Call& call = held.begin();
    if (!engine::find_group(stream, {to.group})) {
      return fail_no_group(call, call.key(), to.group), ErrorCode::ok;
    }
    XclaimWords words;
    if (read_xclaim(call, now, words)) is_new = take_all_over(call.reply, stream, to, words, now);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (is_new) whole.notify('t', "xgroup-createconsumer", whole.key());
  held.write();
}

void xautoclaim(Call& whole) {
  const engine::ConsumerName to{whole.args[2], whole.args[3]};
  XautoclaimWords words;
  // The lookup comes first: it misses also where the words are wrong.
  notify_miss(whole, whole.key());
  if (!read_xautoclaim(whole, words)) return;
  const std::int64_t now = engine::unix_ms_of_call(whole.engine);
  bool is_new = false;
  HeldCall held{whole, whole.reply.room()};
  const auto done = change_object(whole, whole.key(), Kind::stream, [&](ObjectEdit& stream) {
    is_new = false;
    Call& call = held.begin();
    if (!engine::find_group(stream, {to.group})) {
      return fail_no_group(call, call.key(), to.group), ErrorCode::ok;
    }
    is_new = scan_and_take(call.reply, stream, to, words, now);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (is_new) whole.notify('t', "xgroup-createconsumer", whole.key());
  held.write();
}

}  // namespace handlers
}  // namespace semel::net
