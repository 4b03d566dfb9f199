#include "engine/object_api/hash_step.hpp"

#include <optional>
#include <string>

#include "engine/core/thread_nodes.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/logged/call_log.hpp"
#include "engine/object_api/record_call.hpp"
#include "semel/limits.hpp"

namespace semel::engine {

namespace {

/// The error names the value and the limit.
Error explain(Core& core, Bytes key, std::uint8_t db, const HashOp& op, const HashOutcome& out) {
  const Options& options = core.options();
  const auto limit = [](auto value, auto bound) {
    return std::to_string(value) + ", limit " + std::to_string(bound);
  };
  switch (out.error) {
    case ErrorCode::key_too_long:
      return {out.error, "bytes = " + limit(key.size(), options.key_bytes_max)};
    case ErrorCode::db_out_of_range:
      return {out.error, "db = " + limit(unsigned{db}, limits::db_count - 1)};
    case ErrorCode::value_too_long:
      return {out.error, "fields of the hash = " + std::to_string(out.fields) +
                             ", bytes = " + limit(out.bytes, out.bytes_max)};
    case ErrorCode::increment_overflow:
      return {out.error, "by = " + std::to_string(op.amount)};
    case ErrorCode::bad_option:
      return {out.error, op.verb == HashVerb::scan
                             ? "count = 0, at least 1"
                             : "count = " + std::to_string(op.amount) + ", at least -" +
                                   std::to_string(limits::hash_picks_max) + ", and together " +
                                   std::to_string(limits::hash_picks_bytes_max) + " bytes"};
    case ErrorCode::memory_full:
      return {out.error, "limit " + std::to_string(core.region().limit_bytes()) + " bytes"};
    default:
      return {out.error, {}};
  }
}

replication::HashCommand command_of(KeyRef key, const HashOp& op) {
  replication::HashCommand command{.verb = op.verb, .db = key.db, .key = key.key};
  command.pairs.assign(op.pairs.begin(), op.pairs.end());
  command.fields.assign(op.fields.begin(), op.fields.end());
  command.amount = op.amount;
  command.by_float = op.by_float;
  const bool adds = op.verb == HashVerb::incr_by || op.verb == HashVerb::incr_by_float;
  if (adds) command.pairs = {{op.field, {}}};
  return command;
}

/// A write of a replica, by its replicated log.
void decide_logged(CallLog& log, KeyRef key, const HashOp& op, HashOutcome& out) {
  auto answer = decided(log, {command_of(key, op)}, Repeat::never);
  if (!answer.ok()) {
    out.error = answer.error().code;
    return;
  }
  out.number = answer->number;
  out.found_field = op.verb == HashVerb::set_if_absent && answer->number == 0;
  out.value = std::move(answer->text);
}

}  // namespace

std::uint64_t hash_seed_of(Core& core, const ThreadContext& own, KeyRef key) noexcept {
  if (own.decision != nullptr) [[unlikely]]
    return own.decision->secret;
  return core.keys().hash64_of(core.databases().stored(key.db), key.key);
}

Status run_hash(Engine& engine, KeyRef key, const HashOp& op, HashOutcome& out) {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (const LoggedCall log = impl.log_for_call(); log) [[unlikely]] {
    out.error = core.begin_call();
    if (out.error == ErrorCode::ok && op.verb >= HashVerb::set) {
      if (op.verb > last_logged_hash_verb) return Error{ErrorCode::refused, {}};
      decide_logged(*log, key, op, out);
      if (out.error == ErrorCode::ok) return Done{};
    }
    if (out.error != ErrorCode::ok) return explain(core, key.key, key.db, op, out);
    SEMEL_CHECK(log->read());
  }
  std::optional<ThreadNodes> nodes;
  RecordInMaking record;
  HashScratch scratch;  // ends before the nodes
  RecordCall call;
  const auto decide = [&](Core&, const RecordView* live, Timestamp now) {
    // A claim that was given back and only remembers its attempts is absent to all other calls.
    if (live != nullptr && !is_visible(live->kind, live->value)) live = nullptr;
    const HashFacts facts{core.options().value_bytes_max,
                          op.verb >= HashVerb::set ? hash_seed_of(core, core.context(), key) : 0,
                          now, object_bytes_max(core.options())};
    if (op.verb >= HashVerb::set) {
      scratch.held.reset();
      scratch.edit.reset();
      scratch.bytes = &record.of(core);
      scratch.wants_trail = core.journal() != nullptr;
      ThreadContext& own = core.context();
      // What a section changes may use the reserve, as its records may.
      scratch.nodes = &nodes.emplace(core.arena(), own, own.section != nullptr);
    }
    const Decision decision = decide_hash(live, op, facts, out, scratch);
    call = {out.error, out.found, decision.action != Action::keep};
    return decision;
  };
  out.error = call_on_record(engine, key, call, decide);
  if (out.error != ErrorCode::ok) [[unlikely]]
    return explain(core, key.key, key.db, op, out);
  return Done{};
}

}  // namespace semel::engine
