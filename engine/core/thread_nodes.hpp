// Nodes of large objects from the memory of one thread.
#pragma once

#include "engine/memory/arena.hpp"
#include "engine/memory/threads.hpp"
#include "engine/objects/draft_nodes.hpp"

namespace semel::engine {

/// Charged to the limit as records are. Of the thread that owns the context.
class ThreadNodes final : public NodePool {
 public:
  /// `is_precious`: also what grows may use the reserve of the limit.
  ThreadNodes(Arena& arena, ThreadContext& context, bool is_precious) noexcept
      : arena_(arena), context_(context), is_precious_(is_precious) {}

  [[nodiscard]] Handle allocate(std::size_t bytes) noexcept override {
    const Region::Use use = grows_ && !is_precious_ ? Region::Use::record : Region::Use::structure;
    const Handle handle = context_.cache.allocate_node(bytes, use);
    if (handle == 0) return 0;
    context_.bump(Count::bytes_nodes, arena_.bytes_at(handle));
    return reinterpret_cast<std::uintptr_t>(arena_.region().at(handle)) / 8;
  }
  void free(Handle node) noexcept override {
    const Handle handle = arena_.region().handle_of(writable(node));
    context_.bump(Count::bytes_nodes, 0 - std::uint64_t{arena_.bytes_at(handle)});
    context_.cache.free(handle);
  }
  void note_dead(Handle node) noexcept override {
    context_.large_bytes += arena_.bytes_at(arena_.region().handle_of(writable(node)));
  }
  void set_growing(bool grows) noexcept override { grows_ = grows; }

 private:
  Arena& arena_;
  ThreadContext& context_;
  const bool is_precious_;
  bool grows_ = true;
};

}  // namespace semel::engine
