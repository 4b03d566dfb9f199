// The facade of semel/claims.hpp: builds the table key, runs the claim machine inside one update of
// the core, and tells the waiters afterwards.
#include "semel/claims.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/claim_context.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/api/fold_table.hpp"
#include "engine/core/section.hpp"
#include "engine/rules/claim_rules.hpp"

namespace semel {
namespace {

using Context = engine::ClaimContext;
using engine::ClaimFacts;
using engine::Core;
using engine::Count;
using engine::Decision;
using engine::FoldTable;
using engine::OwnerVerb;
using engine::RecordView;
using engine::Scratch;
using engine::TableKey;

// --- claim --------------------------------------------------------------------------------------

void refuse(ClaimOutcome& outcome, ErrorCode why) {
  outcome = {};
  outcome.error = why;
}

[[nodiscard]] ErrorCode check(const ClaimRequest& request) noexcept {
  return request.key.empty() ? ErrorCode::key_empty : engine::check_claim(request);
}

[[nodiscard]] bool is_valid(const ClaimRequest& request) noexcept {
  return check(request) == ErrorCode::ok;
}

/// `update(decide, version)`, where a heap that is full is a limit like others: it throws before it
/// has changed anything.
template <class Update, class Decide>
[[nodiscard]] ErrorCode or_memory_full(Update&& update, Decide&& decide, Version& version) {
  try {
    return update(decide, version);
  } catch (const std::bad_alloc&) {
    return ErrorCode::memory_full;
  }
}

/// Runs a claim through `update(decide, version)`. `commit` false: finds the answer only.
template <class Update>
void run_claim(const Context& context, const ClaimRequest& request, ClaimFacts& facts,
               ClaimOutcome& outcome, Update&& update, bool commit = true) {
  if (const ErrorCode bad = check(request); bad != ErrorCode::ok) return refuse(outcome, bad);
  if (context.dropped()) [[unlikely]]
    return refuse(outcome, ErrorCode::namespace_dropped);
  const Policy& policy = context.policy;
  facts.session = request.session.value_or(context.impl.sessions().own());
  const bool has_window =
      request.first_sent_unix_ms && (policy.window != Millis{0} || policy.ahead != Millis{0});
  Scratch scratch;
  Version version = 0;
  bool closing = false;
  ErrorCode error = or_memory_full(
      update,
      [&](const RecordView* live, const auto& next) -> Decision {
        facts.now = context.now;
        if (has_window) facts.unix_now = context.impl.clock().unix_ms();
        facts.candidate = next();
        facts.owner_dead = context.owner_dead(live);
        const Decision decision =
            engine::decide_claim(live, request, policy, facts, outcome, scratch);
        closing = context.refuses(decision);
        return commit && !closing ? decision : Decision{};
      },
      version);
  if (closing && error == ErrorCode::ok) [[unlikely]]
    error = ErrorCode::namespace_dropped;
  if (error != ErrorCode::ok) [[unlikely]] {
    refuse(outcome, error);
    if (error == ErrorCode::memory_full && policy.fail_open) {
      outcome.answer = ClaimAnswer::unprotected;
      outcome.error = ErrorCode::ok;
    }
    return;
  }
  outcome.version = version;
}

void count(Engine::Impl& impl, const ClaimOutcome& outcome) {
  switch (outcome.answer) {
    case ClaimAnswer::granted:
      impl.thread_stats().bump(Count::claims_granted);
      if (outcome.takeover) impl.thread_stats().bump(Count::takeovers);
      break;
    case ClaimAnswer::in_flight:
    case ClaimAnswer::replay:
    case ClaimAnswer::kept_failure:
      impl.thread_stats().bump(Count::claims_duplicate);
      break;
    default:
      break;
  }
}

/// The end of a call: the answer stands when what it changed, or saw, is durable enough.
void confirm(const Context& context, ClaimOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return;  // it says what it is, and rests on nothing
  const ErrorCode unknown = context.impl.confirm();
  if (unknown != ErrorCode::ok) [[unlikely]]
    refuse(outcome, unknown);
}
void confirm(const Context& context, OwnerOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return;
  const ErrorCode unknown = context.impl.confirm();
  if (unknown == ErrorCode::ok) [[likely]]
    return;
  outcome = {};
  outcome.answer = OwnerAnswer::refused;
  outcome.error = unknown;
}

/// How the wait queue asks for a waiter. An in_flight is not counted: it is asked again and again.
ClaimOutcome attempt(const engine::WaitCall& call, engine::Seen& seen) {
  const Context context{*call.engine, *call.names};
  ClaimOutcome outcome;
  ClaimFacts facts;
  if (call.arrives) facts.others_first = context.others_first(call.table_key);
  run_claim(context, call.request, facts, outcome, context.single(call.table_key));
  if (outcome.answer != ClaimAnswer::in_flight) {
    count(context.impl, outcome);
    confirm(context, outcome);
  }
  seen = {.now = context.now, .held_until = facts.held_until, .held_session = facts.held_session};
  return outcome;
}

/// Of a waiter that had left when it was granted.
void give_back(const engine::WaitCall& call, const ClaimOutcome& granted);

// --- owner calls --------------------------------------------------------------------------------

[[nodiscard]] ErrorCode check(const Context& context, OwnerVerb verb, const OwnerCall& call) {
  if (call.key.empty()) return ErrorCode::key_empty;
  if (context.dropped()) return ErrorCode::namespace_dropped;
  if (engine::is_kept(verb, call) &&
      call.payload.size() > context.impl.core().options().value_bytes_max) {
    return ErrorCode::value_too_long;
  }
  return engine::check_owner(verb, call);
}

template <class Update>
void run_owner(const Context& context, OwnerVerb verb, const OwnerCall& call, OwnerOutcome& outcome,
               Update&& update) {
  ClaimFacts facts;
  Scratch scratch;
  Version version = 0;
  ErrorCode error = check(context, verb, call);
  if (error == ErrorCode::ok) {
    error = or_memory_full(
        update,
        [&](const RecordView* live, const auto&) {
          facts.now = context.now;
          facts.owner_dead = context.owner_dead(live);
          return engine::decide_owner(verb, live, call, context.policy, facts, outcome, scratch);
        },
        version);
  }
  if (error != ErrorCode::ok) [[unlikely]] {
    outcome = {};
    outcome.answer = OwnerAnswer::refused;
    outcome.error = error;
    return;
  }
  outcome.version = version;
  if (outcome.answer == OwnerAnswer::stale_owner) {
    context.impl.thread_stats().bump(Count::stale_owners);
  }
}

/// run_owner() on one key; what cannot be kept is dropped, where the call allows it.
void run_single(const Context& context, OwnerVerb verb, const OwnerCall& call, Bytes table_key,
                OwnerOutcome& outcome) {
  run_owner(context, verb, call, outcome, context.single(table_key));
  if (!engine::may_drop(verb, call, outcome.error)) [[likely]]
    return;
  const ErrorCode why = outcome.error;
  OwnerCall without = call;
  without.keeping = ResultKeeping::none;
  run_owner(context, verb, without, outcome, context.single(table_key));
  if (outcome.answer == OwnerAnswer::ok) outcome.dropped = why;
}

/// After an owner call that may have ended a claim. Costs one load when nobody waits at all.
void tell_waiters(const Context& context, Bytes table_key) noexcept {
  engine::WaitQueue& queue = context.impl.wait_queue();
  if (!queue.has_waiters()) [[likely]]
    return;
  const std::uint8_t db = context.policy.db;
  if (engine::OwnSection* const own = context.impl.core().context().section; own != nullptr) {
    return own->note_change({db, table_key});
  }
  if (Journal* const journal = context.impl.core().journal(); journal != nullptr) {
    bool deferred = false;
    const bool told = context.impl.core().callbacks().run(Callback::journal, [&] {
      std::function<void()> later = [&queue, db, key = std::string{table_key}] {
        queue.changed(db, key);
      };
      deferred = journal->defer(later);
    });
    if (deferred) return;
    // Without memory to tell them later they look by themselves: now they could wait for this very
    // thread.
    if (!told) return queue.changed_meanwhile(db, table_key);
  }
  queue.changed(db, table_key);
}

[[nodiscard]] OwnerOutcome owner_call(Engine& engine, const Claims::Namespace& names,
                                      OwnerVerb verb, const OwnerCall& call) {
  const Context context{engine, names};
  const TableKey key{context.prefix, call.key};
  OwnerOutcome outcome;
  run_single(context, verb, call, key.bytes(), outcome);
  // A renewal too: with a shorter lease those who wait must look again sooner.
  if (outcome.answer == OwnerAnswer::ok) tell_waiters(context, key.bytes());
  confirm(context, outcome);
  return outcome;
}

void give_back(const engine::WaitCall& call, const ClaimOutcome& granted) {
  const OwnerCall owner{.key = call.request.key, .epoch = granted.epoch};
  static_cast<void>(owner_call(*call.engine, *call.names, OwnerVerb::release, owner));
}

[[nodiscard]] Error key_error(ErrorCode code, Bytes key) {
  try {
    return {code, "key of " + std::to_string(key.size()) + " bytes"};
  } catch (const std::bad_alloc&) {
    return {code, {}};
  }
}

// --- batches ------------------------------------------------------------------------------------

/// A batch that is too long is refused as a whole.
[[nodiscard]] bool refuse_batch(Engine::Impl& impl, std::size_t size,
                                std::span<ClaimOutcome> outcomes) {
  ErrorCode why = impl.core().begin_call();
  if (size > limits::batch_max) why = ErrorCode::too_many_keys;
  if (why == ErrorCode::ok) [[likely]]
    return false;
  for (ClaimOutcome& outcome : outcomes) refuse(outcome, why);
  return true;
}

[[nodiscard]] bool is_granted(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::granted || outcome.answer == ClaimAnswer::regranted;
}

/// The answer to a repeated key of a batch, found without a change. It is never a grant of its own:
/// between the two looks somebody else may have let go of the key, or the first's lease may have
/// ended. Then it is what the first was refused for, or to come again.
void fold(ClaimOutcome& outcome, const ClaimOutcome& first, const Policy& policy) {
  const bool is_same = outcome.answer == ClaimAnswer::regranted &&
                       (!is_granted(first) || first.epoch == outcome.epoch);
  if (is_same || (!is_granted(outcome) && outcome.answer != ClaimAnswer::unprotected)) return;
  refuse(outcome, first.error);
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
    FoldTable folds{context_.impl.core(), requests_, is_valid};
    bool all = true;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      claim(i, false);
      outcomes_[i].folded_onto = folds.first_of(i);
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
      claim(i, true);
      if (!is_granted(outcomes_[i])) {
        undo(i);
        return fail(outcomes_[i].error);
      }
    }
    return true;
  }

