// The nodes of a change of a large object: those that it makes, and those that it does without.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "engine/objects/large_object.hpp"

namespace semel::engine {

/// Where the nodes of an engine come from. Of one thread.
class NodePool : public NodeMemory {
 public:
  NodePool() noexcept : NodeMemory(nullptr) {}
  /// The next nodes are for a change that makes the object larger, or for one that does not, which
  /// may use the reserve of the limit.
  virtual void set_growing(bool grows) noexcept = 0;
  /// A node of an older version has no place in the newest any more, and waits for readers.
  virtual void note_dead(Handle) noexcept {}

  bool reserve_retired(std::size_t) noexcept final { return true; }
  void retire(Handle) noexcept final { SEMEL_ASSERT(false); }
};

/// Takes nodes of a pool, and gives back those that were not published. Where the pool has none any
/// more it takes the heap's, so that the change goes to its end; then has_failed(), and it must not
/// be published.
class DraftNodes final : public NodeMemory {
 public:
  /// `lists` outlives it: for what it notes down.
  DraftNodes(NodePool& pool, std::pmr::memory_resource& lists) noexcept
      : NodeMemory(nullptr), pool_(pool), made_(&lists) {}
  ~DraftNodes() override { abandon(); }

  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  [[nodiscard]] NodePool& pool() noexcept { return pool_; }
  /// The bytes of all nodes that it has taken, those that it has freed again among them.
  [[nodiscard]] std::uint32_t made_bytes() const noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(made_bytes_, ~std::uint32_t{0}));
  }

  /// 0: the heap has none either.
  [[nodiscard]] Handle allocate(std::size_t bytes) noexcept override;
  void free(Handle handle) noexcept override;
  [[nodiscard]] bool reserve_retired(std::size_t) noexcept override { return true; }
  /// Of a node of the version before. Without publish(), nothing happens to it.
  void retire(Handle handle) noexcept override {
    if (before_ == nullptr) return;
    set_link(handle, std::exchange(before_->dead, handle));
    pool_.note_dead(handle);
  }

  /// The made nodes are the new version's from now on, and nodes retired after this are dead nodes
  /// of `before`; null: there is none. Under the lock of its chain.
  void publish(LargeObject* before) noexcept {
    SEMEL_ASSERT(!has_failed_);
    made_.clear();
    before_ = before;
  }
  /// Frees all that was made and not published. Looks at no other node.
  void abandon() noexcept;

 private:
  NodePool& pool_;
  std::pmr::vector<Handle> made_;  // a node's link is its place here
  std::vector<std::unique_ptr<std::uint64_t[]>> heap_;
  LargeObject* before_ = nullptr;
  std::uint64_t made_bytes_ = 0;
  bool has_failed_ = false;
};

}  // namespace semel::engine
