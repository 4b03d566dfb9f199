#include "patterns/json/json_pointer.hpp"

#include <charconv>

namespace semel::patterns {

using Index = JsonTree::Index;

namespace {

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

}  // namespace

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

std::vector<Index> way_to(const JsonTree& tree, const std::vector<std::string>& steps) {
  std::vector<Index> way{0};
  for (const std::string& step : steps) {
    const Index next = child_of(tree, way.back(), step);
    if (next == JsonTree::none) return {};
    way.push_back(next);
  }
  return way;
}

}  // namespace semel::patterns