 private:
  void claim(std::size_t i, bool commit) {
    ClaimFacts facts;
    facts.others_first = context_.others_first(keys_[i]);
    run_claim(
        context_, requests_[i], facts, outcomes_[i],
        [&](auto&& decide, Version& version) {
          return section_.update(context_.policy.db, keys_[i], decide, version);
        },
        commit);
  }
  /// Nothing was changed: who would have been granted has no epoch.
  bool give_up() noexcept {
    for (ClaimOutcome& outcome : outcomes_) {
      if (outcome.answer == ClaimAnswer::granted) outcome.epoch = 0;
    }
    return false;
  }
  bool fail(ErrorCode why) {
    for (ClaimOutcome& outcome : outcomes_) {
      refuse(outcome, why);
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

ClaimOutcome Claims::claim(const ClaimRequest& request) {
  const Context context{*engine_, *names_};
  const TableKey key{context.prefix, request.key};
  ClaimOutcome outcome;
  ClaimFacts facts;
  facts.others_first = context.others_first(key.bytes());
  run_claim(context, request, facts, outcome, context.single_claim(key.bytes(), request, outcome));
  count(context.impl, outcome);
  confirm(context, outcome);
  return outcome;
}

OwnerOutcome Claims::complete(const OwnerCall& call) {
  return owner_call(*engine_, *names_, OwnerVerb::complete, call);
}
OwnerOutcome Claims::fail(const OwnerCall& call) {
  return owner_call(*engine_, *names_, OwnerVerb::fail, call);
}
OwnerOutcome Claims::renew(const OwnerCall& call) {
  return owner_call(*engine_, *names_, OwnerVerb::renew, call);
}
OwnerOutcome Claims::release(const OwnerCall& call) {
  return owner_call(*engine_, *names_, OwnerVerb::release, call);
}

Result<ClaimView> Claims::get(Bytes key) {
  if (key.empty()) return key_error(ErrorCode::key_empty, key);
  const Context context{*engine_, *names_};
  if (context.dropped()) return Error{ErrorCode::namespace_dropped, std::string{name()}};
  const TableKey table_key{context.prefix, key};
  ClaimView view;
  ErrorCode found = ErrorCode::ok;
  Version version = 0;
  const ErrorCode error = context.single(table_key.bytes())(
      [&](const RecordView* live, const auto&) {
        const ClaimFacts facts{.now = context.now, .owner_dead = context.owner_dead(live)};
        found = engine::view_claim(live, context.policy, facts, view);
        return Decision{};
      },
      version);
  if (error != ErrorCode::ok) return key_error(error, key);
  if (found != ErrorCode::ok) return key_error(found, key);
  if (const ErrorCode unknown = context.impl.confirm(); unknown != ErrorCode::ok) {
    return key_error(unknown, key);
  }
  return view;
}

void Claims::claim(std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes) {
  if (refuse_batch(engine::impl_of(*engine_), requests.size(), outcomes)) return;
  const std::size_t total = std::min(requests.size(), outcomes.size());
  const Context context{*engine_, *names_};
  FoldTable folds{context.impl.core(), requests, is_valid};
  std::array<TableKey, Core::group_max> keys;
  for (std::size_t start = 0; start < total; start += Core::group_max) {
    const std::size_t size = std::min(Core::group_max, total - start);
    for (std::size_t i = 0; i < size; ++i) keys[i].join(context.prefix, requests[start + i].key);
    context.impl.core().group(
        size, context.now,
        [&](std::size_t i) {
          return KeyRef{context.policy.db, keys[i].bytes()};
        },
        [&](std::size_t i, Core::Operation& operation, const Core::Place& place) {
          // A repeated key meets the record its first request has just left, and changes nothing.
          const std::optional<std::size_t> first = folds.first_of(start + i);
          ClaimFacts facts;
          facts.others_first = context.others_first(keys[i].bytes());
          ClaimOutcome& outcome = outcomes[start + i];
          run_claim(context, requests[start + i], facts, outcome,
                    context.in_group(operation, place, keys[i].bytes()), !first);
          if (first) fold(outcome, outcomes[*first], context.policy);
          outcome.folded_onto = first;
          count(context.impl, outcome);
        });
  }
  const ErrorCode unknown = context.impl.confirm_batch();
  if (unknown == ErrorCode::ok) [[likely]]
    return;
  for (ClaimOutcome& outcome : outcomes.first(total)) {
    if (outcome.error == ErrorCode::ok) refuse(outcome, unknown);
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
  std::array<TableKey, Core::group_max> keys;
  for (std::size_t start = 0; start < total; start += Core::group_max) {
    const std::size_t size = std::min(Core::group_max, total - start);
    for (std::size_t i = 0; i < size; ++i) keys[i].join(context.prefix, calls[start + i].key);
    context.impl.core().group(
        size, context.now,
        [&](std::size_t i) {
          return KeyRef{context.policy.db, keys[i].bytes()};
        },
        [&](std::size_t i, Core::Operation& operation, const Core::Place& place) {
          run_owner(context, OwnerVerb::complete, calls[start + i], outcomes[start + i],
                    context.in_group(operation, place, keys[i].bytes()));
        });
    // After the group: a callback may take its time, and may call the engine.
    for (std::size_t i = 0; i < size; ++i) {
      if (engine::may_drop(OwnerVerb::complete, calls[start + i], outcomes[start + i].error)) {
        run_single(context, OwnerVerb::complete, calls[start + i], keys[i].bytes(),
                   outcomes[start + i]);
      }
      if (outcomes[start + i].answer == OwnerAnswer::ok) tell_waiters(context, keys[i].bytes());
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
      for (ClaimOutcome& outcome : outcomes) refuse(outcome, section.error().code);
      return false;
    }
    const Context context{*engine_, *names_, section->now()};
    all = ClaimAll{context, *section, requests, keys, outcomes}.run();
    if (const Status ended = section->commit(); !ended) unknown = ended.error().code;
  }
  for (const ClaimOutcome& outcome : outcomes) {
    if (all || outcome.answer != ClaimAnswer::granted) count(engine::impl_of(*engine_), outcome);
  }
  if (unknown == ErrorCode::ok) [[likely]]
    return all;
  for (ClaimOutcome& outcome : outcomes) {
    if (outcome.error == ErrorCode::ok) refuse(outcome, unknown);
  }
  return false;
}

// --- waiting ------------------------------------------------------------------------------------

namespace {

[[nodiscard]] engine::WaitCall wait_call(Engine& engine,
                                         const std::shared_ptr<const Claims::Namespace>& names,
                                         const ClaimRequest& request, Timestamp deadline,
                                         const TableKey& key) {
  return {.attempt = attempt,
          .give_back = give_back,
          .engine = &engine,
          .names = names,
          .request = request,
          .table_key = key.bytes(),
          .db = names->policy().db,
          .deadline = deadline};
}

}  // namespace

ClaimOutcome Claims::claim_or_wait(const ClaimRequest& request, Timestamp deadline) {
  const TableKey key{names_->prefix(), request.key};
  Engine::Impl& impl = engine::impl_of(*engine_);
  return impl.wait_queue().wait(wait_call(*engine_, names_, request, deadline, key), impl.clock());
}

WaitTicket Claims::claim_or_wait(const ClaimRequest& request, Timestamp deadline,
                                 ClaimCallback done) {
  // `this` may lie in a coroutine that `done` ends, so it is not touched after that.
  engine::WaitQueue& queue = engine::impl_of(*engine_).wait_queue();
  WaitTicket ticket = 0;
  ClaimOutcome outcome;
  const TableKey key{names_->prefix(), request.key};
  const auto call = wait_call(*engine_, names_, request, deadline, key);
  if (queue.wait(call, std::move(done), ticket, outcome)) return ticket;
  queue.callbacks().run(Callback::waiter, [&] { done(std::move(outcome)); });
  return 0;
}

bool Claims::begin_wait(const ClaimRequest& request, Timestamp deadline, WaitTicket& ticket,
                        ClaimOutcome& outcome, ClaimCallback done) {
  const TableKey key{names_->prefix(), request.key};
  return engine::impl_of(*engine_).wait_queue().wait(
      wait_call(*engine_, names_, request, deadline, key), std::move(done), ticket, outcome);
}

bool Claims::cancel_wait(Bytes key, WaitTicket ticket) noexcept {
  Engine::Impl& impl = engine::impl_of(*engine_);
  if (impl.core().threads().is_forked()) return false;
  try {
    const TableKey table_key{names_->prefix(), key};
    return impl.wait_queue().cancel(names_->policy().db, table_key.bytes(), ticket);
  } catch (const std::bad_alloc&) {
    return impl.wait_queue().cancel(ticket);
  }
}

ClaimWait Claims::claim_or_wait_async(const ClaimRequest& request, Timestamp deadline) {
  return ClaimWait{*this, request, deadline};
}

// --- operators ----------------------------------------------------------------------------------

namespace {

template <class Decide>
[[nodiscard]] Result<bool> operator_call(const Context& context, Bytes key, Decide&& decide) {
  if (key.empty()) return key_error(ErrorCode::key_empty, key);
  const Bytes name = context.names.name();
  if (context.dropped()) return Error{ErrorCode::namespace_dropped, std::string{name}};
  const TableKey table_key{context.prefix, key};
  engine::OperatorOutcome outcome;
  Version version = 0;
  bool closing = false;
  const ErrorCode error = context.single(table_key.bytes())(
      [&](const RecordView* live, const auto&) {
        const Decision decision = decide(live, outcome);
        closing = live == nullptr && context.refuses(decision);  // one that is there may go on
        return closing ? Decision{} : decision;
      },
      version);
  if (closing) return Error{ErrorCode::namespace_dropped, std::string{name}};
  if (error != ErrorCode::ok) return key_error(error, key);
  if (outcome.error != ErrorCode::ok) return key_error(outcome.error, key);
  if (outcome.found) tell_waiters(context, table_key.bytes());
  if (const ErrorCode unknown = context.impl.confirm(); unknown != ErrorCode::ok) {
    return key_error(unknown, key);
  }
  return outcome.found;
}

}  // namespace

Result<bool> Claims::issue(Bytes key, std::optional<Millis> ttl) {
  const Context context{*engine_, *names_};
  const Millis lives = ttl.value_or(context.policy.attempts_ttl);
  if (!context.policy.issued) {
    return Error{ErrorCode::bad_option, "no keys are issued in namespace " + std::string{name()}};
  }
  if (lives < Millis{1} || lives > limits::ttl_max) {
    return Error{ErrorCode::bad_option, "ttl of " + std::to_string(lives.count()) + " ms"};
  }
  Scratch scratch;
  SEMEL_TRY(found,
            operator_call(context, key, [&](const RecordView* live, engine::OperatorOutcome& out) {
              return engine::decide_issue(live, lives, context.now, out, scratch);
            }));
  return !found;
}

Result<bool> Claims::forget(Bytes key) {
  return operator_call({*engine_, *names_}, key,
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
  Scratch scratch;
  return operator_call(context, key, [&](const RecordView* live, engine::OperatorOutcome& outcome) {
    return engine::decide_resolve(live, resolution, result, context.policy, context.now, outcome,
                                  scratch);
  });
}

Policy Claims::policy() const noexcept {
  return names_->policy();
}
bool Claims::is_dropped() const noexcept {
  return names_->state() == Namespace::State::dropped;
}
Bytes Claims::name() const noexcept {
  return names_->name();
}

}  // namespace semel
