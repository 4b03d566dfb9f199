#include "engine/api/bounded_apply.hpp"

#include <algorithm>

#include "engine/api/engine_impl.hpp"
#include "engine/core/apply.hpp"
#include "engine/core/core_update.hpp"

namespace semel::engine {

std::size_t apply_bounded(Engine& engine, std::span<const StoreOp> ops,
                          std::span<StoreOutcome> outcomes, std::size_t value_bytes_max) noexcept {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) [[unlikely]] {
    for (StoreOutcome& outcome : outcomes) refuse(outcome, no);
    return ops.size();
  }
  Timestamp now = impl.now();  // after a section was waited for, that of the end of the wait
  std::size_t applied = 0;
  std::size_t value_bytes = 0;
  while (applied < ops.size() && value_bytes <= value_bytes_max) {
    const std::size_t at = applied;
    const auto group = ops.subspan(at, std::min(Core::group_max, ops.size() - at));
    for_group(
        core, group.size(), now,
        [&](std::size_t i) {
          return KeyRef{group[i].db, group[i].key};
        },
        [&](std::size_t i, Operation& operation, const KeyLocation& location) {
          if (value_bytes > value_bytes_max) [[unlikely]]
            return;
          StoreOutcome& outcome = outcomes[at + i];
          ++applied;
          if (!begin_apply(group[i], core.options(), outcome, operation.context())) return;
          if (location.shard == nullptr) [[unlikely]] {
            outcome.error = ErrorCode::section_held;
            return;
          }
          impl.apply_or_refuse(operation, location, group[i], now, outcome);
          value_bytes += outcome.value.size();
        });
    if (impl.wait_queue().has_waiters()) [[unlikely]] {
      for (std::size_t i = at; i < applied; ++i) {
        if (outcomes[i].applied) impl.changed(core.context(), {ops[i].db, ops[i].key});
      }
    }
  }
  const ErrorCode unknown = impl.confirm_batch();
  if (unknown == ErrorCode::ok) [[likely]]
    return applied;
  for (StoreOutcome& outcome : outcomes.first(applied)) {
    if (outcome.error == ErrorCode::ok) outcome.error = unknown;
  }
  return applied;
}

}  // namespace semel::engine
