#include "engine/core/large_records.hpp"

#include <utility>

namespace semel::engine {

void LargeRecords::release_large(ThreadContext& context, Handle record) noexcept {
  const Entry& entry = keys_.entry(record);
  ThreadNodes nodes{arena_, context, true};
  garbage_.release(*large_object_of(entry), nodes);
}

/// Nodes that a new version does without have been noted by the change that made it.
void LargeRecords::note_retired(ThreadContext& context, LargeObject& object) noexcept {
  // Without the lock of the chain: the count decides only when memory is collected.
  if (is_newest(object)) context.large_bytes += object.element_bytes;
  if (context.large_bytes >= step_bytes) context.drain_due = true;
}

void LargeRecords::collect_if_due(ThreadContext& context) noexcept {
  if (context.large_bytes < step_bytes) return;
  const std::size_t bytes = std::exchange(context.large_bytes, 0);
  threads_.collect_now(context, bytes < collect_bytes);
  // A release frees little at once; what it leaves must not grow faster than it is freed.
  constexpr unsigned batches = 16;
  static_cast<void>(free_some(context, batches));
}

bool LargeRecords::free_some(ThreadContext& context, unsigned times) noexcept {
  if (garbage_.is_empty()) return false;
  ThreadNodes nodes{arena_, context, true};
  const std::uint64_t before = context.count(Count::bytes_nodes);
  while (times-- != 0 && garbage_.free_some(nodes)) {
  }
  context.cache.flush();
  return context.count(Count::bytes_nodes) != before;
}

}  // namespace semel::engine
