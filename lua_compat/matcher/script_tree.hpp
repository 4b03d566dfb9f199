// The program that a script's tokens are, with every name resolved, and its row: the same tokens in
// an order and spelling of their own, so that texts which differ in looks alone have equal rows.
//
// The row is the tree written from the root down; each token says how many parts follow, so a row
// can be read back in one way only. Equal rows are therefore equal trees, and equal trees are
// the same program, because all that the row leaves out has no meaning in Lua 5.1:
//   - blanks, comments, `;` between statements and behind the last field of a table;
//   - the spelling of strings and numbers: what counts is their bytes and their value;
//   - names of locals and parameters: each declaration has its number, in the order in which
//     they are declared, and each use the number of the one that is in scope there;
//   - a.b for a["b"], f"s" and f{} for f("s") and f({}), {a=1} for {["a"]=1}, which Lua defines as
//     the same, and -1 as the number it is;
//   - parentheses, of which the tree has the grouping, but for those around a call or `...`: these
//     cut off all values but the first, and stay;
//   - large and small letters in the name of a command: the first argument of redis.call and
//     redis.pcall where it is a constant. That `redis` is the global one is part of the row.
// What a row does not keep are lines and names of locals in texts of errors: whoever answers for a
// script without running it has to tell lines by call_lines(), and leave other errors to Lua.
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
  local,     ///< a use of `number`
  declared,  ///< where `number` is declared
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
  give_back,
  leave,
};

using NodeIndex = std::uint32_t;

struct Node {
  NodeKind kind = NodeKind::nil;
  std::uint8_t depth = 1;
  std::uint32_t line = 1;    ///< of a call: that of its arguments' begin, which errors tell
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
  /// Of a call of redis.call or redis.pcall.
  [[nodiscard]] bool is_command(const Node& node) const noexcept;
};

/// None: it cannot be read, or is nested too deeply.
[[nodiscard]] std::optional<Tree> read_tree(std::string_view script);

struct RowToken {
  NodeKind kind = NodeKind::nil;
  std::uint32_t parts = 0;
  std::uint32_t number = 0;
  std::string text;

  bool operator==(const RowToken&) const = default;
};
[[nodiscard]] std::vector<RowToken> row_of(const Tree& tree);

/// The row of a plainer program that does the same, so that more spellings have one row:
///   - a local that is declared with an element of KEYS or ARGV, or with a constant, and is never
///     assigned to, is replaced by that. Reading it has no effect, and gives the same at each place
///     unless the script changes KEYS or ARGV; what changes them stays in the row, so that such a
///     row is not the row of a program that does not;
///   - `if a then .. return x else .. end` is `if a then .. return x end ..`, and the same with
///     `elseif`; what follows a return is gone.
[[nodiscard]] std::vector<RowToken> plain_row_of(const Tree& tree);
/// Which element of KEYS or ARGV `node` is, if its index is a constant: from 1.
struct Element {
  bool is_key = false;
  std::uint32_t place = 0;
};
[[nodiscard]] std::optional<Element> element_of(const Tree& tree, const Node& node);
/// Of the calls of commands, in the order of the row; for each the line that redis-server tells of
/// an error in it.
[[nodiscard]] std::vector<std::uint32_t> call_lines(const Tree& tree);

}  // namespace semel::lua
