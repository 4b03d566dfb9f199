// Memory that a string or a vector holds beyond what is in it.
#pragma once

namespace semel::net {

/// Empties it and frees what it held. Assigning an empty one does not: of an empty string the
/// characters are copied, and a vector takes `{}` for a list of elements; both keep their room.
template <class Container>
void give_back(Container& container) noexcept {
  Container{}.swap(container);
}

}  // namespace semel::net
