#include "engine/core/large_records.hpp"

namespace semel::engine {

void LargeRecords::release_large(ThreadContext& context, Handle record) noexcept {
  const Entry& entry = keys_.entry(record);
  ThreadNodes nodes{arena_, context, true};
  garbage_.release(*large_object_of(entry), nodes);
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
