#include "engine/objects/large_object.hpp"

#include <thread>
#include <utility>

#include "engine/objects/tree_pieces.hpp"

namespace semel::engine {

namespace {

Handle handle_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) / 8;
}

}  // namespace

LargeChainLock::LargeChainLock(LargeChain& chain) noexcept : chain_(chain) {
  for (unsigned spins = 0;; ++spins) {
    std::uint32_t is_locked = 0;
    // mo: acquire [large.chain]; failure relaxed: it tries again.
    if (chain_.lock.compare_exchange_weak(is_locked, 1, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      return;
    }
    if (spins > 100) std::this_thread::yield();
  }
}

LargeChainLock::~LargeChainLock() {
  chain_.lock.store(0, std::memory_order_release);  // mo: release [large.chain]
}

// --- records ------------------------------------------------------------------------------------

void name_large_object(const LargeObject& object, std::string& to) {
  to.assign(large_record_bytes, '\0');
  to[0] = large_form;
  const LargeObject* const address = &object;
  std::memcpy(to.data() + 8, &address, sizeof address);
}

bool is_newest(const LargeObject& object) noexcept {
  // mo: relaxed [large.chain]: a change asks again under the lock.
  return object.chain->newest.load(std::memory_order_relaxed) == &object;
}

void share(LargeObject& object) noexcept {
  const LargeChainLock lock{*object.chain};
  SEMEL_ASSERT(object.records != 0);
  ++object.records;
}

void pack(const LargeElements& all, std::uint64_t element_bytes, ElementParts parts,
          std::string& to) {
  const auto elements = static_cast<std::size_t>(all.size());
  SEMEL_ASSERT(elements != 0);
  PackedWriter writer{to, elements, packed_head_bytes(elements) + element_bytes, parts};
  all.each(0, elements, [&](const Element& element) { return writer.add(element), true; });
  writer.end();
}

namespace {

const LargeHashRules* hash_rules(Kind kind, Bytes record) noexcept {
  return kind == Kind::hash ? large_hash_rules(record) : nullptr;
}

}  // namespace

Bytes whole_bytes(Kind kind, Bytes record, std::string& scratch) {
  const LargeObject* const object = large_object_of(kind, record);
  if (object == nullptr) return record;
  if (const LargeHashRules* const hash = hash_rules(kind, record)) {
    hash->pack(record, scratch);
    return scratch;
  }
  pack(object->elements(), object->element_bytes, parts_of(kind), scratch);
  return scratch;
}

std::size_t whole_size(Kind kind, Bytes record) noexcept {
  const LargeObject* const object = large_object_of(kind, record);
  if (object == nullptr) return record.size();
  if (const LargeHashRules* const hash = hash_rules(kind, record)) return hash->whole_size(record);
  return packed_head_bytes(object->elements().size()) + object->element_bytes;
}

// --- freeing ------------------------------------------------------------------------------------

void LargeObjectGarbage::release(LargeObject& object, NodeMemory& memory) noexcept {
  LargeChain* const chain = object.chain;
  bool is_chain_gone = false;
  {
    const LargeChainLock lock{*chain};
    SEMEL_ASSERT(object.records != 0);
    if (--object.records != 0) return;
    LargeObject* const before = object.before;
    LargeObject* const after = object.after;
    if (before != nullptr) before->after = after;
    if (after != nullptr) {
      after->before = before;
    } else {
      chain->newest.store(before, std::memory_order_relaxed);  // mo: relaxed [large.chain]
    }
    if (after == nullptr && before != nullptr) {
      before->dead = 0;  // it has these nodes, and nothing newer is there that has not
      SEMEL_ASSERT(object.dead == 0);
      free_newer(memory, object.root, before->number);
      free_newer(memory, object.index, before->number);
    } else if (before != nullptr) {
      for (Handle dead = std::exchange(object.dead, 0); dead != 0;) {
        const Handle next = memory.link(dead);
        if (memory.stamp(dead) > before->number) {
          memory.free(dead);
        } else {
          memory.set_link(dead, std::exchange(before->dead, dead));
        }
        dead = next;
      }
    }
    if (before != nullptr || after != nullptr) object.root = object.index = 0;  // others have them
    is_chain_gone = before == nullptr && after == nullptr;
    object.before = nullptr;
  }
  if (is_chain_gone) memory.free(handle_of(chain));
  // The roots' links lead through the nodes of a tree that are to be freed.
  for (const Handle root : {object.root, object.index}) {
    if (root != 0) memory.set_link(root, 0);
  }
  std::size_t budget = nodes_at_once;
  if (free_nodes(object, memory, budget)) return memory.free(handle_of(&object));
  add(object);
}

bool LargeObjectGarbage::free_nodes(LargeObject& object, NodeMemory& memory,
                                    std::size_t& budget) noexcept {
  for (; object.dead != 0; --budget) {
    if (budget == 0) return false;
    const Handle dead = object.dead;
    object.dead = memory.link(dead);
    memory.free(dead);
  }
  for (Handle* const stack : {&object.root, &object.index}) {
    for (; *stack != 0; --budget) {
      if (budget == 0) return false;
      const Handle handle = *stack;
      *stack = memory.link(handle);
      const TreeNode node{memory, handle};
      each_run(node, [&](Handle run) {
        memory.free(run);
        if (budget > 1) --budget;  // a leaf of a list may have more than two hundred
      });
      for (unsigned i = 0; !node.is_leaf() && i < node.entries(); ++i) {
        const Handle child = node.child(i).node;
        memory.set_link(child, std::exchange(*stack, child));
      }
      memory.free(handle);
    }
  }
  return true;
}

void LargeObjectGarbage::add(LargeObject& object) noexcept {
  const base::MutexLock lock{mutex_};
  object.after = first_;
  first_ = &object;
  first_hint_.store(first_, std::memory_order_relaxed);  // mo: relaxed: a hint
}

bool LargeObjectGarbage::free_some(NodeMemory& memory) noexcept {
  base::MutexLock lock{mutex_, std::defer_lock};
  if (!lock.try_lock()) return false;
  for (std::size_t budget = nodes_at_once; first_ != nullptr;) {
    if (!free_nodes(*first_, memory, budget)) return true;
    LargeObject* const gone = first_;
    first_ = gone->after;
    first_hint_.store(first_, std::memory_order_relaxed);  // mo: relaxed: a hint
    memory.free(handle_of(gone));
  }
  return false;
}

}  // namespace semel::engine
