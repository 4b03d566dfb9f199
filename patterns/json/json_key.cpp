#include "semel/patterns/json_key.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/assert.hpp"
#include "patterns/json/json_tree.hpp"

namespace semel {

namespace {

using patterns::JsonKind;
using patterns::JsonTree;
using Index = JsonTree::Index;

/// The steps of a JSON pointer, without its escapes. None: it is not a pointer.
std::optional<std::vector<std::string>> steps_of(Bytes pointer) {
  std::vector<std::string> steps;
  if (!pointer.empty() && pointer.front() != '/') return std::nullopt;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      steps.emplace_back();
    } else if (pointer[i] != '~') {
      steps.back() += pointer[i];
    } else {
      ++i;
      if (i == pointer.size() || (pointer[i] != '0' && pointer[i] != '1')) return std::nullopt;
      steps.back() += pointer[i] == '0' ? '~' : '/';
    }
  }
  return steps;
}

Error no_pointer(Bytes pointer) {
  return {ErrorCode::bad_option, "'" + std::string{pointer} + "' is not a JSON pointer"};
}

/// The child that a step leads to, or none.
Index child_of(const JsonTree& tree, Index parent, Bytes step) {
  const JsonTree::Node& node = tree.node(parent);
  if (node.kind == JsonKind::object) {
    Index child = node.first;
    while (child != JsonTree::none && tree.name_of(tree.node(child)) != step) {
      child = tree.node(child).next;
    }
    return child;
  }
  const bool is_number = !step.empty() && (step.front() != '0' || step.size() == 1);
  if (node.kind != JsonKind::array || !is_number) return JsonTree::none;
  Index skip = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), skip);
  if (error != std::errc{} || end != step.data() + step.size()) return JsonTree::none;
  Index child = node.first;
  for (; child != JsonTree::none && skip > 0; --skip) child = tree.node(child).next;
  return child;
}

/// The nodes from the root to what `steps` name; empty: they name nothing.
std::vector<Index> way_to(const JsonTree& tree, const std::vector<std::string>& steps) {
  std::vector<Index> way{0};
  for (const std::string& step : steps) {
    const Index next = child_of(tree, way.back(), step);
    if (next == JsonTree::none) return {};
    way.push_back(next);
  }
  return way;
}

/// Writes the canonical text of what counts.
class Writer {
 public:
  explicit Writer(const JsonTree& tree) : tree_(tree) {}

  Status choose(const JsonFields& fields) {
    if (fields.only.empty() && fields.except.empty()) return Done{};
    marks_.assign(tree_.size(), fields.only.empty() ? mark_all : 0);
    const JsonKind root = tree_.node(0).kind;
    if (root == JsonKind::object || root == JsonKind::array) marks_[0] |= mark_way;
    for (const Bytes pointer : fields.only) {
      const auto steps = steps_of(pointer);
      if (!steps) return no_pointer(pointer);
      const std::vector<Index> way = way_to(tree_, *steps);
      for (const Index index : way) marks_[index] |= mark_way;
      if (!way.empty()) marks_[way.back()] |= mark_all;
    }
    for (const Bytes pointer : fields.except) {
      const auto steps = steps_of(pointer);
      if (!steps) return no_pointer(pointer);
      const std::vector<Index> way = way_to(tree_, *steps);
      if (!way.empty()) marks_[way.back()] = mark_out;
    }
    if (!counts(0, false)) return Error{ErrorCode::bad_option, "nothing of the JSON is left"};
    return Done{};
  }

