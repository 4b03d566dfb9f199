// The way of the engine's own parts from a public object to what it hides. Not installed: users
// have no way in.
#pragma once

#include "semel/engine.hpp"

namespace semel {

struct ImplAccess {
  [[nodiscard]] static Engine::Impl& impl(Engine& engine) noexcept { return *engine.impl_; }
  [[nodiscard]] static Section::Impl& impl(Section& section) noexcept { return *section.impl_; }
};

namespace engine {

template <class T>
[[nodiscard]] auto& impl_of(T& object) noexcept {
  return ImplAccess::impl(object);
}

}  // namespace engine
}  // namespace semel
