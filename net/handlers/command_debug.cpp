// DEBUG: what tests of clients and of the node ask for.
//
// Non-goals: nothing here ends the node, so what redis-server has for that (SEGFAULT, RESTART and
// their like) does not exist. What sets up the inside of redis-server is accepted, because a test
// that calls it asks about something else.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/ascii.hpp"
#include "base/hex.hpp"
#include "base/mutex.hpp"
#include "base/stopwatch.hpp"
#include "engine/object_api/object_calls.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/handlers/command_object.hpp"
#include "net/handlers/command_server.hpp"
#include "net/handlers/value_digest.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/session/watches.hpp"
#include "net/settings/setting_units.hpp"
#include "net/settings/settings.hpp"
#include "semel/hashes.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

constexpr std::string_view no_debug =
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you "
    "can run it from a local connection, otherwise you need to set this option in the "
    "configuration file, and then restart the server.";

/// By the setting enable-debug-command: no client, all clients, or those of this machine.
bool may_debug(const Call& call) {
  const std::string who = call.services.settings.text(Setting::enable_debug_command);
  if (who != "local") return who == "yes";
  const ClientHandle::Origin& origin = call.client.handle->origin;
  return origin.is_unix || origin.address.starts_with("127.") ||
         origin.address.starts_with("[::1]") || origin.address.starts_with("local:");
}

void fail_subcommand(Call& call) {
  call.fail("ERR unknown subcommand or wrong number of arguments for '" +
            std::string{call.args[1]} + "'. Try DEBUG HELP.");
}

void accept_only(Call& call) {
  call.reply.ok();
}

/// The thread itself sleeps: between MULTI and EXEC there is no other way to take long. In short
/// pieces, as a node that ends waits for its threads.
void sleep_here(const Call& call, std::int64_t ms) {
  constexpr Millis piece{10};
  const Millis all{ms};
  const base::Stopwatch watch;
  base::Mutex mutex;
  base::Condition nobody;
  base::MutexLock lock{mutex};
  for (auto passed = watch.passed(); passed < all && !call.services.busy_scripts.has_ended_all();
       passed = watch.passed()) {
    nobody.wait_for(lock, std::min(piece, all - passed));
  }
}

/// Only this connection sleeps, in its wait: no thread does, so other connections are served and
/// the node can end. Within EXEC or a script all wait, as for any that takes long; and so they do
/// of a node that stands in for redis-server, whose users make it late for others that way.
void debug_sleep(Call& call) {
  constexpr double seconds_max = 3'600;
  constexpr double ms_per_second = 1'000;
  const double seconds = std::strtod(std::string{call.args[2]}.c_str(), nullptr);
  if (std::isnan(seconds)) return call.reply.ok();
  const auto ms = static_cast<std::int64_t>(std::clamp(seconds, 0.0, seconds_max) * ms_per_second);
  constexpr std::int64_t ms_here_max = 10'000;
  if (ms == 0 || call.context().applies_log()) return call.reply.ok();
  if (call.services.settings.boolean(Setting::stand_in)) {
    sleep_here(call, ms);
    return call.reply.ok();
  }
  if (call.context().is_part()) {
    sleep_here(call, std::min(ms, ms_here_max));
    return call.reply.ok();
  }
  constexpr std::int64_t ns_per_ms = 1'000'000;
  call.client.slept_ns = ms * ns_per_ms;
  wait_for_time(call, ms, "+OK\r\n");
}

// --- digests -------------------------------------------------------------------------------------

void write_digest(Call& call, const ValueDigest& digest) {
  call.reply.simple(base::hex_of(digest.bits()));
}

void debug_digest_value(Call& call) {
  const auto keys = call.args.subspan(2);
  std::vector<ValueDigest> digests;
  digests.reserve(keys.size());
  for (const Bytes key : keys) {
    const auto digest = digest_of_value(call.engine, {call.client.db, key});
    if (!digest.ok()) return call.fail(digest.error());
    digests.push_back(*digest);
  }
  call.reply.array(digests.size());
  for (const ValueDigest& digest : digests) write_digest(call, digest);
}

