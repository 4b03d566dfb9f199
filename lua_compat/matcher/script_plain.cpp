#include <charconv>
#include <limits>

#include "lua_compat/matcher/script_tree.hpp"

namespace semel::lua {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

class PlainTokenRow {
 public:
  explicit PlainTokenRow(const Tree& tree)
      : tree_(tree), values_(tree.local_count, none), numbers_(tree.local_count, none) {
    std::vector<bool> is_assigned(tree.local_count, false);
    for (const Node& node : tree.nodes) {
      if (node.kind != NodeKind::assignment) continue;
      for (const NodeIndex target : tree.part(node, 0).parts) {
        if (tree[target].kind == NodeKind::local) is_assigned[tree[target].number] = true;
      }
    }
    // nodes has parts in front of their whole, and declarations in front of their uses.
    for (const Node& node : tree.nodes) {
      if (node.kind == NodeKind::locals) replace(node, is_assigned);
    }
  }

  std::vector<RowToken> run() {
    append(tree_.root);
    return std::move(row_);
  }

 private:
  /// A statement, or a range of the parts of a branch.
  struct Piece {
    NodeIndex at;
    std::size_t from;
    std::size_t count;
  };

  [[nodiscard]] bool is_plain(const Node& node) const {
    if (node.kind == NodeKind::local) return values_[node.number] != none;
    return node.kind == NodeKind::number || node.kind == NodeKind::string ||
           element_of(tree_, node).has_value();
  }
  void replace(const Node& node, const std::vector<bool>& is_assigned) {
    const Node& names = tree_.part(node, 0);
    const Node& values = tree_.part(node, 1);
    if (names.parts.size() != values.parts.size()) return;
    for (std::size_t i = 0; i < names.parts.size(); ++i) {
      const bool stays = is_assigned[tree_.part(names, i).number];
      if (stays || !is_plain(tree_.part(values, i))) return;
    }
    for (std::size_t i = 0; i < names.parts.size(); ++i) {
      const Node& value = tree_.part(values, i);
      values_[tree_.part(names, i).number] =
          value.kind == NodeKind::local ? values_[value.number] : values.parts[i];
    }
  }
  [[nodiscard]] bool is_replaced(const Node& node) const {
    if (node.kind != NodeKind::locals) return false;
    const Node& names = tree_.part(node, 0);
    return !names.parts.empty() && values_[tree_.part(names, 0).number] != none;
  }

  [[nodiscard]] bool returns(NodeIndex block) const {
    const Node& node = tree_[block];
    return !node.parts.empty() && tree_[node.parts.back()].kind == NodeKind::return_values;
  }
  /// False: control does not reach the end.
  bool collect(const Node& block, std::vector<Piece>& pieces) const {
    for (const NodeIndex at : block.parts) {
      const Node& node = tree_[at];
      if (is_replaced(node)) continue;
      if (node.kind != NodeKind::branch) {
        pieces.push_back({at, 0, node.parts.size()});
        if (node.kind == NodeKind::return_values || node.kind == NodeKind::break_loop) return false;
      } else if (!collect_branch(at, node, pieces)) {
        return false;
      }
    }
    return true;
  }
  bool collect_branch(NodeIndex at, const Node& node, std::vector<Piece>& pieces) const {
    std::size_t from = 0;
    while (node.parts.size() - from > 2 && returns(node.parts[from + 1])) {
      pieces.push_back({at, from, 2});
      from += 2;
    }
    const std::size_t left = node.parts.size() - from;
    if (left == 1) return collect(tree_[node.parts[from]], pieces);
    pieces.push_back({at, from, left});
    return true;
  }

  std::uint32_t renumbered(std::uint32_t number) {
    if (numbers_[number] == none) numbers_[number] = count_++;
    return numbers_[number];
  }

  void append(NodeIndex at) {
    const Node& node = tree_[at];
    if (node.kind == NodeKind::block) return append_block(node);
    const bool is_local = node.kind == NodeKind::local || node.kind == NodeKind::declared;
    if (node.kind == NodeKind::local && values_[node.number] != none) {
      return append(values_[node.number]);
    }
    row_.push_back({node.kind, static_cast<std::uint32_t>(node.parts.size()),
                    is_local ? renumbered(node.number) : 0U, node.text});
    for (const NodeIndex part : node.parts) append(part);
  }
  void append_block(const Node& block) {
    std::vector<Piece> pieces;
    static_cast<void>(
        collect(block, pieces));  // at the end of the block its result does not matter
    row_.push_back({NodeKind::block, static_cast<std::uint32_t>(pieces.size()), 0, {}});
    for (const Piece& piece : pieces) {
      const Node& node = tree_[piece.at];
      if (node.kind != NodeKind::branch) {
        append(piece.at);
        continue;
      }
      row_.push_back({NodeKind::branch, static_cast<std::uint32_t>(piece.count), 0, {}});
      for (std::size_t i = 0; i < piece.count; ++i) append(node.parts[piece.from + i]);
    }
  }

  const Tree& tree_;
  std::vector<NodeIndex> values_;  // by local: its replacement, or none
  std::vector<std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
  std::vector<RowToken> row_;
};

}  // namespace

std::vector<RowToken> plain_token_row(const Tree& tree) {
  return PlainTokenRow{tree}.run();
}

std::optional<Element> element_of(const Tree& tree, const Node& node) {
  if (node.kind != NodeKind::index) return std::nullopt;
  const Node& of = tree.part(node, 0);
  const Node& by = tree.part(node, 1);
  const bool is_key = tree.is_global(of, "KEYS");
  if ((!is_key && !tree.is_global(of, "ARGV")) || by.kind != NodeKind::number) return std::nullopt;
  std::uint32_t place = 0;
  constexpr std::uint32_t place_max = 1024;
  const auto read = std::from_chars(by.text.data(), by.text.data() + by.text.size(), place);
  const bool is_whole = read.ec == std::errc{} && read.ptr == by.text.data() + by.text.size();
  if (!is_whole || place == 0 || place > place_max) return std::nullopt;
  return Element{.is_key = is_key, .place = place};
}

}  // namespace semel::lua
