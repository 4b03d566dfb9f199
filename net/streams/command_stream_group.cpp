// XGROUP: groups of consumers, and their consumers.
#include <array>
#include <string_view>

#include "engine/types/stream_groups.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "net/streams/stream_reply.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

using engine::GroupState;
using engine::ObjectEdit;
using engine::StreamReader;

/// The options of CREATE and SETID.
struct XgroupWords {
  bool makes_stream = false;
  std::int64_t entries_read = -1;
};

/// False: an error has been written.
bool read_group_options(Call& call, bool creates, XgroupWords& words) {
  constexpr std::size_t options_at = 5;
  for (std::size_t i = options_at; i < call.args.size();) {
    if (creates && is_word(call.args[i], "mkstream")) {
      words.makes_stream = true;
      ++i;
    } else if (is_word(call.args[i], "entriesread") && i + 1 < call.args.size()) {
      if (!read_number(call, call.args[i + 1], words.entries_read)) return false;
      if (words.entries_read < -1) {
        return call.fail("ERR value for ENTRIESREAD must be positive or -1"), false;
      }
      i += 2;
    } else {
      return fail_subcommand(call, "XGROUP"), false;
    }
  }
  return true;
}

/// Why a subcommand is refused that has been tried.
enum class GroupRefusal : std::uint8_t { none, no_key, no_group, bad_id, exists, subcommand };

void refuse_group(Call& call, GroupRefusal why) {
  switch (why) {
    case GroupRefusal::no_key:
      return call.fail(
          "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want "
          "to use the MKSTREAM option to create an empty stream automatically.");
    case GroupRefusal::no_group:
      return fail_no_such_group(call, call.args[2], call.args[3]);
    case GroupRefusal::bad_id:
      return call.fail(bad_id_text);
    case GroupRefusal::exists:
      return call.fail("BUSYGROUP Consumer Group name already exists");
    case GroupRefusal::subcommand:
      return fail_subcommand(call, "XGROUP");
    case GroupRefusal::none:
      break;
  }
}

/// Changes the stream of words[2] by `change(ObjectEdit&) -> GroupRefusal`, and publishes `event`,
/// if it did something. Without a value: the reply has been written.
template <class Change>
std::optional<engine::ObjectChange> change_stream(Call& call, Change&& change) {
  GroupRefusal why{};
  const auto done = change_object(call, call.args[2], Kind::stream, [&](ObjectEdit& stream) {
    why = change(stream);
    return ErrorCode::ok;
  });
  if (!done) return std::nullopt;
  if (why != GroupRefusal::none) {
    refuse_group(call, why);
    return std::nullopt;
  }
  return done;
}

GroupRefusal create_group_in(Call& call, ObjectEdit& stream, const XgroupWords& words) {
  if (stream.empty() && !words.makes_stream) return GroupRefusal::no_key;
  if (call.args.size() > 8) return GroupRefusal::subcommand;
  engine::StreamId id = StreamReader{stream}.head().last;
  if (call.args[4] != "$") {
    const auto given = stream_id_of(call.args[4]);
    if (!given) return GroupRefusal::bad_id;
    id = *given;
  }
  if (engine::find_group(stream, {call.args[3]})) return GroupRefusal::exists;
  engine::begin_stream(stream);
  engine::create_group(stream, {call.args[3]}, {id, words.entries_read});
  return GroupRefusal::none;
}

GroupRefusal set_group_id(Call& call, ObjectEdit& stream, const XgroupWords& words) {
  if (stream.empty()) return GroupRefusal::no_key;
  if (!engine::find_group(stream, {call.args[3]})) return GroupRefusal::no_group;
  if (call.args.size() != 5 && call.args.size() != 7) return GroupRefusal::subcommand;
  engine::StreamId id = StreamReader{stream}.head().last;
  if (call.args[4] != "$") {
    const auto given = stream_end_of(call.args[4]);
    if (!given) return GroupRefusal::bad_id;
    id = *given;
  }
  engine::set_group(stream, {call.args[3]}, {id, words.entries_read});
  return GroupRefusal::none;
}

}  // namespace

namespace handlers {

void xgroup_create(Call& call) {
  XgroupWords words;
  if (!read_group_options(call, true, words)) return;
  const auto done =
      change_stream(call, [&](ObjectEdit& stream) { return create_group_in(call, stream, words); });
  if (!done) return;
  call.reply.ok();
  call.notify('t', "xgroup-create", call.args[2]);  // behind the reply, as in redis-server
}

void xgroup_setid(Call& call) {
  XgroupWords words;
  if (!read_group_options(call, false, words)) return;
  const auto done =
      change_stream(call, [&](ObjectEdit& stream) { return set_group_id(call, stream, words); });
  if (!done) return;
  call.reply.ok();
  call.notify('t', "xgroup-setid", call.args[2]);  // behind the reply, as in redis-server
}

void xgroup_destroy(Call& call) {
  bool is_gone = false;
  const auto done = change_stream(call, [&](ObjectEdit& stream) {
    is_gone = false;
    if (stream.empty()) return GroupRefusal::no_key;
    is_gone = engine::destroy_group(stream, {call.args[3]});
    return GroupRefusal::none;
  });
  if (!done) return;
  call.reply.integer(is_gone ? 1 : 0);
  // Behind the reply, as in redis-server.
  if (is_gone) call.notify('t', "xgroup-destroy", call.args[2]);
}

void xgroup_createconsumer(Call& call) {
  bool is_new = false;
  const auto done = change_stream(call, [&](ObjectEdit& stream) {
    is_new = false;
    if (stream.empty()) return GroupRefusal::no_key;
    if (!engine::find_group(stream, {call.args[3]})) return GroupRefusal::no_group;
    is_new = engine::create_consumer(stream, {call.args[3], call.args[4]},
                                     engine::unix_ms_of_call(call.engine));
    return GroupRefusal::none;
  });
  if (!done) return;
  if (is_new) call.notify('t', "xgroup-createconsumer", call.args[2]);
  call.reply.integer(is_new ? 1 : 0);
}

void xgroup_delconsumer(Call& call) {
  std::optional<std::size_t> pending;
  const auto done = change_stream(call, [&](ObjectEdit& stream) {
    pending.reset();
    if (stream.empty()) return GroupRefusal::no_key;
    if (!engine::find_group(stream, {call.args[3]})) return GroupRefusal::no_group;
    pending = engine::delete_consumer(stream, {call.args[3], call.args[4]});
    return GroupRefusal::none;
  });
  if (!done) return;
  if (pending) call.notify('t', "xgroup-delconsumer", call.args[2]);
  call.reply.integer(static_cast<std::int64_t>(pending.value_or(0)));
}

void xgroup_help(Call& call) {
  constexpr std::array<std::string_view, 16> lines = {
      "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "CREATE <key> <groupname> <id|$> [option]",
      "    Create a new consumer group. Options are:",
      "    * MKSTREAM",
      "      Create the empty stream if it does not exist.",
      "    * ENTRIESREAD entries_read",
      "      Set the group's entries_read counter (internal use).",
      "CREATECONSUMER <key> <groupname> <consumer>",
      "    Create a new consumer in the specified group.",
      "DELCONSUMER <key> <groupname> <consumer>",
      "    Remove the specified consumer.",
      "DESTROY <key> <groupname>",
      "    Remove the specified group.",
      "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
      "    Set the current group ID and entries_read counter.",
      "HELP"};
  call.reply.array(lines.size() + 1);
  for (const std::string_view line : lines) call.reply.simple(line);
  call.reply.simple("    Prints this help.");
}

}  // namespace handlers
}  // namespace semel::net
