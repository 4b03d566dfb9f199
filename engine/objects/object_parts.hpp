// Which kinds of records are objects of elements, and what their elements have.
#pragma once

#include "engine/kinds/packed_object.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// Of a kind whose records are objects.
[[nodiscard]] constexpr ElementParts parts_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::list:
      return ElementParts::values;
    case Kind::set:
    case Kind::sorted_set:
      return ElementParts::keys;
    default:
      return ElementParts::both;
  }
}

[[nodiscard]] constexpr bool may_be_large(Kind kind) noexcept {
  return kind >= Kind::hash && kind <= Kind::stream;
}

}  // namespace semel::engine
