// How the calls of semel/claims.hpp that are made most begin: claim() and complete() on one key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/claims/claim_context.hpp"
#include "engine/core/operation.hpp"

namespace semel::engine {

/// What a usual call on one key has before it looks at the key's record.
struct Begun {
  Core& core;
  ThreadContext& own;
  const Claims::Namespace::Brief brief;
  const Bytes key;  ///< in the table, of the database of brief
  const Timestamp now;
  const std::uint64_t hash;  ///< all of it
  const KeyLocation location;
  OperationStart& operation;
};

/// Begins a call on one key, without calling a function: see apply_call() of string_calls.hpp.
/// `inside(const Begun&)`: the call. `with_care()`: all of a call of a thread in a section, or of
/// one that waits for a section or a disk, and of unusual arguments and namespaces.
template <class IsUsual, class Inside, class WithCare>
[[nodiscard, gnu::always_inline]] inline auto begin_call(Engine& engine,
                                                         const Claims::Namespace& names, Bytes of,
                                                         IsUsual&& is_usual, Inside&& inside,
                                                         WithCare&& with_care) {
  constexpr std::size_t key_bytes_max = 256;
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  KeySpace& keys = core.keys();
  if (!core.threads().is_last()) [[unlikely]]
    return with_care();
  ThreadContext& own = Threads::last_context();
  const Claims::Namespace::Brief brief = names.brief();
  const std::size_t key_bytes = names.prefix().size() + of.size();
  if (!(own.is_by_itself() && brief.is_usual() && !impl.may_have_log() &&
        core.guarded_journal().confirms_nothing() && key_bytes <= key_bytes_max && is_usual()))
      [[unlikely]] {
    return with_care();
  }
  char buffer[key_bytes_max];
  const Bytes key = names.join(of, buffer);
  if (keys.check(brief.db(), key) != ErrorCode::ok) [[unlikely]]
    return with_care();
  const Timestamp now = core.clock_now();
  const std::uint64_t map = keys.databases().map();
  std::uint64_t hash = 0;
  const KeyLocation location = keys.location_of({brief.db(), key}, map, &hash);
  OperationStart operation{core.threads(), own};
  if (!Operation::admits(location, keys.databases(), map) &&
      !Operation::admits_watched(core, own, location, map)) [[unlikely]] {
    operation.leave();
    return with_care();
  }
  return inside(Begun{core, own, brief, key, now, hash, location, operation});
}

}  // namespace semel::engine
