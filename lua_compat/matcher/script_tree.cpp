#include "lua_compat/matcher/script_tree.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "lua_compat/matcher/script_tokens.hpp"

namespace semel::lua {
namespace {

// Of a tree, and of the recursion of the parser. Lua itself stops at 200.
constexpr std::uint8_t depth_max = 120;
constexpr int unary_strength = 8;

struct Operator {
  std::string_view text;
  int left;
  int right;
};
constexpr std::array<Operator, 15> operators = {{{"or", 1, 1},
                                                 {"and", 2, 2},
                                                 {"<", 3, 3},
                                                 {">", 3, 3},
                                                 {"<=", 3, 3},
                                                 {">=", 3, 3},
                                                 {"~=", 3, 3},
                                                 {"==", 3, 3},
                                                 {"..", 5, 4},
                                                 {"+", 6, 6},
                                                 {"-", 6, 6},
                                                 {"*", 7, 7},
                                                 {"/", 7, 7},
                                                 {"%", 7, 7},
                                                 {"^", 10, 9}}};

/// Parses one script. After the first error `failed_` stays set and the rest of the result is
/// meaningless. Each step takes a token or fails, so parsing ends.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  std::optional<Tree> run() {
    functions_.push_back({.has_varargs = true});
    tree_.root = block();
    if (token().kind != TokenKind::end) fail();
    if (failed_) return std::nullopt;
    SEMEL_ASSERT(depth_ == 0 && functions_.size() == 1 && locals_.empty());
    return std::move(tree_);
  }

 private:
  struct Function {
    bool has_varargs = false;
    int loops = 0;
  };
  /// The declarations of a name, innermost last. A hash map, as a search would need quadratic time
  /// for a text with many names and locals.
  using Meanings = std::unordered_map<std::string, std::vector<std::uint32_t>>;
  /// A value, and whether it is in parentheses: then it cannot be assigned to.
  struct Value {
    NodeIndex at;
    bool closed;
  };

  // --- tokens
  [[nodiscard]] const Token& token() const noexcept { return tokens_[place_]; }
  void step() noexcept {
    if (token().kind != TokenKind::end) ++place_;
  }
  [[nodiscard]] bool sees(std::string_view symbol) const noexcept { return token().is(symbol); }
  bool take(std::string_view symbol) noexcept {
    if (!sees(symbol)) return false;
    step();
    return true;
  }
  void expect(std::string_view symbol) noexcept {
    if (!take(symbol)) fail();
  }
  std::string take_name() {
    if (token().kind != TokenKind::name) {
      fail();
      return {};
    }
    std::string name = token().text;
    step();
    return name;
  }
  void fail() noexcept {
    failed_ = true;
    place_ = tokens_.size() - 1;
  }

  // --- nodes
  NodeIndex add(Node node) {
    unsigned depth = 1;
    for (const NodeIndex part : node.parts) {
      SEMEL_ASSERT_SLOW(part < tree_.nodes.size());  // parts stand in front of their whole
      depth = std::max(depth, 1U + tree_.nodes[part].depth);
    }
    if (depth > depth_max) {
      fail();
      depth = depth_max;
    }
    node.depth = static_cast<std::uint8_t>(depth);
    tree_.nodes.push_back(std::move(node));
    return static_cast<NodeIndex>(tree_.nodes.size() - 1);
  }
  NodeIndex add(NodeKind kind, std::vector<NodeIndex> parts, std::string text = {},
                std::uint32_t line = 0) {
    return add(
        Node{.kind = kind, .line = line, .text = std::move(text), .parts = std::move(parts)});
  }
  [[nodiscard]] NodeKind kind_of(NodeIndex at) const noexcept { return tree_.nodes[at].kind; }

  // --- names
  NodeIndex declare(std::string name) {
    const std::uint32_t number = tree_.local_count++;
    const auto place = meanings_.try_emplace(std::move(name)).first;
    place->second.push_back(number);
    locals_.push_back(&place->second);
    return add(Node{.kind = NodeKind::declared, .number = number});
  }
  NodeIndex declare_all(std::vector<std::string> names) {
    std::vector<NodeIndex> parts;
    for (std::string& name : names) parts.push_back(declare(std::move(name)));
    return add(NodeKind::list, std::move(parts));
  }
  NodeIndex use(const std::string& name) {
    // PUC Lua gives functions with varargs a hidden local of this name, LuaJIT does not.
    if (name == "arg" && functions_.size() > 1) fail();
    const auto found = meanings_.find(name);
    if (found == meanings_.end() || found->second.empty()) {
      return add(NodeKind::global, {}, name);
    }
    return add(Node{.kind = NodeKind::local, .number = found->second.back()});
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    do found.push_back(take_name());
    while (take(","));
    return found;
  }

