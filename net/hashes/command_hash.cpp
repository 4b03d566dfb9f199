// Hashes. Their order is that in which fields came, as redis-server has it up to 512 of them with
// values up to 64 bytes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/handlers/presence.hpp"
#include "net/resp/text.hpp"
#include "semel/hashes.hpp"

namespace semel::net::handlers {
namespace {

Hashes hashes(const Call& call) {
  return call.engine.hashes(call.client.db);
}

std::vector<Bytes> fields_of(const Call& call) {
  return {call.args.begin() + 2, call.args.end()};
}

/// None: an error has been written.
std::optional<std::vector<FieldValue>> pairs_of(Call& call) {
  if (call.args.size() % 2 != 0) {
    call.fail_arity();
    return std::nullopt;
  }
  std::vector<FieldValue> pairs;
  pairs.reserve(call.args.size() / 2 - 1);
  for (std::size_t i = 2; i < call.args.size(); i += 2) {
    pairs.push_back({call.args[i], call.args[i + 1]});
  }
  return pairs;
}

/// A bad value of the field has another error text than a bad argument.
void fail_change(Call& call, const Error& error) {
  if (error.code == ErrorCode::not_an_integer) {
    return call.fail("ERR hash value is not an integer");
  }
  if (error.code == ErrorCode::not_a_float) return call.fail("ERR hash value is not a float");
  call.fail(error);
}

enum class Part : std::uint8_t { fields, values };

void write_parts(Call& call, Part part) {
  call.answer(hashes(call).hgetall(call.key()), [&](const FieldValues& all) {
    call.reply.array(all.size());
    for (const FieldValue& each : all) {
      call.reply.bulk(part == Part::fields ? each.field : each.value);
    }
  });
}

struct ScanWords {
  std::string_view pattern{};
  std::int64_t count = 10;
};

/// None: an error has been written.
std::optional<ScanWords> scan_words_of(Call& call) {
  ScanWords words;
  std::span<const std::string_view> rest = call.args.subspan(3);
  for (; rest.size() >= 2; rest = rest.subspan(2)) {
    if (is_word(rest[0], "match")) {
      words.pattern = rest[1];
    } else if (is_word(rest[0], "count")) {
      const auto count = integer_of(rest[1]);
      if (!count) {
        call.fail_number();
        return std::nullopt;
      }
      if (*count < 1) break;
      words.count = *count;
    } else {
      break;
    }
  }
  if (rest.empty()) return words;
  call.fail_syntax();
  return std::nullopt;
}

/// Runs a change of the hash and writes the reply with `write`, which returns whether there was a
/// change. The event `new` is published before the reply and the change's event after it, which is
/// the order that a subscriber on this connection sees with redis-server.
template <class Change, class Write>
void change_hash(Call& call, std::string_view event, Change&& change, Write&& write) {
  const Bytes keys[] = {call.key()};
  Presence before{call, 'n', keys};
  const auto result = before.around(change);
  if (!result.ok()) return fail_change(call, result.error());
  if (before.was_absent(0)) call.notify('n', "new", call.key());
  if (write(*result)) call.notify('h', event, call.key());
}

/// Publishes the event of a lookup that missed.
void notify_miss(Call& call) {
  if (!call.notifies('m')) return;
  const auto there = call.store().exists(call.key());
  if (there.ok() && !*there) call.notify('m', "keymiss", call.key());
}

}  // namespace

void hset(Call& call) {
  const auto pairs = pairs_of(call);
  if (!pairs) return;
  change_hash(
      call, "hset", [&] { return hashes(call).hset(call.key(), *pairs); },
      [&](std::int64_t added) {
        call.reply.integer(added);
        return true;
      });
}

void hmset(Call& call) {
  const auto pairs = pairs_of(call);
  if (!pairs) return;
  change_hash(
      call, "hset", [&] { return hashes(call).hset(call.key(), *pairs); },
      [&](std::int64_t) {
        call.reply.ok();
        return true;
      });
}

void hsetnx(Call& call) {
  change_hash(
      call, "hset", [&] { return hashes(call).hsetnx(call.key(), call.args[2], call.args[3]); },
      [&](bool stored) {
        call.reply.integer(stored ? 1 : 0);
        return stored;
      });
}

void hget(Call& call) {
  notify_miss(call);
  call.answer(hashes(call).hget(call.key(), call.args[2]));
}

void hmget(Call& call) {
  notify_miss(call);
  // Each field is read once, however often it is named.
  const std::vector<Bytes> named = fields_of(call);
  std::vector<Bytes> fields = named;
  std::sort(fields.begin(), fields.end());
  fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
  call.answer(hashes(call).hmget(call.key(), fields), [&](const auto& values) {
    call.reply.array(named.size());
    for (const Bytes field : named) {
      const auto at = std::lower_bound(fields.begin(), fields.end(), field) - fields.begin();
      const auto& value = values[static_cast<std::size_t>(at)];
      value ? call.reply.bulk(*value) : call.reply.null();
    }
  });
}

void hdel(Call& call) {
  const Result<std::int64_t> removed = hashes(call).hdel(call.key(), fields_of(call));
  if (removed.ok() && *removed != 0) {
    call.notify('h', "hdel", call.key());
    const auto there = call.store().exists(call.key());
    if (there.ok() && !*there) call.notify('g', "del", call.key());
  }
  call.answer(removed);
}

void hexists(Call& call) {
  notify_miss(call);
  call.answer(hashes(call).hexists(call.key(), call.args[2]));
}
void hlen(Call& call) {
  notify_miss(call);
  call.answer(hashes(call).hlen(call.key()));
}
void hstrlen(Call& call) {
  notify_miss(call);
  call.answer(hashes(call).hstrlen(call.key(), call.args[2]));
}

void hgetall(Call& call) {
  notify_miss(call);
  call.answer(hashes(call).hgetall(call.key()), [&](const FieldValues& all) {
    call.reply.map(all.size());
    for (const FieldValue& each : all) {
      call.reply.bulk(each.field);
      call.reply.bulk(each.value);
    }
  });
}

void hkeys(Call& call) {
  notify_miss(call);
  write_parts(call, Part::fields);
}
void hvals(Call& call) {
  notify_miss(call);
  write_parts(call, Part::values);
}

void hincrby(Call& call) {
  const auto by = integer_of(call.args[3]);
  if (!by) return call.fail_number();
  change_hash(
      call, "hincrby", [&] { return hashes(call).hincrby(call.key(), call.args[2], *by); },
      [&](std::int64_t value) {
        call.reply.integer(value);
        return true;
      });
}

void hincrbyfloat(Call& call) {
  const auto by = float_of(call.args[3]);
  if (!by) return call.fail("ERR value is not a valid float");
  if (std::isinf(*by)) return call.fail("ERR value is NaN or Infinity");
  change_hash(
      call, "hincrbyfloat",
      [&] { return hashes(call).hincrbyfloat(call.key(), call.args[2], *by); },
      [&](const std::string& text) {
        call.reply.bulk(text);
        return true;
      });
}

void hrandfield(Call& call) {
  notify_miss(call);
  if (call.args.size() == 2) return call.answer(hashes(call).hrandfield(call.key()));
  const auto count = integer_of(call.args[2]);
  if (!count) return call.fail_number();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (*count < -most) {
    return call.fail("ERR value is out of range, value must between -" + std::to_string(most) +
                     " and " + std::to_string(most));
  }
  const bool with_values = call.args.size() == 4 && is_word(call.args[3], "withvalues");
  if (call.args.size() > 3 && !with_values) return call.fail_syntax();
  if (with_values && (*count < -most / 2 || *count > most / 2)) {
    return call.fail("ERR value is out of range");
  }
  const auto picked = hashes(call).hrandfield(call.key(), *count);
  if (!picked.ok() && picked.error().code == ErrorCode::bad_option) {
    return call.fail("ERR value is out of range");  // of our own limits
  }
  call.answer(picked, [&](const FieldValues& some) {
    const bool in_pairs = with_values && call.reply.dialect() == Resp::three;
    call.reply.array(with_values && !in_pairs ? some.size() * 2 : some.size());
    for (const FieldValue& each : some) {
      if (in_pairs) call.reply.array(2);
      call.reply.bulk(each.field);
      if (with_values) call.reply.bulk(each.value);
    }
  });
}

void hscan(Call& call) {
  notify_miss(call);
  const auto cursor = cursor_of(call.args[2]);
  if (!cursor) return call.fail("ERR invalid cursor");
  // WRONGTYPE comes before errors of the other arguments.
  const auto there = hashes(call).hlen(call.key());
  if (!there.ok()) return call.fail(there.error());
  ScanWords words;
  if (*there != 0) {
    const auto read = scan_words_of(call);
    if (!read) return;
    words = *read;
  }
  const auto found =
      hashes(call).hscan(call.key(), *cursor, words.pattern, static_cast<std::size_t>(words.count));
  call.answer(found, [&](const HashScan& scan) {
    call.reply.array(2);
    call.reply.bulk(std::to_string(scan.cursor));
    call.reply.array(scan.items.size() * 2);
    for (const FieldValue& each : scan.items) {
      call.reply.bulk(each.field);
      call.reply.bulk(each.value);
    }
  });
}

}  // namespace semel::net::handlers
