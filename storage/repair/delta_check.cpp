#include "storage/repair/delta_check.hpp"

#include <algorithm>

#include "storage/log/mutation_codec.hpp"

namespace semel::storage {

void DeltaCheck::add(const Mutation& mutation) {
  if (mutation.type != Mutation::Type::put) return;
  if (is_delta(mutation)) {
    objects_[{mutation.db, std::string{mutation.key}}].deltas[mutation.version] = {mutation.base,
                                                                                   mutation.due};
  } else if (may_be_base(mutation)) {
    objects_[{mutation.db, std::string{mutation.key}}].whole.insert(mutation.version);
  }
}

bool DeltaCheck::needs_second_pass() {
  for (const auto& [key, object] : objects_) {
    std::set<Version> there = object.whole;
    for (const auto& [version, delta] : object.deltas) {
      if (there.contains(delta.base)) {
        there.insert(version);
      } else if (!there.contains(version)) {
        orphans_[key].due[version] = delta.due;
      }
    }
  }
  objects_.clear();
  return !orphans_.empty();
}

void DeltaCheck::add_again(const Mutation& mutation) {
  if (mutation.type == Mutation::Type::flush) {
    Version& flushed = flushed_[mutation.db];
    flushed = std::max(flushed, mutation.version);
    return;
  }
  const bool is_record =
      mutation.type == Mutation::Type::put || mutation.type == Mutation::Type::erase;
  if (!is_record) return;
  const auto found = orphans_.find({mutation.db, std::string{mutation.key}});
  if (found == orphans_.end() || found->second.due.contains(mutation.version)) return;
  found->second.newest = std::max(found->second.newest, mutation.version);
}

std::size_t DeltaCheck::missing(Timestamp now) const {
  return static_cast<std::size_t>(
      std::count_if(orphans_.begin(), orphans_.end(), [&](const auto& each) {
        const auto flushed = flushed_.find(each.first.first);
        const Version floor = std::max(each.second.newest + 1,
                                       flushed == flushed_.end() ? Version{0} : flushed->second);
        const auto& due = each.second.due;
        return std::any_of(due.lower_bound(floor), due.end(),
                           [&](const auto& delta) { return delta.second > now; });
      }));
}

bool DeltaCheck::is_orphan(std::uint8_t db, Bytes key, Version version) const {
  const auto found = orphans_.find({db, std::string{key}});
  return found != orphans_.end() && found->second.due.contains(version);
}

}  // namespace semel::storage