  // --- blocks
  /// Runs `read` in a new scope, unless that is nested too deeply.
  template <class Read>
  NodeIndex scoped(Read&& read) {
    const std::size_t outer = locals_.size();
    const NodeIndex made = nested(std::forward<Read>(read));
    while (locals_.size() > outer) {
      locals_.back()->pop_back();
      locals_.pop_back();
    }
    return made;
  }
  template <class Read>
  NodeIndex nested(Read&& read) {
    if (++depth_ > depth_max) {
      fail();
      --depth_;
      return add(NodeKind::nil, {});
    }
    const NodeIndex made = read();
    --depth_;
    return made;
  }
  NodeIndex block() {
    return scoped([this] { return open_block(); });
  }
  NodeIndex loop_block() {
    ++functions_.back().loops;
    const NodeIndex made = block();
    --functions_.back().loops;
    return made;
  }
  [[nodiscard]] bool ends_block() const noexcept {
    return token().kind == TokenKind::end || sees("end") || sees("else") || sees("elseif") ||
           sees("until");
  }
  NodeIndex open_block() {
    std::vector<NodeIndex> statements;
    while (!ends_block()) {
      const bool is_last = sees("return") || sees("break");
      statements.push_back(statement());
      take(";");
      if (is_last) break;
    }
    return add(NodeKind::block, std::move(statements));
  }

  // --- statements
  NodeIndex statement() {
    if (take("if")) return branch();
    if (take("while")) {
      const NodeIndex condition = value();
      expect("do");
      const NodeIndex body = loop_block();
      expect("end");
      return add(NodeKind::loop_while, {condition, body});
    }
    if (take("do")) {
      const NodeIndex body = block();
      expect("end");
      return body;
    }
    if (take("for")) return scoped([this] { return loop_for(); });
    if (take("repeat")) return scoped([this] { return loop_until(); });
    if (take("function")) return function_statement();
    if (take("local")) return take("function") ? local_function() : local_values();
    if (take("return")) {
      const bool has_none = ends_block() || sees(";");
      return add(NodeKind::return_values, has_none ? std::vector<NodeIndex>{} : values());
    }
    if (take("break")) {
      if (functions_.back().loops == 0) fail();
      return add(NodeKind::break_loop, {});
    }
    return expression_statement();
  }

  NodeIndex branch() {
    std::vector<NodeIndex> parts;
    do {
      parts.push_back(value());
      expect("then");
      parts.push_back(block());
    } while (take("elseif"));
    if (take("else")) parts.push_back(block());
    expect("end");
    return add(NodeKind::branch, std::move(parts));
  }

  NodeIndex loop_until() {
    // The condition is in the scope of the block.
    ++functions_.back().loops;
    const NodeIndex body = open_block();
    --functions_.back().loops;
    expect("until");
    return add(NodeKind::loop_until, {body, value()});
  }

  NodeIndex loop_for() {
    std::vector<std::string> declared = names();
    if (declared.size() == 1 && take("=")) {
      const NodeIndex from = value();
      expect(",");
      const NodeIndex to = value();
      const NodeIndex by = take(",") ? value() : add(NodeKind::nil, {});
      expect("do");
      const NodeIndex name = declare(std::move(declared.front()));
      const NodeIndex body = loop_block();
      expect("end");
      return add(NodeKind::loop_number, {name, from, to, by, body});
    }
    expect("in");
    const NodeIndex from = add(NodeKind::list, values());
    expect("do");
    const NodeIndex list = declare_all(std::move(declared));
    const NodeIndex body = loop_block();
    expect("end");
    return add(NodeKind::loop_in, {list, from, body});
  }

  NodeIndex function_statement() {
    NodeIndex target = use(take_name());
    while (take(".")) target = add(NodeKind::index, {target, constant(take_name())});
    const bool is_method = take(":");
    if (is_method) target = add(NodeKind::index, {target, constant(take_name())});
    const NodeIndex made = function(is_method);
    return add(NodeKind::assignment, {add(NodeKind::list, {target}), add(NodeKind::list, {made})});
  }
  NodeIndex local_function() {
    const NodeIndex name = declare(take_name());
    return add(NodeKind::local_function, {name, function(false)});
  }
  NodeIndex local_values() {
    std::vector<std::string> declared = names();
    const NodeIndex from = add(NodeKind::list, take("=") ? values() : std::vector<NodeIndex>{});
    // Declared behind the values: in `local x = x` the value is the outer x.
    return add(NodeKind::locals, {declare_all(std::move(declared)), from});
  }

