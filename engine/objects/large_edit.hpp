// A change of a large object, from its newest version to the one that follows.
#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "engine/objects/draft_nodes.hpp"
#include "engine/objects/hash_tree.hpp"
#include "engine/objects/list_edit.hpp"
#include "engine/objects/tree_builder.hpp"
#include "engine/objects/tree_edit.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

/// Of a sorted set: the first bytes of a key; the rest is its member.
inline constexpr std::size_t index_skip = 8;

[[nodiscard]] inline TreeBuilder::Of built_of(Kind kind) noexcept {
  if (kind == Kind::list) return TreeBuilder::Of::list;
  return kind == Kind::stream ? TreeBuilder::Of::stream : TreeBuilder::Of::keys;
}

/// Of a sorted set by its keys, or of a hash by its ends. False: there is no memory.
[[nodiscard]] bool build_index(TreeBuilder& builder, std::vector<Bytes>& keys,
                               std::vector<std::string>& ends);

/// Of one thread. After a failure it goes on, and is not to be published. std::bad_alloc.
class LargeEdit final : public Publication {
 public:
  /// Of an object without elements, with a chain of its own. `lists` outlives it: for what it notes
  /// down.
  LargeEdit(NodePool& pool, Kind kind, std::pmr::memory_resource& lists);
  /// Of a version that a record names, inside the operation that has found it.
  LargeEdit(NodePool& pool, Kind kind, std::pmr::memory_resource& lists, LargeObject& from);
  ~LargeEdit() override;
  LargeEdit(const LargeEdit&) = delete;
  LargeEdit& operator=(const LargeEdit&) = delete;

  /// Of a hash that is to be built.
  void set_seed(std::uint64_t seed) noexcept { seed_ = seed; }
  /// Makes it a new object with a chain of its own: `walk(add)` calls `add(Element)` for its
  /// elements in order. Their bytes live until the walk has ended, and may be this edit's own.
  template <class Walk>
  void build(Walk&& walk);

  /// added, replaced, nothing or no_memory.
  TreeChange put(Bytes key, Bytes value);
  /// erased, nothing or no_memory.
  TreeChange erase(Bytes key);
  /// Of a sorted set, the same member with another score: replaced, nothing (`key` is not there) or
  /// no_memory.
  TreeChange move(Bytes key, Bytes to);
  void insert_at(std::uint64_t rank, Bytes value);
  void set_at(std::uint64_t rank, Bytes value);
  void erase_at(std::uint64_t rank);

  [[nodiscard]] Tree tree() const noexcept { return {nodes_of_process(), trees_->main->root()}; }
  [[nodiscard]] Tree index() const noexcept { return {nodes_of_process(), trees_->index->root()}; }
  /// What tree() has, and, of a list, its ends.
  [[nodiscard]] LargeElements elements() const noexcept { return list_.elements(tree()); }
  [[nodiscard]] std::uint64_t element_bytes() const noexcept { return element_bytes_; }
  [[nodiscard]] HashTrees hash() const noexcept { return {tree(), index(), seed_, field_bytes_}; }
  /// There was no memory for all of it.
  [[nodiscard]] bool has_failed() const noexcept {
    return has_failed_ || trees_->nodes.has_failed();
  }

  /// Makes the version, and `record` the bytes that name it. False: no memory.
  [[nodiscard]] bool finish(std::string& record);
  [[nodiscard]] bool begin() noexcept override;
  void end(bool is_published) noexcept override;

 private:
  struct Trees {
    Trees(NodePool& pool, std::pmr::memory_resource& lists) noexcept : nodes(pool, lists) {}
    /// Its edits look at no node that may be gone by now: what they have made is the nodes'.
    ~Trees() {
      nodes.abandon();
      if (main) main->commit();
      if (index) index->commit();
    }
    Trees(const Trees&) = delete;
    Trees& operator=(const Trees&) = delete;
    void open(std::uint64_t stamp, Handle root, Handle index_root, std::pmr::memory_resource& lists,
              Kind kind) noexcept {
      main.emplace(nodes, root, stamp, &lists, kind == Kind::stream);
      index.emplace(nodes, index_root, stamp, &lists);
    }
    DraftNodes nodes;
    std::optional<TreeEdit> main;
    std::optional<TreeEdit> index;
  };
  [[nodiscard]] bool has_index() const noexcept { return kind_ == Kind::sorted_set; }
  [[nodiscard]] bool note(TreeChange change) noexcept {
    ++changes_;
    has_failed_ = has_failed_ || change == TreeChange::no_memory;
    return change != TreeChange::no_memory;
  }
  [[nodiscard]] TreeChange put_field(Bytes key, Bytes value);
  [[nodiscard]] TreeChange erase_field(Bytes key);
  /// Of a field, in the index tree; 0: it has none.
  [[nodiscard]] bool move_end(Bytes key, std::uint64_t from, std::uint64_t to);

  NodePool& pool_;
  const Kind kind_;
  std::pmr::memory_resource& lists_;
  LargeObject* from_ = nullptr;      // null: it begins a chain
  std::uint64_t element_bytes_ = 0;  // not of a hash
  FieldBytes field_bytes_;           // of a hash
  std::uint64_t seed_ = 0;           // the same
  ListEdit list_;                    // of a list
  bool has_grown_ = false;           // an element of a list was put or set
  bool has_failed_ = false;
  std::uint32_t changes_ = 0;
  // One of them has the trees; the other is for build(), which reads those that it replaces. They
  // are no array: the compiler would fill its 1,344 bytes with zeros for each change.
  std::optional<Trees> first_place_;
  std::optional<Trees> second_place_;
  Trees* trees_ = nullptr;       // in one of them; never null
  LargeObject* made_ = nullptr;  // of finish(), until it is published
  std::optional<LargeChainLock> lock_;
};

template <class Walk>
void LargeEdit::build(Walk&& walk) {
  const ElementParts parts = parts_of(kind_);
  std::uint64_t bytes = 0;
  field_bytes_ = {};
  std::vector<Bytes> keys;        // of a sorted set
  std::vector<std::string> ends;  // of a hash, as the index tree has them
  std::optional<Trees>& old_place = first_place_ ? first_place_ : second_place_;
  std::optional<Trees>& new_place = first_place_ ? second_place_ : first_place_;
  Trees* const trees = &new_place.emplace(pool_, lists_);
  Handle root = 0;
  Handle index_root = 0;
  bool done = true;
  {
    TreeBuilder builder{trees->nodes, 1, built_of(kind_)};
    walk([&](const Element& element) {
      done = done && builder.add(element.key, element.value);
      if (kind_ == Kind::hash) {
        const std::uint64_t end = end_in(element.value);
        field_bytes_ += field_bytes(element.key.size() - field_skip, element.value.size(), end);
        if (end != 0) ends.push_back(end_key(end, element.key));
        return;
      }
      bytes += packed_bytes(element, parts);
      if (has_index() && element.key.size() >= index_skip) keys.push_back(element.key);
    });
    TreeBuilder index_builder{trees->nodes, 1};
    done = done && builder.finish(root) && build_index(index_builder, keys, ends) &&
           index_builder.finish(index_root);
  }
  has_failed_ = has_failed_ || !done;
  trees->open(1, done ? root : 0, done ? index_root : 0, lists_, kind_);
  trees_ = trees;
  old_place.reset();
  list_.clear();
  element_bytes_ = bytes;
  from_ = nullptr;
}

}  // namespace semel::engine
