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
  // Not the implicit one: the compiler would fill all of it with zeros, 4 KiB for each call.
  HashScratch() noexcept {}

  std::string* bytes = nullptr;  ///< a change makes the record in it; null: there is no change
  NodePool* nodes = nullptr;     ///< null: every hash stays packed, however large
  std::unique_ptr<HeldChange> held{};
  std::optional<EditTrail> trail{};
  bool wants_trail = true;             ///< false: no journal asks for it
  std::optional<HashTreeEdit> edit{};  ///< of a hash that is large already: it is long for the heap
};

}  // namespace semel::engine
