#include "storage/joint/effect_families.hpp"

#include <rocksdb/comparator.h>
#include <rocksdb/table.h>

#include <utility>

namespace semel::storage {
namespace {

/// Why nothing may be written to a family with these options; empty: it may.
template <class Options>
std::string refusal_of(const Options& options) {
  const std::string table = options.table_factory->Name();
  if (options.comparator->timestamp_size() != 0) return "has timestamps in its keys";
  // Other forms of tables refuse keys by their length.
  if (table != rocksdb::TableFactory::kBlockBasedTableName())
    return "has tables of the form " + table + ", allowed BlockBasedTable";
  if constexpr (requires { options.disallow_memtable_writes; }) {
    if (options.disallow_memtable_writes) return "takes no writes (disallow_memtable_writes)";
  }
  return {};
}

}  // namespace

void EffectFamilies::add(rocksdb::ColumnFamilyHandle& family, bool is_own) {
  Family added{&family, {}, {}, is_own};
  rocksdb::ColumnFamilyDescriptor descriptor;
  const rocksdb::Status read = family.GetDescriptor(&descriptor);
  const std::string refusal = read.ok() ? refusal_of(descriptor.options) : read.ToString();
  if (is_own) {
    added.refused = "the column family number " + std::to_string(family.GetID()) + ", '" +
                    family.GetName() + "', is Semel's own";
  } else if (!refusal.empty()) {
    added.refused = "the column family '" + family.GetName() + "' " + refusal;
  }
  added.merge_operator = descriptor.options.merge_operator;
  const base::MutexLock lock{mutex_};
  families_[family.GetID()] = std::move(added);
}

void EffectFamilies::set_dropped(std::uint32_t id) {
  const base::MutexLock lock{mutex_};
  const auto found = families_.find(id);
  if (found == families_.end()) return;  // made after the storage was opened: unknown anyway
  found->second.refused = "the column family '" + found->second.handle->GetName() + "' was dropped";
}

EffectFamilies::Family EffectFamilies::find(std::uint32_t id) const {
  const base::MutexLock lock{mutex_};
  const auto found = families_.find(id);
  if (found != families_.end()) return found->second;
  return {nullptr,
          "the column family number " + std::to_string(id) + " was not named to open_storage"};
}

}  // namespace semel::storage
