// Claims of several keys in one call.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/claims/claim_calls.hpp"
#include "engine/claims/fold_table.hpp"
#include "engine/claims/logged_claims.hpp"
#include "engine/core/section.hpp"

namespace semel {
namespace {

using Context = engine::ClaimContext;
using engine::ClaimFacts;
using engine::Core;
using engine::Decision;
using engine::FoldTable;
using engine::OwnerVerb;
using engine::RecordView;
using engine::TableKey;

/// A batch that is too long is refused as a whole.
[[nodiscard]] bool refuse_batch(Engine::Impl& impl, std::size_t size,
                                std::span<ClaimOutcome> outcomes) {
  ErrorCode why = impl.core().begin_call();
  if (size > limits::batch_max) why = ErrorCode::too_many_keys;
  if (why == ErrorCode::ok) [[likely]]
    return false;
  for (ClaimOutcome& outcome : outcomes) engine::refuse(outcome, why);
  return true;
}

[[nodiscard]] bool is_granted(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::granted || outcome.answer == ClaimAnswer::regranted;
}

/// The answer to a repeated key of a batch, found without a change. It is never a grant of its own:
/// between the two looks the key may have been released, or the first's lease may have ended.
/// Then it is the refusal of the first, or a request to retry.
void fold(ClaimOutcome& outcome, const ClaimOutcome& first, const Policy& policy) {
  const bool is_same = outcome.answer == ClaimAnswer::regranted &&
                       (!is_granted(first) || first.epoch == outcome.epoch);
  if (is_same || (!is_granted(outcome) && outcome.answer != ClaimAnswer::unprotected)) return;
  engine::refuse(outcome, first.error);
  if (first.error != ErrorCode::ok) return;
  outcome.answer = ClaimAnswer::in_flight;
  outcome.retry_after = policy.retry_after_max;
}

/// claim_all inside its section, in two passes: what would the answers be, then the grants.
class ClaimAll {
 public:
  ClaimAll(const Context& context, Section& section, std::span<const ClaimRequest> requests,
           const std::vector<std::string>& keys, std::span<ClaimOutcome> outcomes)
      : context_(context),
        section_(engine::impl_of(section)),
        requests_(requests),
        keys_(keys),
        outcomes_(outcomes) {}

  [[nodiscard]] bool run() {
    FoldTable folds{context_, requests_};
    bool all = true;
    std::size_t bytes = 0;
    const bool compares = context_.guards_claims();
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      claim(i, engine::Commit::ends);
      outcomes_[i].folded_onto = folds.first_of(i);
      if (compares && differs_from_earlier(i)) {
        engine::refuse(outcomes_[i], ErrorCode::ok);
        outcomes_[i].answer = ClaimAnswer::mismatch;
        outcomes_[i].folded_onto = folds.first_of(i);
      }
      all = all && is_granted(outcomes_[i]);
      bytes += keys_[i].size() + engine::claim_overhead_max;
    }
    if (!all) return give_up();
    if (const ErrorCode full = section_.reserve(bytes, requests_.size()); full != ErrorCode::ok) {
      return fail(full);
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const std::optional<std::size_t> first = outcomes_[i].folded_onto;
      if (first) {
        outcomes_[i] = outcomes_[*first];
        outcomes_[i].folded_onto = first;
        continue;
      }
      claim(i, engine::Commit::all);
      if (!is_granted(outcomes_[i])) {
        undo(i);
        return fail(outcomes_[i].error);
      }
    }
    return true;
  }

