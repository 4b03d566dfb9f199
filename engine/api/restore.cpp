// The way back in: mutations of a snapshot or a journal are put back as they were, in any order.
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "engine/api/engine_impl.hpp"
#include "engine/core/operation.hpp"
#include "semel/engine_host.hpp"

namespace semel {

using engine::Core;

namespace {

/// Of a delete marker that an erase leaves: older puts of its key may come so much later.
constexpr Millis delete_marker_ttl{3'600'000};

}  // namespace

Status EngineHost::restore(const Mutation& mutation) {
  return restore({&mutation, 1});
}

Status EngineHost::restore(std::span<const Mutation> mutations) {
  Core& core = impl_->core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  for (std::size_t at = 0; at < mutations.size(); at += Core::group_max) {
    const auto group = mutations.subspan(at, std::min(Core::group_max, mutations.size() - at));
    if (group.size() > 1) impl_->restorer().prefetch_keys(group);
    for (const Mutation& mutation : group) {
      if (Status status = impl_->restore(mutation); !status) return status;
    }
  }
  // A recovery may restore millions before the first advance(); their timers wait in the heap.
  if (core.context().drain_due) core.upkeep().drain_own_timers(core.context());
  return Done{};
}

void EngineHost::expect_restores(std::uint64_t bytes) noexcept {
  Core& core = impl_->core();
  // A record of some bytes takes one and a half times its bytes in the log.
  impl_->restorer().ask_cold(bytes > core.options().memory_bytes / 3);
}

std::uint32_t EngineHost::superseded(std::span<const HeldMutation> asked) noexcept {
  return impl_->restorer().superseded(asked);
}

const Journal* EngineHost::journal() const noexcept {
  return impl_->core().journal();
}

std::uint64_t EngineHost::restores() const noexcept {
  return impl_->restorer().calls();
}

bool Engine::Impl::holds_longer(const Mutation& mutation) const {
  const bool is_held = mutation.type == Mutation::Type::put && mutation.kind == Kind::claim &&
                       mutation.claim && mutation.claim->state == ClaimState::held;
  if (!is_held || mutation.due == no_end || core_.options().replicated) return false;
  const engine::NamespaceHandle names = namespaces_.find_by_key(mutation.key);
  return names && names->policy().on_lease_end == Policy::OnLeaseEnd::in_doubt;
}

Status Engine::Impl::restore(const Mutation& mutation) {
  restorer_.note_call();
  if (mutation.version > limits::version_max) {
    return Error{ErrorCode::storage_damaged, "version " + std::to_string(mutation.version) +
                                                 ", the largest is " +
                                                 std::to_string(limits::version_max)};
  }
  // That of a database map in a snapshot of a replica is the next one to be handed out.
  const bool is_next = core_.options().replicated && mutation.type == Mutation::Type::db_map;
  core_.versions().raise(mutation.version - (is_next ? 1 : 0));
  if (mutation.type == Mutation::Type::flush || mutation.type == Mutation::Type::db_map) {
    return restore_database(mutation);
  }
  if (mutation.kind == Kind::name_space)
    return namespaces_.restore(mutation, engine::now_of(clock_));
  if (mutation.db >= limits::db_count) {
    return Error{ErrorCode::db_out_of_range, std::to_string(mutation.db)};
  }
  const Timestamp now = engine::now_of(clock_);
  Timestamp marker_end = now + delete_marker_ttl;
  if (core_.cold() != nullptr) {
    const engine::Operation operation{core_, core_.context()};
    marker_end =
        std::max(marker_end, core_.cold_side().end_of(core_.context(), mutation.db, mutation.key));
  }
  // A claim that was granted while its namespace's terms changed: it ends by what they are now.
  std::optional<Mutation> held;
  if (holds_longer(mutation)) held.emplace(mutation).due = no_end;
  const ErrorCode error = restorer_.restore(held ? *held : mutation, now, marker_end);
  if (error == ErrorCode::ok) return Done{};
  return Error{error, "key of " + std::to_string(mutation.key.size()) + " bytes, value of " +
                          std::to_string(mutation.value.size()) + " bytes"};
}

}  // namespace semel
