#include "engine/api/eviction_calls.hpp"

#include <new>
#include <utility>

#include "engine/api/engine_impl.hpp"

namespace semel::engine {

Status set_eviction(Engine& engine, const EvictionTerms& terms) {
  Engine::Impl& impl = impl_of(engine);
  if (const ErrorCode no = impl.core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  return impl.upkeep().evictor().set(terms);
}

void on_evicted(Engine& engine, Function<void(std::uint8_t db, Bytes key)> sink) {
  impl_of(engine).upkeep().evictor().set_sink(std::move(sink));
}

bool keeps_within_limit(Engine& engine) noexcept {
  Engine::Impl& impl = impl_of(engine);
  ThreadContext* const own = impl.core().threads().try_context();
  if (own == nullptr) return true;  // the call itself says why
  try {
    return impl.upkeep().keeps_within_limit(*own);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::uint64_t counted_bytes(Engine& engine) noexcept {
  return impl_of(engine).upkeep().counted_bytes();
}

std::optional<KeyUse> use_of(Engine& engine, KeyRef key) noexcept {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (core.keys().check(key.db, key.key) != ErrorCode::ok || !core.uses().is_of(key.db)) return {};
  const UseTable::Use use = core.uses().use_of(core.keys().location_of(key).hash, impl.now());
  return KeyUse{use.idle_seconds, use.frequency};
}

void note_use(Engine& engine, KeyRef key) noexcept {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (core.keys().check(key.db, key.key) != ErrorCode::ok || !core.uses().is_of(key.db)) return;
  core.uses().note(core.keys().location_of(key).hash, impl.now(), false);
}

void set_use(Engine& engine, KeyRef key, KeyUse use) noexcept {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (core.keys().check(key.db, key.key) != ErrorCode::ok || !core.uses().is_of(key.db)) return;
  core.uses().set(core.keys().location_of(key).hash, impl.now(),
                  {use.idle_seconds, use.frequency, true});
}

OnlyLooks::OnlyLooks(Engine& engine) noexcept : flag_(nullptr) {
  ThreadContext* const own = impl_of(engine).core().threads().try_context();
  if (own == nullptr) return;
  flag_ = &own->only_looks;
  before_ = std::exchange(*flag_, true);
}

OnlyLooks::~OnlyLooks() {
  if (flag_ != nullptr) *flag_ = before_;
}

}  // namespace semel::engine
