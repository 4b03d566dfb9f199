// XINFO: a stream, its groups, the consumers of a group.
#include <algorithm>
#include <array>
#include <string_view>

#include "engine/types/stream_groups.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "net/settings/settings.hpp"
#include "net/streams/stream_reply.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

using engine::Element;
using engine::GroupState;
using engine::ObjectReader;
using engine::Ranks;
using engine::StreamReader;

void write_info_field(RespWriter& reply, std::string_view name, std::uint64_t number) {
  reply.bulk(name);
  reply.integer(static_cast<std::int64_t>(number));
}

void write_info_field(RespWriter& reply, std::string_view name, engine::StreamId id) {
  reply.bulk(name);
  write_id(reply, id);
}

/// -1, or none: null.
void write_entries_read(RespWriter& reply, const GroupState& group) {
  reply.bulk("entries-read");
  group.entries_read < 0 ? reply.null() : reply.integer(group.entries_read);
}

void write_lag(RespWriter& reply, const StreamReader& stream, const GroupState& group) {
  reply.bulk("lag");
  const auto lag = engine::lag_of(stream, group);
  lag ? reply.integer(*lag) : reply.null();
}

/// Of the reply to XINFO STREAM, on one stream.
class StreamInfo {
 public:
  StreamInfo(Call& call, const ObjectReader& stream) noexcept
      : call_(call), reply_(call.reply), object_(stream), stream_(stream) {}

  void write_short() {
    constexpr std::size_t fields = 10;
    reply_.map(fields);
    write_head();
    write_info_field(reply_, "groups", engine::groups_of(object_).count());
    write_edge("first-entry", stream_.entries().from);
    write_edge("last-entry", stream_.entries().to - 1);
  }
  void write_full(std::uint64_t count) {
    constexpr std::size_t fields = 9;
    reply_.map(fields);
    write_head();
    reply_.bulk("entries");
    write_entries(reply_, object_, stream_.entries(), count);
    reply_.bulk("groups");
    const Ranks groups = engine::groups_of(object_);
    reply_.array(groups.count());
    object_.each(groups.from, groups.to, [&](const Element& element) {
      write_group(element, count);
      return !reply_.is_cut();
    });
  }

 private:
  void write_head() {
    const engine::StreamHead& head = stream_.head();
    write_info_field(reply_, "length", stream_.length());
    const std::uint64_t nodes = node_count();
    write_info_field(reply_, "radix-tree-keys", nodes);
    write_info_field(reply_, "radix-tree-nodes", nodes + 1);
    write_info_field(reply_, "last-generated-id", head.last);
    write_info_field(reply_, "max-deleted-entry-id", head.max_deleted);
    write_info_field(reply_, "entries-added", head.entries_added);
    write_info_field(reply_, "recorded-first-entry-id", stream_.first_id());
  }
  /// About as many as redis-server has.
  [[nodiscard]] std::uint64_t node_count() const {
    const std::int64_t setting = call_.services.settings.integer(Setting::stream_node_max_entries);
    const std::uint64_t length = stream_.length();
    const auto entries = static_cast<std::uint64_t>(setting);
    return entries == 0 ? std::uint64_t{length != 0} : length / entries + (length % entries != 0);
  }
  void write_edge(std::string_view name, std::size_t rank) {
    reply_.bulk(name);
    stream_.length() == 0 ? reply_.null() : write_entry(reply_, object_.at(rank));
  }
  void write_group(const Element& element, std::uint64_t count) {
    const Bytes group = engine::group_of(element);
    const GroupState state = engine::read_group(element.value).value_or(GroupState{});
    constexpr std::size_t fields = 7;
    reply_.map(fields);
    reply_.bulk("name");
    reply_.bulk(group);
    write_info_field(reply_, "last-delivered-id", state.last);
    write_entries_read(reply_, state);
    write_lag(reply_, stream_, state);
    const Ranks pending = engine::pending_of(object_, {group});
    write_info_field(reply_, "pel-count", pending.count());
    reply_.bulk("pending");
    write_pending(first_ranks(pending, count));
    reply_.bulk("consumers");
    const Ranks consumers = engine::consumers_of(object_, {group});
    reply_.array(consumers.count());
    object_.each(consumers.from, consumers.to, [&](const Element& consumer) {
      write_consumer(consumer, group, count);
      return !reply_.is_cut();
    });
  }
  void write_pending(Ranks ranks) {
    constexpr std::size_t parts = 4;
    reply_.array(ranks.count());
    object_.each(ranks.from, ranks.to, [&](const Element& element) {
      const auto state = engine::read_pending(element.value).value_or(engine::PendingState{});
      reply_.array(parts);
      write_id(reply_, engine::id_of(element.key));
      reply_.bulk(state.consumer);
      reply_.integer(state.delivered_ms);
      reply_.integer(static_cast<std::int64_t>(state.deliveries));
      return !reply_.is_cut();
    });
  }
  void write_consumer(const Element& element, Bytes group, std::uint64_t count) {
    const Bytes consumer = engine::consumer_of(element, group);
    const auto state = engine::read_consumer(element.value).value_or(engine::ConsumerState{});
    constexpr std::size_t fields = 4;
    reply_.map(fields);
    reply_.bulk("name");
    reply_.bulk(consumer);
    reply_.bulk("seen-time");
    reply_.integer(state.seen_ms);
    const Ranks owned = engine::owned_by(object_, {group, consumer});
    write_info_field(reply_, "pel-count", owned.count());
    reply_.bulk("pending");
    const Ranks shown = first_ranks(owned, count);
    constexpr std::size_t parts = 3;
    reply_.array(shown.count());
    object_.each(shown.from, shown.to, [&](const Element& each) {
      const engine::StreamId id = engine::id_of(each.key);
      const auto pending =
          engine::find_pending(object_, {group}, id).value_or(engine::PendingState{});
      reply_.array(parts);
      write_id(reply_, id);
      reply_.integer(pending.delivered_ms);
      reply_.integer(static_cast<std::int64_t>(pending.deliveries));
      return !reply_.is_cut();
    });
  }

