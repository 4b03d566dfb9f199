// What a call about a claim needs besides its request: the key in the table, the policy, the time,
// and the ways to the record.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "engine/api/engine_impl.hpp"
#include "engine/core/core_update.hpp"
#include "engine/core/namespaces.hpp"
#include "engine/rules/bytes.hpp"
#include "engine/rules/claim_rules.hpp"
#include "engine/rules/repeat.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// "name:key", without an allocation for ordinary keys.
class TableKey {
 public:
  TableKey() noexcept {}  // not `= default`: the buffer need not be cleared
  TableKey(Bytes prefix, Bytes key) { join(prefix, key); }
  TableKey(const TableKey&) = delete;
  TableKey& operator=(const TableKey&) = delete;

  void join(Bytes prefix, Bytes key) {
    const std::size_t size = prefix.size() + key.size();
    char* to = buffer_;
    if (size > sizeof buffer_) {
      heap_.resize(size);
      to = heap_.data();
    }
    std::memcpy(to, prefix.data(), prefix.size());
    copy_bytes(to + prefix.size(), key.data(), key.size());
    bytes_ = {to, size};
  }
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

 private:
  char buffer_[256];
  std::string heap_;
  Bytes bytes_;
};

/// What the engine needs of a handle that others hold.
struct ClaimsParts {
  [[nodiscard]] static const Claims::Namespace& names_of(const Claims& claims) noexcept {
    return *claims.names_;
  }
};

/// What a call needs to know besides its request; the policy is read once, so that all of a call
/// follows one policy.
struct ClaimContext {
  ClaimContext(Engine& engine, const Claims::Namespace& space, Timestamp when)
      : impl(impl_of(engine)),
        names(space),
        policy(space.policy()),
        prefix(space.prefix()),
        decisions(impl.core().insight().decisions()),
        now(when) {}
  ClaimContext(Engine& engine, const Claims::Namespace& space)
      : ClaimContext(engine, space, impl_of(engine).now()) {}

  /// Permanent once true.
  [[nodiscard]] bool dropped() const noexcept {
    return names.state() == Claims::Namespace::State::dropped;
  }
  /// Whether `decision` would make a record of a namespace that takes none. To be called inside the
  /// operation that would store it: drop_namespace() waits for operations.
  [[nodiscard]] bool refuses(const Decision& decision) const noexcept {
    return decision.action == Action::store && names.state() != Claims::Namespace::State::open;
  }

  /// See guards_claims() of decision_context.hpp.
  [[nodiscard]] bool guards_claims() const noexcept {
    const ThreadContext* const own = impl.core().threads().try_context();
    return own == nullptr || engine::guards_claims(own->decision);
  }

  /// Whether the request is of a session that is not open: its owner would be dead from the
  /// beginning, and the next caller would have the key as well.
  [[nodiscard]] bool is_closed_session(const ClaimRequest& request) const {
    return request.session && guards_claims() && impl.sessions().is_closed(*request.session);
  }

  /// Whether a newcomer to `table_key` has to queue behind its waiters.
  [[nodiscard]] bool others_first(Bytes table_key) const {
    // In a group only one replica knows the waiters, and it orders claims before they enter the
    // replicated log.
    return policy.fair && !impl.core().options().replicated && !impl.core().threads().is_forked() &&
           impl.wait_queue().has_waiters_for(policy.db, table_key);
  }
  [[nodiscard]] bool owner_dead(const RecordView* live) const {
    return live != nullptr && live->kind == Kind::claim &&
           impl.sessions().is_closed(session_of(live->value));
  }
  /// An update of one key outside of sections and groups.
  [[nodiscard]] auto single(Bytes table_key) const {
    return [this, table_key](auto&& decide, Version& version) {
      return update(impl.core(), {policy.db, table_key}, now, decide, version);
    };
  }
  /// The same of a call that is made often. `located`: see update_unless().
  template <class Located>
  [[nodiscard]] auto single_inline(Bytes table_key, Located&& located) const {
    return [this, table_key, &located](auto&& decide, Version& version) {
      return update_unless(impl.core(), {policy.db, table_key}, now, NoFastAnswer{}, decide,
                           version, located);
    };
  }
  /// The same for a claim: a finished record answers from where it lies, as no claim changes it but
  /// its end, in a sliding window.
  /// Most claims are replays, so one must cost little more than a lookup.
  [[nodiscard]] auto single_claim(Bytes table_key, const ClaimRequest& request,
                                  ClaimOutcome& outcome) const {
    return [this, table_key, &request, &outcome](auto&& decide, Version& version) {
      return update_unless(
          impl.core(), {policy.db, table_key}, now,
          [&](const Entry& live) { return answer_live(request, live, outcome, decide); }, decide,
          version);
    };
  }
  /// Whether a live record answers the claim. `decide` is asked about a finished one.
  template <class Decide>
  [[nodiscard]] bool answer_live(const ClaimRequest& request, const Entry& live,
                                 ClaimOutcome& outcome, Decide&& decide) const {
    if (live.kind() != Kind::claim) return false;
    const Bytes value = live.value();
    // With a decision log, decide() below answers, and notes the record that it met.
    if (decisions == nullptr &&
        ((policy.sliding_max == Millis{0} && answer_repeat(request, value, now, outcome)) ||
         answer_held(request, value, outcome))) {
      return true;
    }
    if (!is_finished(value)) return false;
    const RecordView view{Kind::claim, value, live.due(), live.version()};
    return decide(&view, [] { return Version{0}; }).action == Action::keep;
  }
  [[nodiscard]] bool answer_held(const ClaimRequest& request, Bytes record,
                                 ClaimOutcome& outcome) const {
    const auto is_closed = [this](SessionId session) { return impl.sessions().is_closed(session); };
    return answer_in_flight(request, record, policy, now, is_closed, outcome);
  }
  /// The same for a key of a group.
  [[nodiscard]] auto in_group(Operation& operation, const KeyLocation& location,
                              Bytes table_key) const {
    return [&, this, table_key](auto&& decide, Version& version) {
      Core& core = impl.core();
      if (location.shard == nullptr) [[unlikely]]
        return ErrorCode::section_held;
      const ErrorCode bad = core.keys().check(policy.db, table_key);
      if (bad != ErrorCode::ok) return bad;
      return decide_any_at(core, operation, location, {policy.db, table_key}, now, decide, version);
    };
  }

  Engine::Impl& impl;
  const Claims::Namespace& names;
  const Policy policy;
  Bytes prefix;
  DecisionLog* const decisions;  ///< null: nothing is kept
  mutable Timestamp now;         ///< moves on when the call has to wait
};

}  // namespace semel::engine