  NodeIndex expression_statement() {
    const Value first = prefixed();
    if (!sees("=") && !sees(",")) {
      const bool is_call =
          kind_of(first.at) == NodeKind::call || kind_of(first.at) == NodeKind::method;
      if (!is_call || first.closed) fail();
      return first.at;
    }
    std::vector<NodeIndex> targets;
    check_target(first);
    targets.push_back(first.at);
    while (take(",")) {
      const Value next = prefixed();
      check_target(next);
      targets.push_back(next.at);
    }
    expect("=");
    const NodeIndex list = add(NodeKind::list, std::move(targets));
    return add(NodeKind::assignment, {list, add(NodeKind::list, values())});
  }
  void check_target(const Value& value) noexcept {
    const NodeKind kind = kind_of(value.at);
    const bool fits =
        kind == NodeKind::local || kind == NodeKind::global || kind == NodeKind::index;
    if (!fits || value.closed) fail();
  }

  // --- values
  NodeIndex constant(std::string text) { return add(NodeKind::string, {}, std::move(text)); }

  std::vector<NodeIndex> values() {
    std::vector<NodeIndex> found;
    do found.push_back(value());
    while (take(","));
    return found;
  }
  NodeIndex value() { return stronger_than(0); }

  NodeIndex stronger_than(int limit) {
    return nested([this, limit] {
      NodeIndex left = operand();
      for (;;) {
        const auto found = std::ranges::find_if(
            operators, [this](const Operator& each) { return sees(each.text); });
        if (found == operators.end() || found->left <= limit) return left;
        step();
        const NodeIndex right = stronger_than(found->right);
        left = add(NodeKind::binary, {left, right}, std::string{found->text});
      }
    });
  }

  NodeIndex operand() {
    for (const std::string_view sign : {"not", "-", "#"}) {
      if (!take(sign)) continue;
      const NodeIndex of = stronger_than(unary_strength);
      const Node& node = tree_.nodes[of];
      if (sign == "-" && node.kind == NodeKind::number && node.text != "0" &&
          !node.text.starts_with('-')) {
        return add(NodeKind::number, {}, "-" + node.text);
      }
      return add(NodeKind::unary, {of}, std::string{sign});
    }
    return simple();
  }

  NodeIndex simple() {
    const TokenKind kind = token().kind;
    if (kind == TokenKind::number || kind == TokenKind::string) {
      std::string text = token().text;
      step();
      return add(kind == TokenKind::number ? NodeKind::number : NodeKind::string, {},
                 std::move(text));
    }
    if (take("nil")) return add(NodeKind::nil, {});
    if (take("true")) return add(NodeKind::yes, {});
    if (take("false")) return add(NodeKind::no, {});
    if (take("...")) {
      if (!functions_.back().has_varargs) fail();
      return add(NodeKind::varargs, {});
    }
    if (sees("{")) return table();
    if (take("function")) return function(false);
    return prefixed().at;
  }

  Value prefixed() {
    Value made{0, false};
    if (take("(")) {
      NodeIndex inner = value();
      expect(")");
      const NodeKind kind = kind_of(inner);
      const bool is_cut =
          kind == NodeKind::call || kind == NodeKind::method || kind == NodeKind::varargs;
      if (is_cut) inner = add(NodeKind::parentheses, {inner});
      made = {inner, true};
    } else {
      made = {use(take_name()), false};
    }
    while (!failed_) {
      if (take(".")) {
        made.at = add(NodeKind::index, {made.at, constant(take_name())});
      } else if (take("[")) {
        const NodeIndex by = value();
        expect("]");
        made.at = add(NodeKind::index, {made.at, by});
      } else if (take(":")) {
        std::string name = take_name();
        made.at = call(NodeKind::method, made.at, std::move(name));
      } else if (sees("(") || sees("{") || token().kind == TokenKind::string) {
        made.at = call(NodeKind::call, made.at, {});
      } else {
        break;
      }
      made.closed = false;
    }
    return made;
  }