 private:
  void claim(std::size_t i, engine::Commit commit) {
    ClaimFacts facts;
    facts.others_first = context_.others_first(keys_[i]);
    engine::ClaimNote note{context_, keys_[i]};
    engine::run_claim(
        context_, requests_[i], facts, note, outcomes_[i],
        [&](auto&& decide, Version& version) {
          return section_.update(context_.policy.db, keys_[i], decide, version);
        },
        commit);
    // The first pass answers requests that are not granted, the second grants.
    const bool is_answer = commit == engine::Commit::all || !is_granted(outcomes_[i]);
    if (is_answer) note.write(requests_[i], outcomes_[i]);
  }
  /// Whether an earlier request of this key gave another fingerprint: one grant would be for both
  /// payloads. A repetition of the same attempt is asked about first, as a record is.
  [[nodiscard]] bool differs_from_earlier(std::size_t i) const noexcept {
    const std::optional<std::size_t> first = outcomes_[i].folded_onto;
    const ClaimRequest& asked = requests_[i];
    if (!first || asked.fingerprint.algorithm == 0) return false;
    for (std::size_t j = *first; j < i; ++j) {
      if (j != *first && outcomes_[j].folded_onto != first) continue;
      const ClaimRequest& earlier = requests_[j];
      if (earlier.fingerprint.algorithm != asked.fingerprint.algorithm) continue;
      if (asked.claim_id && earlier.claim_id == asked.claim_id) return false;
      return earlier.fingerprint.digest != asked.fingerprint.digest;
    }
    return false;
  }
  /// Nothing was changed: grants that were planned get epoch 0.
  bool give_up() noexcept {
    for (ClaimOutcome& outcome : outcomes_) {
      if (outcome.answer == ClaimAnswer::granted) outcome.epoch = 0;
    }
    return false;
  }
  bool fail(ErrorCode why) {
    for (ClaimOutcome& outcome : outcomes_) {
      engine::refuse(outcome, why);
      if (why != ErrorCode::memory_full || !context_.policy.fail_open) continue;
      outcome.answer = ClaimAnswer::unprotected;
      outcome.error = ErrorCode::ok;
    }
    return false;
  }
  /// A journal that stops in the middle: the grants so far go. A record that was taken over goes
  /// with them and with it its attempts; its owner had lost it already.
  void undo(std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) {
      if (outcomes_[i].folded_onto || outcomes_[i].answer != ClaimAnswer::granted) continue;
      Version version = 0;
      static_cast<void>(section_.update(  // if this fails too, the lease ends the grant
          context_.policy.db, keys_[i],
          [](const RecordView*, const auto&) {
            return Decision{.action = engine::Action::erase, .kind = Kind::claim, .value = {}};
          },
          version));
    }
  }

  const Context& context_;
  Section::Impl& section_;
  std::span<const ClaimRequest> requests_;
  const std::vector<std::string>& keys_;
  std::span<ClaimOutcome> outcomes_;
};

}  // namespace

void Claims::claim(std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes) {
  if (refuse_batch(engine::impl_of(*engine_), requests.size(), outcomes)) return;
  if (const engine::LoggedCall log = engine::impl_of(*engine_).log_for_call()) {
    engine::claim_logged(*log, *engine_, *names_, engine::ClaimBatch::each, requests, outcomes);
    return;
  }
  const std::size_t total = std::min(requests.size(), outcomes.size());
  const Context context{*engine_, *names_};
  FoldTable folds{context, requests};
  std::array<TableKey, Core::group_max> keys;
  for (std::size_t start = 0; start < total; start += Core::group_max) {
    const std::size_t size = std::min(Core::group_max, total - start);
    for (std::size_t i = 0; i < size; ++i) keys[i].join(context.prefix, requests[start + i].key);
    engine::for_group(
        context.impl.core(), size, context.now,
        [&](std::size_t i) {
          return KeyRef{context.policy.db, keys[i].bytes()};
        },
        [&](std::size_t i, engine::Operation& operation, const engine::KeyLocation& location) {
          // A repeated key meets the record its first request has just left, and changes no more
          // than its end.
          const std::optional<std::size_t> first = folds.first_of(start + i);
          ClaimFacts facts;
          facts.others_first = context.others_first(keys[i].bytes());
          ClaimOutcome& outcome = outcomes[start + i];
          engine::ClaimNote note{context, keys[i].bytes()};
          engine::run_claim(context, requests[start + i], facts, note, outcome,
                            context.in_group(operation, location, keys[i].bytes()),
                            first ? engine::Commit::ends : engine::Commit::all);
          if (first) fold(outcome, outcomes[*first], context.policy);
          outcome.folded_onto = first;
          engine::count_answer(context.impl, *names_, outcome);
          if (!first) note.write(requests[start + i], outcome);
        });
  }
  const ErrorCode unknown = context.impl.confirm_batch();
  if (unknown == ErrorCode::ok) [[likely]]
    return;
  for (ClaimOutcome& outcome : outcomes.first(total)) {
    if (outcome.error == ErrorCode::ok) engine::refuse(outcome, unknown);
  }
}

