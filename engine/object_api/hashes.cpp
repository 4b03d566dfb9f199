// The typed face of hashes: build a HashOp, take it to the record, read the outcome.
#include "semel/hashes.hpp"

#include "engine/api/engine_impl.hpp"
#include "engine/api/store_calls.hpp"
#include "engine/core/core_update.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/logged/call_log.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/object_api/whole_record.hpp"
#include "engine/rules/hash_rules.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel {

namespace {

using engine::Core;
using engine::HashOp;
using engine::HashOutcome;
using engine::HashVerb;

/// The error names the value and the limit.
Error explain(Core& core, Bytes key, std::uint8_t db, const HashOp& op, const HashOutcome& out) {
  const Options& options = core.options();
  const auto limit = [](auto value, auto bound) {
    return std::to_string(value) + ", limit " + std::to_string(bound);
  };
  switch (out.error) {
    case ErrorCode::key_too_long:
      return {out.error, "bytes = " + limit(key.size(), options.key_bytes_max)};
    case ErrorCode::db_out_of_range:
      return {out.error, "db = " + limit(unsigned{db}, limits::db_count - 1)};
    case ErrorCode::value_too_long:
      return {out.error, "fields of the hash = " + limit(out.fields, limits::hash_fields_max) +
                             ", bytes = " + limit(out.bytes, options.value_bytes_max)};
    case ErrorCode::increment_overflow:
      return {out.error, "by = " + std::to_string(op.amount)};
    case ErrorCode::bad_option:
      return {out.error, op.verb == HashVerb::scan
                             ? "count = 0, at least 1"
                             : "count = " + std::to_string(op.amount) + ", at least -" +
                                   std::to_string(limits::hash_picks_max) + ", and together " +
                                   std::to_string(limits::hash_picks_bytes_max) + " bytes"};
    case ErrorCode::memory_full:
      return {out.error, "limit " + std::to_string(core.region().limit_bytes()) + " bytes"};
    default:
      return {out.error, {}};
  }
}

/// Of an index. As secret as the table's own hashes, or as the entry that is applied.
std::uint64_t seed_of(Core& core, const engine::ThreadContext& own, KeyRef key) noexcept {
  if (own.decision != nullptr) [[unlikely]]
    return own.decision->secret;
  return core.keys().hash64_of(core.databases().stored(key.db), key.key);
}

replication::HashCommand command_of(KeyRef key, const HashOp& op) {
  replication::HashCommand command{.verb = op.verb, .db = key.db, .key = key.key};
  command.pairs.assign(op.pairs.begin(), op.pairs.end());
  command.fields.assign(op.fields.begin(), op.fields.end());
  command.amount = op.amount;
  command.by_float = op.by_float;
  const bool adds = op.verb == HashVerb::incr_by || op.verb == HashVerb::incr_by_float;
  if (adds) command.pairs = {{op.field, {}}};
  return command;
}

/// A write of a replica, by its replicated log.
void decide_logged(engine::CallLog& log, KeyRef key, const HashOp& op, HashOutcome& out) {
  auto answer = engine::decided(log, {command_of(key, op)}, engine::Repeat::never);
  if (!answer.ok()) {
    out.error = answer.error().code;
    return;
  }
  out.number = answer->number;
  out.found_field = op.verb == HashVerb::set_if_absent && answer->number == 0;
  out.value = std::move(answer->text);
}

/// Applies one operation to one key, in the section of this thread if it is in one; `read` turns
/// its outcome into the answer.
template <class Read>
auto run_hash(Engine& engine, KeyRef key, const HashOp& op, Read&& read)
    -> Result<decltype(read(std::declval<HashOutcome&>()))> {
  Engine::Impl& impl = engine::impl_of(engine);
  Core& core = impl.core();
  HashOutcome out;
  if (out.error = core.begin_call(); out.error != ErrorCode::ok) [[unlikely]]
    return explain(core, key.key, key.db, op, out);
  const engine::LoggedCall log = impl.log_for_call();
  if (log) [[unlikely]] {
    if (op.verb >= HashVerb::set) {
      decide_logged(*log, key, op, out);
      if (out.error != ErrorCode::ok) return explain(core, key.key, key.db, op, out);
      return read(out);
    }
    if (const Status ready = log->read(); !ready) return ready.error();
  }
  engine::ThreadContext& own = core.context();
  own.bump(engine::Count::operations);
  std::string scratch;
  bool changed = false;
  const auto decide = [&](const engine::RecordView* live, const engine::NextVersion&) {
    // A claim that was given back and only remembers its attempts is absent to all other calls.
    if (live != nullptr && !engine::is_visible(live->kind, live->value)) {
      live = nullptr;
    }
    const engine::HashFacts facts{core.options().value_bytes_max,
                                  op.verb >= HashVerb::set ? seed_of(core, own, key) : 0};
    const engine::Decision decision = engine::decide_hash(live, op, facts, out, scratch);
    changed = decision.action != engine::Action::keep;
    return decision;
  };
  Version version = 0;
  Timestamp now = core.now(own);
  const ErrorCode error = engine::update(core, key, now, decide, version);
  own.bump(out.found ? engine::Count::hits : engine::Count::misses);
  if (error != ErrorCode::ok) {
    out.error = error;
  } else {
    impl.after_operation(own, key, changed);
    if (out.error == ErrorCode::ok) out.error = impl.confirm(own);
  }
  if (out.error != ErrorCode::ok) [[unlikely]]
    return explain(core, key.key, key.db, op, out);
  return read(out);
}

std::int64_t number(HashOutcome& out) {
  return out.number;
}
bool found_field(HashOutcome& out) {
  return out.found_field;
}
FieldValues list(HashOutcome& out) {
  return std::move(out.list);
}

}  // namespace

