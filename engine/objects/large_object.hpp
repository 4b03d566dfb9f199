// A version of a large object: the roots of its trees, and what frees its nodes.
//
// The record of a large object has 16 bytes, which name its newest version; that of a hash has more
// (engine/rules/large_hash.hpp). Nodes lie beside the
// records, and versions share them. A change makes the version after the newest; the versions of
// one object that something still names are a chain, from old to new:
//
//   V1 <-> V4 <-> V5      V1 is named by a record that a snapshot has kept
//
// A node has as stamp the number of the version that made it. The nodes that V4 has and V5 has not
// are the dead nodes of V4. When no record names a version any more, it leaves the chain. Of its
// dead nodes those that are newer than the version before are freed, and the others become dead
// nodes of that one. So a node is freed as soon as no version has it, however long an old one
// stays. A newest version that leaves is freed with all nodes that the one before has not.
//
// A version that is not the newest of its chain (of a copied key whose original has been changed)
// is not changed: a change of it begins a chain of its own, with nodes of its own.
//
// Concurrency
//   readers  take no lock and write nothing: an epoch keeps the record, and that the version.
//   [large.chain]  a lock of the chain: acquire by compare-and-set, release by store. It guards the
//                  links of the chain, the counts of records and the dead nodes, for some
//                  instructions, and one compare-and-set of the table. Which version is the newest
//                  is read without it as well, relaxed: who begins a change of it asks again under
//                  the lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/mutex.hpp"
#include "engine/kinds/list_end.hpp"
#include "engine/objects/object_parts.hpp"
#include "engine/objects/tree.hpp"
#include "engine/rules/large_hash.hpp"

namespace semel::engine {

struct LargeChain;

/// Cannot allocate: for those who only read.
class ProcessNodes final : public NodeMemory {
 public:
  constexpr ProcessNodes() noexcept : NodeMemory(nullptr) {}
  Handle allocate(std::size_t) noexcept override { return 0; }
  void free(Handle) noexcept override { SEMEL_ASSERT(false); }
  bool reserve_retired(std::size_t) noexcept override { return false; }
  void retire(Handle) noexcept override { SEMEL_ASSERT(false); }
};
/// There from the start of the process: a reader asks for it many times, and pays for no check.
inline constinit const ProcessNodes process_nodes;

/// Nodes by their address in the process, for those who only read.
[[nodiscard]] inline const NodeMemory& nodes_of_process() noexcept {
  return process_nodes;
}

/// All elements of a large object. Of one that is no list both ends are empty.
struct LargeElements {
  Tree tree;
  EndElements head{};
  EndElements tail{};

  [[nodiscard]] std::uint64_t size() const noexcept {
    return tree.size().elements + head.size() + tail.size();
  }
  /// `rank` < size(). Of an entry of a stream, `room` may have its bytes: until it is used again.
  [[nodiscard]] Element at(std::uint64_t rank, EntryRoom& room) const noexcept;
  /// Calls `visit(Element)` for ranks `from` .. `to` - 1, in order, until it returns false. The
  /// bytes of a stream's entry live for one call.
  template <class Visit>
  void each(std::uint64_t from, std::uint64_t to, Visit&& visit) const;
  /// The same from `to` - 1 down to `from`.
  template <class Visit>
  void each_back(std::uint64_t from, std::uint64_t to, Visit&& visit) const;
};

struct LargeObject {
  // These never change.
  LargeChain* chain;
  std::uint64_t number;         ///< the stamp of its nodes
  std::uint64_t element_bytes;  ///< of the elements, packed
  Handle root;
  Handle index;              ///< of a sorted set: member -> score; of a hash: ends; else 0
  std::uint64_t seed;        ///< of a hash: what its order is made with
  std::uint64_t bare_bytes;  ///< of a hash: of its elements without ends, packed
  std::uint32_t made_bytes;  ///< of the nodes of its change, or more: an estimate
  ListEndSizes ends;         ///< of a list; what they have lies behind this
  // These are the chain's.
  LargeObject* before;
  LargeObject* after;
  std::uint64_t records;  ///< that name it
  Handle dead;            ///< the first of its dead nodes, which their links chain

  [[nodiscard]] Tree tree() const noexcept { return {nodes_of_process(), root}; }
  [[nodiscard]] Tree index_tree() const noexcept { return {nodes_of_process(), index}; }
  [[nodiscard]] LargeElements elements() const noexcept {
    const auto* const lengths = reinterpret_cast<const std::uint8_t*>(this + 1);
    const auto* const bytes = reinterpret_cast<const char*>(lengths + ends.head + ends.tail);
    return {tree(),
            {lengths, bytes, ends.head},
            {lengths + ends.head, bytes + ends.head_bytes, ends.tail}};
  }
};

struct LargeChain {
  std::atomic<std::uint32_t> lock{0};
  /// Written under the lock. Who only wants to know whether to try a change reads it without.
  std::atomic<LargeObject*> newest{nullptr};
};

/// Of one thread.
class LargeChainLock {
 public:
  explicit LargeChainLock(LargeChain& chain) noexcept;
  ~LargeChainLock();
  LargeChainLock(const LargeChainLock&) = delete;
  LargeChainLock& operator=(const LargeChainLock&) = delete;

