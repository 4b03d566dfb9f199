#include "engine/keys/records.hpp"

#include <thread>

#include "engine/objects/large_object.hpp"

namespace semel::engine {

const Entry* make_delete_marker(const Region& region, ThreadContext& context, std::uint8_t db,
                                Bytes key, Version version, Timestamp end, Region::Use use) {
  const std::int64_t ms = end.time_since_epoch().count();
  const Bytes value{reinterpret_cast<const char*>(&ms), sizeof ms};
  return make_entry(region, context, {Kind::string, db, Timestamp{}, version}, key, value, use);
}

void fill_mutation(Mutation& mutation, const Entry& entry, std::string& scratch) {
  fill_mutation_with(mutation, entry, whole_bytes(entry.kind(), entry.value(), scratch));
}

void fill_mutation_with(Mutation& mutation, const Entry& entry, Bytes value) noexcept {
  mutation.type = Mutation::Type::put;
  mutation.kind = entry.kind();
  mutation.db = entry.db();
  mutation.version = entry.version();
  mutation.due = mutation.keep_until = entry.due();
  mutation.key = entry.key();
  fill_value(entry.kind(), value, mutation);
}

void wait_for_append(const Entry& seen) noexcept {
  for (unsigned spins = 0; seen.pending(); ++spins) {
    if (spins > 1000) std::this_thread::yield();
  }
}

}  // namespace semel::engine