/// None: the reply has been written, or cut because there are too many keys.
std::optional<std::vector<std::string>> keys_in(Call& call, std::uint8_t db) {
  constexpr std::size_t looked_at = 4'096;
  const ScanOptions options{.db = db, .count = looked_at};
  std::vector<std::string> keys;
  std::size_t left = call.reply.room();
  std::uint64_t cursor = 0;
  do {
    const auto next = call.engine.scan(cursor, options, [&](const ScanItem& item) {
      const std::size_t bytes = sizeof(std::string) + item.key.size();
      if (bytes > left) return call.reply.cut();
      left -= bytes;
      keys.emplace_back(item.key);
    });
    if (!next.ok()) return call.fail(next.error()), std::nullopt;
    cursor = *next;
  } while (cursor != 0 && !call.reply.is_cut());
  if (call.reply.is_cut()) return std::nullopt;
  // A scan may meet a key twice while the table grows, and twice counts as never.
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

/// Each record as of a moment of its own, so that clients are not held up.
void debug_digest(Call& call) {
  ValueDigest all;
  const std::int64_t count = call.services.settings.integer(Setting::databases);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto db = static_cast<std::uint8_t>(i);
    const auto keys = keys_in(call, db);
    if (!keys) return;
    for (const std::string& key : *keys) {
      const auto digest = digest_of_value(call.engine, {db, key});
      if (!digest.ok()) return call.fail(digest.error());
      if (digest->bits() == ValueDigest::Bits{}) continue;  // it has ended
      all.join({std::to_string(db), key, digest->bytes()});
    }
  }
  write_digest(call, all);
}

// --- replies of each type ------------------------------------------------------------------------

void write_three(Call& call) {
  for (std::int64_t i = 0; i < 3; ++i) call.reply.integer(i);
}

