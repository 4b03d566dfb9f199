// The proof tracks which values can hold what. Only redis.call and redis.pcall send commands, so
// they may appear only where they are called, or in a local that is only called. Other ways to
// reach them
// (_G, getfenv, loadstring, ..) are not in the lists below, so their use is refused. KEYS may only
// be indexed, so that nothing can change it; its elements are the declared keys, or nil, which no
// command accepts. A local that is declared with such an element and never assigned to holds it.
#include "lua_compat/matcher/script_keys.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/ascii.hpp"

namespace semel::lua {
namespace {

// Globals that a script may use. None of them sends commands or compiles text.
constexpr std::array<std::string_view, 20> harmless_globals = {
    "ARGV",   "tonumber", "tostring", "type",     "ipairs", "pairs",  "next",
    "select", "unpack",   "error",    "assert",   "pcall",  "xpcall", "string",
    "table",  "math",     "cjson",    "cmsgpack", "bit",    "struct"};
constexpr std::array<std::string_view, 20> harmless_members = {
    "error_reply",   "status_reply",      "sha1hex",     "log",           "LOG_DEBUG",
    "LOG_VERBOSE",   "LOG_NOTICE",        "LOG_WARNING", "REPL_NONE",     "REPL_SLAVE",
    "REPL_REPLICA",  "REPL_AOF",          "REPL_ALL",    "set_repl",      "replicate_commands",
    "REDIS_VERSION", "REDIS_VERSION_NUM", "setresp",     "acl_check_cmd", "breakpoint"};
// Commands without keys, which access none.
constexpr std::array<std::string_view, 4> keyless = {"ping", "echo", "time", "publish"};

template <class Names>
bool holds(const Names& names, std::string_view name) noexcept {
  return std::ranges::find(names, name) != names.end();
}

class Proof {
 public:
  Proof(const Tree& tree, KeysOf keys_of)
      : tree_(tree), keys_of_(keys_of), locals_(tree.local_count) {}

  bool holds_for_all() {
    if (!std::ranges::all_of(tree_.nodes, [this](const Node& node) { return learn(node); })) {
      return false;
    }
    return allows(tree_.root);
  }

 private:
  enum class Source : std::uint8_t { other, key, command };
  struct Local {
    Source source = Source::other;
    bool is_assigned = false;
  };

  [[nodiscard]] const Node& part(const Node& of, std::size_t which) const noexcept {
    return tree_.part(of, which);
  }
  [[nodiscard]] bool is_keys(const Node& node) const noexcept {
    return tree_.is_global(node, "KEYS");
  }
  [[nodiscard]] bool is_redis(const Node& node) const noexcept {
    return tree_.is_global(node, "redis") || tree_.is_global(node, "server");
  }
  [[nodiscard]] bool is_element(const Node& node) const noexcept {
    return node.kind == NodeKind::index && is_keys(part(node, 0));
  }
  [[nodiscard]] bool is_sender(const Node& node) const noexcept {
    if (node.kind != NodeKind::index || !is_redis(part(node, 0))) return false;
    const Node& by = part(node, 1);
    return by.kind == NodeKind::string && (by.text == "call" || by.text == "pcall");
  }
  /// Whether it is a call of `name` with KEYS.
  [[nodiscard]] bool is_over_keys(const Node& node, std::string_view name) const noexcept {
    return node.kind == NodeKind::call && node.parts.size() > 1 &&
           tree_.is_global(part(node, 0), name) && is_keys(part(node, 1));
  }
  [[nodiscard]] bool is_walk(const Node& node) const noexcept {
    return (is_over_keys(node, "ipairs") || is_over_keys(node, "pairs")) && node.parts.size() == 2;
  }
  [[nodiscard]] Source source_of(const Node& node) const noexcept {
    if (node.kind != NodeKind::local) return Source::other;
    const Local& local = locals_[node.number];
    return local.is_assigned ? Source::other : local.source;
  }
  [[nodiscard]] bool is_key(const Node& node) const noexcept {
    return is_element(node) || source_of(node) == Source::key;
  }

