// DUMP and RESTORE, in the serialization of redis-server (net/rdb).
#include <optional>

#include "engine/api/eviction_calls.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/dump/dumped_record.hpp"
#include "net/objects/object_command.hpp"
#include "net/rdb/dump_reader.hpp"
#include "net/resp/text.hpp"
#include "net/settings/memory_plan.hpp"
#include "semel/limits.hpp"

namespace semel::net::handlers {

namespace {

struct RestoreWords {
  bool replaces = false;
  bool is_absolute = false;
  bool is_frequency = false;            // the next was FREQ
  std::optional<engine::KeyUse> use{};  // IDLETIME or FREQ
};

/// None: the error has been written.
std::optional<RestoreWords> read_words(Call& call) {
  RestoreWords words;
  bool has_idle = false;
  bool has_frequency = false;
  const auto number_behind = [&](std::size_t& i) {
    const auto number = integer_of(call.args[++i]);
    if (!number) call.fail_number();
    return number;
  };
  for (std::size_t i = 4; i < call.args.size(); ++i) {
    const bool has_more = i + 1 < call.args.size();
    if (is_word(call.args[i], "replace")) {
      words.replaces = true;
    } else if (is_word(call.args[i], "absttl")) {
      words.is_absolute = true;
    } else if (is_word(call.args[i], "idletime") && has_more && !has_frequency) {
      const auto idle = number_behind(i);
      if (!idle) return std::nullopt;
      if (*idle < 0) {
        return call.fail("ERR Invalid IDLETIME value, must be >= 0"), std::nullopt;
      }
      has_idle = true;
      words.use = engine::KeyUse{.idle_seconds = static_cast<std::uint32_t>(*idle)};
    } else if (is_word(call.args[i], "freq") && has_more && !has_idle) {
      constexpr std::int64_t frequency_max = 255;
      const auto frequency = number_behind(i);
      if (!frequency) return std::nullopt;
      if (*frequency < 0 || *frequency > frequency_max) {
        return call.fail("ERR Invalid FREQ value, must be >= 0 and <= 255"), std::nullopt;
      }
      has_frequency = words.is_frequency = true;
      words.use = engine::KeyUse{.frequency = static_cast<std::uint32_t>(*frequency)};
    } else {
      return call.fail_syntax(), std::nullopt;
    }
  }
  return words;
}

/// None: the error has been written.
std::optional<DumpValue> read_payload(Call& call, std::string_view payload) {
  DumpValue value;
  switch (read_dump(payload, limits::value_bytes_max, value)) {
    case DumpFault::none:
      return value;
    case DumpFault::footer:
      call.fail("ERR DUMP payload version or checksum are wrong");
      return std::nullopt;
    case DumpFault::format:
      call.fail("ERR Bad data format");
      return std::nullopt;
    case DumpFault::too_large:
      call.fail(ErrorCode::value_too_long);
      return std::nullopt;
  }
  return std::nullopt;
}

/// None: the error has been written.
std::optional<Timestamp> end_of(Call& call, std::int64_t ttl, bool is_absolute) {
  if (ttl == 0) return no_end;
  Expiry expiry;
  const ExpiryUnit unit = is_absolute ? ExpiryUnit::at_ms : ExpiryUnit::in_ms;
  if (read_expiry(call, unit, std::to_string(ttl), expiry) != ArgumentError::none) {
    return call.fail_expire(), std::nullopt;
  }
  return expiry.mode() == Expiry::Mode::in ? call.engine.now() + expiry.ttl() : expiry.when();
}

/// Whether the key holds something. None: the error has been written.
std::optional<bool> is_there(Call& call) {
  const auto there = call.store().exists(call.key());
  if (!there.ok()) return call.fail(there.error()), std::nullopt;
  return *there;
}

void fail_busy(Call& call) {
  call.fail("BUSYKEY Target key name already exists.");
}

/// Puts the record into the database, in one section with the look whether something is there.
void put_restored(Call& call, const engine::WholeRecord& record, bool replaces) {
  const KeyRef key{call.client.db, call.key()};
  auto section = call.engine.section({&key, 1});
  if (!section.ok()) return call.fail(section.error());
  const auto there = is_there(call);
  if (!there) return;
  if (*there && !replaces) return fail_busy(call);
  const bool has_ended = record.due <= section->now();
  if (const Status put = engine::replace_whole(call.engine, key, record); !put) {
    return call.fail(put.error());
  }
  if (const Status done = section->commit(); !done) return call.fail(done.error());
  if (has_ended) {
    if (*there) call.notify('g', "del", call.key());
  } else {
    call.notify('n', "new", call.key());
    call.notify('g', "restore", call.key());
  }
  call.reply.ok();
}

}  // namespace

void dump(Call& call) {
  notify_miss(call, call.key());
  const auto dump = dump_key(call.engine, {call.client.db, call.key()});
  if (!dump.ok()) {
    const bool has_reason = dump.error().code == ErrorCode::bad_option;
    return has_reason ? call.fail("ERR " + dump.error().detail) : call.fail(dump.error());
  }
  *dump ? call.reply.bulk((*dump)->payload) : call.reply.null();
}

/// Errors come in redis-server's order: options, BUSYKEY, the ttl, the payload.
void restore(Call& call) {
  const auto words = read_words(call);
  if (!words) return;
  if (!words->replaces) {
    const auto there = is_there(call);
    if (!there) return;
    if (*there) return fail_busy(call);
  }
  const auto ttl = integer_of(call.args[2]);
  if (!ttl) return call.fail_number();
  if (*ttl < 0) return call.fail("ERR Invalid TTL value, must be >= 0");
  const auto value = read_payload(call, call.args[3]);
  if (!value) return;
  const auto end = end_of(call, *ttl, words->is_absolute);
  if (!end) return;
  auto bytes = record_of(call.engine, {call.client.db, call.key()}, *value, *end);
  if (!bytes) return call.fail("ERR Bad data format");
  const Timestamp due = engine::due_of_record(value->kind, *bytes, *end);
  put_restored(call, {.kind = value->kind, .due = due, .value = *std::move(bytes)},
               words->replaces);
  // What the policy does not go by is ignored, as by redis-server.
  if (words->use && words->is_frequency == is_lfu(memory_policy_of(call.services.settings))) {
    engine::set_use(call.engine, {call.client.db, call.key()}, *words->use);
  }
}

}  // namespace semel::net::handlers
