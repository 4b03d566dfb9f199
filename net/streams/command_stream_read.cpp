// XREAD and XREADGROUP.
//
// All streams are read in one atomic step: a section, if there are several.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "engine/types/stream_groups.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/streams/stream_reply.hpp"
#include "net/streams/stream_wait.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

using engine::Element;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::Ranks;
using engine::StreamId;
using engine::StreamReader;

/// Of XREADGROUP: only what the group has not read yet. Also the largest id by itself.
constexpr StreamId new_entries = engine::stream_id_max;

/// The words, and the id behind which each key is read.
struct StreamReads {
  const ReadWords& words;
  std::vector<StreamId> behind{};
};

/// The id behind which words.ids[i] begins. None: an error has been written.
std::optional<StreamId> read_start(Call& call, std::string_view word, const ReadWords& words,
                                   const ObjectReader& stream) {
  if (word == "$") {
    if (!words.has_group) return StreamReader{stream}.head().last;
    call.fail(
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of "
        "this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID "
        "would just return an empty result set.");
    return std::nullopt;
  }
  if (word == ">") {
    if (words.has_group) return new_entries;
    call.fail(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
        "<consumer> option.");
    return std::nullopt;
  }
  return read_stream_id(call, word);
}

void fail_no_group_to_read(Call& call, std::string_view key, std::string_view group) {
  const auto shown = [](std::string_view name) {
    return std::string{name.substr(0, name.find('\0'))};
  };
  call.fail("NOGROUP No such key '" + shown(key) + "' or consumer group '" + shown(group) +
            "' in XREADGROUP with GROUP option");
}

/// False: an error has been written.
bool read_starts(Call& call, StreamReads& reads) {
  const ReadWords& words = reads.words;
  // One step does all for a worker of a queue: read_group() finds the same errors.
  if (words.has_group && words.keys.size() == 1 && words.ids[0] == ">") {
    reads.behind.push_back(new_entries);
    return true;
  }
  for (std::size_t i = 0; i < words.keys.size(); ++i) {
    std::optional<StreamId> start;
    notify_miss(call, words.keys[i]);
    read_object(call, words.keys[i], Kind::stream, [&](const ObjectReader& stream) {
      if (words.has_group && !engine::find_group(stream, {words.group})) {
        return fail_no_group_to_read(call, words.keys[i], words.group);
      }
      start = read_start(call, words.ids[i], words, stream);
    });
    if (!start) return false;
    reads.behind.push_back(*start);
  }
  return true;
}

/// The name of the stream, before its entries.
RespWriter& begin_stream(CountedReply& streams, std::string_view key) {
  RespWriter& reply = streams.next();
  if (reply.dialect() == Resp::two) reply.array(2);
  reply.bulk(key);
  return reply;
}

/// False: an error has been written.
bool read_plain(Call& call, const StreamReads& reads, CountedReply& streams) {
  const ReadWords& words = reads.words;
  for (std::size_t i = 0; i < words.keys.size(); ++i) {
    const std::size_t before = call.reply.size();
    notify_miss(call, words.keys[i]);
    read_object(call, words.keys[i], Kind::stream, [&](const ObjectReader& object) {
      const Ranks fresh = StreamReader{object}.behind(reads.behind[i], words.count);
      if (!fresh.empty()) {
        write_entries(begin_stream(streams, words.keys[i]), object, fresh, words.count);
      }
    });
    if (call.reply.size() != before) return false;
  }
  return true;
}

/// Repeats the pending entries of a consumer behind id `behind`.
void deliver_again(RespWriter& reply, ObjectEdit& object, const ReadWords& words, StreamId behind,
                   std::int64_t now) {
  const engine::ConsumerName to{words.group, words.consumer};
  const StreamId from = engine::id_behind(behind).value_or(engine::stream_id_max);
  const Ranks ranks =
      first_ranks(engine::owned_by(object, to, from, engine::stream_id_max), words.count);
  reply.array(ranks.count());
  for (std::size_t rank = ranks.from; rank < ranks.to && !reply.is_cut(); ++rank) {
    const StreamId id = engine::id_of(object.at(rank).key);
    const std::size_t entry = object.rank(engine::EntryKey{id});
    const bool is_there = object.find(engine::EntryKey{id}).has_value();
    const auto pending = engine::find_pending(object, {to.group}, id);
    if (!is_there || !pending) {
      reply.array(2);
      write_id(reply, id);
      reply.null_array();
      continue;
    }
    write_entry(reply, object.at(entry));
    engine::give(object, to, id, now, pending->deliveries + 1);
  }
}

