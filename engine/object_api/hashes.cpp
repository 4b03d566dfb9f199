// The typed face of hashes: build a HashOp, take it to the record, read the outcome.
#include "semel/hashes.hpp"

#include "engine/api/store_calls.hpp"
#include "engine/hashes/hash_rules.hpp"
#include "engine/object_api/hash_step.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/object_api/whole_record.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel {

namespace {

using engine::HashOp;
using engine::HashOutcome;
using engine::HashVerb;
using engine::run_hash;

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

std::string engine::hash_bytes(Engine& engine, KeyRef key, std::span<const FieldValue> pairs,
                               std::span<const Timestamp> ends, Timestamp end) {
  std::vector<HashChange> changes;
  changes.reserve(pairs.size());
  bool has_ends = false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Timestamp due = ends.empty() ? no_end : ends[i];
    has_ends = has_ends || due != no_end;
    changes.push_back({pairs[i].field, pairs[i].value, due});
  }
  engine::Core& core = impl_of(engine).core();
  const HashView before = has_ends ? HashView{HashEnds{.key = end}} : HashView{};
  std::string bytes;
  HashWriter{before, changes, hash_seed_of(core, core.context(), key)}.write(bytes);
  return bytes;
}

Timestamp engine::due_of_record(Kind kind, Bytes value, Timestamp end) noexcept {
  if (kind != Kind::hash) return end;
  const std::optional<HashEnds> ends = ends_of_hash(value);
  return ends ? ends->due() : end;
}

}  // namespace semel