void Claims::complete(std::span<const OwnerCall> calls, std::span<OwnerOutcome> outcomes) {
  ErrorCode why = engine::impl_of(*engine_).core().begin_call();
  if (calls.size() > limits::batch_max) why = ErrorCode::too_many_keys;
  if (why != ErrorCode::ok) [[unlikely]] {
    for (OwnerOutcome& outcome : outcomes) {
      outcome = {};
      outcome.answer = OwnerAnswer::refused;
      outcome.error = why;
    }
    return;
  }
  const std::size_t total = std::min(calls.size(), outcomes.size());
  const Context context{*engine_, *names_};
  if (const engine::LoggedCall log = context.impl.log_for_call()) {
    engine::complete_logged(*log, context, calls.first(total), outcomes.first(total));
    return;
  }
  std::array<TableKey, Core::group_max> keys;
  for (std::size_t start = 0; start < total; start += Core::group_max) {
    const std::size_t size = std::min(Core::group_max, total - start);
    for (std::size_t i = 0; i < size; ++i) keys[i].join(context.prefix, calls[start + i].key);
    engine::for_group(
        context.impl.core(), size, context.now,
        [&](std::size_t i) {
          return KeyRef{context.policy.db, keys[i].bytes()};
        },
        [&](std::size_t i, engine::Operation& operation, const engine::KeyLocation& location) {
          engine::ClaimNote note{context, keys[i].bytes()};
          engine::run_owner(context, OwnerVerb::complete, calls[start + i], note,
                            outcomes[start + i],
                            context.in_group(operation, location, keys[i].bytes()));
        });
    // After the group: a callback may take its time, and may call the engine.
    for (std::size_t i = 0; i < size; ++i) {
      if (engine::may_drop(OwnerVerb::complete, calls[start + i], outcomes[start + i].error)) {
        engine::run_single(context, OwnerVerb::complete, calls[start + i], keys[i].bytes(),
                           outcomes[start + i]);
      }
      if (outcomes[start + i].answer == OwnerAnswer::ok)
        engine::notify_waiters(context, keys[i].bytes());
    }
  }
  const ErrorCode unknown = context.impl.confirm_batch();
  if (unknown == ErrorCode::ok) [[likely]]
    return;
  for (OwnerOutcome& outcome : outcomes.first(total)) {
    if (outcome.error != ErrorCode::ok) continue;
    outcome = {};
    outcome.answer = OwnerAnswer::refused;
    outcome.error = unknown;
  }
}

bool Claims::claim_all(std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes) {
  if (refuse_batch(engine::impl_of(*engine_), requests.size(), outcomes)) return false;
  requests = requests.first(std::min(requests.size(), outcomes.size()));
  outcomes = outcomes.first(requests.size());
  if (requests.empty()) return true;
  if (const engine::LoggedCall log = engine::impl_of(*engine_).log_for_call()) {
    return engine::claim_logged(*log, *engine_, *names_, engine::ClaimBatch::all_or_none, requests,
                                outcomes);
  }
  const Policy policy = names_->policy();
  std::vector<std::string> keys;
  std::vector<KeyRef> refs;
  keys.reserve(requests.size());
  refs.reserve(requests.size());
  for (const ClaimRequest& request : requests) {
    keys.emplace_back(names_->prefix()).append(request.key);
    refs.push_back({policy.db, keys.back()});
  }
  bool all = false;
  ErrorCode unknown = ErrorCode::ok;
  {
    Result<Section> section = engine_->section(refs);
    if (!section) {
      for (ClaimOutcome& outcome : outcomes) engine::refuse(outcome, section.error().code);
      return false;
    }
    const Context context{*engine_, *names_, section->now()};
    all = ClaimAll{context, *section, requests, keys, outcomes}.run();
    if (const Status ended = section->commit(); !ended) unknown = ended.error().code;
  }
  for (const ClaimOutcome& outcome : outcomes) {
    if (all || outcome.answer != ClaimAnswer::granted)
      engine::count_answer(engine::impl_of(*engine_), *names_, outcome);
  }
  if (unknown == ErrorCode::ok) [[likely]]
    return all;
  for (ClaimOutcome& outcome : outcomes) {
    if (outcome.error == ErrorCode::ok) engine::refuse(outcome, unknown);
  }
  return false;
}

}  // namespace semel
