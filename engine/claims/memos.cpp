// See engine/claims/memos.hpp; the rules are in engine/rules/memo_rules.hpp.
#include "engine/claims/memos.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/claims/claim_calls.hpp"
#include "engine/claims/logged_claims.hpp"
#include "engine/rules/memo_list.hpp"

namespace semel::engine {
namespace {

[[nodiscard]] MemoCall call_of(const ClaimContext& context, const Memo& memo) noexcept {
  return {.epoch = memo.epoch,
          .step = memo.step,
          .bytes = memo.bytes,
          .bytes_limit =
              std::min(limits::memos_bytes_max, context.impl.core().options().value_bytes_max)};
}

[[nodiscard]] Status check_name(const Memo& memo) {
  if (const ErrorCode bad = check_step(memo.step); bad != ErrorCode::ok) {
    return Error{bad, "a step's name of " + std::to_string(memo.step.size()) +
                          " bytes, limits 1 and " + std::to_string(limits::step_name_max)};
  }
  return Done{};
}

[[nodiscard]] Status check(const Memo& memo) {
  if (memo.key.empty()) return key_error(ErrorCode::key_empty, memo.key);
  return check_name(memo);
}

[[nodiscard]] Error error_of(const MemoOutcome& outcome, const Memo& memo) {
  switch (outcome.error) {
    case ErrorCode::value_too_long:
      // In a group an entry that is too long has the same error, without figures.
      if (outcome.limit == 0)
        return {outcome.error, "memo of step '" + std::string{memo.step} + "'"};
      return {outcome.error, "memos of a claim with step '" + std::string{memo.step} +
                                 "': " + std::to_string(outcome.given) + ", limit " +
                                 std::to_string(outcome.limit)};
    case ErrorCode::key_too_long:
    case ErrorCode::wrong_kind:
      return key_error(outcome.error, memo.key);
    default:
      return {outcome.error, "step '" + std::string{memo.step} + "'"};
  }
}

/// By the replicated log, whose answer has an error and its figures.
[[nodiscard]] MemoOutcome decide_logged(CallLog& log, const Claims& claims, const Memo& memo) {
  // A second decision is as good as the first: the epoch is the same, and so are the bytes.
  const auto answer = decided<replication::PlainAnswer>(
      log, {replication::MemoCommand{claims.name(), memo.key, memo.epoch, memo.step, memo.bytes}},
      Repeat::safe);
  if (!answer.ok()) return {.error = answer.error().code};
  MemoOutcome outcome{.error = answer->error, .given = static_cast<std::size_t>(answer->number)};
  const std::string& limit = answer->text;
  static_cast<void>(std::from_chars(limit.data(), limit.data() + limit.size(), outcome.limit));
  return outcome;
}

}  // namespace

Result<std::optional<std::string>> recall_memo(Claims& claims, const Memo& memo) {
  SEMEL_CHECK(check(memo));
  if (const LoggedCall log = impl_of(claims.engine()).log_for_call()) {
    // Before the step: what it brings about could not be remembered.
    SEMEL_CHECK(log->knows({replication::MemoCommand{}}));
    SEMEL_CHECK(log->read());
  }
  const ClaimContext context{claims.engine(), ClaimsParts::names_of(claims)};
  MemoOutcome outcome;
  Version version = 0;
  if (context.dropped()) {
    return Error{ErrorCode::namespace_dropped, std::string{claims.name()}};
  }
  const TableKey key{context.prefix, memo.key};
  const MemoCall call = call_of(context, memo);
  const ErrorCode error = or_memory_full(
      context.single(key.bytes()),
      [&](const RecordView* live, const auto&) {
        // Read again, as in Claims::get().
        const ClaimFacts facts{.now = std::max(context.now, context.impl.now()),
                               .owner_dead = context.owner_dead(live)};
        decide_recall(live, call, facts, outcome);
        return Decision{};
      },
      version);
  if (error != ErrorCode::ok) outcome.error = error;
  if (outcome.error == ErrorCode::ok) outcome.error = context.impl.confirm();
  if (outcome.error != ErrorCode::ok) return error_of(outcome, memo);
  return std::move(outcome.memo);
}

MemoOutcome decide_memo(Claims& claims, const Memo& memo) {
  const ClaimContext context{claims.engine(), ClaimsParts::names_of(claims)};
  if (context.dropped()) return {.error = ErrorCode::namespace_dropped};
  // An entry may be of a member that has not looked at it.
  if (memo.key.empty()) return {.error = ErrorCode::key_empty};
  if (const ErrorCode bad = check_step(memo.step); bad != ErrorCode::ok) return {.error = bad};
  const TableKey key{context.prefix, memo.key};
  const MemoCall call = call_of(context, memo);
  MemoOutcome outcome;
  Scratch scratch;
  Version version = 0;
  const ErrorCode error = or_memory_full(
      context.single(key.bytes()),
      [&](const RecordView* live, const auto&) {
        const ClaimFacts facts{.now = context.now, .owner_dead = context.owner_dead(live)};
        return decide_remember(live, call, context.policy, facts, outcome, scratch);
      },
      version);
  if (error != ErrorCode::ok) return {.error = error};
  if (outcome.error == ErrorCode::ok) outcome.error = context.impl.confirm();
  return outcome;
}

Status keep_memo(Claims& claims, const Memo& memo) {
  SEMEL_CHECK(check(memo));
  MemoOutcome outcome;
  if (const LoggedCall log = impl_of(claims.engine()).log_for_call()) {
    outcome = decide_logged(*log, claims, memo);
  } else {
    outcome = decide_memo(claims, memo);
  }
  if (outcome.error != ErrorCode::ok) return error_of(outcome, memo);
  return Done{};
}

namespace {

[[nodiscard]] Status check_own(const std::string& own, const Memo& memo) {
  SEMEL_CHECK(check_name(memo));
  MemoOutcome outcome;
  const MemoCall call{
      .step = memo.step, .bytes = memo.bytes, .bytes_limit = limits::memos_bytes_max};
  if (!has_room(own, {}, call, outcome)) return error_of(outcome, memo);
  return Done{};
}

}  // namespace

Result<std::optional<std::string>> recall_memo(const std::string& own, const Memo& memo) {
  if (const auto found = find_memo(own, {}, memo.step)) return std::optional<std::string>{*found};
  SEMEL_CHECK(check_own(own, memo));
  return std::optional<std::string>{};
}

Status keep_memo(std::string& own, const Memo& memo) {
  SEMEL_CHECK(check_own(own, memo));
  own = with_memo(own, {.step = memo.step, .bytes = memo.bytes});
  return Done{};
}

}  // namespace semel::engine