void write_string(Call& call) {
  call.reply.bulk("Hello World");
}
void write_integer(Call& call) {
  call.reply.integer(12'345);
}
void write_double(Call& call) {
  call.reply.number(3.141);
}
void write_big_number(Call& call) {
  constexpr std::string_view digits = "1234567999999999999999999999999999999";
  if (call.reply.dialect() == Resp::two) return call.reply.bulk(digits);
  call.reply.prepared("(" + std::string{digits} + "\r\n");
}
void write_null(Call& call) {
  call.reply.null();
}
void write_array(Call& call) {
  call.reply.array(3);
  write_three(call);
}
void write_set(Call& call) {
  call.reply.set(3);
  write_three(call);
}
void write_map(Call& call) {
  call.reply.map(3);
  for (std::int64_t i = 0; i < 3; ++i) {
    call.reply.integer(i);
    call.reply.boolean(i == 1);
  }
}
void write_attribute(Call& call) {
  if (call.reply.dialect() == Resp::three) {
    call.reply.prepared("|1\r\n");
    call.reply.bulk("key-popularity");
    call.reply.array(2);
    call.reply.bulk("key:123");
    call.reply.integer(90);
  }
  call.reply.bulk("Some real reply following the attribute");
}
void write_push(Call& call) {
  if (call.reply.dialect() == Resp::two) {
    return call.fail("ERR RESP2 is not supported by this command");
  }
  call.reply.push(2);
  call.reply.bulk("server-cpu-usage");
  call.reply.integer(42);
  // A push is no reply.
  call.reply.bulk("Some real reply following the push reply");
}
void write_verbatim(Call& call) {
  call.reply.verbatim("This is a verbatim\nstring");
}
void write_true(Call& call) {
  call.reply.boolean(true);
}
void write_false(Call& call) {
  call.reply.boolean(false);
}

struct ReplyType {
  std::string_view name;
  void (*write)(Call&);
};

constexpr ReplyType reply_types[] = {
    {"string", write_string},     {"integer", write_integer},   {"double", write_double},
    {"bignum", write_big_number}, {"null", write_null},         {"array", write_array},
    {"set", write_set},           {"map", write_map},           {"attrib", write_attribute},
    {"push", write_push},         {"verbatim", write_verbatim}, {"true", write_true},
    {"false", write_false}};

std::string names_of_types() {
  std::string names;
  for (const ReplyType& type : reply_types) {
    if (!names.empty()) names += '|';
    names += type.name;
  }
  return names;
}

void debug_protocol(Call& call) {
  const auto* const found =
      std::find_if(std::begin(reply_types), std::end(reply_types),
                   [&](const ReplyType& type) { return is_word(call.args[2], type.name); });
  if (found != std::end(reply_types)) return found->write(call);
  call.fail("ERR Wrong protocol type name. Please use one of the following: " + names_of_types());
}

void debug_error(Call& call) {
  call.fail(call.args[2]);
}

// --- settings of the node and of redis-server's inside
// --------------------------------------------

bool is_on(const Call& call) {
  return integer_of(call.args[2]).value_or(0) != 0;
}

void debug_set_active_expire(Call& call) {
  // mo: relaxed: takes effect soon
  call.services.facts.sweeps.store(is_on(call), std::memory_order_relaxed);
  call.reply.ok();
}

void debug_set_disable_deny_scripts(Call& call) {
  call.services.scripts.allow_test_commands(is_on(call));
  call.reply.ok();
}

void debug_rewrite(Call& call) {
  if (!call.services.hooks.rewrite_config) {
    return call.fail("ERR The server is running without a config file");
  }
  const Status status = call.services.hooks.rewrite_config();
  status ? call.reply.ok() : call.fail(status.error().detail);
}

void debug_log(Call& call) {
  call.services.hooks.report({.level = LogLevel::warning,
                              .name = "debug_log",
                              .address = call.client.handle->origin.address,
                              .text = call.args[2]});
  call.reply.ok();
}

void debug_quicklist_packed_threshold(Call& call) {
  constexpr std::int64_t high = (std::int64_t{1} << 32) - (1 << 20);
  const auto bytes = bytes_of(call.args[2]);
  if (!bytes || *bytes < 0 || *bytes > high) {
    return call.fail("ERR argument must be a memory value bigger than 1 and smaller than 4gb");
  }
  call.reply.ok();
}

void debug_reply_buffer(Call& call) {
  const std::string_view value = call.args[3];
  if (is_word(call.args[2], "resizing")) return call.reply.ok();
  if (!is_word(call.args[2], "peak-reset-time")) return fail_subcommand(call);
  if (!is_word(value, "never") && !is_word(value, "reset") && !integer_of(value)) {
    return call.fail_number();
  }
  call.reply.ok();
}

/// Nothing is saved and loaded again, as nothing would change. As redis-server does, it refuses to
/// load records beside themselves: NOFLUSH without MERGE.
void debug_reload(Call& call) {
  bool merges = false;
  bool flushes = true;
  for (const std::string_view word : call.args.subspan(2)) {
    if (!is_word(word, "merge") && !is_word(word, "noflush") && !is_word(word, "nosave")) {
      return call.fail("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    }
    merges = merges || is_word(word, "merge");
    flushes = flushes && !is_word(word, "noflush");
  }
  const bool is_twice =
      !flushes && !merges &&
      (call.engine.stats().records != 0 || call.services.scripts.functions.totals().libraries != 0);
  if (is_twice) return call.fail("ERR Error trying to load the RDB dump");
  call.reply.ok();
}

// --- single records ------------------------------------------------------------------------------

/// The kind of the record of words[2]. None: an error has been written.
std::optional<Kind> kind_at(Call& call) {
  const auto kind = call.store().type(call.args[2]);
  if (!kind.ok()) return call.fail(kind.error()), std::nullopt;
  if (!*kind) call.fail("ERR no such key");
  return *kind;
}

/// None: it is no such number, and the error has been written.
std::optional<std::size_t> positive_at(Call& call, std::size_t at) {
  const auto number = integer_of(call.args[at]);
  if (number && *number >= 0) return static_cast<std::size_t>(*number);
  call.fail("ERR value is out of range, must be positive");
  return std::nullopt;
}

void debug_listpack(Call& call) {
  const auto kind = kind_at(call);
  if (!kind) return;
  if (encoding_of(call, *kind) != "listpack") {
    return call.fail("ERR Not a listpack encoded object.");
  }
  call.reply.simple("Listpack encoding is a name here, there is nothing to print");
}

void debug_table_stats_of_key(Call& call) {
  const auto kind = kind_at(call);
  if (!kind) return;
  const std::string encoding = encoding_of(call, *kind);
  const bool is_table = encoding == "hashtable" || encoding == "skiplist";
  if (!is_table) {
    return call.fail(
        "ERR The value stored at the specified key is not represented using an hash table");
  }
  std::int64_t count = 0;
  if (*kind == Kind::hash) {
    const auto fields = call.engine.hashes(call.client.db).hlen(call.args[2]);
    if (!fields.ok()) return call.fail(fields.error());
    count = *fields;
  } else {
    const Status done = engine::read_object(call.engine, {call.client.db, call.args[2]}, *kind,
                                            [&](const engine::ObjectReader& object) {
                                              count = static_cast<std::int64_t>(object.size());
                                            });
    if (!done) return call.fail(done.error());
  }
  call.reply.verbatim("Hash table 0 stats (main hash table):\n number of elements: " +
                      std::to_string(count) + "\n");
}

void debug_populate(Call& call) {
  const auto count = positive_at(call, 2);
  if (!count) return;
  const auto size = call.args.size() > 4 ? positive_at(call, 4) : 0;
  if (!size) return;
  if (call.services.group != nullptr) return call.fail("ERR not in a group of nodes");
  constexpr std::size_t count_max = 100'000'000;  // bounds the time of one call
  if (*count > count_max) return call.fail("ERR at most 100000000 keys");
  if (*size > limits::value_bytes_max) return call.fail(ErrorCode::value_too_long);
  const std::string prefix{call.args.size() > 3 ? call.args[3] : "key"};
  for (std::size_t i = 0; i < *count; ++i) {
    const std::string number = std::to_string(i);
    const std::string key = prefix + ":" + number;
    std::string value = "value:" + number;
    if (*size != 0) value.resize(*size);
    const auto stored = call.store().setnx(key, value);
    if (!stored.ok()) return call.fail(stored.error());
    if (*stored) call.services.watches.touched(call.client.db, key);
  }
  call.reply.ok();
}

// --- the subcommands -----------------------------------------------------------------------------

void debug_help(Call& call);

struct Subcommand {
  std::string_view name;
  std::size_t words_min;  ///< of the request
  std::size_t words_max;
  void (*handler)(Call&);
  std::string_view arguments;
  std::string_view summary;
};

constexpr std::size_t any_count = ~std::size_t{0};
constexpr std::string_view no_effect = "Checks its arguments and has no effect.";

constexpr Subcommand subcommands[] = {
    {"change-repl-id", 2, 2, accept_only, "", no_effect},
    {"config-rewrite-force-all", 2, 2, debug_rewrite, "", "As CONFIG REWRITE."},
    {"digest", 2, 2, debug_digest, "", "Digest of all records of all databases."},
    {"digest-value", 2, any_count, debug_digest_value, "[key ...]",
     "Digest of each value; equal values have the same one."},
    {"error", 3, 3, debug_error, "text", "Replies with this error."},
    {"htstats-key", 3, 3, debug_table_stats_of_key, "key",
     "How many elements a value has whose encoding is hashtable or skiplist."},
    {"listpack", 3, 3, debug_listpack, "key", "Whether the encoding of a value is listpack."},
    {"loadaof", 2, any_count, accept_only, "", no_effect},
    {"object", 3, 3, debug_object, "key", "Encoding and length of a value."},
    {"log", 3, 3, debug_log, "message", "Writes it into the operator log."},
    {"pause-cron", 3, 3, accept_only, "0|1", no_effect},
    {"populate", 3, 5, debug_populate, "count [prefix] [size]",
     "Sets strings named prefix:number that are not there yet; in no group."},
    {"protocol", 3, 3, debug_protocol, "type", "Replies with a value of this type of RESP."},
    {"quicklist-packed-threshold", 3, 3, debug_quicklist_packed_threshold, "bytes", no_effect},
    {"reload", 2, any_count, debug_reload, "[MERGE] [NOFLUSH] [NOSAVE]", no_effect},
    {"replybuffer", 4, 4, debug_reply_buffer, "PEAK-RESET-TIME NEVER|RESET|ms | RESIZING 0|1",
     no_effect},
    {"set-active-expire", 3, 3, debug_set_active_expire, "0|1",
     "Whether what has expired is removed before it is asked for."},
    {"set-disable-deny-scripts", 3, 3, debug_set_disable_deny_scripts, "0|1",
     "Whether scripts may call DEBUG and CLIENT LIST."},
    {"sleep", 3, 3, debug_sleep, "seconds",
     "This connection waits, for an hour at most; others are served. In a transaction or script "
     "all wait, ten seconds at most."},
    {"help", 2, 2, debug_help, "", "Prints this help."},
};

void debug_help(Call& call) {
  call.reply.array(1 + 2 * std::size(subcommands));
  call.reply.simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const Subcommand& each : subcommands) {
    std::string line = base::upper_of(each.name);
    if (!each.arguments.empty()) line.append(" ").append(each.arguments);
    call.reply.simple(line);
    call.reply.simple("    " + std::string{each.summary});
  }
}

}  // namespace

namespace handlers {

void debug(Call& call) {
  if (!may_debug(call)) return call.fail(no_debug);
  const std::size_t count = call.args.size();
  for (const Subcommand& each : subcommands) {
    if (is_word(call.args[1], each.name) && count >= each.words_min && count <= each.words_max) {
      return each.handler(call);
    }
  }
  fail_subcommand(call);
}

}  // namespace handlers
}  // namespace semel::net
