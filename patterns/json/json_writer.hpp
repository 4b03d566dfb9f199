// Writes the canonical text of a tree, or of the part of it that counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "patterns/json/json_tree.hpp"
#include "semel/patterns/json_key.hpp"
#include "semel/result.hpp"

namespace semel::patterns {

class JsonWriter {
 public:
  using Index = JsonTree::Index;
  /// Whether objects with the one member "$set" or "$map" are sets and maps (docs/identity.md).
  enum class Types : std::uint8_t { of_json, of_identity };

  JsonWriter(const JsonTree& tree, Types types) : tree_(tree), types_(types) {}

  /// Errors: bad_option (a pointer that is none, or nothing is left).
  [[nodiscard]] Status choose(const JsonFields& fields);
  /// Appends the node. `all`: everything in it counts that is not taken out.
  void write(Index index, bool all);
  /// The written text. Errors: syntax (a map has a key twice).
  [[nodiscard]] Result<std::string> take();

 private:
  static constexpr std::uint8_t mark_way = 1;  // something in it counts
  static constexpr std::uint8_t mark_all = 2;  // all of it
  static constexpr std::uint8_t mark_out = 4;  // nothing, whatever is around it

  [[nodiscard]] bool counts(Index index, bool all) const;
  void mark(const std::vector<Index>& way);
  void write_array(const JsonTree::Node& node, bool all);
  void write_object(const JsonTree::Node& node, bool all);
  [[nodiscard]] bool is_map(const JsonTree::Node& node) const;
  /// The elements in the order of their texts: of a set whole, of a map by their keys.
  void write_sorted(Bytes name, const JsonTree::Node& node, bool all);
  void write_string(Bytes string);

  const JsonTree& tree_;
  const Types types_;
  std::vector<std::uint8_t> marks_;  // one for each node; none: all counts
  std::string text_;
  std::string twice_;  // a key of a map, if there is one
};

}  // namespace semel::patterns
