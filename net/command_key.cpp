// Keys and databases: what holds for records of every kind.
#include <limits>
#include <vector>

#include "net/handlers.hpp"
#include "net/text.hpp"

namespace semel::net::handlers {
namespace {

std::vector<Bytes> keys_of(const Call& call) {
  return {call.words.begin() + 1, call.words.end()};
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
  if (*db < 0 || *db >= static_cast<std::int64_t>(limits::db_count)) {
    call.fail_db();
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(*db);
}

/// None: an error has been written.
std::optional<ExpireRule> rule_of(Call& call) {
  ExpireRule rule;
  for (const std::string_view word : call.words.subspan(3)) {
    if (is_word(word, "nx")) {
      rule.only_without_ttl = true;
    } else if (is_word(word, "xx")) {
      rule.only_with_ttl = true;
    } else if (is_word(word, "gt")) {
      rule.only_later = true;
    } else if (is_word(word, "lt")) {
      rule.only_earlier = true;
    } else {
      call.fail("ERR Unsupported option " + std::string{word});
      return std::nullopt;
    }
  }
  if (rule.only_without_ttl && (rule.only_with_ttl || rule.only_later || rule.only_earlier)) {
    call.fail("ERR NX and XX, GT or LT options at the same time are not compatible");
    return std::nullopt;
  }
  if (rule.only_later && rule.only_earlier) {
    call.fail("ERR GT and LT options at the same time are not compatible");
    return std::nullopt;
  }
  return rule;
}

void expire_by(Call& call, std::int64_t unit_ms, bool from_now) {
  const auto rule = rule_of(call);
  if (!rule) return;
  const auto value = integer_of(call.words[2]);
  if (!value) return call.fail_number();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  if (*value > most / unit_ms || *value < least / unit_ms) return call.fail_expire();
  const std::int64_t ms = *value * unit_ms;
  const Store store = call.store();
  const std::int64_t base = from_now ? call.engine.clock().unix_ms() : 0;
  if (ms > most - base) return call.fail_expire();
  call.answer(call.store().expire(call.key(), Expiry::at(store.from_unix_ms(base + ms)), *rule));
}

enum class Ask { left, when };

void ttl_by(Call& call, Ask ask, bool in_seconds) {
  const auto end = call.store().ttl(call.key());
  call.answer(end, [&](const TtlResult& found) {
    if (!found.found) return call.reply.integer(-2);
    if (!found.has_ttl) return call.reply.integer(-1);
    const std::int64_t left = found.remaining.count();
    const std::int64_t ms = ask == Ask::left ? left : call.engine.clock().unix_ms() + left;
    call.reply.integer(in_seconds ? (ms + 500) / 1000 : ms);
  });
}

/// False: an error has been written.
bool takes_flush_words(Call& call) {
  const bool right = call.words.size() == 1 ||
                     (call.words.size() == 2 &&
                      (is_word(call.words[1], "async") || is_word(call.words[1], "sync")));
  if (!right) call.fail_syntax();
  return right;
}

}  // namespace

void del(Call& call) {
  call.answer(call.store().del(keys_of(call)));
}
void exists(Call& call) {
  call.answer(call.store().exists(keys_of(call)));
}
void touch(Call& call) {
  call.answer(call.store().touch(keys_of(call)));
}

void type(Call& call) {
  call.answer(call.store().type(call.key()), [&](const std::optional<Kind>& kind) {
    call.reply.simple(!kind ? "none" : *kind == Kind::string ? "string" : "claim");
  });
}

void expire(Call& call) {
  expire_by(call, 1000, true);
}
void pexpire(Call& call) {
  expire_by(call, 1, true);
}
void expireat(Call& call) {
  expire_by(call, 1000, false);
}
void pexpireat(Call& call) {
  expire_by(call, 1, false);
}
void persist(Call& call) {
  call.answer(call.store().persist(call.key()));
}
void ttl(Call& call) {
  ttl_by(call, Ask::left, true);
}
void pttl(Call& call) {
  ttl_by(call, Ask::left, false);
}
void expiretime(Call& call) {
  ttl_by(call, Ask::when, true);
}
void pexpiretime(Call& call) {
  ttl_by(call, Ask::when, false);
}

void rename(Call& call) {
  call.answer(call.store().rename(call.key(), call.words[2]));
}
void renamenx(Call& call) {
  call.answer(call.store().renamenx(call.key(), call.words[2]));
}

void copy(Call& call) {
  std::optional<std::uint8_t> to_db;
  bool replaces = false;
  for (std::size_t i = 3; i < call.words.size(); ++i) {
    if (is_word(call.words[i], "replace")) {
      replaces = true;
    } else if (is_word(call.words[i], "db") && i + 1 < call.words.size()) {
      to_db = db_of(call, call.words[++i]);
      if (!to_db) return;
    } else {
      return call.fail_syntax();
    }
  }
  call.answer(call.store().copy(call.key(), call.words[2], to_db, replaces));
}

void move(Call& call) {
  if (const auto to_db = db_of(call, call.words[2])) {
    call.answer(call.store().move(call.key(), *to_db));
  }
}

void randomkey(Call& call) {
  call.answer(call.store().randomkey());
}

void keys(Call& call) {
  call.answer(call.store().keys(call.words[1]), [&](const std::vector<std::string>& found) {
    call.reply.array(found.size());
    for (const std::string& key : found) call.reply.bulk(key);
  });
}

void dbsize(Call& call) {
  call.reply.integer(static_cast<std::int64_t>(call.engine.size(call.client.db)));
}

void flushdb(Call& call) {
  if (!takes_flush_words(call)) return;
  call.engine.flush(call.client.db);
  call.reply.ok();
}

void flushall(Call& call) {
  if (!takes_flush_words(call)) return;
  call.engine.flush({});
  call.reply.ok();
}

void select(Call& call) {
  if (const auto db = db_of(call, call.words[1])) {
    call.client.db = *db;
    call.reply.ok();
  }
}

void swapdb(Call& call) {
  const auto one = integer_of(call.words[1]);
  if (!is_int(one)) return call.fail("ERR invalid first DB index");
  const auto other = integer_of(call.words[2]);
  if (!is_int(other)) return call.fail("ERR invalid second DB index");
  constexpr auto count = static_cast<std::int64_t>(limits::db_count);
  if (*one < 0 || *one >= count || *other < 0 || *other >= count) return call.fail_db();
  call.answer(
      call.engine.swap_db(static_cast<std::uint8_t>(*one), static_cast<std::uint8_t>(*other)));
}

}  // namespace semel::net::handlers
