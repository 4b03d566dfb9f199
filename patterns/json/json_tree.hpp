// A JSON text as a tree. Boost.JSON's own tree hides repeated names and rounds some numbers; this
// one reports both, and costs a fixed number of bytes for each value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::patterns {

/// How the text of a number is made (json_number.hpp).
enum class JsonNumbers : std::uint8_t { ieee, exact };

enum class JsonKind : std::uint8_t { null, yes, no, number, string, array, object };

class JsonTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index none = ~Index{0};

  struct Node {
    JsonKind kind = JsonKind::null;
    Index name_at = 0;  ///< of a member: its name in the texts
    Index name_size = 0;
    Index text_at = 0;  ///< of a string its characters, of a number what it is printed as
    Index text_size = 0;
    Index first = none;  ///< child; members are in the order of their names' UTF-16 code units
    Index next = none;   ///< sibling
  };

  /// Errors: as canonical_json() has them.
  [[nodiscard]] static Result<JsonTree> parse(Bytes json, JsonNumbers numbers);

  [[nodiscard]] const Node& node(Index index) const {
    SEMEL_ASSERT(index < nodes_.size());
    return nodes_[index];
  }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(nodes_.size()); }
  [[nodiscard]] Bytes name_of(const Node& node) const {
    return Bytes{texts_}.substr(node.name_at, node.name_size);
  }
  [[nodiscard]] Bytes text_of(const Node& node) const {
    return Bytes{texts_}.substr(node.text_at, node.text_size);
  }

 private:
  friend class JsonTreeBuilder;
  std::vector<Node> nodes_;  // the first is the root
  std::string texts_;
};

}  // namespace semel::patterns
