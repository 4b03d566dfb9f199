// The namespace calls of the engine: declared, changed, dropped, listed.
//
// A drop: a first check, so that one in use is not touched; then new claims are refused, and we
// wait for all operations that may not have seen that; then the claims are counted, and
// removed. So no claim is granted between the count and the end, and claims held when it begins can
// only become finished.
#include <string>
#include <utility>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/core/core_update.hpp"
#include "engine/logged/call_log.hpp"
#include "engine/rules/claim_states.hpp"
#include "engine/rules/operator_rules.hpp"
#include "semel/claims.hpp"
#include "semel/engine_host.hpp"

namespace semel {
namespace {

using engine::NamespaceHandle;

constexpr std::size_t records_at_once = 1'024;

class Drop {
 public:
  Drop(Engine& engine, NamespaceHandle names, DropRule rule)
      : engine_(engine), names_(std::move(names)), rule_(rule), db_(names_->policy().db) {}

  [[nodiscard]] Result<DropReport> run(Ticket& ticket) {
    SEMEL_CHECK(check_unused());
    engine::Namespaces& namespaces = engine::impl_of(engine_).namespaces();
    SEMEL_CHECK(namespaces.begin_drop(*names_));
    engine::Core& core = engine::impl_of(engine_).core();
    core.threads().wait_for_others(core.context());
    Status emptied = check_unused();
    if (emptied && rule_ != DropRule::unused) emptied = erase();
    if (!emptied) {
      namespaces.give_up_drop(*names_);
      return emptied.error();
    }
    SEMEL_CHECK(namespaces.finish_drop(*names_, ticket));
    return report_;
  }

 private:
  [[nodiscard]] static bool is_finished(const ClaimRecord& claim) noexcept {
    return claim.state == ClaimState::done || claim.state == ClaimState::failed ||
           claim.state == ClaimState::vacant;
  }
  /// Given back, but its steps have brought something about, which the next attempt must know.
  [[nodiscard]] static bool has_begun(const ClaimRecord& claim) noexcept {
    return claim.state == ClaimState::vacant && !claim.memos.empty();
  }
  template <class Visit>
  [[nodiscard]] Result<std::uint64_t> page(std::uint64_t cursor, Visit&& visit) {
    return engine_.scan(cursor,
                        {.db = db_,
                         .kind = Kind::claim,
                         .prefix = names_->prefix(),
                         .count = records_at_once,
                         .vacant = true},
                        [&](const ScanItem& item) { visit(item.key, *item.claim); });
  }

  /// Errors: namespace_in_use.
  [[nodiscard]] Status check_unused() {
    if (rule_ == DropRule::all) return Done{};
    std::uint64_t cursor = 0;
    std::string found;
    do {
      SEMEL_TRY(next, page(cursor, [&](Bytes key, const ClaimRecord& claim) {
                  const bool is_over = is_finished(claim) && !has_begun(claim);
                  if (rule_ == DropRule::finished && is_over) return;
                  if (!found.empty()) return;
                  found.append(has_begun(claim) ? "a claim that was given back with memos of steps"
                               : is_over        ? "a finished claim"
                                                : "a claim that is held or in doubt");
                  found.append(", key of ").append(std::to_string(key.size())).append(" bytes");
                }));
      cursor = next;
    } while (cursor != 0 && found.empty());
    if (found.empty()) return Done{};
    return Error{ErrorCode::namespace_in_use, std::string{names_->name()} + ": there is " + found};
  }

  [[nodiscard]] Status erase() {
    std::uint64_t cursor = 0;
    do {
      std::vector<std::string> keys;
      SEMEL_TRY(next, page(cursor, [&](Bytes key, const ClaimRecord&) { keys.emplace_back(key); }));
      for (const std::string& key : keys) {
        SEMEL_CHECK(erase(key));
      }
      cursor = next;
    } while (cursor != 0);
    return Done{};
  }

  [[nodiscard]] Status erase(Bytes key) {
    engine::Core& core = engine::impl_of(engine_).core();
    bool held = false;
    bool erased = false;
    Version version = 0;
    Timestamp now = engine::impl_of(engine_).now();
    const ErrorCode error = engine::update(
        core, {db_, key}, now,
        [&](const engine::RecordView* live, const auto&) -> engine::Decision {
          ClaimRecord claim;
          erased =
              live != nullptr && live->kind == Kind::claim && engine::decode(live->value, claim);
          if (!erased) return {};
          held = !is_finished(claim);
          return {.action = engine::Action::erase, .kind = Kind::claim, .value = {}};
        },
        version);
    if (error != ErrorCode::ok) return Error{error, std::string{names_->name()}};
    if (!erased) return Done{};
    ++(held ? report_.held : report_.finished);
    if (engine::impl_of(engine_).wait_queue().has_waiters())
      engine::impl_of(engine_).wait_queue().changed(db_, key);
    return Done{};
  }

