#include "semel/patterns/json_key.hpp"

#include <vector>

#include "patterns/json/json_pointer.hpp"
#include "patterns/json/json_tree.hpp"
#include "patterns/json/json_writer.hpp"
#include "semel/patterns/identity.hpp"

namespace semel {

namespace {

using patterns::JsonKind;
using patterns::JsonNumbers;
using patterns::JsonTree;
using patterns::JsonWriter;
using Index = JsonTree::Index;

Fingerprint as_json(Fingerprint fingerprint) {
  fingerprint.algorithm = static_cast<std::uint8_t>(FingerprintAlgorithm::xxh3_json);
  return fingerprint;
}

}  // namespace

Result<std::string> canonical_json(Bytes json, const JsonFields& fields) {
  SEMEL_TRY(tree, JsonTree::parse(json, JsonNumbers::ieee));
  JsonWriter writer{tree, JsonWriter::Types::of_json};
  SEMEL_CHECK(writer.choose(fields));
  writer.write(0, false);
  return writer.take();
}

Result<Fingerprint> fingerprint_json(Bytes json, const JsonFields& fields) {
  return fingerprint_json(Scope{}, json, fields);
}

Result<Fingerprint> fingerprint_json(const Scope& scope, Bytes json, const JsonFields& fields) {
  SEMEL_TRY(canonical, identity_json(json, fields));
  return as_json(fingerprint_of(scope, canonical));
}

Result<std::string> json_at(Bytes json, Bytes pointer) {
  const auto steps = patterns::steps_of(pointer);
  if (!steps) return patterns::no_pointer(pointer);
  SEMEL_TRY(tree, JsonTree::parse(json, JsonNumbers::exact));
  const std::vector<Index> way = patterns::way_to(tree, *steps);
  if (way.empty() || tree.node(way.back()).kind == JsonKind::null) {
    return Error{ErrorCode::no_such_key, "'" + std::string{pointer} + "' in the JSON"};
  }
  const JsonTree::Node& node = tree.node(way.back());
  if (node.kind == JsonKind::string) return std::string{tree.text_of(node)};
  JsonWriter writer{tree, JsonWriter::Types::of_identity};
  writer.write(way.back(), true);
  return writer.take();
}

}  // namespace semel