  /// Collects the values of locals, before the check. False: no proof.
  bool learn(const Node& node) {
    if (node.kind == NodeKind::locals) {
      const Node& names = part(node, 0);
      const Node& values = part(node, 1);
      for (std::size_t i = 0; i < names.parts.size() && i < values.parts.size(); ++i) {
        const Node& value = part(values, i);
        Source& source = locals_[part(names, i).number].source;
        if (is_element(value)) source = Source::key;
        if (is_sender(value)) source = Source::command;
      }
    }
    if (node.kind == NodeKind::loop_in) {
      const Node& names = part(node, 0);
      const Node& values = part(node, 1);
      if (values.parts.size() == 1 && is_walk(part(values, 0)) && names.parts.size() >= 2) {
        locals_[part(names, 1).number].source = Source::key;
      }
    }
    return node.kind != NodeKind::assignment || learn_targets(part(node, 0));
  }
  bool learn_targets(const Node& targets) {
    for (std::size_t i = 0; i < targets.parts.size(); ++i) {
      const Node* target = &part(targets, i);
      if (target->kind == NodeKind::local) {
        Local& local = locals_[target->number];
        local.is_assigned = true;
        // Its declaration, or this assignment, may make it a sender of commands: see allows().
        continue;
      }
      while (target->kind == NodeKind::index) target = &part(*target, 0);
      if (target->kind == NodeKind::global) return false;
    }
    return true;
  }

  [[nodiscard]] bool allow_parts(const Node& node, std::size_t from = 0) {
    for (std::size_t i = from; i < node.parts.size(); ++i) {
      if (!allows(node.parts[i])) return false;
    }
    return true;
  }

  [[nodiscard]] bool allows(NodeIndex at) {
    const Node& node = tree_[at];
    switch (node.kind) {
      case NodeKind::global:
        return holds(harmless_globals, node.text);
      case NodeKind::local:
        // A sender of commands as a value could be called anywhere.
        return locals_[node.number].source != Source::command;
      case NodeKind::index:
        if (is_keys(part(node, 0))) return allows(node.parts[1]);
        if (!is_redis(part(node, 0))) return allow_parts(node);
        return part(node, 1).kind == NodeKind::string &&
               holds(harmless_members, part(node, 1).text);
      case NodeKind::unary:
        return (node.text == "#" && is_keys(part(node, 0))) || allow_parts(node);
      case NodeKind::locals:
        return allow_values(part(node, 1), part(node, 0).parts.size());
      case NodeKind::loop_in:
        return allow_loop(node);
      case NodeKind::call:
        return allow_call(node);
      default:
        return allow_parts(node);
    }
  }
  /// The values of a declaration of `names` locals; each of these may be a sender of commands.
  [[nodiscard]] bool allow_values(const Node& values, std::size_t names) {
    for (std::size_t i = 0; i < values.parts.size(); ++i) {
      if (i < names && is_sender(part(values, i))) continue;
      if (!allows(values.parts[i])) return false;
    }
    return true;
  }
  [[nodiscard]] bool allow_loop(const Node& node) {
    const Node& values = part(node, 1);
    const bool walks = values.parts.size() == 1 && is_walk(part(values, 0));
    return (walks || allow_parts(values)) && allows(node.parts[2]);
  }
  [[nodiscard]] bool allow_call(const Node& node) {
    const Node& what = part(node, 0);
    if (is_sender(what) || source_of(what) == Source::command) return allow_command(node);
    if (is_over_keys(node, "unpack")) return allow_parts(node, 2);
    return allow_parts(node);
  }

  [[nodiscard]] bool allow_command(const Node& node) {
    if (node.parts.size() < 2 || part(node, 1).kind != NodeKind::string) return false;
    if (!allow_parts(node, 2)) return false;
    const std::string name = base::lower_of(part(node, 1).text);
    if (holds(keyless, name)) return true;
    const std::optional<KeyPositions> positions = keys_of_(name);
    if (!positions || positions->first < 1 || positions->step < 1) return false;
    return has_keys_at(node, *positions);
  }
  /// Arguments are counted as in redis-server: the name is number 0, which is part 1 of the node.
  [[nodiscard]] bool has_keys_at(const Node& node, const KeyPositions& positions) const {
    const auto words = static_cast<int>(node.parts.size()) - 1;
    const Node& end = part(node, node.parts.size() - 1);
    // The last one may return any number of values.
    const bool is_open =
        end.kind == NodeKind::call || end.kind == NodeKind::method || end.kind == NodeKind::varargs;
    const bool ends_in_keys = is_over_keys(end, "unpack");
    int last = positions.last;
    if (last < 0) last = is_open ? std::numeric_limits<int>::max() : words + last;
    for (int at = positions.first; at <= last; at += positions.step) {
      if (is_open && at >= words - 1) return ends_in_keys;
      if (at >= words) return true;
      if (!is_key(part(node, static_cast<std::size_t>(at) + 1))) return false;
    }
    return true;
  }

  const Tree& tree_;
  KeysOf keys_of_;
  std::vector<Local> locals_;
};

}  // namespace

bool declares_keys(const Tree& tree, KeysOf keys_of) {
  return Proof{tree, keys_of}.holds_for_all();
}

}  // namespace semel::lua