// --- writes ---------------------------------------------------------------------------------

Result<std::int64_t> Hashes::hset(Bytes key, std::span<const FieldValue> pairs) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::set, .pairs = pairs}, number);
}

Result<bool> Hashes::hset(Bytes key, Bytes field, Bytes value) {
  const FieldValue pair{field, value};
  SEMEL_TRY(added, hset(key, {&pair, 1}));
  return added != 0;
}

Result<bool> Hashes::hsetnx(Bytes key, Bytes field, Bytes value) {
  const FieldValue pair{field, value};
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::set_if_absent, .pairs = {&pair, 1}},
                  [](HashOutcome& out) { return !out.found_field; });
}

Result<std::int64_t> Hashes::hdel(Bytes key, std::span<const Bytes> fields) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::del, .fields = fields}, number);
}

Result<std::int64_t> Hashes::hincrby(Bytes key, Bytes field, std::int64_t by) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::incr_by, .field = field, .amount = by},
                  number);
}

Result<std::string> Hashes::hincrbyfloat(Bytes key, Bytes field, long double by) {
  return run_hash(*engine_, {db_, key},
                  {.verb = HashVerb::incr_by_float, .field = field, .by_float = by},
                  [](HashOutcome& out) { return std::move(out.value); });
}

// --- reads ----------------------------------------------------------------------------------

Result<std::optional<std::string>> Hashes::hget(Bytes key, Bytes field) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::get, .field = field},
                  [](HashOutcome& out) {
                    return out.found_field ? std::optional{std::move(out.value)} : std::nullopt;
                  });
}

Result<std::vector<std::optional<std::string>>> Hashes::hmget(Bytes key,
                                                              std::span<const Bytes> fields) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::get_many, .fields = fields},
                  [](HashOutcome& out) { return std::move(out.values); });
}

Result<bool> Hashes::hexists(Bytes key, Bytes field) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::strlen, .field = field}, found_field);
}

Result<std::int64_t> Hashes::hlen(Bytes key) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::len}, number);
}

Result<std::int64_t> Hashes::hstrlen(Bytes key, Bytes field) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::strlen, .field = field}, number);
}

Result<FieldValues> Hashes::hgetall(Bytes key) {
  return run_hash(*engine_, {db_, key}, {.verb = HashVerb::all}, list);
}

Result<std::vector<std::string>> Hashes::hkeys(Bytes key) {
  SEMEL_TRY(all, hgetall(key));
  std::vector<std::string> keys;
  keys.reserve(all.size());
  for (const FieldValue& each : all) keys.emplace_back(each.field);
  return keys;
}

Result<std::vector<std::string>> Hashes::hvals(Bytes key) {
  SEMEL_TRY(all, hgetall(key));
  std::vector<std::string> values;
  values.reserve(all.size());
  for (const FieldValue& each : all) values.emplace_back(each.value);
  return values;
}

Result<std::optional<std::string>> Hashes::hrandfield(Bytes key) {
  SEMEL_TRY(one, hrandfield(key, 1));
  return one.empty() ? std::nullopt : std::optional{std::string{one[0].field}};
}

Result<FieldValues> Hashes::hrandfield(Bytes key, std::int64_t count) {
  return run_hash(
      *engine_, {db_, key},
      {.verb = HashVerb::random, .amount = count, .random = engine::any_number(*engine_)}, list);
}

Result<HashScan> Hashes::hscan(Bytes key, std::uint64_t cursor, Bytes pattern, std::size_t count) {
  return run_hash(
      *engine_, {db_, key},
      {.verb = HashVerb::scan, .cursor = cursor, .count = count, .pattern = pattern},
      [](HashOutcome& out) { return HashScan{.cursor = out.next, .items = std::move(out.list)}; });
}

// --- of an entry ----------------------------------------------------------------------------

replication::PlainAnswer store_calls::apply_hash(Engine& engine,
                                                 const replication::HashCommand& command) {
  const HashOp op{.verb = command.verb,
                  .field = command.pairs.empty() ? Bytes{} : command.pairs.front().field,
                  .pairs = command.pairs,
                  .fields = command.fields,
                  .amount = command.amount,
                  .by_float = command.by_float};
  auto answer = run_hash(engine, {command.db, command.key}, op, [&](HashOutcome& out) {
    if (op.verb == HashVerb::incr_by_float) {
      return replication::PlainAnswer{.text = std::move(out.value)};
    }
    const std::int64_t is_new = out.found_field ? 0 : 1;
    return replication::PlainAnswer{.number =
                                        op.verb == HashVerb::set_if_absent ? is_new : out.number};
  });
  if (!answer.ok()) return {.error = answer.error().code};
  return *std::move(answer);
}

std::string engine::hash_bytes(Engine& engine, KeyRef key, std::span<const FieldValue> pairs) {
  std::vector<HashChange> changes;
  changes.reserve(pairs.size());
  for (const FieldValue& pair : pairs) changes.push_back({pair.field, pair.value});
  Core& core = impl_of(engine).core();
  std::string bytes;
  HashWriter{HashView{}, changes, seed_of(core, core.context(), key)}.write(bytes);
  return bytes;
}

}  // namespace semel
