// The syntax tree of a script, with resolved names, and its token row: a canonical form that is
// equal for texts which differ only in spelling.
//
// The token row is the tree in preorder. Each token has its number of parts, so a row can be read
// back in only one way. Equal rows therefore mean equal trees, and equal trees mean the same
// program, because everything that the row omits has no meaning in Lua 5.1:
//   - blanks, comments, `;` between statements and behind the last field of a table;
//   - the spelling of strings and numbers: only their bytes and their value count;
//   - names of locals and parameters: declarations are numbered in their order, and a use has the
//     number of the declaration in scope;
//   - a.b for a["b"], f"s" and f{} for f("s") and f({}), {a=1} for {["a"]=1}, which Lua defines as
//     equal, and -1 for the number;
//   - parentheses, as the tree has the grouping. Those around a call or `...` stay, because they
//     drop all values but the first;
//   - upper and lower case in the name of a command: the first argument of redis.call and
//     redis.pcall where it is a constant. That `redis` is the global one is part of the row.
// A row has neither line numbers nor the names of locals, which error texts contain. Code that
// replies for a script without running it must take lines from call_lines(), and leave other errors
// to Lua.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::lua {

enum class NodeKind : std::uint8_t {
  // values without parts
  nil,
  yes,
  no,
  number,  ///< text: of its value
  string,  ///< text: its bytes
  varargs,
  global,    ///< text: its name
  local,     ///< a use of the local `number`
  declared,  ///< the declaration of the local `number`
  // values
  function,     ///< parameters, block
  index,        ///< of, by
  call,         ///< what, arguments..
  method,       ///< text: the name; of, arguments..
  unary,        ///< text: the operator
  binary,       ///< text: the operator
  parentheses,  ///< of a call or varargs
  table,        ///< items and pairs
  item,
  pair,
  // statements
  block,
  list,        ///< of names, targets or values
  locals,      ///< list of declared, list of values
  assignment,  ///< list of targets, list of values
  local_function,
  loop_while,
  loop_until,   ///< block, condition
  loop_number,  ///< declared, from, to, step or nil, block
  loop_in,      ///< list of declared, list of values, block
  branch,       ///< condition, block, .., and perhaps the block of else
  return_values,
  break_loop,
};

using NodeIndex = std::uint32_t;

struct Node {
  NodeKind kind = NodeKind::nil;
  std::uint8_t depth = 1;
  std::uint32_t line = 1;    ///< of a call: where its arguments begin, as errors name it
  std::uint32_t number = 0;  ///< of a local
  std::string text{};
  std::vector<NodeIndex> parts{};
};

class Tree {
 public:
  std::vector<Node> nodes;
  NodeIndex root = 0;
  std::uint32_t local_count = 0;

  [[nodiscard]] const Node& operator[](NodeIndex at) const noexcept { return nodes[at]; }
  [[nodiscard]] const Node& part(const Node& of, std::size_t which) const noexcept {
    return nodes[of.parts[which]];
  }
  [[nodiscard]] bool is_global(const Node& node, std::string_view name) const noexcept {
    return node.kind == NodeKind::global && node.text == name;
  }
  /// Whether it is a call of redis.call or redis.pcall.
  [[nodiscard]] bool is_command(const Node& node) const noexcept;
};

/// Parses a script. None: it cannot be parsed, or is nested too deeply.
[[nodiscard]] std::optional<Tree> read_tree(std::string_view script);

struct RowToken {
  NodeKind kind = NodeKind::nil;
  std::uint32_t parts = 0;
  std::uint32_t number = 0;
  std::string text;

  bool operator==(const RowToken&) const = default;
};
[[nodiscard]] std::vector<RowToken> token_row(const Tree& tree);

/// The row of an equivalent simpler program, so that more spellings have one row:
///   - a local that is declared with an element of KEYS or ARGV, or with a constant, and is never
///     assigned to, is replaced by its value. Reading an element has no effect, and gives the same
///     value everywhere unless the script changes KEYS or ARGV; such a change stays in the row, so
///     the row differs from that of a program without it;
///   - `if a then .. return x else .. end` becomes `if a then .. return x end ..`, and so does
///     `elseif`; statements behind a return are removed.
[[nodiscard]] std::vector<RowToken> plain_token_row(const Tree& tree);
/// An element of KEYS or ARGV with a constant index, from 1.
struct Element {
  bool is_key = false;
  std::uint32_t place = 0;
};
[[nodiscard]] std::optional<Element> element_of(const Tree& tree, const Node& node);
/// The lines of all command calls, in the order of the row, as redis-server names them in errors.
[[nodiscard]] std::vector<std::uint32_t> call_lines(const Tree& tree);

}  // namespace semel::lua