 private:
  LargeChain& chain_;
};

// --- records ------------------------------------------------------------------------------------

/// The version that a record names; null: the record has its elements itself. Bytes that come from
/// outside the process never name one: they do not pass is_sound().
[[nodiscard]] inline LargeObject* large_object_of(Kind kind, Bytes record) noexcept;
/// Makes `to` the bytes of a record that names `object`.
void name_large_object(const LargeObject& object, std::string& to);

/// Whether nothing newer is in its chain: a change of it begins no chain of its own.
[[nodiscard]] bool is_newest(const LargeObject& object) noexcept;
/// One record more names it. Only while one does.
void share(LargeObject& object) noexcept;

/// The bytes of a record as journal, disk and other engines have them: `record`, or, of a large
/// object, its elements, packed into `scratch`. std::bad_alloc.
[[nodiscard]] Bytes whole_bytes(Kind kind, Bytes record, std::string& scratch);
/// How long they are.
[[nodiscard]] std::size_t whole_size(Kind kind, Bytes record) noexcept;
/// All elements, packed. There is one at least. std::bad_alloc.
void pack(const LargeElements& all, std::uint64_t element_bytes, ElementParts parts,
          std::string& to);

inline Element LargeElements::at(std::uint64_t rank, EntryRoom& room) const noexcept {
  if (rank < head.size()) return head.element(static_cast<unsigned>(rank));
  rank -= head.size();
  const std::uint64_t in_tree = tree.size().elements;
  if (rank >= in_tree) return tail.element(static_cast<unsigned>(rank - in_tree));
  const TreeElement element = tree.at(rank).element(room);
  return {element.key, element.value};
}

template <class Visit>
void LargeElements::each(std::uint64_t from, std::uint64_t to, Visit&& visit) const {
  const std::uint64_t tree_end = head.size() + tree.size().elements;
  if (from < head.size()) {
    const auto head_end = static_cast<unsigned>(std::min<std::uint64_t>(to, head.size()));
    if (!head.each(static_cast<unsigned>(from), head_end, visit)) return;
    from = head_end;
  }
  if (from < to && from < tree_end) {
    TreeCursor at = tree.at(from - head.size());
    while (from < to && from < tree_end && at.is_in_list()) {
      const auto visit_value = [&](Bytes value) {
        return visit(Element{value.substr(0, 0), value});
      };
      const std::uint64_t passed = at.each_in_leaf(std::min(to, tree_end) - from, visit_value);
      if (passed == 0) return;
      from += passed;
    }
    EntryRoom room;
    for (; from < to && from < tree_end; ++from, at.next()) {
      const TreeElement element = at.element(room);
      if (!visit(Element{element.key, element.value})) return;
    }
  }
  if (from >= to) return;
  tail.each(static_cast<unsigned>(from - tree_end), static_cast<unsigned>(to - tree_end), visit);
}

template <class Visit>
void LargeElements::each_back(std::uint64_t from, std::uint64_t to, Visit&& visit) const {
  const std::uint64_t tree_end = head.size() + tree.size().elements;
  if (from < to && to > tree_end) {
    const std::uint64_t first = std::max(from, tree_end);
    if (!tail.each_back(static_cast<unsigned>(first - tree_end),
                        static_cast<unsigned>(to - tree_end), visit)) {
      return;
    }
    to = first;
  }
  if (from < to && to > head.size()) {
    TreeCursor at = tree.at(to - head.size());
    EntryRoom room;
    for (; from < to && to > head.size() && at.previous(); --to) {
      const TreeElement element = at.element(room);
      if (!visit(Element{element.key, element.value})) return;
    }
  }
  if (from >= to) return;
  head.each_back(static_cast<unsigned>(from), static_cast<unsigned>(to), visit);
}

inline LargeObject* large_object_of(Kind kind, Bytes record) noexcept {
  const bool names_one =
      kind == Kind::hash
          ? is_large_hash(record)
          : may_be_large(kind) && record.size() == large_record_bytes && record[0] == large_form;
  if (!names_one) return nullptr;
  LargeObject* object = nullptr;
  std::memcpy(&object, record.data() + 8, sizeof object);
  return object;
}

// --- freeing ------------------------------------------------------------------------------------

/// Versions that nothing names any more and whose nodes are yet to be freed. Thread-safe.
class LargeObjectGarbage {
 public:
  static constexpr std::size_t nodes_at_once = 256;

  /// A record that named `object` is gone. Frees what that leaves without an owner if it is little;
  /// the rest waits here.
  void release(LargeObject& object, NodeMemory& memory) noexcept;
  /// Frees some nodes of versions that wait. False: no version waits any more.
  /// Progress: takes a mutex for nodes_at_once nodes; false as well if another thread has it.
  bool free_some(NodeMemory& memory) noexcept;
  [[nodiscard]] bool is_empty() const noexcept {
    // mo: relaxed: a hint
    return first_hint_.load(std::memory_order_relaxed) == nullptr;
  }

 private:
  void add(LargeObject& object) noexcept;
  /// Frees up to `budget` nodes. True: all are gone.
  [[nodiscard]] static bool free_nodes(LargeObject& object, NodeMemory& memory,
                                       std::size_t& budget) noexcept;

  base::Mutex mutex_;
  LargeObject* first_ SEMEL_GUARDED_BY(mutex_) = nullptr;  // `after` leads to the next
  std::atomic<LargeObject*> first_hint_{nullptr};
};

}  // namespace semel::engine
