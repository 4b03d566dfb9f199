// What a decision about a hash points into: it lives until the decision is published.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/hashes/hash_tree_edit.hpp"
#include "engine/objects/draft_nodes.hpp"
#include "engine/objects/edit_trail.hpp"
#include "engine/rules/large_hash.hpp"

namespace semel::engine {

struct HashScratch {
  std::string bytes{};        ///< of a packed hash, or of the record of a large one
  NodePool* nodes = nullptr;  ///< null: every hash stays packed, however large
  std::unique_ptr<HeldChange> held{};
  std::optional<EditTrail> trail{};
  bool wants_trail = true;             ///< false: no journal asks for it
  std::optional<HashTreeEdit> edit{};  ///< of a hash that is large already: it is long for the heap
};

}  // namespace semel::engine