/// One stream of XREADGROUP.
class GroupRead {
 public:
  GroupRead(Call& call, std::size_t room, const ReadWords& words, std::string_view key,
            StreamId behind)
      : held_(call, room), words_(words), key_(key), behind_(behind) {}

  /// May be called several times.
  void run(ObjectEdit& object, std::int64_t now) {
    Call& call = held_.begin();
    is_served = is_new = has_failed = false;
    const auto group = engine::find_group(object, {words_.group});
    if (!group) {
      has_failed = true;
      return fail_no_group_to_read(call, key_, words_.group);
    }
    const StreamReader stream{object};
    const bool is_history = behind_ != new_entries;
    const Ranks fresh = is_history ? Ranks{} : stream.behind(group->last, words_.count);
    is_served = is_history || !fresh.empty();
    if (!is_served) return;
    if (is_history) {
      is_new = engine::see_consumer(object, {words_.group, words_.consumer}, now);
    }
    if (call.reply.dialect() == Resp::two) call.reply.array(2);
    call.reply.bulk(key_);
    if (is_history) return deliver_again(call.reply, object, words_, behind_, now);
    is_new = deliver(call.reply, object, stream,
                     {.to = {words_.group, words_.consumer},
                      .group = *group,
                      .entries = fresh,
                      .no_ack = words_.no_ack,
                      .now = now});
  }
  [[nodiscard]] HeldCall& held() noexcept { return held_; }

  bool is_served = false;
  bool is_new = false;  ///< the consumer
  bool has_failed = false;

 private:
  HeldCall held_;
  const ReadWords& words_;
  const std::string_view key_;
  const StreamId behind_;
};

/// False: an error has been written. Entries that were delivered are always in the reply: if memory
/// ends behind them, the streams to come are left out, as if they had nothing new.
bool read_group(Call& call, const StreamReads& reads, CountedReply& streams) {
  const ReadWords& words = reads.words;
  const std::int64_t now = engine::unix_ms_of_call(call.engine);
  bool has_delivered = false;
  for (std::size_t i = 0; i < words.keys.size(); ++i) {
    const std::string_view key = words.keys[i];
    notify_miss(call, key);
    GroupRead read{call, streams.room(), words, key, reads.behind[i]};
    const auto done = engine::change_object(call.engine, {call.client.db, key}, Kind::stream,
                                            [&](ObjectEdit& object) {
                                              read.run(object, now);
                                              return ErrorCode::ok;
                                            });
    if (!done.ok() && has_delivered) return true;
    if (!done.ok()) return call.fail(done.error()), false;
    if (read.has_failed) return read.held().write(), false;
    has_delivered = has_delivered || (read.is_served && reads.behind[i] == new_entries);
    if (read.is_new) call.notify('t', "xgroup-createconsumer", key);
    if (read.is_served) read.held().write_to(streams.next());
  }
  return true;
}

/// The present answer. False: an error has been written.
bool read_now(Call& call, StreamReads& reads, CountedReply& streams) {
  if (!read_starts(call, reads)) return false;
  return reads.words.has_group ? read_group(call, reads, streams)
                               : read_plain(call, reads, streams);
}

/// The same of several keys at one moment.
bool read_in_section(Call& call, StreamReads& reads, CountedReply& streams) {
  if (reads.words.keys.size() < 2) return read_now(call, reads, streams);
  std::vector<KeyRef> keys;
  keys.reserve(reads.words.keys.size());
  for (const Bytes key : reads.words.keys) keys.push_back({call.client.db, key});
  Result<Section> section = call.engine.section(keys);
  if (!section.ok()) return call.fail(section.error()), false;
  if (!read_now(call, reads, streams)) return false;
  if (const Status done = section->commit(); !done) return call.fail(done.error()), false;
  return true;
}

void read_streams(Call& call, bool of_group) {
  ReadWords words;
  if (!read_read(call, of_group, words)) return;
  StreamReads reads{words};
  CountedReply streams{call.reply};
  if (!read_in_section(call, reads, streams)) return;
  if (streams.count() == 0) {
    const bool may_wait = !call.context().is_part();
    if (!words.block_ms || !may_wait) return call.reply.null_array();
    return wait_for_entries(call, words, reads.behind);
  }
  call.reply.dialect() == Resp::two ? streams.write() : streams.write_map();
}

}  // namespace

namespace handlers {

void xread(Call& call) {
  read_streams(call, false);
}

void xreadgroup(Call& call) {
  read_streams(call, true);
}

}  // namespace handlers
}  // namespace semel::net