  NodeIndex call(NodeKind kind, NodeIndex what, std::string name) {
    const std::uint32_t line = token().line_end;
    std::vector<NodeIndex> parts{what};
    if (token().kind == TokenKind::string) {
      parts.push_back(constant(token().text));
      step();
    } else if (sees("{")) {
      parts.push_back(table());
    } else {
      // Lua 5.1 refuses a bracket on a new line, which might begin another statement.
      if (place_ > 0 && tokens_[place_ - 1].line_end != token().line) fail();
      expect("(");
      if (!sees(")")) {
        for (const NodeIndex argument : values()) parts.push_back(argument);
      }
      expect(")");
    }
    const NodeIndex made = add(kind, std::move(parts), std::move(name), line);
    name_command(made);
    return made;
  }

  /// Converts the name of a command to lower case if it is a constant.
  void name_command(NodeIndex at) {
    if (!tree_.is_command(tree_.nodes[at]) || tree_.nodes[at].parts.size() < 2) return;
    Node& command = tree_.nodes[tree_.nodes[at].parts[1]];
    if (command.kind == NodeKind::string)
      std::ranges::transform(command.text, command.text.begin(), base::to_lower);
  }

  NodeIndex table() {
    return nested([this] {
      expect("{");
      std::vector<NodeIndex> fields;
      while (!failed_ && !sees("}")) {
        fields.push_back(field());
        if (!take(",") && !take(";")) break;
      }
      expect("}");
      return add(NodeKind::table, std::move(fields));
    });
  }
  NodeIndex field() {
    if (take("[")) {
      const NodeIndex by = value();
      expect("]");
      expect("=");
      return add(NodeKind::pair, {by, value()});
    }
    if (token().kind == TokenKind::name && tokens_[place_ + 1].is("=")) {
      const NodeIndex by = constant(take_name());
      step();
      return add(NodeKind::pair, {by, value()});
    }
    return add(NodeKind::item, {value()});
  }

  NodeIndex function(bool is_method) {
    return scoped([this, is_method] {
      functions_.push_back({});
      std::vector<NodeIndex> parameters;
      if (is_method) parameters.push_back(declare("self"));
      expect("(");
      while (!failed_ && !sees(")")) {
        if (take("...")) {
          functions_.back().has_varargs = true;
          parameters.push_back(add(NodeKind::varargs, {}));
          break;
        }
        parameters.push_back(declare(take_name()));
        if (!take(",")) break;
        if (sees(")")) fail();
      }
      expect(")");
      const NodeIndex list = add(NodeKind::list, std::move(parameters));
      const NodeIndex body = block();
      expect("end");
      functions_.pop_back();
      return add(NodeKind::function, {list, body});
    });
  }

  std::vector<Token> tokens_;
  std::size_t place_ = 0;
  Tree tree_;
  Meanings meanings_;
  std::vector<std::vector<std::uint32_t>*> locals_;  // those in scope: the declarations of its name
  std::vector<Function> functions_;
  unsigned depth_ = 0;
  bool failed_ = false;
};

void append_row(const Tree& tree, NodeIndex at, std::vector<RowToken>& row) {
  const Node& node = tree[at];
  row.push_back({node.kind, static_cast<std::uint32_t>(node.parts.size()), node.number, node.text});
  for (const NodeIndex part : node.parts) append_row(tree, part, row);
}

void append_lines(const Tree& tree, NodeIndex at, std::vector<std::uint32_t>& lines) {
  const Node& node = tree[at];
  if (tree.is_command(node)) lines.push_back(node.line);
  for (const NodeIndex part : node.parts) append_lines(tree, part, lines);
}

}  // namespace

bool Tree::is_command(const Node& node) const noexcept {
  if (node.kind != NodeKind::call) return false;
  const Node& what = part(node, 0);
  if (what.kind != NodeKind::index || !is_global(part(what, 0), "redis")) return false;
  const Node& by = part(what, 1);
  return by.kind == NodeKind::string && (by.text == "call" || by.text == "pcall");
}

std::optional<Tree> read_tree(std::string_view script) {
  auto tokens = read_tokens(script);
  if (!tokens) return std::nullopt;
  return Parser{std::move(*tokens)}.run();
}

std::vector<RowToken> token_row(const Tree& tree) {
  std::vector<RowToken> row;
  row.reserve(tree.nodes.size());
  append_row(tree, tree.root, row);
  return row;
}

std::vector<std::uint32_t> call_lines(const Tree& tree) {
  std::vector<std::uint32_t> lines;
  append_lines(tree, tree.root, lines);
  return lines;
}

}  // namespace semel::lua
