// JSON pointers (RFC 6901) in a tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "patterns/json/json_tree.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::patterns {

/// The steps of a JSON pointer, without its escapes. None: it is not a pointer.
[[nodiscard]] std::optional<std::vector<std::string>> steps_of(Bytes pointer);

[[nodiscard]] Error no_pointer(Bytes pointer);

/// The nodes from the root to what `steps` name; empty: they name nothing.
[[nodiscard]] std::vector<JsonTree::Index> way_to(const JsonTree& tree,
                                                  const std::vector<std::string>& steps);

}  // namespace semel::patterns
