#include "engine/claims/logged_claims.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/random.hpp"
#include "engine/claims/claim_calls.hpp"

namespace semel::engine {
namespace {

using replication::Answer;
using replication::ClaimCommand;
using replication::Command;
using replication::OwnerCommand;

OwnerOutcome refused(ErrorCode why) {
  OwnerOutcome outcome;
  outcome.answer = OwnerAnswer::refused;
  outcome.error = why;
  return outcome;
}

}  // namespace

bool repeat_claim(Engine& engine, const Claims::Namespace& names, const GroupTime& time,
                  const ClaimRequest& request, Ends ends, ClaimOutcome& outcome) {
  const std::optional<Timestamp> now = time.if_current();
  if (!now) return false;
  const ClaimContext context{engine, names, *now};
  const TableKey key{context.prefix, request.key};
  const auto lives_on = [&](Timestamp due) { return due == no_end || due - *now >= skew_margin; };
  ClaimFacts facts;
  ClaimNote note{context, key.bytes()};
  run_claim(
      context, request, facts, note, outcome,
      [&](auto&& decide, Version& version) {
        return update_unless(
            context.impl.core(), {context.policy.db, key.bytes()}, context.now,
            [&](const Entry& live) {
              return context.decisions == nullptr && context.policy.sliding_max == Millis{0} &&
                     live.kind() == Kind::claim && lives_on(live.due()) &&
                     answer_repeat(request, live.value(), *now, outcome);
            },
            [&](const RecordView* live, const auto&) {
              ClaimRecord record;
              const bool is_done = live != nullptr && live->kind == Kind::claim &&
                                   lives_on(live->due) && decode(live->value, record) &&
                                   record.state == ClaimState::done &&
                                   (ends == Ends::stay ||
                                    !slides(record, live->due, context.policy, *now, skew_margin));
              return is_done ? decide(live, [] { return Version{0}; }) : Decision{};
            },
            version);
      },
      Commit::nothing);
  if (outcome.answer != ClaimAnswer::replay) return false;
  count_answer(context.impl, context.names, outcome);
  note.write(request, outcome);
  return true;
}

LoggedRequest::LoggedRequest(const ClaimRequest& from)
    : request(from), has_own_id(!from.claim_id.has_value()) {
  if (has_own_id) base::fill_random(request.claim_id.emplace());
}

Command command_of(Bytes name, const ClaimRequest& request) {
  return {ClaimCommand{ClaimCommand::What::each, name, {request}}};
}

ClaimOutcome outcome_of(Result<Answer>&& answer) {
  ClaimOutcome outcome;
  refuse(outcome, ErrorCode::bad_encoding);
  if (!answer.ok()) {
    outcome.error = answer.error().code;
  } else if (auto* const found = std::get_if<std::vector<ClaimOutcome>>(&answer->what)) {
    if (found->size() == 1) outcome = std::move(found->front());
  } else if (const auto* plain = std::get_if<replication::PlainAnswer>(&answer->what)) {
    outcome.error = plain->error;
  }
  return outcome;
}

void open_if_full(const Policy& policy, ClaimOutcome& outcome) noexcept {
  if (outcome.error != ErrorCode::memory_full || !policy.fail_open) return;
  outcome.answer = ClaimAnswer::unprotected;
  outcome.error = ErrorCode::ok;
}

ClaimOutcome claim_logged(CallLog& log, Engine& engine, const Claims::Namespace& names,
                          const LoggedRequest& asked) {
  ClaimOutcome outcome;
  if (const ErrorCode bad = check(asked.request); bad != ErrorCode::ok) {
    refuse(outcome, bad);
    return outcome;
  }
  const Policy policy = names.policy();
  if (repeat_claim(engine, names, log.clock(), asked.request, Ends::may_move, outcome)) {
    return outcome;
  }
  outcome = outcome_of(log.decide(command_of(names.name(), asked.request), Repeat::safe));
  // A full group takes no later end. The work is done all the same.
  if (outcome.error == ErrorCode::memory_full && policy.sliding_max != Millis{0}) {
    ClaimOutcome done;
    if (repeat_claim(engine, names, log.clock(), asked.request, Ends::stay, done)) return done;
  }
  asked.finish(outcome);
  open_if_full(policy, outcome);
  return outcome;
}

bool claim_logged(CallLog& log, Engine&, const Claims::Namespace& names, ClaimBatch what,
                  std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes) {
  const std::size_t count = std::min(requests.size(), outcomes.size());
  const Policy policy = names.policy();
  std::vector<LoggedRequest> asked;
  asked.reserve(count);
  ClaimCommand command{what, names.name(), {}};
  for (const ClaimRequest& request : requests.first(count)) {
    command.requests.push_back(asked.emplace_back(request).request);
  }
  auto found = decided<std::vector<ClaimOutcome>>(log, {std::move(command)}, Repeat::safe);
  bool all = found.ok();
  for (std::size_t i = 0; i < count; ++i) {
    if (!found.ok()) {
      refuse(outcomes[i], found.error().code);
      open_if_full(policy, outcomes[i]);
      continue;
    }
    outcomes[i] = std::move((*found)[i]);
    if (!outcomes[i].folded_onto) asked[i].finish(outcomes[i]);
    all = all && (outcomes[i].answer == ClaimAnswer::granted ||
                  outcomes[i].answer == ClaimAnswer::regranted);
  }
  return all;
}

namespace {

OwnerOutcome owner_command(CallLog& log, const ClaimContext& context, OwnerCommand command) {
  const OwnerVerb verb = command.verb;
  const OwnerCall& call = command.call;
  const ErrorCode bad = check(context, verb, call);
  if (bad != ErrorCode::ok && !may_drop(verb, call, bad)) return refused(bad);
  auto found = decided<OwnerOutcome>(log, {command}, Repeat::safe);
  if (found.ok()) return *std::move(found);
  const ErrorCode why = found.error().code;
  if (!may_drop(verb, call, why)) return refused(why);
  // Longer than an entry: the work is done all the same.
  command.call.payload = {};
  command.call.keeping = ResultKeeping::none;
  found = decided<OwnerOutcome>(log, {command}, Repeat::safe);
  if (!found.ok()) return refused(found.error().code);
  if (found->answer == OwnerAnswer::ok) found->dropped = why;
  return *std::move(found);
}

/// Of one entry.
void complete_section(CallLog& log, Bytes name, std::span<const OwnerCall> calls,
                      std::span<OwnerOutcome> outcomes) {
  replication::SectionCommand section;
  section.commands.reserve(calls.size());
  for (const OwnerCall& call : calls) {
    section.commands.push_back({OwnerCommand{.name = name, .call = call}});
  }
  auto found = decided<std::vector<Answer>>(log, {std::move(section)}, Repeat::safe);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto* const each = found.ok() ? std::get_if<OwnerOutcome>(&(*found)[i].what) : nullptr;
    const auto* const plain =
        found.ok() ? std::get_if<replication::PlainAnswer>(&(*found)[i].what) : nullptr;
    outcomes[i] = each != nullptr    ? std::move(*each)
                  : plain != nullptr ? refused(plain->error)
                                     : refused(found.error().code);
  }
}

}  // namespace

OwnerOutcome owner_call_logged(CallLog& log, const ClaimContext& context, OwnerVerb verb,
                               const OwnerCall& call) {
  return owner_command(log, context, {.verb = verb, .name = context.names.name(), .call = call});
}

/// Work that ran is to be recorded, however many bytes all of its results have: they go in parts.
void complete_logged(CallLog& log, const ClaimContext& context, std::span<const OwnerCall> calls,
                     std::span<OwnerOutcome> outcomes) {
  constexpr std::size_t part_bytes = std::size_t{256} << 10;
  for (std::size_t at = 0; at < calls.size();) {
    std::size_t end = at;
    for (std::size_t bytes = 0; end < calls.size(); ++end) {
      bytes += calls[end].key.size() + calls[end].payload.size();
      if (end != at && bytes > part_bytes) break;
    }
    if (end - at == 1) {  // alone, a call too long for an entry is recorded without its result
      outcomes[at] = owner_call_logged(log, context, OwnerVerb::complete, calls[at]);
    } else {
      complete_section(log, context.names.name(), calls.subspan(at, end - at),
                       outcomes.subspan(at, end - at));
    }
    at = end;
  }
}

}  // namespace semel::engine