  Call& call_;
  RespWriter& reply_;
  const ObjectReader& object_;
  const StreamReader stream_;
};

/// What stands behind XINFO STREAM key.
struct InfoWords {
  bool is_full = false;
  std::int64_t count = 10;
};

/// False: an error has been written.
bool read_info(Call& call, InfoWords& words) {
  constexpr std::size_t options_at = 3;
  const auto options = call.args.subspan(options_at);
  if (options.empty()) return true;
  words.is_full = true;
  const bool has_count = options.size() == 3;
  if ((options.size() != 1 && !has_count) || !is_word(options[0], "full") ||
      (has_count && !is_word(options[1], "count"))) {
    return fail_subcommand(call, "XINFO"), false;
  }
  if (has_count && !read_number(call, options[2], words.count)) return false;
  if (words.count < 0) words.count = InfoWords{}.count;
  return true;
}

void write_group(RespWriter& reply, const ObjectReader& stream, const Element& element) {
  const Bytes group = engine::group_of(element);
  const GroupState state = engine::read_group(element.value).value_or(GroupState{});
  constexpr std::size_t fields = 6;
  reply.map(fields);
  reply.bulk("name");
  reply.bulk(group);
  write_info_field(reply, "consumers", engine::consumers_of(stream, {group}).count());
  write_info_field(reply, "pending", engine::pending_of(stream, {group}).count());
  write_info_field(reply, "last-delivered-id", state.last);
  write_entries_read(reply, state);
  write_lag(reply, StreamReader{stream}, state);
}

}  // namespace

namespace handlers {

void xinfo_stream(Call& call) {
  const std::string_view key = call.args[2];
  notify_miss(call, key);
  read_object(call, key, Kind::stream, [&](const ObjectReader& stream) {
    if (stream.empty()) return call.fail("ERR no such key");
    InfoWords words;
    if (!read_info(call, words)) return;
    StreamInfo info{call, stream};
    words.is_full ? info.write_full(static_cast<std::uint64_t>(words.count)) : info.write_short();
  });
}

void xinfo_groups(Call& call) {
  const std::string_view key = call.args[2];
  notify_miss(call, key);
  read_object(call, key, Kind::stream, [&](const ObjectReader& stream) {
    if (stream.empty()) return call.fail("ERR no such key");
    const Ranks groups = engine::groups_of(stream);
    call.reply.array(groups.count());
    stream.each(groups.from, groups.to, [&](const Element& element) {
      write_group(call.reply, stream, element);
      return !call.reply.is_cut();
    });
  });
}

void xinfo_consumers(Call& call) {
  const std::string_view key = call.args[2];
  const std::string_view group = call.args[3];
  notify_miss(call, key);
  const std::int64_t now = engine::unix_ms_of_call(call.engine);
  read_object(call, key, Kind::stream, [&](const ObjectReader& stream) {
    if (stream.empty()) return call.fail("ERR no such key");
    if (!engine::find_group(stream, {group})) return fail_no_such_group(call, key, group);
    const Ranks consumers = engine::consumers_of(stream, {group});
    call.reply.array(consumers.count());
    stream.each(consumers.from, consumers.to, [&](const Element& element) {
      const Bytes consumer = engine::consumer_of(element, group);
      const auto state = engine::read_consumer(element.value).value_or(engine::ConsumerState{});
      constexpr std::size_t fields = 3;
      call.reply.map(fields);
      call.reply.bulk("name");
      call.reply.bulk(consumer);
      write_info_field(call.reply, "pending", engine::owned_by(stream, {group, consumer}).count());
      call.reply.bulk("idle");
      call.reply.integer(std::max<std::int64_t>(ms_apart(now, state.seen_ms), 0));
      return !call.reply.is_cut();
    });
  });
}

void xinfo_help(Call& call) {
  constexpr std::array<std::string_view, 9> lines = {
      "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "CONSUMERS <key> <groupname>",
      "    Show consumers of <groupname>.",
      "GROUPS <key>",
      "    Show the stream consumer groups.",
      "STREAM <key> [FULL [COUNT <count>]",
      "    Show information about the stream.",
      "HELP",
      "    Prints this help."};
  call.reply.array(lines.size());
  for (const std::string_view line : lines) call.reply.simple(line);
}

}  // namespace handlers
}  // namespace semel::net
