#include "replication/state/apply.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "engine/api/store_calls.hpp"
#include "engine/claims/claim_calls.hpp"
#include "engine/claims/memos.hpp"
#include "engine/replica/decision_scope.hpp"
#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace semel::replication {
namespace {

PlainAnswer failed(ErrorCode error) {
  return {.error = error};
}

/// Of a call that answers a Result: what it has is turned into an answer by `read`.
template <class T, class Read>
PlainAnswer plain(const Result<T>& result, Read&& read) {
  if (!result.ok()) return failed(result.error().code);
  return read(*result);
}
PlainAnswer plain(const Status& status) {
  return failed(status ? ErrorCode::ok : status.error().code);
}
PlainAnswer yes(bool value) {
  return {.number = value ? 1 : 0};
}
PlainAnswer number(std::int64_t value) {
  return {.number = value};
}

class Apply {
 public:
  Apply(Engine& engine, RequestRunner* runner) noexcept : engine_(engine), runner_(runner) {}

  Answer operator()(const TimeCommand&) const { return {PlainAnswer{}}; }

  Answer operator()(const StoreCommand& command) const {
    StoreOp op = command.op;
    if (command.arithmetic) op.arithmetic = &*command.arithmetic;
    StoreOutcome outcome;
    engine_.host().apply(op, outcome);
    return {std::move(outcome)};
  }

  Answer operator()(const SetManyCommand& command) const {
    return {plain(
        engine_.store(command.db).msetex(command.pairs, command.condition, command.expiry), yes)};
  }

  Answer operator()(const DeleteManyCommand& command) const {
    return {plain(engine_.store(command.db).del(command.keys), number)};
  }

  Answer operator()(const TransferCommand& command) const {
    const Result<bool> done = store_calls::transfer(engine_, command);
    if (command.what != TransferCommand::What::rename) return {plain(done, yes)};
    return {plain(done, [](bool) { return PlainAnswer{}; })};
  }

  Answer operator()(const HashCommand& command) const {
    return {store_calls::apply_hash(engine_, command)};
  }

  Answer operator()(const ClaimCommand& command) const {
    Result<Claims> claims = engine_.claims(command.name);
    if (!claims.ok()) return {failed(claims.error().code)};
    std::vector<ClaimOutcome> outcomes(command.requests.size());
    if (command.what == ClaimCommand::What::all_or_none) {
      static_cast<void>(claims->claim_all(command.requests, outcomes));
    } else if (command.requests.size() == 1) {
      outcomes[0] = claims->claim(command.requests[0]);
    } else {
      claims->claim(command.requests, outcomes);
    }
    return {std::move(outcomes)};
  }

  Answer operator()(const OwnerCommand& command) const {
    Result<Claims> claims = engine_.claims(command.name);
    if (!claims.ok()) return {failed(claims.error().code)};
    return {engine::owner_call(engine_, engine::ClaimsParts::names_of(*claims), command.verb,
                               command.call)};
  }

  Answer operator()(const MemoCommand& command) const {
    Result<Claims> claims = engine_.claims(command.name);
    if (!claims.ok()) return {failed(claims.error().code)};
    const engine::MemoOutcome kept = engine::decide_memo(
        *claims,
        {.key = command.key, .epoch = command.epoch, .step = command.step, .bytes = command.bytes});
    return {PlainAnswer{.error = kept.error,
                        .number = static_cast<std::int64_t>(kept.given),
                        .text = kept.limit == 0 ? std::string{} : std::to_string(kept.limit)}};
  }

  Answer operator()(const OperatorCommand& command) const {
    Result<Claims> claims = engine_.claims(command.name);
    if (!claims.ok()) return {failed(claims.error().code)};
    switch (command.what) {
      case OperatorCommand::What::issue:
        return {plain(claims->issue(command.key, command.ttl), yes)};
      case OperatorCommand::What::forget:
        return {plain(claims->forget(command.key), yes)};
      case OperatorCommand::What::resolve_as_done:
        return {plain(claims->resolve(command.key, Resolution::done, command.result), yes)};
      case OperatorCommand::What::resolve_as_released:
        return {plain(claims->resolve(command.key, Resolution::released, command.result), yes)};
    }
    return {failed(ErrorCode::bad_encoding)};
  }

  Answer operator()(const NamespaceCommand& command) const {
    switch (command.what) {
      case NamespaceCommand::What::declare:
        return {plain(engine_.claims(command.name, command.policy),
                      [](const Claims&) { return PlainAnswer{}; })};
      case NamespaceCommand::What::change:
        return {plain(engine_.change_namespace(command.name, command.policy),
                      [](const std::string& text) { return PlainAnswer{.text = text}; })};
      case NamespaceCommand::What::drop:
        return {plain(engine_.drop_namespace(command.name, DropRule::unused),
                      [](const DropReport&) { return PlainAnswer{}; })};
    }
    return {failed(ErrorCode::bad_encoding)};
  }

  /// The answer has no count of flushed records: some replicas would count records that had ended
  /// before and were not swept yet.
  Answer operator()(const DatabaseCommand& command) const {
    const auto done = [](std::uint64_t) { return PlainAnswer{}; };
    switch (command.what) {
      case DatabaseCommand::What::flush:
        return {plain(engine_.flush(command.one, FlushMode::async), done)};
      case DatabaseCommand::What::flush_all:
        return {plain(engine_.flush({}, FlushMode::async), done)};
      case DatabaseCommand::What::swap:
        return {plain(engine_.swap_db(command.one, command.other))};
    }
    return {failed(ErrorCode::bad_encoding)};
  }

  Answer operator()(const SessionCommand& command) const {
    const engine::SessionOwner owner{command.node, command.life};
    switch (command.what) {
      case SessionCommand::What::open:
        return {number(static_cast<std::int64_t>(engine::open_session(engine_, owner)))};
      case SessionCommand::What::close:
        engine_.close_session(command.session);
        return {PlainAnswer{}};
      case SessionCommand::What::close_former:
        return {number(static_cast<std::int64_t>(engine::close_former_sessions(engine_, owner)))};
    }
    return {failed(ErrorCode::bad_encoding)};
  }

  /// A replica that cannot run it is not one of those that can.
  Answer operator()(const RequestCommand& command) const {
    return {runner_ == nullptr ? failed(ErrorCode::refused) : runner_->run(command)};
  }

  /// These are the state machine's.
  Answer operator()(const FeatureLevelCommand&) const { return {failed(ErrorCode::refused)}; }
  Answer operator()(const LibraryCommand&) const { return {failed(ErrorCode::refused)}; }

  Answer operator()(const SectionCommand& command) const {
    Result<Section> section = engine_.section({});
    if (!section.ok()) return {failed(section.error().code)};
    std::vector<Answer> answers;
    answers.reserve(command.commands.size());
    for (const Command& each : command.commands) answers.push_back(apply(engine_, each, runner_));
    if (const Status done = section->commit(); !done) return {failed(done.error().code)};
    return {std::move(answers)};
  }

 private:
  Engine& engine_;
  RequestRunner* runner_;
};

}  // namespace

Answer apply(Engine& engine, const Command& command, RequestRunner* runner) {
  return std::visit(Apply{engine, runner}, command.what);
}

}  // namespace semel::replication
