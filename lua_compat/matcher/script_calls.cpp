#include "lua_compat/matcher/script_calls.hpp"

#include <algorithm>
#include <utility>

#include "base/ascii.hpp"

namespace semel::lua {
namespace {

class Walk {
 public:
  explicit Walk(const Tree& tree) : tree_(tree), locals_(tree.local_count) {}

  std::vector<SentCommand> run() {
    // A declaration is in front of all uses, but an assignment may follow them.
    for (const Node& node : tree_.nodes) learn_assigned(node);
    for (const Node& node : tree_.nodes) learn_declared(node);
    for (const Node& node : tree_.nodes) learn_caught(node);
    visit(tree_.root, false);
    return std::move(found_);
  }

 private:
  enum class Means : std::uint8_t { other, redis, call, pcall };
  struct Local {
    Means means = Means::other;
    bool is_assigned = false;
    bool is_caught = false;  ///< a function that is called by pcall or xpcall
  };

  [[nodiscard]] const Node& part(const Node& of, std::size_t which) const noexcept {
    return tree_.part(of, which);
  }

  void learn_assigned(const Node& node) {
    if (node.kind != NodeKind::assignment) return;
    const Node& targets = part(node, 0);
    for (std::size_t i = 0; i < targets.parts.size(); ++i) {
      const Node& target = part(targets, i);
      if (target.kind == NodeKind::local) locals_[target.number].is_assigned = true;
    }
  }
  void learn_declared(const Node& node) {
    if (node.kind != NodeKind::locals) return;
    const Node& names = part(node, 0);
    const Node& values = part(node, 1);
    for (std::size_t i = 0; i < std::min(names.parts.size(), values.parts.size()); ++i) {
      Local& local = locals_[part(names, i).number];
      if (!local.is_assigned) local.means = meaning_of(part(values, i));
    }
  }
  void learn_caught(const Node& node) {
    if (is_catcher(node) && part(node, 1).kind == NodeKind::local) {
      locals_[part(node, 1).number].is_caught = true;
    }
  }

  /// A call of pcall or xpcall with a function.
  [[nodiscard]] bool is_catcher(const Node& node) const noexcept {
    return node.kind == NodeKind::call && node.parts.size() > 1 &&
           (tree_.is_global(part(node, 0), "pcall") || tree_.is_global(part(node, 0), "xpcall"));
  }
  [[nodiscard]] Means meaning_of(const Node& node) const noexcept {
    if (node.kind == NodeKind::local) return locals_[node.number].means;
    if (tree_.is_global(node, "redis") || tree_.is_global(node, "server")) return Means::redis;
    if (node.kind != NodeKind::index || meaning_of(part(node, 0)) != Means::redis) {
      return Means::other;
    }
    const Node& by = part(node, 1);
    if (by.kind != NodeKind::string) return Means::other;
    if (by.text == "call") return Means::call;
    return by.text == "pcall" ? Means::pcall : Means::other;
  }
  static bool sends(Means means) noexcept { return means == Means::call || means == Means::pcall; }

  void visit_parts(const Node& node, bool is_caught, std::size_t from = 0) {
    for (std::size_t i = from; i < node.parts.size(); ++i) visit(node.parts[i], is_caught);
  }

  /// Recurses no deeper than the tree, whose depth is limited.
  void visit(NodeIndex at, bool is_caught) {
    const Node& node = tree_[at];
    switch (node.kind) {
      case NodeKind::call:
        return visit_call(node, is_caught);
      case NodeKind::locals:
        return visit_values(node, is_caught);
      case NodeKind::assignment:
        return visit_parts(node, is_caught || assigns_caught(part(node, 0)));
      case NodeKind::local_function:
        return visit_parts(node, is_caught || locals_[part(node, 0).number].is_caught);
      default:
        if (sends(meaning_of(node))) found_.push_back({.is_caught = true});
        return visit_parts(node, is_caught);
    }
  }
  void visit_call(const Node& node, bool is_caught) {
    const Means means = meaning_of(part(node, 0));
    if (!sends(means)) return visit_parts(node, is_caught || is_catcher(node));
    SentCommand& sent = found_.emplace_back();
    sent.line = node.line;
    sent.is_caught = is_caught || means == Means::pcall;
    if (node.parts.size() > 1 && part(node, 1).kind == NodeKind::string) {
      sent.is_named = true;
      sent.name = base::lower_of(part(node, 1).text);
    }
    if (node.parts.size() > 2 && part(node, 2).kind == NodeKind::string) {
      sent.has_subcommand = true;
      sent.subcommand = part(node, 2).text;
    }
    visit_parts(node, is_caught, 1);
  }
  [[nodiscard]] bool assigns_caught(const Node& targets) const noexcept {
    return std::ranges::any_of(targets.parts, [this](NodeIndex at) {
      return tree_[at].kind == NodeKind::local && locals_[tree_[at].number].is_caught;
    });
  }
  /// `local call = redis.call` sends nothing.
  void visit_values(const Node& node, bool is_caught) {
    const Node& names = part(node, 0);
    const Node& values = part(node, 1);
    for (std::size_t i = 0; i < values.parts.size(); ++i) {
      const Local* local = i < names.parts.size() ? &locals_[part(names, i).number] : nullptr;
      if (local != nullptr && sends(local->means)) continue;
      visit(values.parts[i], is_caught || (local != nullptr && local->is_caught));
    }
  }

  const Tree& tree_;
  std::vector<Local> locals_;
  std::vector<SentCommand> found_;
};

}  // namespace

std::vector<SentCommand> sent_commands(const Tree& tree) {
  return Walk{tree}.run();
}

std::vector<SentCommand> sent_commands(std::string_view text) {
  const auto tree = read_tree(text);
  return tree ? sent_commands(*tree) : std::vector<SentCommand>{};
}

}  // namespace semel::lua