  Engine& engine_;
  const NamespaceHandle names_;
  const DropRule rule_;
  const std::uint8_t db_;
  DropReport report_;
};

/// A held claim whose record ends later by `policy` than it does now gets that end. Walks the whole
/// table, beside other calls. Errors: those of an update; some may have got their end by then.
[[nodiscard]] Status hold_claims(Engine& of, const Claims::Namespace& names, const Policy& policy) {
  engine::Core& core = engine::impl_of(of).core();
  std::vector<std::string> keys;
  std::uint64_t cursor = 0;
  do {
    keys.clear();
    SEMEL_TRY(next, of.scan(cursor,
                            {.db = policy.db,
                             .kind = Kind::claim,
                             .prefix = names.prefix(),
                             .count = records_at_once},
                            [&](const ScanItem& item) {
                              if (engine::is_open(*item.claim)) keys.emplace_back(item.key);
                            }));
    cursor = next;
    for (const std::string& key : keys) {
      engine::Scratch scratch;
      Version version = 0;
      Timestamp now = engine::impl_of(of).now();
      const ErrorCode error = engine::update(
          core, {policy.db, key}, now,
          [&](const engine::RecordView* live, const auto&) {
            engine::Decision decision = engine::decide_hold(live, policy, scratch);
            // Replicas come by in orders of their own, which must not show.
            decision.keeps_version = core.options().replicated;
            return decision;
          },
          version);
      if (error != ErrorCode::ok) return Error{error, std::string{names.name()}};
    }
  } while (cursor != 0);
  return Done{};
}

/// Whether a claim that is held may end later by `after`. With doubt also if nothing changes: a
/// call that was interrupted is made again.
[[nodiscard]] bool holds_longer(const Policy& before, const Policy& after) noexcept {
  return before.db == after.db && (after.on_lease_end == Policy::OnLeaseEnd::in_doubt ||
                                   after.attempts_ttl > before.attempts_ttl);
}

using What = replication::NamespaceCommand::What;

/// The call of a replica, by its replicated log; its text. Errors name the namespace alone: answers
/// carry no sentences.
[[nodiscard]] Result<std::string> decide_logged(engine::CallLog& log, What what, Bytes name,
                                                const Policy& policy) {
  auto answer =
      engine::decided(log, {replication::NamespaceCommand{what, name, policy}},
                      what == What::declare ? engine::Repeat::safe : engine::Repeat::never);
  if (!answer.ok()) {
    Error error = answer.error();
    if (error.detail.empty()) error.detail = name;
    return error;
  }
  return std::move(answer->text);
}

}  // namespace

Result<Claims> Engine::claims(Bytes name, const Policy& policy) {
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    SEMEL_CHECK(decide_logged(*log, What::declare, name, policy));
    return claims(name);
  }
  Ticket ticket = 0;
  SEMEL_TRY(found, impl_->namespaces().declare(name, policy, ticket));
  SEMEL_CHECK(impl_->confirm_ticket(ticket));
  return Claims{*this, std::move(found)};
}

Result<Claims> Engine::claims(Bytes name) {
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  NamespaceHandle found = impl_->namespaces().find(name);
  if (!found) return Error{ErrorCode::bad_namespace, std::string{name}};
  return Claims{*this, std::move(found)};
}

[[gnu::cold]] Result<std::string> Engine::change_namespace(Bytes name, const Policy& policy) {
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    return decide_logged(*log, What::change, name, policy);
  }
  const NamespaceHandle names = impl_->namespaces().find(name);
  engine::ThreadContext& own = impl_->core().context();
  const bool holds = names && engine::guards_claims(own.decision) && engine::check_policy(policy) &&
                     holds_longer(names->policy(), policy);
  if (holds && own.section != nullptr) {
    return Error{ErrorCode::bad_option,
                 "terms that hold claims longer cannot be given inside a section"};
  }
  // Before the change is written down, for held claims, and after it, for claims granted by calls
  // that had read the old terms. So a crash at any point leaves no claim that ends earlier than the
  // terms say, and asking again goes on where it was.
  if (holds) SEMEL_CHECK(hold_claims(*this, *names, policy));
  Ticket ticket = 0;
  SEMEL_TRY(changed, impl_->namespaces().change(name, policy, ticket));
  if (holds) {
    impl_->core().threads().wait_for_others(own);
    SEMEL_CHECK(hold_claims(*this, *names, policy));
    if (impl_->wait_queue().has_waiters()) impl_->wait_queue().poll(impl_->now());
  }
  SEMEL_CHECK(impl_->confirm_ticket(ticket));
  if (const ErrorCode unknown = impl_->confirm(); unknown != ErrorCode::ok) {
    return Error{unknown, std::string{name}};
  }
  return changed;
}

[[gnu::cold]] Result<DropReport> Engine::drop_namespace(Bytes name, DropRule rule) {
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  if (rule > DropRule::all) return Error{ErrorCode::bad_option, "rule of a drop"};
  if (impl_->core().context().section != nullptr) {
    return Error{ErrorCode::bad_option, "a namespace cannot be dropped inside a section"};
  }
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    if (rule != DropRule::unused) {
      return Error{ErrorCode::bad_option, "a group drops only a namespace that is unused"};
    }
    SEMEL_CHECK(decide_logged(*log, What::drop, name, {}));
    return DropReport{};
  }
  NamespaceHandle found = impl_->namespaces().find(name);
  if (!found) return Error{ErrorCode::bad_namespace, std::string{name}};
  Ticket ticket = 0;
  SEMEL_TRY(report, (Drop{*this, std::move(found), rule}.run(ticket)));
  SEMEL_CHECK(impl_->confirm_ticket(ticket));
  return report;
}

Result<std::uint64_t> EngineHost::list_namespaces(
    std::uint64_t cursor, std::size_t count,
    const Function<void(Bytes name, const Policy& policy)>& visit) const {
  if (count < 1 || count > limits::namespace_list_max) {
    return Error{ErrorCode::bad_option, "count = " + std::to_string(count) + ", range 1.." +
                                            std::to_string(limits::namespace_list_max)};
  }
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  return impl_->namespaces().list(cursor, count, visit);
}

std::vector<std::string> Engine::namespaces() const {
  if (impl_->core().threads().is_forked()) return {};
  return impl_->namespaces().names();
}

}  // namespace semel
