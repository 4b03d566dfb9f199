// The calls of semel/store.hpp that are made most, on a record that is a string, or on none:
// decided and applied without a StoreOp and a StoreOutcome. The fewer instructions a call takes,
// the more of the next one's cache misses overlap with its own. Whatever else a call meets, it
// takes the way of all others, out of line.
#pragma once

#include <new>
#include <optional>
#include <string>

#include "engine/api/engine_impl.hpp"
#include "engine/api/store_calls.hpp"
#include "engine/core/core_update.hpp"
#include "engine/core/plain_change.hpp"
#include "engine/rules/repeat.hpp"

namespace semel::store_calls {

using engine::Core;

/// What a call on a string answers: the truth table writes to it as to a StoreOutcome.
struct StringOutcome {
  /// Where the value goes that the call returns; null: it returns none.
  struct Value {
    std::optional<std::string>* to = nullptr;
    void append(Bytes bytes) { to->emplace(bytes); }
  };

  ErrorCode error = ErrorCode::ok;
  bool found = false;
  bool applied = false;
  bool has_value = false;
  Version version = 0;
  Value value{};
};

// A call says in `Call`:
//   Answer; db, key          what it returns, and of what
//   op(), read(outcome)      the same for records of all kinds
//   fits(core)               whether its other arguments are usual ones
//   may_repeat               whether a live string may answer it by itself,
//   is_repeat()              and does,
//   repeat(head, answer)     and how
//   repeated(head)           the same of a call that has nothing to wait for
//   decide(live, now, out)   its row of the truth table
//   may_store                whether that can be a store; if not, it can be an erase
//   value_of(answer)         where the value of a string goes; null: nowhere
//   finish(out, answer)      the rest of the answer

/// How an operation ended.
struct StringDone {
  ErrorCode error = ErrorCode::ok;
  bool applied = false;
  bool is_other = false;  ///< the record is of another kind: the whole table has to answer
};

/// The same where the first look has found a string that lives, or that there is nothing, and the
/// change is complete once the table has it. ok: `out` and the answer have what the call says.
/// None: to be decided again, from the beginning.
template <class Call>
[[gnu::always_inline]] inline std::optional<ErrorCode> decide_plainly(
    Core& core, engine::ThreadContext& own, const engine::KeyLocation& location,
    const engine::HomeLook& first, Timestamp now, const Call& call, StringOutcome& out) {
  const bool may = core.is_alone() && own.section == nullptr && first.slot != nullptr &&
                   engine::has_room_for_plain(own);
  if (!may) [[unlikely]]
    return std::nullopt;
  engine::Entry::Head head;
  engine::RecordView view;
  out.found = first.seen != 0;
  if (out.found) {
    head = core.keys().entry(first.seen).head();
    if (!core.databases().lives(head, now) || !head.is_string()) [[unlikely]]
      return std::nullopt;
    view.value = head.value();
    view.due = head.due();
    view.version = head.version();
    view.raw = head.is_raw();
  }
  const engine::Decision decision = call.decide(out.found ? &view : nullptr, now, out);
  const engine::TableProbe probe = first.probe(location.hash);
  const engine::PlainPlace place{.location = location,
                                 .key = call.key,
                                 .probe = probe,
                                 .old = out.found ? &head : nullptr,
                                 .floor = out.found ? head.version() : probe.floor,
                                 .now = now};
  if (decision.action == engine::Action::store) {
    if constexpr (!Call::may_store) {
      return std::nullopt;
    } else {
      const Bytes value = decision.value;
      return engine::store_plain(
          core, own, place, {decision.kind, decision.due, value.size(), decision.raw},
          [&](char* to, Version) { engine::copy_bytes(to, value.data(), value.size()); },
          out.version);
    }
  }
  if (decision.action != engine::Action::erase || Call::may_store) return std::nullopt;
  return engine::erase_plain(core, own, place, out.version);
}

/// Decides and applies the call inside of its operation.
template <class Call>
StringDone decide_string(Core& core, engine::Operation& operation,
                         const engine::KeyLocation& location, engine::HomeLook first, Timestamp now,
                         const Call& call, typename Call::Answer& answer) {
  StringOutcome out;
  out.value.to = Call::value_of(answer);
  bool is_other = false;
  const auto row = [&](const engine::RecordView* live,
                       const engine::NextVersion&) -> engine::Decision {
    if (out.has_value) [[unlikely]]  // an earlier decision lost its race
      out.value.to->reset();
    out.applied = out.has_value = false;
    out.found = live != nullptr;
    is_other = live != nullptr && live->kind != Kind::string;
    if (!is_other) [[likely]]
      return call.decide(live, now, out);
    engine::Decision looked;
    looked.only_looks = true;
    return looked;
  };
  ErrorCode error = ErrorCode::ok;
  try {
    const std::optional<ErrorCode> done =
        decide_plainly(core, operation.context(), location, first, now, call, out);
    if (done != ErrorCode::ok) [[unlikely]] {
      error = engine::decide_any_at(core, operation, location, {call.db, call.key}, now, row,
                                    out.version, nullptr, first.probe(location.hash));
    }
  } catch (const std::bad_alloc&) {
    error = ErrorCode::memory_full;  // before anything was changed
  }
  if (error != ErrorCode::ok) [[unlikely]] {
    operation.context().bump(engine::Count::misses);
    return {.error = error};
  }
  if (is_other) [[unlikely]]
    return {.is_other = true};
  operation.context().bump(out.found ? engine::Count::hits : engine::Count::misses);
  Call::finish(out, answer);
  return {.error = out.error, .applied = out.applied};
}

/// The answer of a call with an error; ok: of one that takes the way of all others.
template <class Call>
[[gnu::noinline, gnu::cold]] void answer_other(Engine& engine, const Call& call, ErrorCode error,
                                               Result<typename Call::Answer>& result) {
  if (error != ErrorCode::ok) {
    result = explain(engine, call.op(), error);
  } else {
    result = run(engine, call.op(), Call::read);
  }
}

/// The rest of a call: inside its operation, which an OperationStart has handed over, and after the
/// look at its home line.
template <class Call>
[[nodiscard, gnu::noinline]] Result<typename Call::Answer> apply_inside(
    Engine& engine, const Call& call, engine::ThreadContext& own,
    const engine::KeyLocation& location, const engine::HomeLook& first, Timestamp now) {
  Engine::Impl& impl = engine::impl_of(engine);
  Result<typename Call::Answer> result{std::in_place};  // the one that is returned: never moved
  StringDone done;
  {
    engine::Operation operation{impl.core(), own, engine::Operation::Entered{}};
    done = call.decide_at(impl.core(), operation, location, first, now, *result);
  }
  if (done.is_other) [[unlikely]] {
    answer_other(engine, call, ErrorCode::ok, result);
    return result;
  }
  own.bump(engine::Count::operations);
  impl.after_operation(own, {call.db, call.key}, done.applied);
  if (done.error == ErrorCode::ok) [[likely]]
    done.error = impl.confirm(own);
  if (done.error != ErrorCode::ok) [[unlikely]]
    answer_other(engine, call, done.error, result);
  return result;
}

/// All of a call that apply_call() leaves: of a thread in a section, one that waits for a section
/// or for a disk, and of arguments that are refused.
template <class Call>
[[nodiscard, gnu::noinline]] Result<typename Call::Answer> apply_with_care(Engine& engine,
                                                                           const Call& call) {
  Engine::Impl& impl = engine::impl_of(engine);
  Core& core = impl.core();
  Result<typename Call::Answer> result{std::in_place};
  engine::ThreadContext* const found = core.threads().try_context();
  const KeyRef key{call.db, call.key};
  const bool fits = core.keys().check(key.db, key.key) == ErrorCode::ok && call.fits(core);
  if (!fits || found == nullptr || impl.may_have_log()) [[unlikely]] {
    answer_other(engine, call, ErrorCode::ok, result);
    return result;
  }
  engine::ThreadContext& own = *found;
  Timestamp now = core.now(own);
  ErrorCode error = ErrorCode::ok;
  {
    engine::KeyLocation location = core.keys().location_of(key);
    engine::Operation operation{core, own};
    if (!operation.admit(location, key)) [[unlikely]] {
      error = ErrorCode::section_held;
    } else {
      operation.keep_up(now);
      const engine::HomeRecord first = core.keys().look_home_record(location, call.key);
      bool is_answered = false;
      if constexpr (Call::may_repeat) {
        is_answered = call.is_repeat() && first.answers(core.databases(), now) &&
                      engine::answers_repeat(first.head.kind());
      }
      if (!is_answered) {
        // When this returns it has left the operation. To leave once more changes nothing.
        return apply_inside(engine, call, own, location, first.look, now);
      }
      own.bump(engine::Count::hits);
      call.repeat(first.head, *result);
      core.uses().note_read(own.only_looks, key.db, location.hash, now);
    }
  }
  own.bump(engine::Count::operations);
  impl.after_operation(own, key, false);
  if (error == ErrorCode::ok) [[likely]]
    error = impl.confirm(own);
  if (error != ErrorCode::ok) [[unlikely]]
    answer_other(engine, call, error, result);
  return result;
}

/// Answers a call that needs one look, without calling a function. Its objects stay in registers
/// because no function gets a reference to one: apply_inside() and apply_with_care() get copies.
template <class Call>
[[nodiscard, gnu::always_inline]] inline Result<typename Call::Answer> apply_call(
    Engine& engine, const Call& call) {
  Engine::Impl& impl = engine::impl_of(engine);
  Core& core = impl.core();
  engine::KeySpace& keys = core.keys();
  if (!core.threads().is_last()) [[unlikely]]
    return apply_with_care(engine, Call{call});
  engine::ThreadContext& own = engine::Threads::last_context();
  const bool is_usual = own.is_by_itself() && !impl.may_have_log() &&
                        core.guarded_journal().confirms_nothing() &&
                        keys.check(call.db, call.key) == ErrorCode::ok && call.fits(core);
  if (!is_usual) [[unlikely]]
    return apply_with_care(engine, Call{call});
  const Timestamp now = core.clock_now();
  const std::uint64_t map = keys.databases().map();
  const engine::KeyLocation location = keys.location_of({call.db, call.key}, map);
  engine::OperationStart operation{core.threads(), own};
  if (!engine::Operation::admits(location, keys.databases(), map)) [[unlikely]] {
    operation.leave();
    return apply_with_care(engine, Call{call});
  }
  const engine::HomeRecord first = keys.look_home_record(location, call.key);
  if constexpr (Call::may_repeat) {
    if (call.is_repeat() && first.answers(keys.databases(), now) && first.head.is_string())
        [[likely]] {
      own.bump(engine::Count::hits);
      own.bump(engine::Count::operations);
      core.uses().note_read(own.only_looks, call.db, location.hash, now);
      return call.repeated(first.head);
    }
  }
  operation.hand_over();
  return apply_inside(engine, Call{call}, own, engine::KeyLocation{location},
                      engine::HomeLook{first.look}, now);
}

}  // namespace semel::store_calls