  /// `all`: everything in this value counts that is not taken out.
  void write(Index index, bool all) {
    const JsonTree::Node& node = tree_.node(index);
    all = all || marks_.empty() || (marks_[index] & mark_all) != 0;
    switch (node.kind) {
      case JsonKind::null:
        text_ += "null";
        return;
      case JsonKind::yes:
        text_ += "true";
        return;
      case JsonKind::no:
        text_ += "false";
        return;
      case JsonKind::number:
        text_ += tree_.text_of(node);
        return;
      case JsonKind::string:
        write_string(tree_.text_of(node));
        return;
      case JsonKind::array:
        write_array(node, all);
        return;
      case JsonKind::object:
        write_object(node, all);
        return;
    }
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  static constexpr std::uint8_t mark_way = 1;  // something in it counts
  static constexpr std::uint8_t mark_all = 2;  // all of it
  static constexpr std::uint8_t mark_out = 4;  // nothing, whatever is around it

  [[nodiscard]] bool counts(Index index, bool all) const {
    if (marks_.empty()) return true;
    SEMEL_ASSERT(index < marks_.size());
    const std::uint8_t mark = marks_[index];
    return (mark & mark_out) == 0 && (all || mark != 0);
  }

  void write_array(const JsonTree::Node& node, bool all) {
    text_ += '[';
    // Elements keep their places: what is left out in front of one that counts is null.
    std::size_t left_out = 0;
    bool is_first = true;
    for (Index i = node.first; i != JsonTree::none; i = tree_.node(i).next) {
      if (!counts(i, all)) {
        ++left_out;
        continue;
      }
      for (; left_out > 0; --left_out, is_first = false) text_ += is_first ? "null" : ",null";
      if (!is_first) text_ += ',';
      is_first = false;
      write(i, all);
    }
    text_ += ']';
  }

  void write_object(const JsonTree::Node& node, bool all) {
    text_ += '{';
    bool is_first = true;
    for (Index i = node.first; i != JsonTree::none; i = tree_.node(i).next) {
      if (!counts(i, all)) continue;
      if (!is_first) text_ += ',';
      is_first = false;
      write_string(tree_.name_of(tree_.node(i)));
      text_ += ':';
      write(i, all);
    }
    text_ += '}';
  }

  void write_string(Bytes string) {
    constexpr Bytes named = "\b\t\n\f\r\"\\";
    constexpr Bytes names = "btnfr\"\\";
    text_ += '"';
    for (const char c : string) {
      if (const std::size_t at = named.find(c); at != Bytes::npos) {
        text_ += '\\';
        text_ += names[at];
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text_.append("\\u00");
        text_ += "01"[(c >> 4) & 1];
        text_ += "0123456789abcdef"[c & 15];
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  const JsonTree& tree_;
  std::vector<std::uint8_t> marks_;  // one for each node; none: all counts
  std::string text_;
};

Fingerprint as_json(Fingerprint fingerprint) {
  fingerprint.algorithm = static_cast<std::uint8_t>(FingerprintAlgorithm::xxh3_json);
  return fingerprint;
}

}  // namespace

Result<std::string> canonical_json(Bytes json, const JsonFields& fields) {
  SEMEL_TRY(tree, JsonTree::parse(json));
  Writer writer{tree};
  SEMEL_CHECK(writer.choose(fields));
  writer.write(0, false);
  return writer.take();
}

Result<Fingerprint> fingerprint_json(Bytes json, const JsonFields& fields) {
  return fingerprint_json(Scope{}, json, fields);
}

Result<Fingerprint> fingerprint_json(const Scope& scope, Bytes json, const JsonFields& fields) {
  SEMEL_TRY(canonical, canonical_json(json, fields));
  return as_json(fingerprint_of(scope, canonical));
}

Result<std::string> json_at(Bytes json, Bytes pointer) {
  const auto steps = steps_of(pointer);
  if (!steps) return no_pointer(pointer);
  SEMEL_TRY(tree, JsonTree::parse(json));
  const std::vector<Index> way = way_to(tree, *steps);
  if (way.empty() || tree.node(way.back()).kind == JsonKind::null) {
    return Error{ErrorCode::no_such_key, "'" + std::string{pointer} + "' in the JSON"};
  }
  const JsonTree::Node& node = tree.node(way.back());
  if (node.kind == JsonKind::string) return std::string{tree.text_of(node)};
  Writer writer{tree};
  writer.write(way.back(), true);
  return writer.take();
}

}  // namespace semel
