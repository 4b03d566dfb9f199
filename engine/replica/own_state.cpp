#include "engine/replica/own_state.hpp"

#include <utility>

#include "engine/api/engine_impl.hpp"

namespace semel::engine {
namespace {

/// Returns the previous value.
bool set_own_state(Engine& engine, bool own_state) noexcept {
  ThreadContext* const own = impl_of(engine).core().threads().try_context();
  return own != nullptr && std::exchange(own->own_state, own_state);
}

}  // namespace

OwnState::OwnState(Engine* engine) noexcept
    : engine_(engine), before_(engine != nullptr && set_own_state(*engine, true)) {}
OwnState::~OwnState() {
  if (engine_ != nullptr) static_cast<void>(set_own_state(*engine_, before_));
}

}  // namespace semel::engine
