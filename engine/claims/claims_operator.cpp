// The operator's calls on claims: keys are issued, forgotten, and doubts ended.
#include <string>

#include "engine/claims/claim_calls.hpp"
#include "engine/logged/call_log.hpp"
#include "engine/rules/operator_rules.hpp"

namespace semel {

using Context = engine::ClaimContext;
using engine::Count;
using engine::Decision;
using engine::RecordView;
using engine::Scratch;
using engine::TableKey;

namespace {

template <class Decide>
[[nodiscard]] Result<bool> operator_call(const Context& context, Bytes key,
                                         engine::OperatorCall call, Decide&& decide) {
  if (key.empty()) return engine::key_error(ErrorCode::key_empty, key);
  const Bytes name = context.names.name();
  if (context.dropped()) return Error{ErrorCode::namespace_dropped, std::string{name}};
  const TableKey table_key{context.prefix, key};
  engine::OperatorOutcome outcome;
  Version version = 0;
  bool closing = false;
  engine::ClaimNote note{context, table_key.bytes()};
  const ErrorCode error = context.single(table_key.bytes())(
      [&](const RecordView* live, const auto&) {
        note.read(live, context.owner_dead(live));
        const Decision decision = decide(live, outcome);
        closing = live == nullptr && context.refuses(decision);  // one that is there may go on
        return closing ? Decision{} : decision;
      },
      version);
  if (closing) return Error{ErrorCode::namespace_dropped, std::string{name}};
  note.write(call, error != ErrorCode::ok ? error : outcome.error, outcome.found);
  if (error != ErrorCode::ok) return engine::key_error(error, key);
  if (outcome.error != ErrorCode::ok) return engine::key_error(outcome.error, key);
  if (outcome.found && call.call == DecisionCall::forget) {
    context.impl.thread_stats().bump(Count::claims_forgotten);
  }
  if (outcome.found) engine::notify_waiters(context, table_key.bytes());
  if (const ErrorCode unknown = context.impl.confirm(); unknown != ErrorCode::ok) {
    return engine::key_error(unknown, key);
  }
  return outcome.found;
}

using engine::CallLog;
using OperatorWhat = replication::OperatorCommand::What;

/// By the replicated log. A lost answer is not asked for again: the second would be that of a call
/// that comes too late.
[[nodiscard]] Result<bool> operator_call_logged(CallLog& log,
                                                const replication::OperatorCommand& command) {
  if (command.key.empty()) return engine::key_error(ErrorCode::key_empty, command.key);
  auto answer = engine::decided(log, {command}, engine::Repeat::never);
  if (!answer.ok()) {
    return answer.error().detail.empty() ? engine::key_error(answer.error().code, command.key)
                                         : answer.error();
  }
  return answer->number != 0;
}

}  // namespace

Result<bool> Claims::issue(Bytes key, std::optional<Duration> ttl) {
  const Context context{*engine_, *names_};
  const Millis lives = ttl.value_or(context.policy.attempts_ttl);
  if (!context.policy.issued) {
    return Error{ErrorCode::bad_option, "no keys are issued in namespace " + std::string{name()}};
  }
  if (lives < Millis{1} || lives > limits::ttl_max) {
    return Error{ErrorCode::bad_option, "ttl of " + std::to_string(lives.count()) + " ms"};
  }
  if (const engine::LoggedCall log = context.impl.log_for_call()) {
    return operator_call_logged(
        *log, {.what = OperatorWhat::issue, .name = name(), .key = key, .ttl = lives});
  }
  Scratch scratch;
  SEMEL_TRY(found, operator_call(context, key, {DecisionCall::issue},
                                 [&](const RecordView* live, engine::OperatorOutcome& out) {
                                   return engine::decide_issue(live, lives, context.now, out,
                                                               scratch);
                                 }));
  return !found;
}

Result<bool> Claims::forget(Bytes key) {
  if (const engine::LoggedCall log = engine::impl_of(*engine_).log_for_call()) {
    return operator_call_logged(*log, {.what = OperatorWhat::forget, .name = name(), .key = key});
  }
  return operator_call({*engine_, *names_}, key, {DecisionCall::forget},
                       [](const RecordView* live, engine::OperatorOutcome& outcome) {
                         return engine::decide_forget(live, outcome);
                       });
}

Result<bool> Claims::resolve(Bytes key, Resolution resolution, Bytes result) {
  const Context context{*engine_, *names_};
  const std::size_t limit = context.impl.core().options().value_bytes_max;
  if (result.size() > limit) {
    return Error{ErrorCode::value_too_long,
                 std::to_string(result.size()) + " bytes, limit " + std::to_string(limit)};
  }
  if (const engine::LoggedCall log = context.impl.log_for_call()) {
    const bool is_done = resolution == Resolution::done;
    return operator_call_logged(
        *log, {.what = is_done ? OperatorWhat::resolve_as_done : OperatorWhat::resolve_as_released,
               .name = name(),
               .key = key,
               .result = result});
  }
  Scratch scratch;
  return operator_call(context, key, {DecisionCall::resolve, resolution == Resolution::done},
                       [&](const RecordView* live, engine::OperatorOutcome& outcome) {
                         return engine::decide_resolve(live, resolution, result, context.policy,
                                                       context.now, outcome, scratch);
                       });
}

}  // namespace semel
