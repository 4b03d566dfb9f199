// Frees the spare capacity of a string or a vector.
#pragma once

namespace semel::net {

/// Empties `container` and frees its memory. Assigning `{}` would not: a string copies no
/// characters, a vector assigns an empty list of elements, and both keep their capacity.
template <class Container>
void give_back(Container& container) noexcept {
  Container{}.swap(container);
}

}  // namespace semel::net
