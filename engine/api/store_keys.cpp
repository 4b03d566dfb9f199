// The typed face of the store, calls on several keys and on a whole database. Each checks all that
// can be wrong, begins a section, makes sure that memory suffices, and only then writes; so a call
// changes all it names or nothing.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/api/eviction_calls.hpp"
#include "engine/api/store_calls.hpp"
#include "engine/core/section.hpp"
#include "engine/rules/string_rules.hpp"
#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace semel {

namespace {

using namespace store_calls;
using replication::TransferCommand;
using What = TransferCommand::What;

/// What decides this thread's calls, if not the engine by itself.
engine::LoggedCall log_of(Engine& engine) noexcept {
  return engine::impl_of(engine).log_for_call();
}

/// One operation after another inside a section; after the first error no more are applied.
class Group {
 public:
  Group(Engine& engine, Section section) noexcept : engine_(engine), section_(std::move(section)) {}

  /// The outcome stays readable until the next call.
  const StoreOutcome& apply(const StoreOp& op) {
    section_.apply(op, out_);
    if (out_.error != ErrorCode::ok && error_.code == ErrorCode::ok) {
      error_ = explain(engine_, op, out_.error);
    }
    return out_;
  }
  [[nodiscard]] bool exists(KeyRef key) {
    return apply({.verb = Verb::exists, .db = key.db, .key = key.key}).found;
  }
  /// What exists() has found is a claim, which is neither moved, nor copied, nor overwritten: the
  /// call ends with wrong_type.
  [[nodiscard]] bool met_claim() {
    engine::Core& core = engine::impl_of(engine_).core();
    if (!out_.found || out_.kind != Kind::claim ||
        !engine::guards_claims(core.context().decision)) {
      return false;
    }
    fail_if(ErrorCode::wrong_type);
    return true;
  }
  void reserve(std::size_t bytes, std::size_t records) {
    fail_if(engine::impl_of(section_).reserve(bytes, records));
  }
  void reserve_to_erase(std::size_t key_bytes, std::size_t records) {
    fail_if(engine::impl_of(section_).reserve_to_erase(key_bytes, records));
  }
  /// Copies the record of any kind with its ttl. False: there is none, or an error.
  [[nodiscard]] bool copy(KeyRef from, KeyRef to) {
    bool copied = false;
    fail_if(engine::impl_of(section_).copy_record(from, to, copied));
    return copied;
  }
  void erase(KeyRef key) { apply({.verb = Verb::del, .db = key.db, .key = key.key}); }

  /// Ends the section; what it changed has reached the engine's level then.
  void commit() {
    if (const Status status = section_.commit(); !status && !failed()) {
      error_ = explain(engine_, {}, status.error().code);
    }
  }

  [[nodiscard]] bool failed() const noexcept { return error_.code != ErrorCode::ok; }
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  void fail_if(ErrorCode code) {
    if (code != ErrorCode::ok && !failed()) error_ = explain(engine_, {}, code);
  }

