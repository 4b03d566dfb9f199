// The typed face of the store, calls on one key: build a StoreOp, apply it, read the outcome. Calls
// on several keys are in store_keys.cpp.
#include "semel/store.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/checked.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/api/store_calls.hpp"
#include "engine/core/apply.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/numbers.hpp"
#include "engine/rules/repeat.hpp"

namespace semel {

namespace {

using engine::Core;
using namespace store_calls;

bool fits(Engine& engine, std::uint8_t db, Bytes key) noexcept {
  return engine::impl_of(engine).core().keys().check(db, key) == ErrorCode::ok;
}
bool fits(Engine& engine, Bytes value, Expiry expiry) noexcept {
  return value.size() <= engine::impl_of(engine).core().options().value_bytes_max &&
         engine::in_range(expiry);
}

/// Whether the log of a group may decide this thread's calls. EngineHost::apply() asks it.
bool may_be_logged(Engine& engine) noexcept {
  return engine::impl_of(engine).may_have_log();
}

/// The rest of read_or_apply(): applies the operation. True: it changed the record. `first` is
/// given by value, so that the caller builds it only here.
template <class T, class Read>
[[gnu::noinline]] bool apply_missed(Engine& engine, engine::Operation& operation,
                                    engine::KeyLocation location, engine::HomeLook first,
                                    const StoreOp& op, Timestamp now, Read&& read,
                                    Result<T>& result) {
  StoreOutcome out;
  engine::decide_store(engine::impl_of(engine).core(), operation, location, op, now, out, nullptr,
                       first.probe(location.hash));
  operation.context().bump(out.found ? engine::Count::hits : engine::Count::misses);
  if (out.error == ErrorCode::ok) [[likely]] {
    result = read(out);
  } else {
    result = explain(engine, op, out.error);
  }
  return out.applied;
}

/// The same for an operation that may_repeat(), of a key that fits. When a live record answers it,
/// `answer(const Entry&, T&)` is the answer, and there need be neither operation nor outcome. The
/// fewer instructions a repeat takes, the more of the next one's cache misses overlap with its own.
template <class T, class MakeOp, class Read, class Answer>
Result<T> read_or_apply(Engine& engine, KeyRef key, MakeOp&& make_op, Read&& read,
                        Answer&& answer) {
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
    engine::KeyLocation location = core.keys().location_of(key);
    engine::Operation operation{core, own};
    const bool is_admitted = operation.admit(location, key);
    operation.keep_up(now);
    engine::HomeLook first;
    const engine::Entry* const live =
        is_admitted ? core.keys().look_home(location, key.key, now, first) : nullptr;
    own.bump(engine::Count::operations);
    if (!is_admitted) [[unlikely]] {
      result = explain(engine, make_op(), ErrorCode::section_held);
    } else if (live != nullptr && engine::answers_repeat(live->kind())) [[likely]] {
      own.bump(engine::Count::hits);
      answer(*live, *result);
      core.uses().note_read(own.only_looks, key.db, location.hash, now);
    } else {
      // Only a call that may store goes on from the look: it costs a hit 13 instructions.
      constexpr bool may_store = std::is_same_v<T, SetResult>;
      changed = apply_missed(engine, operation, location, may_store ? first : engine::HomeLook{},
                             make_op(), now, read, result);
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

}  // namespace

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
      !fits(*engine_, value, options.expiry) || may_be_logged(*engine_)) {
    return run(*engine_, op(), read);
  }
  return read_or_apply<SetResult>(*engine_, {db_, key}, op, read,
                                  [&](const engine::Entry& live, SetResult& repeat) {
                                    repeat.version = live.version();
                                    if (options.get) repeat.previous.emplace(live.value());
                                  });
}

Result<std::optional<std::string>> Store::get(Bytes key) {
  const auto op = [&] { return StoreOp{.verb = Verb::get, .db = db_, .key = key}; };
  if (!fits(*engine_, db_, key) || may_be_logged(*engine_)) {
    return run(*engine_, op(), value_or_none);
  }
  return read_or_apply<std::optional<std::string>>(
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
      // A found key has at least 1 ms left, even if the clock has moved since.
      result.remaining = std::max(out.due - engine_->now(), Millis{1});
    }
    return result;
  });
}

Timestamp Store::from_unix_ms(std::int64_t unix_ms) const noexcept {
  // A time beyond the engine's range is its last moment that still is an end.
  constexpr Timestamp last = no_end - Millis{1};
  const auto when = base::checked_sub(unix_ms, engine_->clock().wall_offset_ms());
  if (!when) return unix_ms > 0 ? last : Timestamp::min();
  return std::min(Timestamp{Millis{*when}}, last);
}

std::int64_t Store::to_unix_ms(Timestamp when) const noexcept {
  const std::int64_t ms = when.time_since_epoch().count();
  return base::checked_add(ms, engine_->clock().wall_offset_ms()).value_or(ms);
}

}  // namespace semel
