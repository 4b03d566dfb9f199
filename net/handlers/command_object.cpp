// Looking at records: SCAN, OBJECT, MEMORY.
#include <algorithm>
#include <limits>
#include <vector>

#include "engine/api/eviction_calls.hpp"
#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/hash_fields.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/types/sorted_set.hpp"
#include "net/commands/handlers.hpp"
#include "net/handlers/command_object.hpp"
#include "net/resp/reply_reader.hpp"
#include "net/resp/text.hpp"
#include "net/session/clients.hpp"
#include "net/session/node_role.hpp"
#include "net/settings/memory_plan.hpp"
#include "net/settings/settings.hpp"
#include "net/stats/node_stats.hpp"
#include "net/time/held_clock.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"

namespace semel::net {
namespace {

struct ScanWords {
  std::uint64_t cursor = 0;
  std::size_t count = 10;
  std::optional<std::string_view> pattern{};
  std::optional<std::string_view> type{};
};

/// False: an error has been written.
bool read_scan(Call& call, ScanWords& scan) {
  const auto cursor = cursor_of(call.args[1]);
  if (!cursor) {
    call.fail(ErrorCode::bad_cursor);
    return false;
  }
  scan.cursor = *cursor;
  for (std::size_t i = 2; i < call.args.size(); i += 2) {
    const std::string_view name = call.args[i];
    const bool has_value = i + 1 < call.args.size();
    if (has_value && is_word(name, "count")) {
      const auto count = integer_of(call.args[i + 1]);
      if (!count) return call.fail_number(), false;
      if (*count < 1) return call.fail_syntax(), false;
      scan.count = static_cast<std::size_t>(
          std::min(*count, static_cast<std::int64_t>(limits::scan_count_max)));
    } else if (has_value && is_word(name, "match")) {
      scan.pattern = call.args[i + 1];
    } else if (has_value && is_word(name, "type")) {
      scan.type = call.args[i + 1];
    } else {
      return call.fail_syntax(), false;
    }
  }
  return true;
}

/// What OBJECT would say of bytes that were set as they are.
std::string_view encoding_of(std::string_view value) noexcept {
  constexpr std::size_t integer_bytes_max = 20;
  constexpr std::size_t embedded_bytes_max = 44;
  if (value.size() <= integer_bytes_max && integer_of(value)) return "int";
  return value.size() <= embedded_bytes_max ? "embstr" : "raw";
}

std::string_view encoding_of(const FieldValues& fields, const Settings& settings) {
  const auto limit = [&](Setting setting) {
    return static_cast<std::size_t>(settings.integer(setting));
  };
  const std::size_t fields_max = limit(Setting::hash_max_listpack_entries);
  const std::size_t bytes_max = limit(Setting::hash_max_listpack_value);
  const bool is_small = std::all_of(fields.begin(), fields.end(), [&](const FieldValue& pair) {
    return pair.field.size() <= bytes_max && pair.value.size() <= bytes_max;
  });
  return is_small && fields.size() <= fields_max ? "listpack" : "hashtable";
}

/// The kind of the record of words[2]. None: the reply has been written.
std::optional<Kind> kind_there(Call& call) {
  const auto kind = call.store().type(call.args[2]);
  if (!kind.ok()) {
    call.fail(kind.error());
    return std::nullopt;
  }
  if (!*kind) call.reply.null();
  return *kind;
}

/// What a record of this size takes, its slot and its timer included, about.
std::int64_t record_bytes(std::size_t key, std::size_t value, bool has_ttl) noexcept {
  constexpr std::size_t short_max = 255;
  constexpr std::size_t slot = 12;  // eight bytes at a usual load of the table
  constexpr std::size_t timer = 16;
  const std::size_t head = key <= short_max && value <= short_max ? 16 : 24;
  const std::size_t record = (head + key + value + 7) / 8 * 8;
  return static_cast<std::int64_t>(record + slot + (has_ttl ? timer : 0));
}

void reply_memory(Call& call, std::size_t value_bytes) {
  const auto ttl = call.store().ttl(call.args[2]);
  const bool has_ttl = ttl.ok() && ttl->has_ttl;
  call.reply.integer(record_bytes(call.args[2].size(), value_bytes, has_ttl));
}

void encoding_of_string(Call& call) {
  StoreOutcome found;
  call.engine.host().apply({.verb = Verb::type, .db = call.client.db, .key = call.args[2]}, found);
  if (found.raw) return call.reply.bulk("raw");
  call.answer(call.store().get(call.args[2]), [&](const std::optional<std::string>& value) {
    value ? call.reply.bulk(encoding_of(*value)) : call.reply.null();
  });
}

void memory_of_string(Call& call) {
  call.answer(call.store().strlen(call.args[2]),
              [&](std::int64_t length) { reply_memory(call, static_cast<std::size_t>(length)); });
}

void encoding_of_claim(Call& call) {
  call.reply.bulk(name_of(Kind::claim));
}

void memory_of_claim(Call& call) {
  constexpr std::size_t claim_bytes = 96;  // what it knows of its owner, without a result
  reply_memory(call, claim_bytes);
}

void encoding_of_hash(Call& call) {
  call.answer(
      call.engine.hashes(call.client.db).hgetall(call.args[2]), [&](const FieldValues& fields) {
        const std::string_view encoding = encoding_of(fields, call.services.settings);
        // What redis-server has made of it since 7.4.
        const auto ends = engine::has_field_ends(call.engine, {call.client.db, call.args[2]});
        const bool is_extended = encoding == "listpack" && ends.ok() && *ends;
        call.reply.bulk(is_extended ? "listpackex" : encoding);
      });
}

void memory_of_hash(Call& call) {
  call.answer(call.engine.hashes(call.client.db).hgetall(call.args[2]),
              [&](const FieldValues& fields) {
                constexpr std::size_t lengths = 4;
                std::size_t bytes = 0;
                for (const FieldValue& pair : fields) {
                  bytes += lengths + pair.field.size() + pair.value.size();
                }
                reply_memory(call, bytes);
              });
}

void encoding_of_sorted_set(Call& call) {
  const auto limit = [&](Setting setting) {
    return static_cast<std::size_t>(call.services.settings.integer(setting));
  };
  bool is_small = false;
  const Status read = engine::read_object(call.engine, {call.client.db, call.args[2]},
                                          Kind::sorted_set, [&](const engine::ObjectReader& set) {
                                            is_small = engine::is_small(
                                                set, limit(Setting::zset_max_listpack_entries),
                                                limit(Setting::zset_max_listpack_value));
                                          });
  read ? call.reply.bulk(is_small ? "listpack" : "skiplist") : call.fail(read.error());
}

void memory_of_sorted_set(Call& call) {
  std::size_t bytes = 0;
  const Status read =
      engine::read_object(call.engine, {call.client.db, call.args[2]}, Kind::sorted_set,
                          [&](const engine::ObjectReader& set) {
                            set.each(0, set.size(), [&](const engine::Element& element) {
                              constexpr std::size_t lengths = 4;
                              bytes += lengths + element.key.size();
                              return true;
                            });
                          });
  read ? reply_memory(call, bytes) : call.fail(read.error());
}

void encoding_of_stream(Call& call) {
  call.reply.bulk("stream");
}

void memory_of_stream(Call& call) {
  std::size_t bytes = 0;
  const Status read =
      engine::read_object(call.engine, {call.client.db, call.args[2]}, Kind::stream,
                          [&](const engine::ObjectReader& stream) {
                            stream.each(0, stream.size(), [&](const engine::Element& element) {
                              constexpr std::size_t lengths = 4;
                              bytes += lengths + element.key.size() + element.value.size();
                              return true;
                            });
                          });
  read ? reply_memory(call, bytes) : call.fail(read.error());
}

/// Of every length, by the settings of redis-server 7.0.
void encoding_of_list(Call& call) {
  call.reply.bulk("quicklist");
}

void memory_of_list(Call& call) {
  std::size_t bytes = 0;
  const Status done =
      engine::read_object(call.engine, {call.client.db, call.args[2]}, Kind::list,
                          [&](const engine::ObjectReader& list) {
                            constexpr std::size_t lengths = 2;
                            list.each(0, list.size(), [&](const engine::Element& element) {
                              bytes += lengths + element.value.size();
                              return true;
                            });
                          });
  if (!done) return call.fail(done.error());
  reply_memory(call, bytes);
}

/// The bytes of an object's elements.
std::size_t bytes_of(const engine::ObjectReader& object) {
  constexpr std::size_t lengths = 2;
  std::size_t bytes = 0;
  object.each(0, object.size(), [&](const engine::Element& element) {
    bytes += lengths + element.key.size() + element.value.size();
    return true;
  });
  return bytes;
}

void encoding_of_set(Call& call) {
  std::string_view encoding;
  const Status done = engine::read_object(
      call.engine, {call.client.db, call.args[2]}, Kind::set, [&](const engine::ObjectReader& set) {
        const auto most = static_cast<std::size_t>(
            call.services.settings.integer(Setting::set_max_intset_entries));
        if (set.empty()) return;
        // Integers come first.
        const bool are_integers = engine::is_integer_member(set.at(set.size() - 1).key);
        encoding = are_integers && set.size() <= most ? "intset" : "hashtable";
      });
  if (!done) return call.fail(done.error());
  encoding.empty() ? call.reply.null() : call.reply.bulk(encoding);
}

void memory_of_set(Call& call) {
  std::size_t bytes = 0;
  const Status done =
      engine::read_object(call.engine, {call.client.db, call.args[2]}, Kind::set,
                          [&](const engine::ObjectReader& set) { bytes = bytes_of(set); });
  done ? reply_memory(call, bytes) : call.fail(done.error());
}

/// What OBJECT and MEMORY reply about a record of words[2] of this kind.
struct ObjectFacts {
  Kind kind;
  void (*encoding)(Call&);
  void (*memory)(Call&);
};

constexpr ObjectFacts objects[] = {{Kind::string, encoding_of_string, memory_of_string},
                                   {Kind::claim, encoding_of_claim, memory_of_claim},
                                   {Kind::hash, encoding_of_hash, memory_of_hash},
                                   {Kind::sorted_set, encoding_of_sorted_set, memory_of_sorted_set},
                                   {Kind::stream, encoding_of_stream, memory_of_stream},
                                   {Kind::list, encoding_of_list, memory_of_list},
                                   {Kind::set, encoding_of_set, memory_of_set}};

/// A test asks about a record of each of record_kinds(), so each has a row.
const ObjectFacts& facts_of(Kind kind) noexcept {
  const auto* const found =
      std::find_if(std::begin(objects), std::end(objects),
                   [&](const ObjectFacts& facts) { return facts.kind == kind; });
  return found == std::end(objects) ? objects[0] : *found;
}

/// Of a string in a dump that is not compressed.
std::int64_t dumped_bytes(std::string_view value) {
  constexpr std::size_t number_bytes_max = 11;  // longer ones are kept as text
  const auto number = value.size() <= number_bytes_max ? integer_of(value) : std::nullopt;
  const auto is_of = [&](int bits) {
    const std::int64_t high = (std::int64_t{1} << (bits - 1)) - 1;
    return number && *number <= high && *number >= -high - 1;
  };
  if (is_of(8)) return 2;
  if (is_of(16)) return 3;
  if (is_of(32)) return 5;
  constexpr std::size_t one_byte_max = 63;
  constexpr std::size_t two_bytes_max = 16'383;
  const std::size_t head = value.size() <= one_byte_max ? 1 : value.size() <= two_bytes_max ? 2 : 5;
  return static_cast<std::int64_t>(head + value.size());
}

/// What `write` replies to the same call.
Reply reply_of(const Call& call, void (*write)(Call&)) {
  std::string bytes;
  RespWriter writer{bytes, Resp::two};
  Call inner{call.services, call.engine, call.client, call.args, writer, call.row};
  write(inner);
  std::string_view rest = bytes;
  return take_reply(rest).value_or(Reply{});
}

}  // namespace

std::string encoding_of(const Call& call, Kind kind) {
  Reply encoding = reply_of(call, facts_of(kind).encoding);
  return encoding.type == Reply::Type::bulk ? std::move(encoding.text) : std::string{};
}

void debug_object(Call& call) {
  const Bytes key = call.args[2];
  const auto kind = call.store().type(key);
  if (!kind.ok()) return call.fail(kind.error());
  if (!*kind) return call.fail("ERR no such key");
  const ObjectFacts& facts = facts_of(**kind);
  std::int64_t bytes = reply_of(call, facts.memory).integer;
  if (**kind == Kind::string) {
    const auto value = call.store().get(key);
    if (value.ok() && *value) bytes = dumped_bytes(**value);
  }
  constexpr std::int64_t lru_clocks = 1 << 24;
  const std::int64_t lru = call.engine.clock().unix_ms() / 1'000 % lru_clocks;
  call.reply.simple("Value at:0x0 refcount:1 encoding:" + reply_of(call, facts.encoding).text +
                    " serializedlength:" + std::to_string(bytes) + " lru:" + std::to_string(lru) +
                    " lru_seconds_idle:0");
}

namespace handlers {

void scan(Call& call) {
  ScanWords words;
  if (!read_scan(call, words)) return;
  ScanOptions options{.db = call.client.db, .count = words.count};
  bool is_kind = true;
  if (words.type) {
    is_kind = false;
    for (const Kind kind : record_kinds()) {
      if (!is_word(*words.type, name_of(kind))) continue;
      options.kind = kind;
      is_kind = true;
    }
  }
  std::vector<std::string> keys;
  std::size_t left = call.reply.room() / 2;  // they are held here and in the reply
  const auto next = call.engine.scan(words.cursor, options, [&](const ScanItem& item) {
    if (!is_kind || (words.pattern && !glob_match(*words.pattern, item.key))) return;
    if (sizeof(std::string) + item.key.size() > left) return call.reply.cut();
    left -= sizeof(std::string) + item.key.size();
    keys.emplace_back(item.key);
  });
  if (!next.ok()) return call.fail(next.error());
  if (call.reply.is_cut()) return;
  call.reply.array(2);
  call.reply.bulk(std::to_string(*next));
  call.reply.array(keys.size());
  for (const std::string& key : keys) call.reply.bulk(key);
}

void object_encoding(Call& call) {
  const engine::OnlyLooks looks{call.engine};
  if (const auto kind = kind_there(call)) facts_of(*kind).encoding(call);
}

/// redis-server has one object for each small integer, which it never counts.
void object_refcount(Call& call) {
  constexpr std::int64_t shared_end = 10'000;
  constexpr std::int64_t shared_count = std::numeric_limits<std::int32_t>::max();
  const auto kind = kind_there(call);
  if (!kind) return;
  if (*kind != Kind::string || encoding_of(call, *kind) != "int") return call.reply.integer(1);
  const auto value = call.store().get(call.args[2]);
  if (!value.ok()) return call.fail(value.error());
  const auto number = value->has_value() ? integer_of(**value) : std::nullopt;
  call.reply.integer(number && *number >= 0 && *number < shared_end ? shared_count : 1);
}

void object_idletime(Call& call) {
  if (!kind_there(call)) return;
  if (is_lfu(memory_policy_of(call.services.settings))) {
    return call.fail(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at runtime LRU and LFU data will take some time to adjust.");
  }
  const auto use = engine::use_of(call.engine, {call.client.db, call.args[2]});
  call.reply.integer(use ? use->idle_seconds : 0);
}

void object_freq(Call& call) {
  if (!kind_there(call)) return;
  if (is_lfu(memory_policy_of(call.services.settings))) {
    const auto use = engine::use_of(call.engine, {call.client.db, call.args[2]});
    return call.reply.integer(use ? use->frequency : 0);
  }
  call.fail(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

void memory_usage(Call& call) {
  for (std::size_t i = 3; i < call.args.size(); i += 2) {
    if (!is_word(call.args[i], "samples") || i + 1 == call.args.size()) {
      return call.fail_syntax();
    }
    const auto samples = integer_of(call.args[i + 1]);
    if (!samples) return call.fail_number();
    if (*samples < 0) return call.fail_syntax();
  }
  const engine::OnlyLooks looks{call.engine};
  if (const auto kind = kind_there(call)) facts_of(*kind).memory(call);
}

void memory_doctor(Call& call) {
  const Stats stats = call.engine.stats();
  constexpr std::uint64_t percent_high = 90;
  if (stats.bytes_limit != 0 && stats.bytes_used > stats.bytes_limit / 100 * percent_high) {
    return call.reply.verbatim("More than " + std::to_string(percent_high) +
                               " % of the memory limit is taken; writes are refused when nothing "
                               "is left.\n");
  }
  call.reply.verbatim("Nothing to complain of: " + std::to_string(stats.bytes_used) + " of " +
                      std::to_string(stats.bytes_limit) + " bytes are taken.\n");
}

void memory_malloc_stats(Call& call) {
  call.reply.bulk("Stats not supported for the current allocator");
}

void memory_purge(Call& call) {
  // While writes are held back nothing is removed.
  const HeldClock::Hold hold{call.services.role.follows()};
  if (!call.services.clients.pausing()) static_cast<void>(call.engine.advance());
  call.reply.ok();
}

void memory_stats(Call& call) {
  const Stats stats = call.engine.stats();
  const std::uint64_t dataset = stats.bytes_records;
  const std::uint64_t overhead = stats.bytes_used - std::min(dataset, stats.bytes_used);
  std::uint64_t peak =
      call.services.stats.memory_peak.load(std::memory_order_relaxed);  // mo: relaxed: figure
  peak = std::max(peak, stats.bytes_used);
  const auto percent = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const auto field = [&](std::string_view name, std::uint64_t value) {
    call.reply.bulk(name);
    call.reply.integer(static_cast<std::int64_t>(value));
  };
  constexpr std::size_t fields = 12;
  call.reply.map(fields);
  field("peak.allocated", peak);
  field("total.allocated", stats.bytes_used);
  field("startup.allocated", 0);
  field("replication.backlog", 0);
  field("aof.buffer", 0);
  field("table.allocated", stats.bytes_table);
  field("wheel.allocated", stats.bytes_wheel);
  field("overhead.total", overhead);
  field("keys.count", stats.records);
  field("keys.bytes-per-key", stats.records == 0 ? 0 : stats.bytes_used / stats.records);
  field("dataset.bytes", dataset);
  call.reply.bulk("dataset.percentage");
  call.reply.number(percent(dataset, stats.bytes_used));
}

}  // namespace handlers
}  // namespace semel::net