  Engine& engine_;
  Section section_;
  StoreOutcome out_;
  Error error_{};
};

Status check(Engine& engine, const StoreOp& op) {
  const Options& options = engine::impl_of(engine).core().options();
  const ErrorCode code = engine::validate(op, options.key_bytes_max, options.value_bytes_max);
  if (code != ErrorCode::ok) return explain(engine, op, code);
  return Done{};
}

/// A section over `keys` (not empty) of one database, all of them checked.
Result<Section> begin_section(Engine& engine, std::uint8_t db, std::span<const Bytes> keys) {
  std::vector<KeyRef> refs;
  refs.reserve(std::min(keys.size(), limits::section_keys_max + 1));
  for (const Bytes key : keys) {
    if (Status status = check(engine, {.db = db, .key = key}); !status) return status.error();
    refs.push_back({db, key});
    if (refs.size() > limits::section_keys_max) break;  // section() names the limit
  }
  return engine.section(refs);
}

Result<Group> begin_group(Engine& engine, std::uint8_t db, std::span<const Bytes> keys) {
  SEMEL_TRY(section, begin_section(engine, db, keys));
  return Group{engine, std::move(section)};
}

/// A section over two keys that may be in different databases.
Result<Group> begin_group(Engine& engine, KeyRef from, KeyRef to) {
  const KeyRef refs[] = {from, to};
  for (const KeyRef& ref : refs) {
    if (Status status = check(engine, {.db = ref.db, .key = ref.key}); !status) {
      return status.error();
    }
  }
  SEMEL_TRY(section, engine.section(refs));
  return Group{engine, std::move(section)};
}

/// Applies `verb` to each key and counts the outcomes that `counts`.
template <class Counts>
Result<std::int64_t> count_keys(Engine& engine, std::uint8_t db, std::span<const Bytes> keys,
                                Verb verb, Counts&& counts) {
  if (keys.empty()) return 0;
  if (keys.size() == 1) {
    const StoreOp op{.verb = verb, .db = db, .key = keys[0]};
    return run(engine, op, [&](StoreOutcome& out) -> std::int64_t { return counts(out) ? 1 : 0; });
  }
  const engine::LoggedCall log = log_of(engine);
  if (log) {
    for (const Bytes key : keys) SEMEL_CHECK(check(engine, {.verb = verb, .db = db, .key = key}));
    if (verb == Verb::del) return delete_logged(*log, db, keys);
    SEMEL_CHECK(log->read());
  }
  SEMEL_TRY(group, begin_group(engine, db, keys));
  if (verb == Verb::del) {
    std::size_t bytes = 0;
    for (const Bytes key : keys) bytes += key.size();
    group.reserve_to_erase(bytes, keys.size());
  }
  std::int64_t count = 0;
  for (const Bytes key : keys) {
    if (group.failed()) return group.error();
    if (counts(group.apply({.verb = verb, .db = db, .key = key}))) ++count;
  }
  group.commit();
  if (group.failed()) return group.error();
  return count;
}

/// Writes all pairs if `condition` holds for each of their keys, else none.
Result<bool> set_all(Engine& engine, std::uint8_t db, std::span<const KeyValue> pairs,
                     Condition condition, Expiry expiry) {
  if (condition > Condition::if_present) {
    return Error{ErrorCode::syntax, "a comparison is for one key"};
  }
  if (pairs.empty()) return true;
  const auto op_of = [&](const KeyValue& pair, Condition wanted) {
    return StoreOp{.verb = Verb::set,
                   .db = db,
                   .condition = wanted,
                   .expiry = expiry,
                   .key = pair.key,
                   .value = pair.value};
  };
  if (pairs.size() == 1) {
    return run(engine, op_of(pairs[0], condition), applied);
  }
  if (const engine::LoggedCall log = log_of(engine)) {
    for (const KeyValue& pair : pairs) SEMEL_CHECK(check(engine, op_of(pair, condition)));
    return set_all_logged(*log, db, pairs, condition, expiry);
  }
  std::vector<Bytes> keys;
  keys.reserve(pairs.size());
  std::size_t bytes = 0;
  for (const KeyValue& pair : pairs) {
    if (Status status = check(engine, op_of(pair, condition)); !status) return status.error();
    keys.push_back(pair.key);
    bytes += pair.key.size() + pair.value.size();
  }
  SEMEL_TRY(group, begin_group(engine, db, keys));
  // Before the first is written: all or none. Without namespaces there are no claims to be met.
  const bool may_meet_claims = engine::impl_of(engine).namespaces().figures().count != 0;
  if (condition != Condition::always || may_meet_claims) {
    for (const Bytes key : keys) {
      const bool wanted = condition == Condition::if_present;
      if (group.exists({db, key}) != wanted && condition != Condition::always) return false;
      if (group.met_claim()) return group.error();
    }
  }
  group.reserve(bytes, pairs.size());
  for (const KeyValue& pair : pairs) {
    if (group.failed()) return group.error();
    group.apply(op_of(pair, Condition::always));
  }
  group.commit();
  if (group.failed()) return group.error();
  return true;
}

/// What a transfer does besides copying the record with its ttl.
struct TransferRule {
  bool replaces = false;      ///< the record under the new key, which else is in the way
  bool erases_from = false;   ///< the record under the old key
  bool needs_source = false;  ///< absent: no_such_key, in place of false
};

constexpr TransferRule rule_of(What what) noexcept {
  switch (what) {
    case What::rename:
      return {.replaces = true, .erases_from = true, .needs_source = true};
    case What::rename_if_absent:
      return {.erases_from = true, .needs_source = true};
    case What::copy:
      return {};
    case What::copy_and_replace:
      return {.replaces = true};
    case What::move:
      break;
  }
  return {.erases_from = true};
}

KeyRef target_of(const TransferCommand& command) noexcept {
  const bool is_move = command.what == What::move;
  const bool is_copy = command.what == What::copy || command.what == What::copy_and_replace;
  return {is_copy || is_move ? command.to_db : command.db, is_move ? command.from : command.to};
}

/// To the key that it has.
Result<bool> transfer_to_itself(Engine& engine, const TransferCommand& command) {
  if (!rule_of(command.what).needs_source) return Error{ErrorCode::same_key, {}};
  SEMEL_TRY(there, engine.store(command.db).exists(command.from));
  if (!there) return Error{ErrorCode::no_such_key, {}};
  return command.what == What::rename;
}

/// The bytes that every match of `pattern` begins with: up to the first byte with a meaning.
Bytes literal_prefix(Bytes pattern) noexcept {
  return pattern.substr(0, std::min(pattern.find_first_of("*?[\\"), pattern.size()));
}

}  // namespace

