// What the calls of semel/store.hpp, and the log of a group, share: one operation applied, its
// outcome read, its error explained.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/logged/call_log.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace semel::store_calls {

/// Names the value and the limit. On the cold path: only a failed call pays for it.
[[nodiscard]] Error explain(Engine& engine, const StoreOp& op, ErrorCode code);

/// The same calls of a replica with a replicated log: it decides changes; reads wait until this
/// replica has everything that was answered before.
void apply_logged(engine::CallLog& log, Engine& engine, const StoreOp& op,
                  StoreOutcome& outcome) noexcept;
void apply_logged(engine::CallLog& log, Engine& engine, std::span<const StoreOp> ops,
                  std::span<StoreOutcome> outcomes) noexcept;
[[nodiscard]] Result<bool> set_all_logged(engine::CallLog& log, std::uint8_t db,
                                          std::span<const KeyValue> pairs, Condition condition,
                                          Expiry expiry);
[[nodiscard]] Result<std::int64_t> delete_logged(engine::CallLog& log, std::uint8_t db,
                                                 std::span<const Bytes> keys);
/// A write of a hash that the log has decided: within the scope of its entry, on every replica
/// alike. std::bad_alloc.
[[nodiscard]] replication::PlainAnswer apply_hash(Engine& engine,
                                                  const replication::HashCommand& command);
/// Moves or copies a record of any kind with its ttl. False: the source is absent, or the target is
/// in the way. Errors: no_such_key, same_key, wrong_type (a claim), those of Store::copy().
[[nodiscard]] Result<bool> transfer(Engine& engine, const replication::TransferCommand& command);
[[nodiscard]] Result<bool> transfer_logged(engine::CallLog& log,
                                           const replication::TransferCommand& command);

/// Applies one operation to one key; `read` turns its outcome into the answer.
template <class Read>
auto run(Engine& engine, const StoreOp& op, Read&& read)
    -> Result<decltype(read(std::declval<StoreOutcome&>()))> {
  StoreOutcome out;
  engine.host().apply(op, out);
  if (out.error != ErrorCode::ok) [[unlikely]]
    return explain(engine, op, out.error);
  return read(out);
}

[[nodiscard]] inline bool applied(StoreOutcome& out) {
  return out.applied;
}
[[nodiscard]] inline bool found(StoreOutcome& out) {
  return out.found;
}
[[nodiscard]] inline std::int64_t number(StoreOutcome& out) {
  return out.number;
}
[[nodiscard]] inline std::string text(StoreOutcome& out) {
  return std::move(out.value);
}
[[nodiscard]] inline std::optional<std::string> value_or_none(StoreOutcome& out) {
  if (!out.has_value) return std::nullopt;
  return std::move(out.value);
}

}  // namespace semel::store_calls
