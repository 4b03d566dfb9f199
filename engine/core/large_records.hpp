// Records that name large objects: how they and the nodes of their objects are given back.
#pragma once

#include "engine/core/thread_nodes.hpp"
#include "engine/keys/key_space.hpp"
#include "engine/objects/large_object.hpp"

namespace semel::engine {

/// Thread-safe.
class LargeRecords final : public LargeRecordSink {
 public:
  LargeRecords(Arena& arena, KeySpace& keys, Threads& threads) noexcept
      : arena_(arena), keys_(keys), threads_(threads) {
    threads.serve(*this);
  }

  /// Frees a record of any kind when no reader has it any more. Inside an operation.
  void retire(ThreadContext& context, const Entry& record) noexcept;
  /// Of a record that is about to be freed.
  void release_large(ThreadContext& context, Handle record) noexcept override;
  /// Frees up to so many times LargeObjectGarbage::nodes_at_once nodes that wait. True: memory came
  /// free.
  bool free_some(ThreadContext& context, unsigned times) noexcept;

 private:
  Arena& arena_;
  KeySpace& keys_;
  Threads& threads_;
  LargeObjectGarbage garbage_;
};

}  // namespace semel::engine
