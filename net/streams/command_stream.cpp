// Streams without their groups: XADD, XLEN, XRANGE, XREVRANGE, XDEL, XTRIM, XSETID.
#include <array>
#include <string>
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "net/streams/stream_reply.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {
namespace {

using engine::AddError;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::Ranks;
using engine::StreamId;
using engine::StreamReader;

std::string_view text_of(AddError error) noexcept {
  return error == AddError::exhausted
             ? "ERR The stream has exhausted the last possible ID, unable to add more items"
             : "ERR The ID specified in XADD is equal or smaller than the target stream top item";
}

/// False: an error has been written.
bool read_range_count(Call& call, std::int64_t& count) {
  constexpr std::size_t options_at = 4;
  for (std::size_t i = options_at; i < call.args.size(); i += 2) {
    if (!is_word(call.args[i], "count") || i + 1 == call.args.size()) {
      return call.fail_syntax(), false;
    }
    if (!read_number(call, call.args[i + 1], count)) return false;
    if (count < 0) count = 0;
  }
  return true;
}

void reply_range(Call& call, bool is_back) {
  const auto from = read_interval_begin(call, call.args[is_back ? 3 : 2]);
  if (!from) return;
  const auto to = read_interval_end(call, call.args[is_back ? 2 : 3]);
  if (!to) return;
  std::int64_t count = -1;
  if (!read_range_count(call, count)) return;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::stream, [&](const ObjectReader& stream) {
    if (stream.empty()) return call.reply.array(0);
    if (count == 0) return call.reply.null_array();
    const std::uint64_t most = count < 0 ? 0 : static_cast<std::uint64_t>(count);
    write_entries(call.reply, stream, StreamReader{stream}.between(*from, *to), most, is_back);
  });
}

/// The words of XSETID.
struct XsetidWords {
  StreamId id{};
  std::optional<std::uint64_t> entries_added{};
  StreamId max_deleted{};
};

/// False: an error has been written.
bool read_xsetid(Call& call, XsetidWords& words) {
  const auto id = read_stream_id(call, call.args[2]);
  if (!id) return false;
  words.id = *id;
  for (std::size_t i = 3; i < call.args.size(); i += 2) {
    const bool has_value = i + 1 < call.args.size();
    if (has_value && is_word(call.args[i], "entriesadded")) {
      std::int64_t added = 0;
      if (!read_number(call, call.args[i + 1], added)) return false;
      if (added < 0) return call.fail("ERR entries_added must be positive"), false;
      words.entries_added = static_cast<std::uint64_t>(added);
    } else if (has_value && is_word(call.args[i], "maxdeletedid")) {
      const auto deleted = read_stream_id(call, call.args[i + 1]);
      if (!deleted) return false;
      words.max_deleted = *deleted;
      if (words.id < words.max_deleted) {
        call.fail(
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
        return false;
      }
    } else {
      return call.fail_syntax(), false;
    }
  }
  return true;
}

/// Empty: it is set.
std::string_view set_stream_id(ObjectEdit& stream, const XsetidWords& words) {
  if (stream.empty()) return "ERR no such key";
  const StreamReader reader{stream};
  engine::StreamHead head = reader.head();
  if (reader.length() != 0) {
    if (words.id < reader.last_id()) {
      return "ERR The ID specified in XSETID is smaller than the target stream top item";
    }
    if (words.entries_added && reader.length() > *words.entries_added) {
      return "ERR The entries_added specified in XSETID is smaller than the target stream length";
    }
  }
  head.last = words.id;
  if (words.entries_added) head.entries_added = *words.entries_added;
  if (words.max_deleted != StreamId{}) head.max_deleted = words.max_deleted;
  engine::write_head(stream, head);
  return {};
}

}  // namespace

namespace handlers {

void xadd(Call& call) {
  AddWords words;
  if (!read_add(call, words)) return;
  const std::size_t fields = call.args.size() - std::min(call.args.size(), words.fields_at);
  if (fields < 2 || fields % 2 != 0) return call.fail_arity();
  if (words.wanted.has_ms && words.wanted.has_seq && words.wanted.id == StreamId{}) {
    return call.fail("ERR The ID specified in XADD must be greater than 0-0");
  }
  StreamId added;
  std::size_t trimmed = 0;
  bool is_missing = false;
  AddError error{};
  const auto done = change_object(call, call.key(), Kind::stream, [&](ObjectEdit& stream) {
    trimmed = 0;
    error = AddError::none;
    is_missing = stream.empty() && words.only_if_there;
    if (is_missing) return ErrorCode::ok;
    error = engine::add_entry(stream, words.wanted, engine::unix_ms_of_call(call.engine),
                              call.args.subspan(words.fields_at), added);
    if (error == AddError::none) trimmed = engine::trim_stream(stream, words.trim);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (is_missing) return call.reply.null();
  if (error != AddError::none) return call.fail(text_of(error));
  write_id(call.reply, added);
  call.notify('t', "xadd", call.key());  // behind the reply, as in redis-server
  if (trimmed != 0) call.notify('t', "xtrim", call.key());
}

void xlen(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::stream, [&](const ObjectReader& stream) {
    call.reply.integer(static_cast<std::int64_t>(StreamReader{stream}.length()));
  });
}

void xrange(Call& call) {
  reply_range(call, false);
}

void xrevrange(Call& call) {
  reply_range(call, true);
}

void xdel(Call& call) {
  std::int64_t deleted = 0;
  bool is_bad = false;
  const auto done = change_object(call, call.key(), Kind::stream, [&](ObjectEdit& stream) {
    deleted = 0;
    if (stream.empty()) return ErrorCode::ok;
    std::vector<StreamId> ids;
    for (const std::string_view word : call.args.subspan(2)) {
      const auto id = stream_id_of(word);
      is_bad = !id;
      if (is_bad) return ErrorCode::ok;
      ids.push_back(*id);
    }
    for (const StreamId id : ids) deleted += engine::delete_entry(stream, id);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (is_bad) return call.fail(bad_id_text);
  if (deleted != 0) call.notify('t', "xdel", call.key());
  call.reply.integer(deleted);
}

void xtrim(Call& call) {
  AddWords words;
  if (!read_trim(call, words)) return;
  std::size_t trimmed = 0;
  const auto done = change_object(call, call.key(), Kind::stream, [&](ObjectEdit& stream) {
    trimmed = engine::trim_stream(stream, words.trim);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (trimmed != 0) call.notify('t', "xtrim", call.key());
  call.reply.integer(static_cast<std::int64_t>(trimmed));
}

void xsetid(Call& call) {
  XsetidWords words;
  if (!read_xsetid(call, words)) return;
  std::string_view error;
  const auto done = change_object(call, call.key(), Kind::stream, [&](ObjectEdit& stream) {
    error = set_stream_id(stream, words);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (!error.empty()) return call.fail(error);
  call.reply.ok();
  call.notify('t', "xsetid", call.key());  // behind the reply, as in redis-server
}

}  // namespace handlers
}  // namespace semel::net
