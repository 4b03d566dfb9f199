// Records that name large objects: how they and the nodes of their objects are given back.
#pragma once

#include "engine/core/thread_nodes.hpp"
#include "engine/keys/key_space.hpp"
#include "engine/objects/large_object.hpp"

namespace semel::engine {

/// Null: the record names no large object.
[[nodiscard]] inline LargeObject* large_object_of(const Entry& entry) noexcept {
  const Kind kind = entry.kind();
  return may_be_large(kind) ? large_object_of(kind, entry.value()) : nullptr;
}

/// Thread-safe.
class LargeRecords final : public LargeRecordSink {
 public:
  LargeRecords(Arena& arena, KeySpace& keys, Threads& threads) noexcept
      : arena_(arena), keys_(keys), threads_(threads) {
    threads.serve(*this);
  }

  /// Frees a record of any kind when no reader has it any more. Inside an operation. `bytes`: what
  /// it takes from the arena.
  void retire(ThreadContext& context, const Entry& record, std::size_t bytes) noexcept {
    Handle handle = arena_.region().handle_of(&record);
    if (LargeObject* const large = large_object_of(record)) [[unlikely]] {
      handle |= RetireList::large_bit;
      note_retired(context, *large);
      // Nodes wait with it: about as many as its own change has made. Memory that waits for long
      // is out of the cache when it is used again.
      bytes += large->made_bytes + sizeof(LargeObject) + large->ends.bytes();
    }
    threads_.retire_record(context, handle, bytes);
  }
  void retire(ThreadContext& context, const Entry& record) noexcept {
    retire(context, record, Arena::rounded(record.bytes()));
  }
  /// Of a record that is about to be freed.
  void release_large(ThreadContext& context, Handle record) noexcept override;
  /// Frees up to so many times LargeObjectGarbage::nodes_at_once nodes that wait. True: memory came
  /// free.
  bool free_some(ThreadContext& context, unsigned times) noexcept;
  /// What the nodes of retired records take may be a thousand times what the records take, and the
  /// thread's next calls may be far off. Called between calls, when ThreadContext::drain_due.
  void collect_if_due(ThreadContext& context) noexcept;

 private:
  /// After so many bytes of nodes an epoch ends. The nodes that it frees fit into the thread's own
  /// stacks, which hand them out again while they are in the cache.
  static constexpr std::size_t step_bytes = 64 * 1024;
  /// So much came at once: it is freed to the end, and all threads may use it.
  static constexpr std::size_t collect_bytes = 256 * 1024;

  static void note_retired(ThreadContext& context, LargeObject& object) noexcept;

  Arena& arena_;
  KeySpace& keys_;
  Threads& threads_;
  LargeObjectGarbage garbage_;
};

}  // namespace semel::engine
