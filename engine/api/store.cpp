// The typed face of the store, calls on one key: build a StoreOp, apply it, read the outcome. Those
// that are made most have a shorter way on strings. Calls on several keys are in store_keys.cpp.
#include "semel/store.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/checked.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/api/store_calls.hpp"
#include "engine/api/string_calls.hpp"
#include "engine/core/apply.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/bytes.hpp"
#include "engine/rules/numbers.hpp"
#include "engine/rules/repeat.hpp"

namespace semel {

namespace {

using namespace store_calls;

// See string_calls.hpp.

struct SetCall {
  static constexpr bool may_repeat = true;
  static constexpr bool may_store = true;
  using Answer = SetResult;
  std::uint8_t db;
  Bytes key;
  Bytes value;
  const SetOptions& options;

  [[nodiscard]] StoreOp op() const {
    return {.verb = Verb::set,
            .db = db,
            .condition = options.condition,
            .get = options.get,
            .expiry = options.expiry,
            .key = key,
            .value = value,
            .operand = options.operand};
  }
  static SetResult read(StoreOutcome& out) {
    return {.stored = out.applied, .previous = value_or_none(out), .version = out.version};
  }
  [[nodiscard]] bool fits(const Core& core) const noexcept {
    return value.size() <= core.options().value_bytes_max && engine::in_range(options.expiry) &&
           !engine::is_comparison(options.condition);
  }
  [[nodiscard]] bool is_repeat() const noexcept {
    return options.condition == Condition::if_absent;
  }
  void repeat(const engine::Entry::Head& live, SetResult& answer) const {
    answer.version = live.version();
    if (options.get) answer.previous.emplace(live.value());
  }
  [[nodiscard]] Result<SetResult> repeated(const engine::Entry::Head& live) const {
    struct Repeat {
      const engine::Entry::Head& live;
      bool get;
      operator SetResult() const {
        SetResult answer;
        answer.version = live.version();
        if (get) answer.previous.emplace(engine::Copy{live.value()});
        return answer;
      }
    };
    return Result<SetResult>{std::in_place, Repeat{live, options.get}};
  }
  engine::Decision decide(const engine::RecordView* live, Timestamp now, StringOutcome& out) const {
    const engine::SetParts set{options.condition, options.get, value, options.expiry};
    return engine::decide_set(live, set, now, out);
  }
  static std::optional<std::string>* value_of(SetResult& answer) noexcept {
    return &answer.previous;
  }
  static void finish(const StringOutcome& out, SetResult& answer) noexcept {
    answer.stored = out.applied;
    answer.version = out.version;
  }
  StringDone decide_at(Core& core, engine::Operation& operation,
                       const engine::KeyLocation& location, const engine::HomeLook& first,
                       Timestamp now, SetResult& answer) const {
    return decide_string(core, operation, location, first, now, *this, answer);
  }
};

struct GetCall {
  static constexpr bool may_repeat = true;
  using Answer = std::optional<std::string>;
  std::uint8_t db;
  Bytes key;

  [[nodiscard]] StoreOp op() const { return {.verb = Verb::get, .db = db, .key = key}; }
  static Answer read(StoreOutcome& out) { return value_or_none(out); }
  [[nodiscard]] static bool fits(const Core&) noexcept { return true; }
  [[nodiscard]] static bool is_repeat() noexcept { return true; }
  static void repeat(const engine::Entry::Head& live, Answer& answer) {
    answer.emplace(live.value());
  }
  [[nodiscard]] static Result<Answer> repeated(const engine::Entry::Head& live) {
    return Result<Answer>{std::in_place, std::in_place, engine::Copy{live.value()}};
  }
  /// Of any kind, and without the first look: to carry that along costs a hit 13 instructions.
  [[gnu::noinline]] StringDone decide_at(Core& core, engine::Operation& operation,
                                         const engine::KeyLocation& location,
                                         const engine::HomeLook&, Timestamp now,
                                         Answer& answer) const {
    StoreOutcome out;
    try {
      engine::decide_store(core, operation, location, op(), now, out);
    } catch (const std::bad_alloc&) {
      engine::refuse(out, ErrorCode::memory_full);
    }
    operation.context().bump(out.found ? engine::Count::hits : engine::Count::misses);
    answer = read(out);
    return {.error = out.error};
  }
};

struct DelCall {
  static constexpr bool may_repeat = false;
  static constexpr bool may_store = false;
  using Answer = bool;
  std::uint8_t db;
  Bytes key;

  [[nodiscard]] StoreOp op() const { return {.verb = Verb::del, .db = db, .key = key}; }
  static bool read(StoreOutcome& out) { return out.applied; }
  [[nodiscard]] static bool fits(const Core&) noexcept { return true; }
  static void repeat(const engine::Entry::Head&, bool&) noexcept {}
  static engine::Decision decide(const engine::RecordView* live, Timestamp, StringOutcome& out) {
    return engine::decide_del(live, out);
  }
  static std::optional<std::string>* value_of(bool&) noexcept { return nullptr; }
  static void finish(const StringOutcome& out, bool& answer) noexcept { answer = out.applied; }
  StringDone decide_at(Core& core, engine::Operation& operation,
                       const engine::KeyLocation& location, const engine::HomeLook& first,
                       Timestamp now, bool& answer) const {
    return decide_string(core, operation, location, first, now, *this, answer);
  }
};

}  // namespace

Result<SetResult> Store::set(Bytes key, Bytes value, const SetOptions& options) {
  return apply_call(*engine_, SetCall{db_, key, value, options});
}

Result<std::optional<std::string>> Store::get(Bytes key) {
  return apply_call(*engine_, GetCall{db_, key});
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
  return apply_call(*engine_, DelCall{db_, key});
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
