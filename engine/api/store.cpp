// The typed face of the store. One key: build a StoreOp, apply it, read the outcome. Several keys:
// check everything that can be wrong, begin a section, make sure memory suffices, and only then
// write; so a call changes all it names or nothing.
#include "semel/store.hpp"

#include <algorithm>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/core/apply.hpp"
#include "engine/core/section.hpp"
#include "engine/rules/numbers.hpp"
#include "engine/rules/string_rules.hpp"

namespace semel {

namespace {

using engine::Core;

/// Tells value and limit. On the cold path: nobody pays for it unless something is wrong.
Error explain(Engine& engine, const StoreOp& op, ErrorCode code) {
  const Options& options = engine::impl_of(engine).core().options();
  const auto limit = [](auto value, auto bound) {
    return std::to_string(value) + ", limit " + std::to_string(bound);
  };
  switch (code) {
    case ErrorCode::key_too_long:
      return {code, "bytes = " + limit(op.key.size(), options.key_bytes_max)};
    case ErrorCode::value_too_long:
      return {code, "bytes given = " + limit(op.value.size(), options.value_bytes_max)};
    case ErrorCode::db_out_of_range:
      return {code, "db = " + limit(unsigned{op.db}, limits::db_count - 1)};
    case ErrorCode::invalid_expire:
      return {code, "ttl = " + std::to_string(op.expiry.ttl().count()) + " ms, range 1.." +
                        std::to_string(limits::ttl_max.count())};
    case ErrorCode::offset_out_of_range:
      return {code, "offset = " + std::to_string(op.amount) + ", at least 0"};
    case ErrorCode::increment_overflow:
    case ErrorCode::decrement_overflow:
      return {code, "by = " + std::to_string(op.amount)};
    case ErrorCode::bad_digest:
      return {code, "digits given = " + std::to_string(op.operand.size())};
    case ErrorCode::memory_full:
      return {code, "limit " + std::to_string(options.memory_bytes) + " bytes"};
    default:
      return {code, {}};
  }
}

/// Applies one operation to one key; `read` turns its outcome into the answer.
template <class Read>
auto run(Engine& engine, const StoreOp& op, Read&& read)
    -> Result<decltype(read(std::declval<StoreOutcome&>()))> {
  StoreOutcome out;
  engine.apply(op, out);
  if (out.error != ErrorCode::ok) [[unlikely]]
    return explain(engine, op, out.error);
  return read(out);
}

bool fits(Engine& engine, std::uint8_t db, Bytes key) noexcept {
  return engine::impl_of(engine).core().check_key(db, key) == ErrorCode::ok;
}
bool fits(Engine& engine, Bytes value, Expiry expiry) noexcept {
  return value.size() <= engine::impl_of(engine).core().options().value_bytes_max &&
         engine::in_range(expiry);
}

/// The rest of look(): applies the operation. True: it changed the record.
template <class T, class Read>
[[gnu::noinline]] bool look_on(Engine& engine, Core::Operation& operation, Core::Place place,
                               const StoreOp& op, Timestamp now, Read&& read, Result<T>& result) {
  StoreOutcome out;
  engine::decide_store(engine::impl_of(engine).core(), operation, place, op, now, out);
  operation.context().bump(out.found ? engine::Count::hits : engine::Count::misses);
  if (out.error == ErrorCode::ok) [[likely]] {
    result = read(out);
  } else {
    result = explain(engine, op, out.error);
  }
  return out.applied;
}

/// The same for an operation that only looks when a string lives under the key, which fits: then
/// `answer(const Entry&, T&)` is the answer, and there need be neither operation nor outcome. The
/// fewer instructions a repeat takes, the more of the next one's cache misses overlap with its own.
template <class T, class MakeOp, class Read, class Answer>
Result<T> look(Engine& engine, KeyRef key, MakeOp&& make_op, Read&& read, Answer&& answer) {
  Engine::Impl& impl = engine::impl_of(engine);
  Core& core = impl.core();
  Result<T> result{std::in_place};  // the one object that is returned, so that it is never moved
  engine::ThreadContext* const found = core.threads().try_context();
  if (found == nullptr) [[unlikely]] {
    result = explain(engine, make_op(), core.why_no_context());
    return result;
  }
  engine::ThreadContext& own = *found;
  Timestamp now = core.now(own);
  bool changed = false;
  {
    Core::Place place = core.place_of(key);
    Core::Operation operation{core, own};
    const bool is_admitted = core.admit(operation, place, key);
    operation.keep_up(now);
    const engine::Entry* const live = is_admitted ? core.hit(place, key.key, now) : nullptr;
    own.bump(engine::Count::operations);
    if (!is_admitted) [[unlikely]] {
      result = explain(engine, make_op(), ErrorCode::section_held);
    } else if (live != nullptr && live->kind() == Kind::string) [[likely]] {
      own.bump(engine::Count::hits);
      answer(*live, *result);
    } else {
      changed = look_on(engine, operation, place, make_op(), now, read, result);
    }
  }
  impl.after_operation(own, key, changed);
  if (result.ok()) {
    const ErrorCode unknown = impl.confirm(own);
    if (unknown != ErrorCode::ok) [[unlikely]]
      result = explain(engine, make_op(), unknown);
  }
  return result;
}

bool applied(StoreOutcome& out) {
  return out.applied;
}
bool found(StoreOutcome& out) {
  return out.found;
}
std::int64_t number(StoreOutcome& out) {
  return out.number;
}
std::string text(StoreOutcome& out) {
  return std::move(out.value);
}
std::optional<std::string> value_or_none(StoreOutcome& out) {
  if (!out.has_value) return std::nullopt;
  return std::move(out.value);
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

  std::vector<Bytes> keys;
  keys.reserve(pairs.size());
  std::size_t bytes = 0;
  for (const KeyValue& pair : pairs) {
    if (Status status = check(engine, op_of(pair, condition)); !status) return status.error();
    keys.push_back(pair.key);
    bytes += pair.key.size() + pair.value.size();
  }
  SEMEL_TRY(group, begin_group(engine, db, keys));
  if (condition != Condition::always) {
    for (const Bytes key : keys) {
      const bool wanted = condition == Condition::if_present;
      if (group.exists({db, key}) != wanted) return false;
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

/// Moves or copies a record of any kind with its ttl; false: `from` is absent, or `to` is in the
/// way and may not be replaced.
struct Transfer {
  KeyRef from;
  KeyRef to;
  bool replace = false;
  bool erase_from = false;
  bool from_must_exist = false;  ///< absent: no_such_key
};

Result<bool> transfer(Engine& engine, const Transfer& how) {
  SEMEL_TRY(group, begin_group(engine, how.from, how.to));
  const bool there = group.exists(how.from);
  if (!there && how.from_must_exist) return Error{ErrorCode::no_such_key, {}};
  if (!there) return false;
  if (!how.replace && group.exists(how.to)) return false;
  const bool copied = group.copy(how.from, how.to);
  if (copied && how.erase_from && !group.failed()) group.erase(how.from);
  group.commit();
  if (group.failed()) return group.error();
  return copied;
}

/// The bytes that every match of `pattern` begins with: up to the first byte with a meaning.
Bytes literal_prefix(Bytes pattern) noexcept {
  return pattern.substr(0, std::min(pattern.find_first_of("*?[\\"), pattern.size()));
}

}  // namespace

// --- one key --------------------------------------------------------------------------------

Result<SetResult> Store::set(Bytes key, Bytes value, const SetOptions& options) {
  const auto op = [&] {
    return StoreOp{.verb = Verb::set,
                   .db = db_,
                   .condition = options.condition,
                   .get = options.get,
                   .expiry = options.expiry,
                   .key = key,
                   .value = value,
                   .operand = options.operand};
  };
  const auto read = [](StoreOutcome& out) {
    return SetResult{.stored = out.applied, .previous = value_or_none(out), .version = out.version};
  };
  if (options.condition != Condition::if_absent || !fits(*engine_, db_, key) ||
      !fits(*engine_, value, options.expiry)) {
    return run(*engine_, op(), read);
  }
  return look<SetResult>(*engine_, {db_, key}, op, read,
                         [&](const engine::Entry& live, SetResult& repeat) {
                           repeat.version = live.version();
                           if (options.get) repeat.previous.emplace(live.value());
                         });
}

Result<std::optional<std::string>> Store::get(Bytes key) {
  const auto op = [&] { return StoreOp{.verb = Verb::get, .db = db_, .key = key}; };
  if (!fits(*engine_, db_, key)) return run(*engine_, op(), value_or_none);
  return look<std::optional<std::string>>(
      *engine_, {db_, key}, op, value_or_none,
      [](const engine::Entry& live, auto& value) { value.emplace(live.value()); });
}

Result<std::optional<Versioned>> Store::get_versioned(Bytes key) {
  const StoreOp op{.verb = Verb::get, .db = db_, .key = key};
  return run(*engine_, op, [](StoreOutcome& out) -> std::optional<Versioned> {
    if (!out.has_value) return std::nullopt;
    return Versioned{std::move(out.value), out.version};
  });
}

Result<CompareResult> Store::compare_and_set(Bytes key, Version version, Bytes value,
                                             Expiry expiry) {
  const StoreOp op{.verb = Verb::set,
                   .db = db_,
                   .condition = Condition::if_version,
                   .get = true,
                   .expiry = expiry,
                   .key = key,
                   .value = value,
                   .expected = version};
  std::string stored{value};  // before it is there: without memory for the answer nothing changes
  return run(*engine_, op, [&](StoreOutcome& out) {
    CompareResult result{.stored = out.applied, .current = {}};
    if (out.applied) {
      result.current = Versioned{std::move(stored), out.version};
    } else if (out.has_value) {
      result.current = Versioned{std::move(out.value), out.version};
    }
    return result;
  });
}

Result<std::optional<std::string>> Store::getdel(Bytes key) {
  const StoreOp op{.verb = Verb::getdel, .db = db_, .key = key};
  return run(*engine_, op, value_or_none);
}

Result<std::optional<std::string>> Store::getex(Bytes key, Expiry expiry) {
  const StoreOp op{.verb = Verb::getex, .db = db_, .expiry = expiry, .key = key};
  return run(*engine_, op, value_or_none);
}

Result<std::optional<std::string>> Store::getset(Bytes key, Bytes value) {
  SEMEL_TRY(result, set(key, value, {.get = true}));
  return std::move(result.previous);
}

Result<bool> Store::setnx(Bytes key, Bytes value) {
  SEMEL_TRY(result, set(key, value, {.condition = Condition::if_absent}));
  return result.stored;
}

Result<std::int64_t> Store::append(Bytes key, Bytes value) {
  const StoreOp op{.verb = Verb::append, .db = db_, .key = key, .value = value};
  return run(*engine_, op, number);
}

Result<std::int64_t> Store::strlen(Bytes key) {
  const StoreOp op{.verb = Verb::strlen, .db = db_, .key = key};
  return run(*engine_, op, number);
}

Result<std::string> Store::getrange(Bytes key, std::int64_t start, std::int64_t end) {
  const StoreOp op{.verb = Verb::getrange, .db = db_, .key = key, .amount = start, .end = end};
  return run(*engine_, op, text);
}

Result<std::int64_t> Store::setrange(Bytes key, std::int64_t offset, Bytes value) {
  const StoreOp op{.verb = Verb::setrange, .db = db_, .key = key, .value = value, .amount = offset};
  return run(*engine_, op, number);
}

Result<std::int64_t> Store::incr_by(Bytes key, std::int64_t by) {
  const StoreOp op{.verb = Verb::incr_by, .db = db_, .key = key, .amount = by};
  return run(*engine_, op, number);
}

Result<std::int64_t> Store::decr_by(Bytes key, std::int64_t by) {
  const StoreOp op{.verb = Verb::decr_by, .db = db_, .key = key, .amount = by};
  return run(*engine_, op, number);
}

Result<std::string> Store::incr_by_float(Bytes key, long double by) {
  Arithmetic arithmetic;
  arithmetic.by_float = by;
  const StoreOp op{.verb = Verb::incr_by_float, .db = db_, .key = key, .arithmetic = &arithmetic};
  return run(*engine_, op, text);
}

Result<IncrexResult<std::int64_t>> Store::increx(Bytes key, const IncrexOptions& options) {
  Arithmetic arithmetic;
  arithmetic.has_lower = options.lower.has_value();
  arithmetic.has_upper = options.upper.has_value();
  arithmetic.lower = options.lower.value_or(0);
  arithmetic.upper = options.upper.value_or(0);
  arithmetic.saturate = options.saturate;
  arithmetic.expiry_only_without_ttl = options.expiry_only_without_ttl;
  const StoreOp op{.verb = Verb::increx,
                   .db = db_,
                   .expiry = options.expiry,
                   .key = key,
                   .amount = options.by,
                   .arithmetic = &arithmetic};
  return run(*engine_, op, [](StoreOutcome& out) {
    return IncrexResult<std::int64_t>{.value = out.number, .applied = out.second};
  });
}

Result<IncrexResult<long double>> Store::increx(Bytes key, const IncrexFloatOptions& options) {
  Arithmetic arithmetic;
  arithmetic.use_float = true;
  arithmetic.has_lower = options.lower.has_value();
  arithmetic.has_upper = options.upper.has_value();
  arithmetic.by_float = options.by;
  arithmetic.lower_float = options.lower.value_or(0);
  arithmetic.upper_float = options.upper.value_or(0);
  arithmetic.saturate = options.saturate;
  arithmetic.expiry_only_without_ttl = options.expiry_only_without_ttl;
  const StoreOp op{.verb = Verb::increx,
                   .db = db_,
                   .expiry = options.expiry,
                   .key = key,
                   .arithmetic = &arithmetic};
  return run(*engine_, op, [](StoreOutcome& out) {
    IncrexResult<long double> result{.value = 0, .applied = 0};
    // Two texts that the engine printed itself, one space between; they can be read.
    const Bytes pair = out.value;
    const std::size_t space = std::min(pair.find(' '), pair.size() - 1);
    static_cast<void>(engine::parse_float(pair.substr(0, space), result.value));
    static_cast<void>(engine::parse_float(pair.substr(space + 1), result.applied));
    return result;
  });
}

Result<bool> Store::del(Bytes key) {
  const StoreOp op{.verb = Verb::del, .db = db_, .key = key};
  return run(*engine_, op, applied);
}

Result<bool> Store::delex(Bytes key, Condition condition, Bytes operand) {
  const StoreOp op{
      .verb = Verb::delex, .db = db_, .condition = condition, .key = key, .operand = operand};
  return run(*engine_, op, applied);
}

Result<std::optional<std::string>> Store::digest(Bytes key) {
  const StoreOp op{.verb = Verb::digest, .db = db_, .key = key};
  return run(*engine_, op, value_or_none);
}

Result<bool> Store::exists(Bytes key) {
  const StoreOp op{.verb = Verb::exists, .db = db_, .key = key};
  return run(*engine_, op, found);
}

Result<std::optional<Kind>> Store::type(Bytes key) {
  const StoreOp op{.verb = Verb::type, .db = db_, .key = key};
  return run(*engine_, op, [](StoreOutcome& out) {
    return out.found ? std::optional<Kind>{out.kind} : std::nullopt;
  });
}

Result<bool> Store::expire(Bytes key, Expiry expiry, ExpireRule rule) {
  const StoreOp op{.verb = Verb::expire, .db = db_, .rule = rule, .expiry = expiry, .key = key};
  return run(*engine_, op, applied);
}

Result<bool> Store::persist(Bytes key) {
  const StoreOp op{.verb = Verb::persist, .db = db_, .key = key};
  return run(*engine_, op, applied);
}

Result<TtlResult> Store::ttl(Bytes key) {
  const StoreOp op{.verb = Verb::expire_time, .db = db_, .key = key};
  return run(*engine_, op, [this](StoreOutcome& out) {
    TtlResult result{.found = out.found, .has_ttl = out.due != no_end};
    result.due = out.due;
    if (result.has_ttl) {
      // Found means that something was left of it, even if the clock has gone on since.
      result.remaining = std::max(out.due - engine::impl_of(*engine_).now(), Millis{1});
    }
    return result;
  });
}

Timestamp Store::from_unix_ms(std::int64_t unix_ms) const noexcept {
  // A time beyond the engine's range is its last moment that still is an end.
  constexpr Timestamp last = no_end - Millis{1};
  const Clock& clock = engine_->clock();
  const std::int64_t now = clock.now().time_since_epoch().count();
  std::int64_t away = 0;
  std::int64_t when = 0;
  if (__builtin_sub_overflow(unix_ms, clock.unix_ms(), &away) ||
      __builtin_add_overflow(now, away, &when)) {
    return unix_ms > 0 ? last : Timestamp::min();
  }
  return std::min(Timestamp{Millis{when}}, last);
}

// --- several keys ---------------------------------------------------------------------------

Result<std::int64_t> Store::del(std::span<const Bytes> keys) {
  return count_keys(*engine_, db_, keys, Verb::del,
                    [](const StoreOutcome& out) { return out.applied; });
}

Result<std::int64_t> Store::exists(std::span<const Bytes> keys) {
  return count_keys(*engine_, db_, keys, Verb::exists,
                    [](const StoreOutcome& out) { return out.found; });
}

/// There is no order of use to change: nothing is ever evicted.
Result<std::int64_t> Store::touch(std::span<const Bytes> keys) {
  return exists(keys);
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
    engine_->apply(op, out);
    if (!take(0, out)) return explain(*engine_, op, out.error);
    return values;
  }
  SEMEL_TRY(section, begin_section(*engine_, db_, keys));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const StoreOp op{.verb = Verb::get, .db = db_, .key = keys[i]};
    section.apply(op, out);
    if (!take(i, out)) return explain(*engine_, op, out.error);
  }
  SEMEL_TRY(seen, section.commit());
  static_cast<void>(seen);
  return values;
}

Status Store::mset(std::span<const KeyValue> pairs) {
  SEMEL_TRY(stored, set_all(*engine_, db_, pairs, Condition::always, Expiry::clear()));
  static_cast<void>(stored);  // without a condition there is nothing to refuse
  return Done{};
}

Result<bool> Store::msetnx(std::span<const KeyValue> pairs) {
  return set_all(*engine_, db_, pairs, Condition::if_absent, Expiry::clear());
}

Result<bool> Store::msetex(std::span<const KeyValue> pairs, Condition condition, Expiry expiry) {
  return set_all(*engine_, db_, pairs, condition, expiry);
}

Status Store::rename(Bytes from, Bytes to) {
  const KeyRef source{db_, from};
  if (from == to) {
    SEMEL_TRY(there, exists(from));
    if (!there) return Error{ErrorCode::no_such_key, {}};
    return Done{};
  }
  SEMEL_TRY(moved, transfer(*engine_, {.from = source,
                                       .to = {db_, to},
                                       .replace = true,
                                       .erase_from = true,
                                       .from_must_exist = true}));
  static_cast<void>(moved);  // it must exist and may replace, so it was
  return Done{};
}

Result<bool> Store::renamenx(Bytes from, Bytes to) {
  if (from == to) {
    SEMEL_TRY(there, exists(from));
    if (!there) return Error{ErrorCode::no_such_key, {}};
    return false;
  }
  return transfer(*engine_, {.from = {db_, from},
                             .to = {db_, to},
                             .replace = false,
                             .erase_from = true,
                             .from_must_exist = true});
}

Result<bool> Store::copy(Bytes from, Bytes to, std::optional<std::uint8_t> to_db, bool replace) {
  const KeyRef target{to_db.value_or(db_), to};
  if (target.db == db_ && from == to) return Error{ErrorCode::same_key, {}};
  return transfer(*engine_, {.from = {db_, from},
                             .to = target,
                             .replace = replace,
                             .erase_from = false,
                             .from_must_exist = false});
}

Result<bool> Store::move(Bytes key, std::uint8_t to_db) {
  if (to_db == db_) return Error{ErrorCode::same_key, {}};
  return transfer(*engine_, {.from = {db_, key},
                             .to = {to_db, key},
                             .replace = false,
                             .erase_from = true,
                             .from_must_exist = false});
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
