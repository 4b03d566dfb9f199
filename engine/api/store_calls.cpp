#include "engine/api/store_calls.hpp"

#include <new>
#include <variant>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/core/apply.hpp"

namespace semel::store_calls {

Error explain(Engine& engine, const StoreOp& op, ErrorCode code) {
  engine::Core& core = engine::impl_of(engine).core();
  const Options& options = core.options();
  const auto limit = [](auto value, auto bound) {
    return std::to_string(value) + ", limit " + std::to_string(bound);
  };
  switch (code) {
    case ErrorCode::key_too_long:
      return {code, "bytes = " + limit(op.key.size(), options.key_bytes_max)};
    case ErrorCode::value_too_long:
      return {code, "bytes given = " + limit(op.value.size(), options.value_bytes_max)};
    case ErrorCode::db_out_of_range:
      return {code, "db = " + limit(unsigned{op.db}, limits::db_count - 1)};
    case ErrorCode::invalid_expire:
      return {code, "ttl = " + std::to_string(op.expiry.ttl().count()) + " ms, range 1.." +
                        std::to_string(limits::ttl_max.count())};
    case ErrorCode::offset_out_of_range:
      return {code, "offset = " + std::to_string(op.amount) + ", at least 0"};
    case ErrorCode::increment_overflow:
    case ErrorCode::decrement_overflow:
      return {code, "by = " + std::to_string(op.amount)};
    case ErrorCode::bad_digest:
      return {code, "digits given = " + std::to_string(op.operand.size())};
    case ErrorCode::memory_full:
      return {code, "limit " + std::to_string(core.region().limit_bytes()) + " bytes"};
    default:
      return {code, {}};
  }
}

// --- of a replica with a replicated log -------------------------------------------------------

namespace {

using engine::CallLog;
using engine::decided;
using engine::Repeat;

replication::StoreCommand command_of(const StoreOp& op) {
  replication::StoreCommand command{.op = op};
  if (op.arithmetic != nullptr) command.arithmetic = *op.arithmetic;
  command.op.arithmetic = nullptr;
  return command;
}

void take(Result<StoreOutcome>&& found, StoreOutcome& outcome) noexcept {
  if (!found.ok()) return engine::refuse(outcome, found.error().code);
  outcome = *std::move(found);
}

/// Operations that change something, one after the other, in one entry at the most.
void apply_section(CallLog& log, std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes) {
  replication::SectionCommand section;
  section.commands.reserve(ops.size());
  for (const StoreOp& op : ops) section.commands.push_back({command_of(op)});
  auto found = decided<std::vector<replication::Answer>>(log, {std::move(section)}, Repeat::never);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!found.ok()) {
      engine::refuse(outcomes[i], found.error().code);
    } else if (auto* const each = std::get_if<StoreOutcome>(&(*found)[i].what)) {
      outcomes[i] = std::move(*each);
    } else {
      engine::refuse(outcomes[i], ErrorCode::bad_encoding);
    }
  }
}

}  // namespace

void apply_logged(CallLog& log, Engine& engine, const StoreOp& op, StoreOutcome& outcome) noexcept {
  Engine::Impl& impl = engine::impl_of(engine);
  try {
    const Options& options = impl.core().options();
    if (!is_write(op.verb)) {
      const Status ready = log.read();
      return ready ? impl.apply(op, outcome, impl.now())
                   : engine::refuse(outcome, ready.error().code);
    }
    const ErrorCode bad = engine::validate(op, options.key_bytes_max, options.value_bytes_max);
    if (bad != ErrorCode::ok) return engine::refuse(outcome, bad);
    take(decided<StoreOutcome>(log, {command_of(op)}, Repeat::never), outcome);
  } catch (const std::bad_alloc&) {
    // Where it is proposed already, it may be applied all the same.
    engine::refuse(outcome, ErrorCode::outcome_unknown);
  }
}

void apply_logged(CallLog& log, Engine& engine, std::span<const StoreOp> ops,
                  std::span<StoreOutcome> outcomes) noexcept {
  Engine::Impl& impl = engine::impl_of(engine);
  const auto refuse_all = [&](ErrorCode why) {
    for (StoreOutcome& outcome : outcomes) engine::refuse(outcome, why);
  };
  if (ops.size() > limits::batch_max) return refuse_all(ErrorCode::too_many_keys);
  const auto reads = [](const StoreOp& op) { return !is_write(op.verb); };
  try {
    for (std::size_t at = 0; at < ops.size();) {
      std::size_t end = at;
      while (end < ops.size() && reads(ops[end]) == reads(ops[at])) ++end;
      const auto group = ops.subspan(at, end - at);
      const auto answers = outcomes.subspan(at, end - at);
      if (!reads(ops[at])) {
        apply_section(log, group, answers);
      } else if (const Status ready = log.read(); ready) {
        impl.apply(group, answers, {});
      } else {
        for (StoreOutcome& outcome : answers) engine::refuse(outcome, ready.error().code);
      }
      at = end;
    }
  } catch (const std::bad_alloc&) {
    refuse_all(ErrorCode::outcome_unknown);
  }
}

Result<bool> set_all_logged(CallLog& log, std::uint8_t db, std::span<const KeyValue> pairs,
                            Condition condition, Expiry expiry) {
  replication::SetManyCommand command{db, condition, expiry, {pairs.begin(), pairs.end()}};
  SEMEL_TRY(answer, decided(log, {std::move(command)}, Repeat::never));
  return answer.number != 0;
}

Result<std::int64_t> delete_logged(CallLog& log, std::uint8_t db, std::span<const Bytes> keys) {
  replication::DeleteManyCommand command{db, {keys.begin(), keys.end()}};
  SEMEL_TRY(answer, decided(log, {std::move(command)}, Repeat::never));
  return answer.number;
}

Result<bool> transfer_logged(CallLog& log, const replication::TransferCommand& command) {
  SEMEL_TRY(answer, decided(log, {command}, Repeat::never));
  return answer.number != 0;
}

}  // namespace semel::store_calls
