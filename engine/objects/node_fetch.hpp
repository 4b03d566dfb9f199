// Brings a node into the cache before it is searched.
#pragma once

#include <cstddef>

#include "engine/objects/node_memory.hpp"

namespace semel::engine {

/// A search looks at five entries, which lie anywhere in the node, and would wait for one line of
/// the cache after the other. In a tree that is larger than the cache this is most of its time.
inline void fetch_node(const NodeMemory& memory, Handle node) noexcept {
  constexpr std::size_t line_bytes = 64;
  constexpr std::size_t fetched_bytes = 12 * line_bytes;  // what 22 short entries take
  const char* const at = memory.at(node);
  for (std::size_t i = 0; i < fetched_bytes; i += line_bytes) __builtin_prefetch(at + i);
}

}  // namespace semel::engine
