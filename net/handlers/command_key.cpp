// Keys and databases: what holds for records of every kind.
#include <algorithm>
#include <limits>
#include <vector>

#include "base/checked.hpp"
#include "engine/api/eviction_calls.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/handlers/presence.hpp"
#include "net/resp/text.hpp"
#include "net/session/memory_guard.hpp"
#include "net/session/node_role.hpp"
#include "net/settings/settings.hpp"
#include "net/time/held_clock.hpp"

namespace semel::net {
namespace {

std::vector<Bytes> keys_of(const Call& call) {
  return {call.args.begin() + 1, call.args.end()};
}

bool is_int(const std::optional<std::int64_t>& number) noexcept {
  return number && *number >= std::numeric_limits<int>::min() &&
         *number <= std::numeric_limits<int>::max();
}

/// None: an error has been written.
std::optional<std::uint8_t> db_of(Call& call, std::string_view word) {
  const auto db = integer_of(word);
  if (!db) {
    call.fail_number();
    return std::nullopt;
  }
  if (!is_int(db)) {
    call.fail("ERR value is out of range, value must between -2147483648 and 2147483647");
    return std::nullopt;
  }
  if (*db < 0 || *db >= call.services.settings.integer(Setting::databases)) {
    call.fail_db();
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(*db);
}

/// Reads the words behind the time into `rule`. Returns an error; empty: none.
std::string read_rule(std::span<const std::string_view> words, ExpireRule& rule) {
  for (const std::string_view word : words) {
    if (is_word(word, "nx")) {
      rule.only_without_ttl = true;
    } else if (is_word(word, "xx")) {
      rule.only_with_ttl = true;
    } else if (is_word(word, "gt")) {
      rule.only_later = true;
    } else if (is_word(word, "lt")) {
      rule.only_earlier = true;
    } else {
      return "ERR Unsupported option " + std::string{word};
    }
  }
  if (rule.only_without_ttl && (rule.only_with_ttl || rule.only_later || rule.only_earlier)) {
    return "ERR NX and XX, GT or LT options at the same time are not compatible";
  }
  if (rule.only_later && rule.only_earlier) {
    return "ERR GT and LT options at the same time are not compatible";
  }
  return {};
}

/// Within a transaction, where time stands still, EXPIRE 0 is now too. `ms` is at most
/// command_ttl_max.
Timestamp from(Timestamp now, std::int64_t ms) noexcept {
  const auto when = base::checked_add(now.time_since_epoch().count(), ms);
  return when ? Timestamp{Millis{*when}} : Timestamp::min();
}

template <std::int64_t unit_ms, bool from_now>
ArgumentError plan_expire(const Call& call, StoreOp& op) {
  if (!read_rule(call.args.subspan(3), op.rule).empty()) return ArgumentError::special;
  const auto value = integer_of(call.args[2]);
  if (!value) return ArgumentError::integer;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  if (*value > most / unit_ms || *value < least / unit_ms) return ArgumentError::expire;
  const std::int64_t ms = *value * unit_ms;
  const std::int64_t base = from_now ? 0 : call.engine.clock().unix_ms();
  if (ms > command_ttl_max.count() + base) return ArgumentError::expire;
  op.verb = Verb::expire;
  op.expiry = Expiry::at(from_now ? from(call.engine.now(), ms) : call.store().from_unix_ms(ms));
  return ArgumentError::none;
}

template <Verb verb>
ArgumentError plan_verb(const Call&, StoreOp& op) {
  op.verb = verb;
  return ArgumentError::none;
}

/// Several keys are one step.
template <Verb verb>
ArgumentError plan_one(const Call& call, StoreOp& op) {
  op.verb = verb;
  return call.args.size() == 2 ? ArgumentError::none : ArgumentError::special;
}

void answer_applied(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.integer(found.applied ? 1 : 0);
}
void answer_found(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.integer(found.found ? 1 : 0);
}
void answer_touched(Call& call, const StoreOp& op, const StoreOutcome& found) {
  if (found.found) engine::note_use(call.engine, {op.db, op.key});
  answer_found(call, op, found);
}
void answer_type(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.simple(found.found ? name_of(found.kind) : "none");
}

enum class Ask { left, when };

template <Ask ask, bool in_seconds>
void answer_ttl(Call& call, const StoreOp&, const StoreOutcome& found) {
  if (!found.found) return call.reply.integer(-2);
  if (found.due == no_end) return call.reply.integer(-1);
  // A found key has at least 1 ms left, even if the clock has moved since.
  const std::int64_t ms = ask == Ask::left
                              ? std::max((found.due - call.engine.now()).count(), std::int64_t{1})
                              : call.store().to_unix_ms(found.due);
  call.reply.integer(in_seconds ? (ms + 500) / 1000 : ms);
}

void run(Call& call, const Single& single) {
  ArgumentError error = ArgumentError::none;
  if (run_single(call, single, error)) return;
  if (error != ArgumentError::special) return call.fail(error);
  ExpireRule rule;
  call.fail(read_rule(call.args.subspan(3), rule));
}

/// A rename onto itself changes nothing. A record that the rename replaced has no event.
void notify_renamed(Call& call) {
  if (call.key() == call.args[2]) return;
  call.notify('n', "new", call.args[2]);
  call.notify('g', "rename_from", call.key());
  call.notify('g', "rename_to", call.args[2]);
}

/// FLUSHDB, or FLUSHALL without a database.
void flush(Call& call, std::optional<std::uint8_t> db) {
  const bool async = call.args.size() == 2 && is_word(call.args[1], "async");
  const bool right =
      call.args.size() == 1 || async || (call.args.size() == 2 && is_word(call.args[1], "sync"));
  if (!right) return call.fail_syntax();
  const FlushMode mode = async ? FlushMode::async : FlushMode::sync;
  call.answer(call.engine.flush(db, mode), [&](auto) { call.reply.ok(); });
}

}  // namespace

namespace singles {

const Single del_single{plan_one<Verb::del>, answer_applied};
const Single exists_single{plan_one<Verb::exists>, answer_found};
const Single touch_single{plan_one<Verb::exists>, answer_touched};
const Single type_single{plan_verb<Verb::type>, answer_type};
const Single expire_single{plan_expire<1000, true>, answer_applied};
const Single pexpire_single{plan_expire<1, true>, answer_applied};
const Single expireat_single{plan_expire<1000, false>, answer_applied};
const Single pexpireat_single{plan_expire<1, false>, answer_applied};
const Single persist_single{plan_verb<Verb::persist>, answer_applied};
const Single ttl_single{plan_verb<Verb::expire_time>, answer_ttl<Ask::left, true>};
const Single pttl_single{plan_verb<Verb::expire_time>, answer_ttl<Ask::left, false>};
const Single expiretime_single{plan_verb<Verb::expire_time>, answer_ttl<Ask::when, true>};
const Single pexpiretime_single{plan_verb<Verb::expire_time>, answer_ttl<Ask::when, false>};

}  // namespace singles

namespace handlers {

void del(Call& call) {
  const std::vector<Bytes> keys = keys_of(call);
  if (keys.size() == 1) return run(call, singles::del_single);
  Presence before{call, 'g', keys};
  const auto count = before.around([&] { return call.store().del(keys); });
  for (std::size_t i = 0; count.ok() && i < keys.size(); ++i) {
    if (before.goes(i)) call.notify('g', "del", keys[i]);
  }
  call.answer(count);
}

void exists(Call& call) {
  const std::vector<Bytes> keys = keys_of(call);
  if (keys.size() == 1) return run(call, singles::exists_single);
  Presence before{call, 'm', keys};
  const auto count = before.around([&] { return call.store().exists(keys); });
  for (std::size_t i = 0; count.ok() && i < keys.size(); ++i) {
    if (before.was_absent(i)) call.notify('m', "keymiss", keys[i]);
  }
  call.answer(count);
}

void touch(Call& call) {
  const std::vector<Bytes> keys = keys_of(call);
  if (keys.size() == 1) return run(call, singles::touch_single);
  const bool has_caches = call.services.memory.has_caches();
  for (std::size_t i = 0; has_caches && i < keys.size(); ++i) {
    engine::note_use(call.engine, {call.client.db, keys[i]});
  }
  exists(call);
}

void type(Call& call) {
  run(call, singles::type_single);
}
void expire(Call& call) {
  run(call, singles::expire_single);
}
void pexpire(Call& call) {
  run(call, singles::pexpire_single);
}
void expireat(Call& call) {
  run(call, singles::expireat_single);
}
void pexpireat(Call& call) {
  run(call, singles::pexpireat_single);
}
void persist(Call& call) {
  run(call, singles::persist_single);
}
void ttl(Call& call) {
  run(call, singles::ttl_single);
}
void pttl(Call& call) {
  run(call, singles::pttl_single);
}
void expiretime(Call& call) {
  run(call, singles::expiretime_single);
}
void pexpiretime(Call& call) {
  run(call, singles::pexpiretime_single);
}

void rename(Call& call) {
  const Status done = call.store().rename(call.key(), call.args[2]);
  if (done) notify_renamed(call);
  call.answer(done);
}
void renamenx(Call& call) {
  const Result<bool> done = call.store().renamenx(call.key(), call.args[2]);
  if (done.ok() && *done) notify_renamed(call);
  call.answer(done);
}

void copy(Call& call) {
  std::optional<std::uint8_t> to_db;
  bool replaces = false;
  for (std::size_t i = 3; i < call.args.size(); ++i) {
    if (is_word(call.args[i], "replace")) {
      replaces = true;
    } else if (is_word(call.args[i], "db") && i + 1 < call.args.size()) {
      to_db = db_of(call, call.args[++i]);
      if (!to_db) return;
    } else {
      return call.fail_syntax();
    }
  }
  const Result<bool> done = call.store().copy(call.key(), call.args[2], to_db, replaces);
  if (done.ok() && *done) {
    const std::uint8_t db = to_db.value_or(call.client.db);
    call.notify('n', "new", call.args[2], db);
    call.notify('g', "copy_to", call.args[2], db);
  } else if (done.ok() && call.notifies('m')) {
    const Result<bool> there = call.store().exists(call.key());
    if (there.ok() && !*there) call.notify('m', "keymiss", call.key());
  }
  call.answer(done);
}

void move(Call& call) {
  const auto to_db = db_of(call, call.args[2]);
  if (!to_db) return;
  const Result<bool> done = call.store().move(call.key(), *to_db);
  if (done.ok() && *done) {
    call.notify('n', "new", call.key(), *to_db);
    call.notify('g', "move_from", call.key());
    call.notify('g', "move_to", call.key(), *to_db);
  }
  call.answer(done);
}

void randomkey(Call& call) {
  call.answer(call.store().randomkey());
}

/// As Store::keys(), but no more is put together than a reply may hold: the names here and the
/// reply half of it each.
void keys(Call& call) {
  constexpr std::size_t looked_at = 4096;
  struct Name {
    std::size_t at;
    std::size_t bytes;
  };
  const ScanOptions options{.db = call.client.db, .count = looked_at};
  std::string text;
  std::vector<Name> names;
  std::size_t left = call.reply.room() / 2;
  std::uint64_t cursor = 0;
  do {
    const auto next = call.engine.scan(cursor, options, [&](const ScanItem& item) {
      if (!glob_match(call.args[1], item.key)) return;
      const std::size_t bytes = sizeof(Name) + item.key.size();
      if (bytes > left) return call.reply.cut();
      left -= bytes;
      names.push_back({text.size(), item.key.size()});
      text += item.key;
    });
    if (!next.ok()) return call.fail(next.error());
    cursor = *next;
  } while (cursor != 0 && !call.reply.is_cut());
  if (call.reply.is_cut()) return;
  const auto view = [&](const Name& name) {
    return std::string_view{text}.substr(name.at, name.bytes);
  };
  // A scan may meet a key twice while the table grows.
  std::sort(names.begin(), names.end(),
            [&](const Name& one, const Name& other) { return view(one) < view(other); });
  names.erase(
      std::unique(names.begin(), names.end(),
                  [&](const Name& one, const Name& other) { return view(one) == view(other); }),
      names.end());
  call.reply.array(names.size());
  for (const Name& name : names) call.reply.bulk(view(name));
}

void dbsize(Call& call) {
  const HeldClock::Hold hold{call.services.role.follows()};  // size() removes ended keys
  call.reply.integer(static_cast<std::int64_t>(call.engine.size(call.client.db)));
}

void flushdb(Call& call) {
  flush(call, call.client.db);
}

void flushall(Call& call) {
  flush(call, {});
}

void select(Call& call) {
  if (const auto db = db_of(call, call.args[1])) {
    call.client.db = *db;
    call.reply.ok();
  }
}

void swapdb(Call& call) {
  const auto one = integer_of(call.args[1]);
  if (!is_int(one)) return call.fail("ERR invalid first DB index");
  const auto other = integer_of(call.args[2]);
  if (!is_int(other)) return call.fail("ERR invalid second DB index");
  const std::int64_t count = call.services.settings.integer(Setting::databases);
  if (*one < 0 || *one >= count || *other < 0 || *other >= count) return call.fail_db();
  call.answer(
      call.engine.swap_db(static_cast<std::uint8_t>(*one), static_cast<std::uint8_t>(*other)));
}

}  // namespace handlers
}  // namespace semel::net
