#include "engine/core/large_records.hpp"

namespace semel::engine {

void LargeRecords::retire(ThreadContext& context, const Entry& record) noexcept {
  Handle handle = arena_.region().handle_of(&record);
  if (large_object_of(record.kind(), record.value()) != nullptr) [[unlikely]]
    handle |= RetireList::large_bit;
  threads_.retire_record(context, handle, Arena::rounded(record.bytes()));
}

void LargeRecords::release_large(ThreadContext& context, Handle record) noexcept {
  const Entry& entry = keys_.entry(record);
  ThreadNodes nodes{arena_, context, true};
  garbage_.release(*large_object_of(entry.kind(), entry.value()), nodes);
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