Result<bool> store_calls::transfer(Engine& engine, const TransferCommand& command) {
  const KeyRef from{command.db, command.from};
  const KeyRef to = target_of(command);
  const TransferRule rule = rule_of(command.what);
  if (from.db == to.db && from.key == to.key) return transfer_to_itself(engine, command);
  if (const engine::LoggedCall log = log_of(engine)) {
    SEMEL_CHECK(check(engine, {.db = from.db, .key = from.key}));
    SEMEL_CHECK(check(engine, {.db = to.db, .key = to.key}));
    return transfer_logged(*log, command);
  }
  SEMEL_TRY(group, begin_group(engine, from, to));
  const bool there = group.exists(from);
  if (!there && rule.needs_source) return Error{ErrorCode::no_such_key, {}};
  if (!there) return false;
  if (group.met_claim()) return group.error();
  const bool in_the_way = group.exists(to);
  if (!rule.replaces && in_the_way) return false;
  if (group.met_claim()) return group.error();
  const bool copied = group.copy(from, to);
  if (copied && rule.erases_from && !group.failed()) group.erase(from);
  group.commit();
  if (group.failed()) return group.error();
  return copied;
}

Result<std::int64_t> Store::del(std::span<const Bytes> keys) {
  return count_keys(*engine_, db_, keys, Verb::del,
                    [](const StoreOutcome& out) { return out.applied; });
}

Result<std::int64_t> Store::exists(std::span<const Bytes> keys) {
  return count_keys(*engine_, db_, keys, Verb::exists,
                    [](const StoreOutcome& out) { return out.found; });
}

Result<std::int64_t> Store::touch(std::span<const Bytes> keys) {
  Result<std::int64_t> count = exists(keys);
  if (count.ok() && *count != 0) {
    for (const Bytes key : keys) engine::note_use(*engine_, {db_, key});
  }
  return count;
}

Result<std::vector<std::optional<std::string>>> Store::mget(std::span<const Bytes> keys) {
  std::vector<std::optional<std::string>> values(keys.size());
  if (keys.empty()) return values;
  // A record of another kind has no value to show; MGET, unlike GET, does not complain.
  const auto take = [&](std::size_t i, StoreOutcome& out) {
    const bool fine = out.error == ErrorCode::ok || out.error == ErrorCode::wrong_type;
    if (fine) values[i] = value_or_none(out);
    return fine;
  };
  StoreOutcome out;
  if (keys.size() == 1) {
    const StoreOp op{.verb = Verb::get, .db = db_, .key = keys[0]};
    engine_->host().apply(op, out);
    if (!take(0, out)) return explain(*engine_, op, out.error);
    return values;
  }
  const engine::LoggedCall log = log_of(*engine_);
  if (log) SEMEL_CHECK(log->read());
  SEMEL_TRY(section, begin_section(*engine_, db_, keys));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const StoreOp op{.verb = Verb::get, .db = db_, .key = keys[i]};
    section.apply(op, out);
    if (!take(i, out)) return explain(*engine_, op, out.error);
  }
  SEMEL_CHECK(section.commit());
  return values;
}

Status Store::mset(std::span<const KeyValue> pairs) {
  // Without a condition there is nothing to refuse.
  SEMEL_CHECK(set_all(*engine_, db_, pairs, Condition::always, Expiry::clear()));
  return Done{};
}

Result<bool> Store::msetnx(std::span<const KeyValue> pairs) {
  return set_all(*engine_, db_, pairs, Condition::if_absent, Expiry::clear());
}

Result<bool> Store::msetex(std::span<const KeyValue> pairs, Condition condition, Expiry expiry) {
  return set_all(*engine_, db_, pairs, condition, expiry);
}

Status Store::rename(Bytes from, Bytes to) {
  SEMEL_CHECK(transfer(*engine_, {What::rename, db_, db_, from, to}));
  return Done{};
}

Result<bool> Store::renamenx(Bytes from, Bytes to) {
  return transfer(*engine_, {What::rename_if_absent, db_, db_, from, to});
}

Result<bool> Store::copy(Bytes from, Bytes to, std::optional<std::uint8_t> to_db, bool replace) {
  const What what = replace ? What::copy_and_replace : What::copy;
  return transfer(*engine_, {what, db_, to_db.value_or(db_), from, to});
}

Result<bool> Store::move(Bytes key, std::uint8_t to_db) {
  return transfer(*engine_, {What::move, db_, to_db, key, key});
}

// --- the whole database ---------------------------------------------------------------------

Result<std::optional<std::string>> Store::randomkey() {
  if (db_ >= limits::db_count) {
    return explain(*engine_, StoreOp{.db = db_}, ErrorCode::db_out_of_range);
  }
  return engine::impl_of(*engine_).random_key(db_);
}

Result<std::vector<std::string>> Store::keys(Bytes pattern) {
  if (db_ >= limits::db_count) {
    return explain(*engine_, StoreOp{.db = db_}, ErrorCode::db_out_of_range);
  }
  ScanOptions options;
  options.db = db_;
  options.prefix = literal_prefix(pattern);
  options.count = 4096;

  std::vector<std::string> found;
  std::uint64_t cursor = 0;
  do {
    SEMEL_TRY(next, engine_->scan(cursor, options, [&](const ScanItem& item) {
      if (glob_match(pattern, item.key)) found.emplace_back(item.key);
    }));
    cursor = next;
  } while (cursor != 0);

  // A scan may meet a key twice while the table grows.
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace semel
