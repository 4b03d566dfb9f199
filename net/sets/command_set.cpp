// Sets. Integers come in the order of numbers, as redis-server has a set of nothing else; other
// members in the order of their bytes.
#include <string>
#include <utility>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/types/byte_list.hpp"
#include "engine/types/set_scan.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/scan_words.hpp"
#include "net/resp/text.hpp"
#include "net/sets/set_reply.hpp"

namespace semel::net {
namespace {

using engine::Element;
using engine::ObjectEdit;
using engine::ObjectReader;

/// What SMOVE finds before it changes anything.
struct MoveFacts {
  bool has_source = false;
  bool is_in_source = false;
  bool is_in_target = false;
};

/// False: an error has been written. A target of another kind is no error without a source.
bool look_at_both(Call& call, Bytes key, MoveFacts& facts) {
  const auto look = [&](Bytes name, bool& is_there, bool& has) {
    return engine::read_object(call.engine, {call.client.db, name}, Kind::set,
                               [&](const ObjectReader& set) {
                                 is_there = !set.empty();
                                 has = set.find(key).has_value();
                               });
  };
  bool unused = false;
  Status done = look(call.key(), facts.has_source, facts.is_in_source);
  if (done && facts.has_source) done = look(call.args[2], unused, facts.is_in_target);
  if (done) return true;
  call.fail(done.error());
  return false;
}

/// The new member first: whatever fails, it is in one of them.
Result<engine::ObjectChange> move_member(Call& call, Bytes key, engine::ObjectChange& into) {
  const KeyRef source{call.client.db, call.key()};
  const KeyRef target{call.client.db, call.args[2]};
  const auto put = [&](ObjectEdit& set) {
    set.put(key);
    return ErrorCode::ok;
  };
  const auto erase = [&](ObjectEdit& set) {
    set.erase(key);
    return ErrorCode::ok;
  };
  SEMEL_TRY(added, engine::change_object(call.engine, target, Kind::set, put));
  into = added;
  auto removed = engine::change_object(call.engine, source, Kind::set, erase);
  if (!removed.ok() && into.is_changed) {
    // What frees memory is refused only where nothing can be written at all.
    static_cast<void>(engine::change_object(call.engine, target, Kind::set, erase));
  }
  return removed;
}

/// Of a set that is there. WRONGTYPE comes before errors of the words.
void write_scan(Call& call, const ObjectReader& set, std::uint64_t cursor) {
  const auto words = object_scan_words_of(call);
  if (!words) return;
  const std::size_t bytes_max = call.reply.room() / 2;  // they are held here and in the reply
  engine::ByteList found;
  const auto visit = [&](Bytes key) {
    engine::MemberText text;
    if (call.reply.is_cut()) return;
    if (words->pattern && !glob_match(*words->pattern, engine::member_of(key, text))) return;
    found.append(key);
    if (found.bytes() > bytes_max) call.reply.cut();
  };
  const std::uint64_t next = engine::scan_set(set, cursor, words->count, visit);
  if (call.reply.is_cut()) return;
  call.reply.array(2);
  call.reply.bulk(std::to_string(next));
  call.reply.array(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!write_member(call.reply, found.at(i))) return;
  }
}

}  // namespace

namespace handlers {

void sadd(Call& call) {
  std::int64_t added = 0;
  const auto done = change_object(call, call.key(), Kind::set, [&](ObjectEdit& set) {
    added = 0;
    for (const Bytes member : call.args.subspan(2)) added += set.put(engine::member_key(member));
    return ErrorCode::ok;
  });
  if (!done) return;
  if (added != 0) call.notify('s', "sadd", call.key());
  call.reply.integer(added);
}

void srem(Call& call) {
  std::int64_t removed = 0;
  const auto done = change_object(call, call.key(), Kind::set, [&](ObjectEdit& set) {
    removed = 0;
    for (const Bytes member : call.args.subspan(2)) {
      removed += set.erase(engine::member_key(member));
    }
    return ErrorCode::ok;
  });
  if (!done) return;
  if (removed != 0) call.notify('s', "srem", call.key());
  notify_removed(call, call.key(), *done);
  call.reply.integer(removed);
}

void scard(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    call.reply.integer(static_cast<std::int64_t>(set.size()));
  });
}

void sismember(Call& call) {
  notify_miss(call, call.key());
  const std::string key = engine::member_key(call.args[2]);
  read_object(call, call.key(), Kind::set,
              [&](const ObjectReader& set) { call.reply.integer(set.find(key) ? 1 : 0); });
}

void smismember(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    call.reply.array(call.args.size() - 2);
    for (const Bytes member : call.args.subspan(2)) {
      call.reply.integer(set.find(engine::member_key(member)) ? 1 : 0);
    }
  });
}

void smembers(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    call.reply.set(set.size());
    set.each(0, set.size(),
             [&](const Element& element) { return write_member(call.reply, element.key); });
  });
}

void smove(Call& call) {
  const KeyRef keys[] = {{call.client.db, call.key()}, {call.client.db, call.args[2]}};
  Result<Section> section = call.engine.section(keys);
  if (!section) return call.fail(section.error());
  const std::string key = engine::member_key(call.args[3]);
  MoveFacts facts;
  if (!look_at_both(call, key, facts)) return;
  if (!facts.is_in_source || call.key() == call.args[2]) {
    return call.reply.integer(facts.is_in_source ? 1 : 0);
  }
  engine::ObjectChange into;
  const auto removed = move_member(call, key, into);
  if (!removed.ok()) return call.fail(removed.error());
  if (const Status done = section->commit(); !done) return call.fail(done.error());
  call.notify('s', "srem", call.key());
  notify_removed(call, call.key(), *removed);
  if (into.is_new()) call.notify('n', "new", call.args[2]);
  if (into.is_changed) call.notify('s', "sadd", call.args[2]);
  call.reply.integer(1);
}

void sscan(Call& call) {
  const auto cursor = cursor_of(call.args[2]);
  if (!cursor) return call.fail("ERR invalid cursor");
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    if (!set.empty()) return write_scan(call, set, *cursor);
    call.reply.array(2);
    call.reply.bulk("0");
    call.reply.array(0);
  });
}

}  // namespace handlers
}  // namespace semel::net
